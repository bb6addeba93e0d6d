/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/clock.h"

#include "ctl/up/up.h"

enum { PATIENCE_MS = 200000 };

struct fixture {
    struct tl_programs *programs;
    FILE *file;
    char *text; /* what was printed so far */
    size_t length;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct tl_error err = {0};
    assert_non_null(fixture);
    fixture->file = open_memstream(&fixture->text, &fixture->length);
    assert_non_null(fixture->file);
    fixture->programs = tl_programs_new(fixture->file, &err);
    assert_non_null(fixture->programs);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    tl_programs_free(&fixture->programs);
    fclose(fixture->file);
    free(fixture->text);
    free(fixture);
    return 0;
}

static void start_program(struct fixture *fixture, const char *role, const char *const argv[],
                          unsigned stop_stage, int64_t stop_limit_ms)
{
    struct tl_error err = {0};
    const struct tl_program_start start = {.role = role,
                                           .argv = argv,
                                           .keep_fd = -1,
                                           .stop_stage = stop_stage,
                                           .stop_limit_ms = stop_limit_ms};
    assert_true(tl_programs_add(fixture->programs, &start, &err));
}

static void start_shell(struct fixture *fixture, const char *role, const char *script)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    start_program(fixture, role, argv, 0, PATIENCE_MS);
}

static bool printed(const struct fixture *fixture, const char *part)
{
    fflush(fixture->file);
    return fixture->text != NULL && strstr(fixture->text, part) != NULL;
}

/* Turns until `part` was printed. */
static void turn_until(struct fixture *fixture, const char *part)
{
    int64_t until_ms = tl_clock_ms() + PATIENCE_MS;
    struct tl_error err = {0};
    while (!printed(fixture, part)) {
        if (tl_clock_ms() > until_ms)
            fail_msg("never printed: %s\nbut:\n%s", part, fixture->text);
        assert_true(tl_programs_turn(fixture->programs, 100, &err));
    }
}

/* Turns until a turn fails. */
static void turn_until_failure(struct fixture *fixture, struct tl_error *err)
{
    int64_t until_ms = tl_clock_ms() + PATIENCE_MS;
    while (tl_programs_turn(fixture->programs, 100, err))
        assert_true(tl_clock_ms() < until_ms);
}

static void test_output_of_both_kinds(void **state)
{
    struct fixture *fixture = *state;
    start_shell(fixture, "talker", "echo one; echo two >&2; exec sleep 1000");
    turn_until(fixture, "talker     | one\n");
    turn_until(fixture, "talker     | two\n");
}

static void test_an_exit_before_all_is_up_is_a_failed_start(void **state)
{
    struct fixture *fixture = *state;
    struct tl_error err = {0};
    start_shell(fixture, "quitter", "echo why; exit 3");
    turn_until_failure(fixture, &err);
    assert_non_null(strstr(err.text, "quitter ended with status 3"));
    assert_true(printed(fixture, "quitter    | why\n"));
}

static void start_quiet(struct fixture *fixture, const char *script)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    struct tl_error err = {0};
    const struct tl_program_start start = {
        .role = "quiet", .argv = argv, .keep_fd = -1, .quiet = true, .stop_limit_ms = PATIENCE_MS};
    assert_true(tl_programs_add(fixture->programs, &start, &err));
}

static void test_a_quiet_start_is_shown_when_it_fails(void **state)
{
    struct fixture *fixture = *state;
    struct tl_error err = {0};
    start_quiet(fixture, "head -c 10000 /dev/zero | tr '\\0' x; echo; exit 3");
    turn_until_failure(fixture, &err);
    assert_true(printed(fixture, "quiet      | xxxxx"));
}

static void test_a_quiet_program_is_heard_once_all_are_up(void **state)
{
    struct fixture *fixture = *state;
    char folder[] = "/tmp/tellerline-quiet-XXXXXX", began[64], go[64], script[256];
    struct tl_error err = {0};
    assert_non_null(mkdtemp(folder));
    snprintf(began, sizeof(began), "%s/began", folder);
    snprintf(go, sizeof(go), "%s/go", folder);
    snprintf(script, sizeof(script),
             "echo early; >%s; until [ -e %s ]; do sleep 0.02; done; echo late; exec sleep 1000",
             began, go);
    start_quiet(fixture, script);
    int64_t until_ms = tl_clock_ms() + PATIENCE_MS;
    while (access(began, F_OK) != 0) {
        assert_true(tl_clock_ms() < until_ms);
        assert_true(tl_programs_turn(fixture->programs, 10, &err));
    }
    assert_true(tl_programs_turn(fixture->programs, 0, &err)); /* reads what is there by now */
    tl_programs_settled(fixture->programs);
    FILE *file = fopen(go, "w");
    assert_non_null(file);
    fclose(file);
    turn_until(fixture, "quiet      | late\n");
    assert_false(printed(fixture, "early"));
    unlink(began);
    unlink(go);
    rmdir(folder);
}

static void test_an_absent_program_is_a_failed_start(void **state)
{
    struct fixture *fixture = *state;
    const char *const argv[] = {"/nonexistent/program", NULL};
    struct tl_error err = {0};
    start_program(fixture, "absent", argv, 0, PATIENCE_MS);
    turn_until_failure(fixture, &err);
    assert_true(printed(fixture, "cannot run /nonexistent/program: No such file or directory"));
}

