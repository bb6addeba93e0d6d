/* SPDX-License-Identifier: Apache-2.0 */
/* The queues and settings that a program remembers, against a store that forgets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/config/queue_settings.h"
#include "common/store/inventory.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "ingest.h"

enum { MANY = 100 };

struct world {
    struct tl_redis *redis; /* of the test itself */
    struct tl_store *store;
    const struct tl_config *config;
    struct tl_troubles *troubles;
    struct tl_inventory *inventory;
    char names[MANY][TL_QUEUE_NAME_MAX + 1];
};

static void set(struct world *w, const char *queue, const char *name, const char *value)
{
    struct tl_keys keys;
    struct tl_error err = {0};
    tl_keys_init(&keys, "tl:", queue);
    if (!test_queue_set(w->redis, &keys, name, value, &err))
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
    if (!tl_inventory_read(w->inventory, w->names, MANY, all, &err))
        fail_msg("%s", err.text);
}

/* Returns how many there are then. */
static size_t list_them(struct world *w, bool all)
{
    struct tl_error err = {0};
    char(*names)[TL_QUEUE_NAME_MAX + 1];
    size_t n;
    if (!tl_inventory_list(w->inventory, all, 1000, &names, &n, &err))
        fail_msg("%s", err.text);
    free(names);
    return n;
}

static void assert_all(struct world *w, const char *name, long long value)
{
    for (int i = 0; i < MANY; i++)
        assert_int_equal(test_redis_ask(w->redis, "HGET tl:{%s}:config %s", w->names[i], name),
                         value);
}

static bool not_made(void *context, const char *queue, int64_t now_ms, struct tl_error *err)
{
    const struct world *w = context;
    tl_troubles_note(w->troubles, queue, err, now_ms);
    return true;
}

static void end(struct world *w)
{
    tl_inventory_free(&w->inventory);
    tl_inventory_free(&w->inventory);
    tl_store_free(&w->store);
    tl_troubles_free(&w->troubles);
    tl_config_free(&w->config);
}

