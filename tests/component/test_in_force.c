/* SPDX-License-Identifier: Apache-2.0 */
/* The settings that a program remembers, against a store that forgets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/config/queue_settings.h"
#include "common/store/in_force.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "ingest.h"

enum { MANY = 100 };

struct world {
    struct tl_redis *redis;
    struct tl_in_force *in_force;
    char names[MANY][TL_QUEUE_NAME_MAX + 1];
};

static void set(struct world *w, const char *queue, const char *name, const char *value)
{
    struct tl_keys keys;
    struct tl_error err = {0};
    tl_keys_init(&keys, "tl:", queue);
    if (!tl_queue_configure(w->redis, &keys, name, value, &test_actor, &err))
        fail_msg("%s", err.text);
}

static void set_all(struct world *w, const char *name, const char *value)
{
    for (int i = 0; i < MANY; i++)
        set(w, w->names[i], name, value);
}

static void read_them(struct world *w, bool all)
{
    struct tl_error err = {0};
    if (!tl_in_force_read(w->in_force, w->redis, w->names, MANY, all, &err))
        fail_msg("%s", err.text);
}

/* Returns whether any was made, of those that are not among the first n names. */
static bool make_lost(struct world *w, size_t n)
{
    struct tl_error err = {0};
    bool made = false;
    if (!tl_in_force_make_lost(w->in_force, w->redis, w->names, n, &made, &err))
        fail_msg("%s", err.text);
    return made;
}

static void assert_all(struct world *w, const char *name, long long value)
{
    for (int i = 0; i < MANY; i++)
        assert_int_equal(test_redis_ask(w->redis, "HGET tl:{%s}:config %s", w->names[i], name),
                         value);
}

static void begin(struct world *w, const struct test_store *store)
{
    struct tl_queue_settings settings;
    tl_queue_settings_defaults(&settings);
    w->redis = store->redis;
    w->in_force = tl_in_force_new("tl:", &test_actor);
    assert_non_null(w->in_force);
    for (int i = 0; i < MANY; i++) {
        snprintf(w->names[i], sizeof(w->names[i]), "queue-%02d", i);
        assert_true(
            tl_queue_ensure(w->redis, "tl:", w->names[i], &settings, &test_actor, NULL, NULL));
    }
}

/* As many as are read at once; and all, when it is said. */
static void some_are_read_in_turn(void **state)
{
    struct world w;
    begin(&w, *state);
    int known = 0;
    read_them(&w, false);
    for (int i = 0; i < MANY; i++)
        known += tl_in_force_of(w.in_force, w.names[i]) != NULL ? 1 : 0;
    assert_int_equal(known, 32);
    read_them(&w, true);
    for (int i = 0; i < MANY; i++)
        assert_non_null(tl_in_force_of(w.in_force, w.names[i]));
    assert_null(tl_in_force_of(w.in_force, "queue"));
    tl_in_force_free(&w.in_force);
}

/* A store without its last second: the first change that is missed lets it look at all. */
static void lost_changes_are_made_again_at_once(void **state)
{
    struct world w;
    begin(&w, *state);
    set_all(&w, "capacity", "7");
    read_them(&w, true);
    for (int i = 0; i < MANY; i++)
        test_redis_ask(w.redis, "HSET tl:{%s}:config capacity 50 changed 0", w.names[i]);
    read_them(&w, false);
    assert_all(&w, "capacity", 7);
    tl_in_force_free(&w.in_force);
}

static void newer_settings_of_the_store_are_left(void **state)
{
    struct world w;
    begin(&w, *state);
    set_all(&w, "capacity", "7");
    read_them(&w, true);
    set_all(&w, "capacity", "8");
    uint64_t before = test_redis_fingerprint(w.redis);
    read_them(&w, true);
    assert_int_equal(test_redis_fingerprint(w.redis), before);
    assert_int_equal(tl_in_force_of(w.in_force, w.names[0])->capacity, 8);
    tl_in_force_free(&w.in_force);
}

static void lost_queues_are_made_again_and_deleted_ones_forgotten(void **state)
{
    struct world w;
    begin(&w, *state);
    set_all(&w, "capacity", "7");
    read_them(&w, true);
    assert_false(make_lost(&w, MANY));
    tl_reply_free(test_redis_call(w.redis, "FLUSHALL"));
    test_redis_ask(w.redis, "HSET tl:{queue-05}:retired away 1");
    assert_true(make_lost(&w, 0));
    assert_int_equal(test_redis_number(w.redis, "SCARD tl:queues"), MANY - 1);
    assert_int_equal(test_redis_number(w.redis, "EXISTS tl:{queue-05}:state"), 0);
    assert_null(tl_in_force_of(w.in_force, "queue-05"));
    assert_int_equal(test_redis_number(w.redis, "HGET tl:{queue-06}:config capacity"), 7);
    tl_in_force_free(&w.in_force);
}

/* A damaged queue is left to those who mend it, and stops no other. */
static void one_that_cannot_be_read_stops_no_other(void **state)
{
    struct world w;
    begin(&w, *state);
    test_redis_ask(w.redis, "DEL tl:{queue-00}:config");
    test_redis_ask(w.redis, "DEL tl:{queue-01}:config");
    test_redis_ask(w.redis, "LPUSH tl:{queue-01}:config x");
    read_them(&w, true);
    assert_null(tl_in_force_of(w.in_force, "queue-00"));
    assert_null(tl_in_force_of(w.in_force, "queue-01"));
    assert_non_null(tl_in_force_of(w.in_force, "queue-02"));
    tl_in_force_free(&w.in_force);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(some_are_read_in_turn, test_store_clean),
        cmocka_unit_test_setup(lost_changes_are_made_again_at_once, test_store_clean),
        cmocka_unit_test_setup(newer_settings_of_the_store_are_left, test_store_clean),
        cmocka_unit_test_setup(lost_queues_are_made_again_and_deleted_ones_forgotten,
                               test_store_clean),
        cmocka_unit_test_setup(one_that_cannot_be_read_stops_no_other, test_store_clean),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close);
}
