/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/config/config.h"
#include "control_world.h"

int test_control_open(void **state)
{
    char yaml[512];
    struct tl_error err = {0};
    struct test_control *world = calloc(1, sizeof(*world));
    assert_non_null(world);
    (void)test_store_open((void **)&world->store);
    const char *folder = test_redis_folder(world->store->server);
    snprintf(yaml, sizeof(yaml),
             "redis:\n  url: %s\nadmin:\n  max_queues: 5\nsecrets:\n  token_key: %s/token.key\n"
             "  ticket_keys: %s/ticket.keys\nretention:\n  changes: 30d\n",
             test_redis_url(world->store->server), folder, folder);
    world->config = tl_config_parse("test.yaml", yaml, strlen(yaml), &err);
    if (world->config == NULL)
        fail_msg("%s", err.text);
    world->control = tl_control_new(world->config, NULL, &err);
    if (world->control == NULL)
        fail_msg("%s", err.text);
    world->actor = (struct tl_actor){.name = "ann", .from = "192.0.2.7", .kept = 1000};
    *state = world;
    return 0;
}

int test_control_close(void **state)
{
    struct test_control *world = *state;
    test_dispatcher_stop(world);
    tl_control_answer_clear(&world->answer);
    tl_control_free(&world->control);
    tl_config_free(&world->config);
    (void)test_store_close((void **)&world->store);
    free(world);
    return 0;
}

int test_control_clean(void **state)
{
    struct test_control *world = *state;
    test_dispatcher_stop(world);
    return test_store_clean((void **)&world->store);
}

int test_call_with(struct test_control *world, const char *method, const char *target,
                   const char *body, const char *if_match, const char *key)
{
    json_error_t problem;
    json_t *json = body != NULL ? json_loads(body, 0, &problem) : NULL;
    if (body != NULL && json == NULL)
        fail_msg("%s: %s", body, problem.text);
    tl_control_answer_clear(&world->answer);
    const struct tl_control_request request = {.method = method,
                                               .target = target,
                                               .body = json,
                                               .if_match = if_match,
                                               .idempotency_key = key,
                                               .actor = &world->actor};
    tl_control_call(world->control, &request, &world->answer);
    json_decref(json);
    assert_true(world->answer.status >= 200);
    /* Every problem is a whole one. */
    if (world->answer.status >= 400) {
        assert_string_not_equal(test_member(world, "type"), "(none)");
        assert_string_not_equal(test_member(world, "title"), "(none)");
        assert_string_not_equal(test_member(world, "detail"), "(none)");
        assert_int_equal(strtol(test_member(world, "status"), NULL, 10), world->answer.status);
    }
    return world->answer.status;
}

int test_call(struct test_control *world, const char *method, const char *target, const char *body)
{
    return test_call_with(world, method, target, body, NULL, NULL);
}

static const char *text_of(const json_t *value)
{
    static char text[4096];
    if (value == NULL)
        return "(none)";
    if (json_is_string(value)) {
        snprintf(text, sizeof(text), "%s", json_string_value(value));
        return text;
    }
    char *dumped = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
    assert_non_null(dumped);
    snprintf(text, sizeof(text), "%s", dumped);
    free(dumped);
    return text;
}

const char *test_member(const struct test_control *world, const char *path)
{
    const json_t *value = world->answer.body;
    while (*path != '\0') {
        char name[64];
        size_t length = strcspn(path, ".");
        snprintf(name, sizeof(name), "%.*s", (int)length, path);
        value = json_is_array(value) ? json_array_get(value, strtoul(name, NULL, 10))
                                     : json_object_get(value, name);
        path += length;
        path += *path == '.' ? 1 : 0;
    }
    return text_of(value);
}

const char *test_changes(struct test_control *world, const char *queue)
{
    static char text[4096];
    char target[128];
    snprintf(target, sizeof(target), "/v1/admin/changes%s%s", queue != NULL ? "?queue=" : "",
             queue != NULL ? queue : "");
    assert_int_equal(test_call(world, "GET", target, NULL), 200);
    text[0] = '\0';
    size_t i;
    json_t *change;
    json_array_foreach(json_object_get(world->answer.body, "changes"), i, change)
    {
        size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used, "%s%s %s", used > 0 ? " " : "",
                 json_string_value(json_object_get(change, "who")),
                 json_string_value(json_object_get(change, "what")));
    }
    return text;
}

static void dispatch(struct test_control *world)
{
    struct test_store *store = world->store;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    store->redis = test_redis_connect(store->server); /* the other one is the parent's */
    for (;;) {
        struct tl_apply_counts counts = {0};
        struct tl_error err = {0};
        if (test_deliver(store) > 0 && !test_apply_pending(store, 1, &counts, &err))
            fail_msg("%s", err.text);
        test_redis_pass_time(store->redis, 2);
    }
}

void test_dispatcher_start(struct test_control *world)
{
    world->dispatcher = fork();
    assert_true(world->dispatcher >= 0);
    if (world->dispatcher == 0) {
        dispatch(world);
        _exit(1);
    }
}

void test_dispatcher_stop(struct test_control *world)
{
    if (world->dispatcher == 0)
        return;
    (void)kill(world->dispatcher, SIGKILL);
    (void)waitpid(world->dispatcher, NULL, 0);
    world->dispatcher = 0;
}
