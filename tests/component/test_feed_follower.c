/* SPDX-License-Identifier: Apache-2.0 */
/* The follower's thread against a real store: what it tells the loop, and in which order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/config/queue_settings.h"
#include "common/store/library.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "feed_world.h"
#include "side_by_side.h"

/* The state is lost and made again, in one step: a follower that looked in between would set the
 * queue aside as damaged. */
static void lose_state(struct feed_world *f)
{
    struct tl_queue_settings settings;
    struct tl_error err = {0};
    tl_queue_settings_defaults(&settings);
    settings.capacity = 4;
    struct tl_args args = {0};
    tl_call_begin(&args, TL_FN_ENSURE, &f->keys);
    tl_args_strs(&args, "0", TL_EVENTS_KEPT, NULL);
    tl_queue_append_settings(&settings, &args);
    tl_actor_append(&test_actor, &args);
    tl_reply_free(test_redis_call(f->redis, "MULTI"));
    test_redis_ask(f->redis, "DEL %s", f->keys.names[TL_KEY_STATE]);
    if (!tl_redis_do(f->redis, &args, &err)) /* queued */
        fail_msg("%s", err.text);
    tl_args_free(&args);
    struct tl_reply *done = test_redis_call(f->redis, "EXEC");
    assert_int_equal(tl_reply_integer(tl_reply_at(done, 0)), 1);
    assert_int_equal(tl_reply_integer(tl_reply_at(done, 1)), 1); /* created */
    tl_reply_free(done);
}

/* Queue "q" is in the configuration. */
static int set_up_configured(void **state)
{
    static struct tl_queue_config queue = {.name = "q"};
    static const struct tl_config config = {
        .n_queues = 1, .queues = &queue, .retention = {.changes_entries = 1000}};
    tl_queue_settings_defaults(&queue.settings);
    return feed_world_start(state, &config, false);
}

static void add_entry(struct feed_world *f, const char *payload)
{
    struct tl_args args = {0};
    struct tl_error err = {0};
    tl_args_strs(&args, "XADD", f->keys.names[TL_KEY_EVENTS], "*", "d", payload, NULL);
    if (!tl_redis_do(f->redis, &args, &err))
        fail_msg("%s", err.text);
    tl_args_free(&args);
}

static void the_start_tells_lines_then_that_all_are_listed(void **state)
{
    struct feed_world *f = *state;
    assert_string_equal(f->told, "line:q notice:q listed up ");
    assert_int_equal(f->capacity, 3);
    assert_true(f->clock_known);
    assert_in_range(f->offset_ms + tl_clock_ms(), test_redis_ms(f->redis) - 1000,
                    test_redis_ms(f->redis) + 1000);
}

static void entries_come_in_order(void **state)
{
    struct feed_world *f = *state;
    feed_world_forget(f);
    for (int i = 0; i < 20; i++) {
        char payload[16];
        snprintf(payload, sizeof(payload), "e%d", i);
        add_entry(f, payload);
    }
    feed_world_until(f, "e19 ");
    const char *at = f->told;
    for (int i = 0; i < 20; i++) {
        char word[32];
        snprintf(word, sizeof(word), "entry:q=e%d ", i);
        at = strstr(at, word);
        assert_non_null(at);
    }
}

static void settings_changed_by_hand_are_found(void **state)
{
    struct feed_world *f = *state;
    feed_world_forget(f);
    test_redis_ask(f->redis, "HSET %s capacity 9", f->keys.names[TL_KEY_CONFIG]);
    feed_world_until(f, "settings:q ");
    assert_int_equal(f->capacity, 9);
}

/* After CONFIG: the turns of the lanes with the event up to which they are counted; and again when
 * settings were changed by hand. */