static void begin(struct world *w, const struct test_store *store)
{
    struct tl_queue_settings settings;
    struct tl_error err = {0};
    static const char yaml[] = "queues:\n  queue-00: {capacity: 3}\n  queue-01: {capacity: 4}\n";
    tl_queue_settings_defaults(&settings);
    w->redis = store->redis;
    w->config = tl_config_parse("test.yaml", yaml, strlen(yaml), &err);
    if (w->config == NULL)
        fail_msg("%s", err.text);
    w->store = tl_store_new(
        &(struct tl_redis_settings){.url = test_redis_url(store->server), .timeout_ms = 60000},
        &err);
    if (w->store == NULL || !tl_store_connect(w->store, &err))
        fail_msg("%s", err.text);
    w->troubles = tl_troubles_new();
    assert_non_null(w->troubles);
    w->inventory = tl_inventory_new(&(struct tl_inventory_settings){.store = w->store,
                                                                    .config = w->config,
                                                                    .key_prefix = "tl:",
                                                                    .program = "tester",
                                                                    .troubles = w->troubles,
                                                                    .failed = not_made,
                                                                    .context = w});
    assert_non_null(w->inventory);
    for (int i = 0; i < MANY; i++) {
        snprintf(w->names[i], sizeof(w->names[i]), "queue-%02d", i);
        assert_true(tl_queue_ensure(TEST_SITE(w->redis), "tl:", w->names[i], &settings, &test_actor,
                                    NULL, NULL));
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
        known += tl_inventory_in_force(w.inventory, w.names[i]) != NULL ? 1 : 0;
    assert_int_equal(known, 32);
    read_them(&w, true);
    for (int i = 0; i < MANY; i++)
        assert_non_null(tl_inventory_in_force(w.inventory, w.names[i]));
    assert_null(tl_inventory_in_force(w.inventory, "queue"));
    end(&w);
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
    end(&w);
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
    assert_int_equal(tl_inventory_in_force(w.inventory, w.names[0])->capacity, 8);
    end(&w);
}

static void lost_queues_are_made_again_and_deleted_ones_forgotten(void **state)
{
    struct world w;
    begin(&w, *state);
    set_all(&w, "capacity", "7");
    read_them(&w, true);
    assert_int_equal(list_them(&w, false), MANY);
    tl_reply_free(test_redis_call(w.redis, "FLUSHALL"));
    test_redis_ask(w.redis, "HSET tl:{queue-00}:retired away 1");
    test_redis_ask(w.redis, "HSET tl:{queue-05}:retired away 1");
    assert_int_equal(list_them(&w, false), MANY - 2);
    assert_int_equal(test_redis_number(w.redis, "EXISTS tl:{queue-00}:state"), 0);
    assert_int_equal(test_redis_number(w.redis, "EXISTS tl:{queue-05}:state"), 0);
    assert_null(tl_inventory_in_force(w.inventory, "queue-00"));
    assert_null(tl_inventory_in_force(w.inventory, "queue-05"));
    assert_false(tl_inventory_has(w.inventory, "queue-00"));
    assert_null(tl_inventory_expects(w.inventory, 0));
    assert_false(tl_inventory_has(w.inventory, "queue-05"));
    assert_true(tl_inventory_has(w.inventory, "queue-01"));
    assert_int_equal(test_redis_number(w.redis, "HGET tl:{queue-01}:config capacity"), 7);
    assert_int_equal(test_redis_number(w.redis, "HGET tl:{queue-06}:config capacity"), 7);
    end(&w);
}

/* Those of the configuration that were never there get its settings; a list of all makes sure of
 * them although they are listed. */
static void queues_of_the_configuration_are_made(void **state)
{
    struct world w;
    begin(&w, *state);
    tl_reply_free(test_redis_call(w.redis, "FLUSHALL"));
    assert_int_equal(list_them(&w, false), 2);
    assert_int_equal(test_redis_number(w.redis, "HGET tl:{queue-01}:config capacity"), 4);
    test_redis_ask(w.redis, "UNLINK tl:{queue-01}:state tl:{queue-01}:config tl:{queue-01}:ingest");
    assert_int_equal(list_them(&w, false), 2);
    assert_int_equal(test_redis_number(w.redis, "EXISTS tl:{queue-01}:state"), 0);
    assert_int_equal(list_them(&w, true), 2);
    assert_int_equal(test_redis_number(w.redis, "EXISTS tl:{queue-01}:state"), 1);
    end(&w);
}

/* It is set aside, and tried again later. */
static void one_that_cannot_be_made_stops_no_other(void **state)
{
    struct world w;
    begin(&w, *state);
    tl_reply_free(test_redis_call(w.redis, "FLUSHALL"));
    test_redis_ask(w.redis, "LPUSH tl:{queue-00}:retired x");
    assert_int_equal(list_them(&w, false), 1);
    assert_true(tl_troubles_resting(w.troubles, "queue-00", 1000));
    assert_int_equal(test_redis_number(w.redis, "EXISTS tl:{queue-01}:state"), 1);
    test_redis_ask(w.redis, "DEL tl:{queue-00}:retired");
    assert_int_equal(list_them(&w, false), 1);
    tl_troubles_retry(w.troubles, NULL);
    assert_int_equal(list_them(&w, false), 2);
    end(&w);
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
    assert_null(tl_inventory_in_force(w.inventory, "queue-00"));
    assert_null(tl_inventory_in_force(w.inventory, "queue-01"));
    assert_non_null(tl_inventory_in_force(w.inventory, "queue-02"));
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(some_are_read_in_turn, test_store_clean),
        cmocka_unit_test_setup(lost_changes_are_made_again_at_once, test_store_clean),
        cmocka_unit_test_setup(newer_settings_of_the_store_are_left, test_store_clean),
        cmocka_unit_test_setup(lost_queues_are_made_again_and_deleted_ones_forgotten,
                               test_store_clean),
        cmocka_unit_test_setup(queues_of_the_configuration_are_made, test_store_clean),
        cmocka_unit_test_setup(one_that_cannot_be_made_stops_no_other, test_store_clean),
        cmocka_unit_test_setup(one_that_cannot_be_read_stops_no_other, test_store_clean),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close);
}
