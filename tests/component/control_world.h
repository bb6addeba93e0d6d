/* SPDX-License-Identifier: Apache-2.0 */
/* A control room on a redis-server of the test's own, and calls as short texts. */
#ifndef TL_TEST_CONTROL_WORLD_H
#define TL_TEST_CONTROL_WORLD_H

#include <sys/types.h>

#include <jansson.h>

#include "common/control/control.h"
#include "ingest.h"

struct test_control {
    struct test_store *store;
    const struct tl_config *config;
    struct tl_control *control;
    struct tl_actor actor;
    struct tl_control_answer answer; /* of the last call */
    pid_t dispatcher;                /* 0: none runs */
};

/* For cmocka: group setup and teardown; the setup of each test empties the store. */
int test_control_open(void **state);
int test_control_close(void **state);
int test_control_clean(void **state);

/* Does a call; body is JSON or NULL. Returns the status. The answer stays until the next call. */
int test_call(struct test_control *world, const char *method, const char *target, const char *body);
/* The same with If-Match and Idempotency-Key, each may be NULL. */
int test_call_with(struct test_control *world, const char *method, const char *target,
                   const char *body, const char *if_match, const char *key);
/* A member of the last answer by a path: "settings.rate.admit", "lanes.0.waiting". As compact JSON;
 * a text without its quotes; "(none)" when it is not there. Valid until the next use. */
const char *test_member(const struct test_control *world, const char *path);

/* The record of changes of queue "q" (queue NULL: of all), newest first, as "who what who what...".
 */
const char *test_changes(struct test_control *world, const char *queue);

/* Runs a dispatcher for queue "q" beside the test, until the test ends. */
void test_dispatcher_start(struct test_control *world);
void test_dispatcher_stop(struct test_control *world);

#endif
