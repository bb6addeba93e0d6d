/* SPDX-License-Identifier: Apache-2.0 */
/* Who counts as one client, what counts as sharing, and who came first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/http/sharing.h"

#define PHONE  "Mozilla/5.0 (iPhone)"
#define LAPTOP "Mozilla/5.0 (X11; Linux)"

static struct tl_sharing *sharing;

static int setup(void **state)
{
    (void)state;
    sharing = tl_sharing_new(NULL);
    return sharing != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    tl_sharing_free(&sharing);
    return 0;
}

static struct tl_sharing_sight see_place(uint64_t place, const char *address, const char *agent,
                                         int64_t now_ms)
{
    struct tl_address parsed;
    assert_true(tl_address_parse(address, &parsed));
    return tl_sharing_see(sharing, "bank", 1, place, &parsed, agent, now_ms);
}

static struct tl_sharing_sight see(const char *address, const char *agent, int64_t seconds)
{
    return see_place(1, address, agent, 100000 + seconds * 1000);
}

/* Half a second later. */
static struct tl_sharing_sight see_later(const char *address, const char *agent, int64_t seconds)
{
    return see_place(1, address, agent, 100500 + seconds * 1000);
}

static void two_clients_in_turn_are_noticed_once(void **state)
{
    int noticed = 0;
    bool first_newer = false, second_newer = true, shared = false;
    (void)state;
    for (int64_t s = 0; s < 20; s++) {
        struct tl_sharing_sight sight = see("192.0.2.7", PHONE, s);
        noticed += sight.noticed;
        first_newer = first_newer || sight.newer;
        sight = see_later("198.51.100.7", LAPTOP, s);
        noticed += sight.noticed;
        second_newer = second_newer && sight.newer;
        shared = sight.shared;
    }
    assert_int_equal(noticed, 1);
    assert_true(shared);
    assert_true(second_newer);
    assert_false(first_newer);
    assert_false(see("192.0.2.7", PHONE, 20).newer);
}

/* Both come within one millisecond, again and again: the second one of them is the newer. */
static void at_the_same_time_one_is_first(void **state)
{
    struct tl_sharing_sight sight = {0};
    (void)state;
    for (int64_t s = 0; s < 10; s++) {
        assert_false(see("192.0.2.7", PHONE, s).newer);
        sight = see("198.51.100.7", LAPTOP, s);
        assert_true(sight.newer);
    }
    assert_true(sight.shared);
}

/* The same agent does not help either, while both are there. */
static void a_copied_agent_is_another_client(void **state)
{
    struct tl_sharing_sight sight = {0};
    (void)state;
    for (int64_t s = 0; s < 10; s++) {
        assert_false(see("192.0.2.7", PHONE, s).newer);
        sight = see_later("198.51.100.7", PHONE, s);
    }
    assert_true(sight.shared && sight.newer);
}

/* The life of an honest visitor, and nobody shares anything. */
static void what_is_normal(void **state)
{
    static const struct {
        const char *address, *agent;
        int64_t seconds;
    } visits[] = {
        {"192.0.2.7", PHONE, 0},       /* at home */
        {"192.0.2.99", PHONE, 1},      /* another address of the same carrier */
        {"2001:db8:1:2::3", PHONE, 2}, /* a browser that uses both families */
        {"192.0.2.7", PHONE, 3},       {"2001:db8:1:9::3", PHONE, 4},
        {"192.0.2.7", LAPTOP, 5}, /* an app and its browser, or two devices at home */
        {"192.0.2.7", PHONE, 6},       {"192.0.2.7", LAPTOP, 7},
        {"192.0.2.7", PHONE, 8},       {"203.0.113.5", PHONE, 60},   /* out of the house */
        {"203.0.113.5", PHONE, 61},    {"198.51.100.9", PHONE, 120}, /* on the train */
        {"192.0.2.7", PHONE, 200},     {"203.0.113.5", PHONE, 300},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(visits) / sizeof(visits[0]); i++) {
        struct tl_sharing_sight sight = see(visits[i].address, visits[i].agent, visits[i].seconds);
        if (sight.shared || sight.noticed || sight.newer)
            fail_msg("visit %zu", i);
    }
}

static void after_a_quiet_minute_it_is_over(void **state)
{
    (void)state;
    for (int64_t s = 0; s < 10; s++) {
        (void)see("192.0.2.7", PHONE, s);
        (void)see("198.51.100.7", LAPTOP, s);
    }
    assert_true(see("198.51.100.7", LAPTOP, 11).shared);
    assert_false(see("198.51.100.7", LAPTOP, 200).shared);
}

/* Others cannot push the first client out. */
static void the_first_stays_the_first(void **state)
{
    (void)state;
    (void)see("192.0.2.7", PHONE, 0);
    for (int i = 0; i < 50; i++) {
        char address[32];
        snprintf(address, sizeof(address), "198.51.%d.7", i);
        assert_true(see(address, LAPTOP, 1 + i / 10).newer);
    }
    assert_false(see("192.0.2.7", PHONE, 8).newer);
}

static void sessions_are_told_apart(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct tl_sharing_sight sight =
            see_place((uint64_t)i + 1, i % 2 == 0 ? "192.0.2.7" : "198.51.100.7", PHONE, 100000);
        assert_false(sight.shared || sight.newer);
    }
}

static void more_checks_than_a_person_causes(void **state)
{
    int fast = 0;
    (void)state;
    for (int i = 0; i < 5000; i++)
        fast += see_place(1, "192.0.2.7", PHONE, 100000 + i).fast;
    assert_int_equal(fast, 1);
    for (int i = 0; i < 5000; i++)
        fast += see_place(2, "192.0.2.7", PHONE, 100000 + i * INT64_C(20)).fast;
    assert_int_equal(fast, 1);
}

static void processes_see_the_same(void **state)
{
    (void)state;
    for (int64_t s = 0; s < 5; s++) {
        pid_t child = fork();
        if (child == 0) {
            (void)see("198.51.100.7", LAPTOP, s);
            _exit(0);
        }
        assert_int_equal(waitpid(child, NULL, 0), child);
        (void)see("192.0.2.7", PHONE, s);
    }
    assert_true(see("192.0.2.7", PHONE, 6).shared);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(two_clients_in_turn_are_noticed_once),
        CASE(at_the_same_time_one_is_first),
        CASE(a_copied_agent_is_another_client),
        CASE(what_is_normal),
        CASE(after_a_quiet_minute_it_is_over),
        CASE(the_first_stays_the_first),
        CASE(sessions_are_told_apart),
        CASE(more_checks_than_a_person_causes),
        CASE(processes_see_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