static void test_a_program_that_dies_is_started_again(void **state)
{
    struct fixture *fixture = *state;
    tl_programs_settled(fixture->programs);
    start_shell(fixture, "mortal", "echo process $$; exit 1");
    turn_until(fixture, "mortal ended with status 1; starting it again in ");
    const char *first = strstr(fixture->text, "mortal     | process ");
    assert_non_null(first);
    char line[64];
    snprintf(line, sizeof(line), "%.*s", (int)strcspn(first, "\n"), first);
    /* Another process says another number. */
    int64_t until_ms = tl_clock_ms() + PATIENCE_MS;
    struct tl_error err = {0};
    for (const char *next = first; next != NULL && strncmp(next, line, strlen(line)) == 0;) {
        assert_true(tl_clock_ms() < until_ms);
        assert_true(tl_programs_turn(fixture->programs, 100, &err));
        fflush(fixture->file);
        for (const char *at = fixture->text; (at = strstr(at, "mortal     | process ")) != NULL;
             at++)
            next = at;
    }
}

static void test_a_killed_program_is_started_again_even_before_all_is_up(void **state)
{
    struct fixture *fixture = *state;
    start_shell(fixture, "victim", "kill -9 $$");
    turn_until(fixture, "victim was killed by signal 9 (Killed); starting it again in ");
}

static const char *const polite[] = {
    "/bin/sh", "-c", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done", NULL};
static const char *const stubborn[] = {"/bin/sh", "-c",
                                       "trap '' TERM; echo up; while :; do sleep 0.05; done", NULL};

static void test_stop_in_order(void **state)
{
    struct fixture *fixture = *state;
    start_program(fixture, "second", polite, 1, PATIENCE_MS);
    start_program(fixture, "first", polite, 0, PATIENCE_MS);
    turn_until(fixture, "first      | up\n");
    turn_until(fixture, "second     | up\n");
    assert_true(tl_programs_stop(fixture->programs));
    assert_true(printed(fixture, "first      | bye\n"));
    assert_true(printed(fixture, "second     | bye\n"));
    assert_true(strstr(fixture->text, "first      | bye") <
                strstr(fixture->text, "second     | bye"));
}

static void test_a_program_that_does_not_end_is_killed(void **state)
{
    struct fixture *fixture = *state;
    start_program(fixture, "stubborn", stubborn, 0, 200);
    turn_until(fixture, "stubborn   | up\n");
    assert_false(tl_programs_stop(fixture->programs));
    assert_true(printed(fixture, "stubborn does not end; killing it\n"));
    assert_true(printed(fixture, "stubborn was killed by signal 9 (Killed)\n"));
}

static void test_a_second_stop_signal_kills(void **state)
{
    struct fixture *fixture = *state;
    struct tl_error err = {0};
    start_program(fixture, "stubborn", stubborn, 0, INT64_MAX);
    turn_until(fixture, "stubborn   | up\n");
    for (unsigned asked = 1; asked <= 2; asked++) {
        assert_int_equal(kill(getpid(), SIGINT), 0);
        assert_true(tl_programs_turn(fixture->programs, 1000, &err));
        assert_int_equal(tl_programs_stop_asked(fixture->programs), asked);
        usleep(600 * 1000); /* what comes sooner counts as one */
    }
    assert_false(tl_programs_stop(fixture->programs));
    assert_true(printed(fixture, "stubborn was killed by signal 9 (Killed)\n"));
}

static void test_two_stop_signals_at_once_are_one(void **state)
{
    struct fixture *fixture = *state;
    struct tl_error err = {0};
    assert_int_equal(tl_programs_stop_asked(fixture->programs), 0);
    assert_int_equal(kill(getpid(), SIGINT), 0);
    assert_int_equal(kill(getpid(), SIGTERM), 0);
    assert_true(tl_programs_turn(fixture->programs, 1000, &err));
    assert_int_equal(tl_programs_stop_asked(fixture->programs), 1);
}

static void test_children_do_not_share_our_group(void **state)
{
    struct fixture *fixture = *state;
    start_shell(fixture, "child",
                "read a b c d group rest </proc/$$/stat; test $group = $$ && echo own group; exec "
                "sleep 1000");
    turn_until(fixture, "child      | own group\n");
}

int main(void)
{
#define PROGRAMS_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        PROGRAMS_TEST(test_output_of_both_kinds),
        PROGRAMS_TEST(test_an_exit_before_all_is_up_is_a_failed_start),
        PROGRAMS_TEST(test_a_quiet_start_is_shown_when_it_fails),
        PROGRAMS_TEST(test_a_quiet_program_is_heard_once_all_are_up),
        PROGRAMS_TEST(test_an_absent_program_is_a_failed_start),
        PROGRAMS_TEST(test_a_program_that_dies_is_started_again),
        PROGRAMS_TEST(test_a_killed_program_is_started_again_even_before_all_is_up),
        PROGRAMS_TEST(test_stop_in_order),
        PROGRAMS_TEST(test_a_program_that_does_not_end_is_killed),
        PROGRAMS_TEST(test_a_second_stop_signal_kills),
        PROGRAMS_TEST(test_two_stop_signals_at_once_are_one),
        PROGRAMS_TEST(test_children_do_not_share_our_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