static void a_reload_brings_the_turns_of_the_lanes(void **state)
{
    struct feed_world *f = *state;
    feed_world_forget(f);
    test_redis_ask(f->redis, "HSET %s turns 3,1:3:1,0", f->keys.names[TL_KEY_STATE]);
    tl_follower_reload(f->follower, "q");
    feed_world_until(f, "turns:q=3,1:3:1,0 ");
    assert_int_equal(f->turns.event,
                     test_redis_ask(f->redis, "HGET %s event", f->keys.names[TL_KEY_STATE]));
    feed_world_forget(f);
    test_redis_ask(f->redis, "HSET %s turns 3,1:3:0,2", f->keys.names[TL_KEY_STATE]);
    test_redis_ask(f->redis, "HSET %s capacity 9", f->keys.names[TL_KEY_CONFIG]);
    feed_world_until(f, "turns:q=3,1:3:0,2 ");
    assert_true(strstr(f->told, "settings:q") < strstr(f->told, "turns:q"));
}

static void a_reload_that_changes_nothing_tells_nothing(void **state)
{
    struct feed_world *f = *state;
    feed_world_forget(f);
    tl_follower_reload(f->follower, "q");
    tl_follower_reload(f->follower, "unknown");
    add_entry(f, "next");
    feed_world_until(f, "entry:q=next ");
    assert_null(strstr(f->told, "settings"));
}

static void a_rebuild_brings_a_new_line_with_the_notice(void **state)
{
    struct feed_world *f = *state;
    struct tl_error err = {0};
    if (!tl_queue_notice(f->redis, &f->keys, "soon", &test_actor, &err))
        fail_msg("%s", err.text);
    feed_world_until(f, "entry:q");
    feed_world_forget(f);
    tl_follower_rebuild(f->follower, "unknown");
    tl_follower_rebuild(f->follower, "q");
    feed_world_until(f, "line:q notice:q=soon ");
}

/* The entry that tells of it may have an id below those that were read, when the store's clock went
 * back. */
static void an_incarnation_is_found_without_its_entry(void **state)
{
    struct feed_world *f = *state;
    feed_world_forget(f);
    test_redis_ask(f->redis, "HSET %s base_seq 77", f->keys.names[TL_KEY_STATE]);
    feed_world_until(f, "line:q notice:q ");
    test_redis_ask(f->redis, "HSET %s capacity 9", f->keys.names[TL_KEY_CONFIG]);
    feed_world_until(f, "settings:q ");
    assert_null(strstr(strstr(f->told, "line:q") + 1, "line:q")); /* once */
}

/* Its rebuild waits for its turn, and comes. */
static void a_large_line_is_rebuilt_after_an_incarnation(void **state)
{
    struct feed_world *f = *state;
    feed_world_forget(f);
    test_redis_ask(f->redis, "HSET %s base_seq 78 waiting 100000", f->keys.names[TL_KEY_STATE]);
    tl_follower_rebuild(f->follower, "q");
    feed_world_until(f, "line:q notice:q ");
    test_redis_ask(f->redis, "HSET %s capacity 9", f->keys.names[TL_KEY_CONFIG]);
    feed_world_until(f, "settings:q ");
    assert_null(strstr(strstr(f->told, "line:q") + 1, "line:q")); /* once */
}

static void delete_queue(struct feed_world *f)
{
    test_redis_ask(f->redis, "HSET tl:{q}:retired generation 5 away 1");
    test_redis_ask(f->redis, "UNLINK tl:{q}:state tl:{q}:config tl:{q}:events tl:{q}:ingest");
    test_redis_ask(f->redis, "SREM tl:queues q");
}

static void a_deleted_queue_is_gone_and_a_created_one_comes(void **state)
{
    struct feed_world *f = *state;
    feed_world_forget(f);
    delete_queue(f);
    feed_world_until(f, "gone:q ");
    feed_world_forget(f);
    test_redis_ask(f->redis, "DEL tl:{q}:retired");
    test_queue(f->redis, "capacity=4", &f->keys);
    feed_world_until(f, "line:q notice:q ");
    assert_int_equal(f->capacity, 4);
}

