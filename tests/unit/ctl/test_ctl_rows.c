/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of commands that are calls: each has its operation, and can write any answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/calls/calls.h"
#include "ctl/commands.h"

/* Each member that the text names gets a value. */
static void invent(json_t *answer, const char *text)
{
    for (const char *at = text; at != NULL && (at = strchr(at, '{')) != NULL; at++) {
        char name[40], *dot;
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(at + 1, ":}"), at + 1);
        dot = strchr(name, '.');
        if (dot != NULL) {
            *dot = '\0';
            assert_int_equal(
                json_object_set_new(answer, name, json_pack("{s:s}", dot + 1, "VALUE")), 0);
        } else {
            assert_int_equal(json_object_set_new(answer, name, json_string("VALUE")), 0);
        }
    }
}

/* What the sentence becomes. */
static void assert_said(const char *sentence, const json_t *answer)
{
    struct tl_text out = {0};
    tl_sentence_write(sentence, answer, NULL, &out);
    assert_false(out.failed);
    assert_true(out.length > 0);
    assert_null(strpbrk(out.data, "{}"));
    assert_int_equal(strstr(sentence, "{") == NULL, strstr(out.data, "VALUE") == NULL);
    tl_text_free(&out);
}

static void test_every_row_writes_its_answer(void **state)
{
    (void)state;
    size_t n, rows = 0;
    const struct tl_ctl_command *commands = tl_ctl_commands(&n);
    for (size_t i = 0; i < n; i++) {
        const struct tl_ctl_command *command = &commands[i];
        if (command->operation == NULL) {
            assert_non_null(command->run);
            continue;
        }
        json_t *answer = json_object(), *list = json_array();
        rows++;
        if (command->confirm != NULL) {
            invent(answer, command->confirm);
            assert_said(command->confirm, answer);
            assert_true((command->options & TL_OPTION_YES) != 0);
        }
        for (size_t k = 0; k < TL_SENTENCES && command->say[k].text != NULL; k++) {
            invent(answer, command->say[k].text);
            assert_said(command->say[k].text, answer);
        }
        if (command->list != NULL) {
            json_t *entry = json_object();
            for (const struct tl_member *member = command->columns; member->title != NULL;
                 member++) {
                assert_non_null(member->none);
                assert_int_equal(member->name == NULL, member->show != NULL);
                if (member->name != NULL)
                    (void)json_object_set_new(entry, member->name, json_string("VALUE"));
            }
            (void)json_array_append_new(list, entry);
            (void)json_object_set(answer, command->list, list);
        }
        tl_ctl_answer_write(command, answer, NULL);
        assert_true(command->write != NULL || command->list != NULL ||
                    command->say[0].text != NULL);
        json_decref(list);
        json_decref(answer);
    }
    assert_true(rows > 20);
}