/* Although it is in the configuration: nobody creates it again but an operator. */
static void a_queue_that_an_operator_deleted_stays_away(void **state)
{
    struct feed_world *f = *state;
    struct tl_queue_settings settings;
    struct tl_error err = {0};
    bool created;
    feed_world_forget(f);
    delete_queue(f);
    feed_world_until(f, "gone:q ");
    feed_world_forget(f);
    tl_queue_settings_defaults(&settings);
    assert_true(
        tl_queue_create(TEST_SITE(f->redis), "tl:", "other", &settings, &test_actor, NULL, &err));
    feed_world_until(f, "line:other "); /* a whole update later */
    assert_int_equal(test_redis_ask(f->redis, "EXISTS tl:{q}:state"), 0);
    assert_false(
        tl_queue_ensure(TEST_SITE(f->redis), "tl:", "q", &settings, &test_actor, &created, &err));
    assert_int_equal(err.kind, TL_ERR_RETIRED);
    feed_world_forget(f);
    assert_true(
        tl_queue_create(TEST_SITE(f->redis), "tl:", "q", &settings, &test_actor, &created, &err));
    assert_true(created);
    feed_world_until(f, "line:q ");
}

/* The table is posted when it changes. One that is lost, or cannot be read, stops nothing. */
static void blocked_prefixes_are_followed(void **state)
{
    struct feed_world *f = *state;
    feed_world_forget(f);
    test_redis_ask(f->redis, "HSET tl:blocks{tl:queues} version 7 192.0.2.7 0 10.0.0.0/8 0");
    feed_world_until(f, "blocks=2 ");
    test_redis_ask(f->redis, "HSET tl:blocks{tl:queues} version 8 192.0.2.8 0");
    feed_world_until(f, "blocks=3 ");
    feed_world_forget(f);
    test_redis_ask(f->redis, "DEL tl:blocks{tl:queues}");
    test_redis_ask(f->redis, "RPUSH tl:blocks{tl:queues} damaged");
    lose_state(f);
    feed_world_until(f, "line:q ");
    test_redis_ask(f->redis, "DEL tl:blocks{tl:queues}");
    test_redis_ask(f->redis, "HSET tl:blocks{tl:queues} version 9");
    feed_world_until(f, "blocks=0 ");
    assert_null(strstr(f->told, "down"));
}

static void a_queue_that_comes_back_empty_is_another(void **state)
{
    struct feed_world *f = *state;
    uint64_t lost = f->recovery.present;
    assert_int_equal(f->recovery.until_ms, 0);
    feed_world_forget(f);
    lose_state(f);
    feed_world_until(f, "line:q ");
    assert_true(f->recovery.present > lost);
}

static void a_store_that_went_away_is_followed_again(void **state)
{
    struct feed_world *f = *state;
    feed_world_forget(f);
    test_redis_kill(f->server);
    feed_world_until(f, "down ");
    test_redis_restart(f->server);
    feed_world_until(f, "up ");
    tl_redis_close(f->redis);
    struct tl_error err = {0};
    assert_true(tl_redis_connect(f->redis, &err));
    add_entry(f, "after");
    feed_world_until(f, "entry:q=after ");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, feed_world_start_plain, feed_world_stop)

static void memory_that_runs_out_is_told_and_told_back(void **state)
{
    struct feed_world *f = *state;
    test_redis_ask(f->redis, "CONFIG SET maxmemory 100mb");
    test_redis_ask(f->redis, "SETRANGE ballast 99000000 x"); /* a string of 99 MB */
    feed_world_until(f, "full ");
    assert_null(strstr(f->told, "room"));
    test_redis_ask(f->redis, "DEL ballast");
    feed_world_until(f, "room ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(memory_that_runs_out_is_told_and_told_back,
                                        feed_world_start_plain, feed_world_stop),
        CASE(the_start_tells_lines_then_that_all_are_listed),
        CASE(entries_come_in_order),
        CASE(settings_changed_by_hand_are_found),
        CASE(a_reload_brings_the_turns_of_the_lanes),
        CASE(a_reload_that_changes_nothing_tells_nothing),
        CASE(a_rebuild_brings_a_new_line_with_the_notice),
        CASE(an_incarnation_is_found_without_its_entry),
        CASE(a_large_line_is_rebuilt_after_an_incarnation),
        CASE(a_deleted_queue_is_gone_and_a_created_one_comes),
        cmocka_unit_test_setup_teardown(a_queue_that_an_operator_deleted_stays_away,
                                        set_up_configured, feed_world_stop),
        CASE(blocked_prefixes_are_followed),
        CASE(a_queue_that_comes_back_empty_is_another),
        CASE(a_store_that_went_away_is_followed_again),
    };
    return test_side_by_side(tests, NULL, NULL);
}