static void test_a_sentence_holds_where_its_member_says_so(void **state)
{
    (void)state;
    static const struct {
        const char *when, *answer;
        bool holds;
    } cases[] = {
        {NULL, "{}", true},
        {"seconds", "{}", false},
        {"seconds", "{\"seconds\": false}", false},
        {"seconds", "{\"seconds\": 0}", false},
        {"seconds", "{\"seconds\": null}", false},
        {"seconds", "{\"seconds\": \"\"}", false},
        {"seconds", "{\"seconds\": true}", true},
        {"seconds", "{\"seconds\": 60}", true},
        {"seconds", "{\"seconds\": \"a\"}", true},
        {"was=active", "{}", false},
        {"was=active", "{\"was\": \"waiting\"}", false},
        {"was=active", "{\"was\": \"active\"}", true},
        {"was=0", "{\"was\": 0}", true},
        {"draw.done", "{\"draw\": {\"done\": true}}", true},
        {"draw.done", "{\"draw\": {\"done\": false}}", false},
        {"draw.done", "{}", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct tl_sentence sentence = {cases[i].when, "text"}, none = {cases[i].when, NULL};
        json_t *answer = json_loads(cases[i].answer, 0, NULL), *empty = json_object();
        assert_non_null(answer);
        if (tl_sentence_holds(&sentence, answer, NULL) != cases[i].holds)
            fail_msg("%s of %s", cases[i].when, cases[i].answer);
        if (cases[i].when == NULL ||
            strchr(cases[i].when, '.') == NULL) /* of what was asked, too */
            assert_int_equal(tl_sentence_holds(&sentence, empty, answer), cases[i].holds);
        assert_false(tl_sentence_holds(&none, answer, NULL));
        json_decref(answer);
        json_decref(empty);
    }
}

/* With an operand for each part of the path. */
static void test_every_row_has_its_operation(void **state)
{
    (void)state;
    size_t n, n_routes;
    const struct tl_ctl_command *commands = tl_ctl_commands(&n);
    const struct tl_control_route *routes = tl_control_routes(&n_routes);
    for (size_t i = 0; i < n; i++) {
        const struct tl_ctl_command *command = &commands[i];
        char operand[] = "sale", *words[8];
        char target[TL_TARGET_MAX];
        struct tl_target parsed;
        struct tl_control_answer answer = {0};
        const char *method;
        size_t length, at = 0;
        struct tl_ctl_options options = {.command = command, .words = words};
        struct tl_error err = {0};
        if (command->operation == NULL)
            continue;
        while (at < n_routes && strcmp(routes[at].operation, command->operation) != 0)
            at++;
        assert_true(at < n_routes);
        while (options.n_words < 8 &&
               tl_operand_name(command->words, options.n_words, &length) != NULL) {
            const char *name = tl_operand_name(command->words, options.n_words, &length);
            if (memchr(name, '=', length) != NULL)
                break;
            words[options.n_words++] = operand;
        }
        json_t *arguments = tl_ctl_arguments(&options, &err);
        assert_non_null(arguments);
        assert_true(tl_ctl_ask_target(command->operation, arguments, &method, target, &err));
        assert_ptr_equal(tl_control_route_find(method, target, &parsed, &answer), &routes[at]);
        json_decref(arguments);
    }
}

static void test_a_target_is_encoded(void **state)
{
    (void)state;
    char target[TL_TARGET_MAX], name[2 * TL_TARGET_MAX];
    const char *method;
    struct tl_error err = {0};
    json_t *arguments = json_pack("{s:s, s:s, s:i, s:s}", "queue", "a/b c", "prefix", "x&y",
                                  "limit", 7, "more", "z");
    assert_true(tl_ctl_ask_target("getLine", arguments, &method, target, &err));
    assert_string_equal(target, "/v1/admin/queues/a%2Fb%20c/line?limit=7");
    assert_string_equal(method, "GET");
    assert_int_equal(json_object_size(arguments), 2); /* for the body */
    assert_true(tl_ctl_ask_target("deleteBlock", arguments, &method, target, &err));
    assert_string_equal(target, "/v1/admin/blocks?prefix=x%26y");
    assert_false(tl_ctl_ask_target("getQueue", arguments, &method, target, &err));
    assert_int_equal(err.kind, TL_ERR_INVALID);
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    (void)json_object_set_new(arguments, "queue", json_string(name));
    assert_false(tl_ctl_ask_target("getQueue", arguments, &method, target, &err));
    json_decref(arguments);
}

static void test_the_first_sentence_that_holds(void **state)
{
    (void)state;
    struct tl_text out = {0};
    json_t *answer =
        json_pack("{s:s, s:n, s:s}", "prefix", "192.0.2.7", "queue", "at", "2026-12-01T11:00:00Z");
    assert_int_equal(setenv("TZ", "UTC-9", 1), 0);
    tl_sentence_write("{prefix} in {queue:all queues} for {for:ever} at {at}", answer, NULL, &out);
    assert_string_equal(out.data, "192.0.2.7 in all queues for ever at 2026-12-01T20:00:00+09:00");
    tl_text_free(&out);
    json_decref(answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_row_writes_its_answer),
        cmocka_unit_test(test_a_sentence_holds_where_its_member_says_so),
        cmocka_unit_test(test_every_row_has_its_operation),
        cmocka_unit_test(test_a_target_is_encoded),
        cmocka_unit_test(test_the_first_sentence_that_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
