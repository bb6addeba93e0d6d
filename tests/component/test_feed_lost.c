/* SPDX-License-Identifier: Apache-2.0 */
/* The store loses queues or settings that a follower knows, or lacks those of its configuration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/config/queue_settings.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "feed_world.h"
#include "side_by_side.h"

/* "q" and "late" are, and "late" is not in the store. */
static int set_up_restricted(void **state)
{
    static struct tl_queue_config queues[] = {{.name = "q"}, {.name = "late"}};
    static const struct tl_config config = {
        .n_queues = 2, .queues = queues, .retention = {.changes_entries = 1000}};
    tl_queue_settings_defaults(&queues[0].settings);
    tl_queue_settings_defaults(&queues[1].settings);
    return feed_world_start(state, &config, true);
}

static void set(struct feed_world *f, const char *name, const char *value)
{
    struct tl_error err = {0};
    if (!test_queue_set(f->redis, &f->keys, name, value, &err))
        fail_msg("%s", err.text);
}

/* A queue that no file has. */
static void a_lost_queue_comes_back_with_the_settings_in_force(void **state)
{
    struct feed_world *f = *state;
    feed_world_forget(f);
    set(f, "capacity", "9");
    tl_follower_reload(f->follower, "q"); /* as after its event */
    feed_world_until(f, "settings:q ");
    uint64_t lost = f->recovery.present;
    feed_world_forget(f);
    tl_reply_free(test_redis_call(f->redis, "FLUSHALL"));
    feed_world_until(f, "line:q ");
    assert_null(strstr(f->told, "gone:q"));
    assert_int_equal(f->capacity, 9);
    assert_true(f->recovery.present > lost);
    assert_true(f->recovery.until_ms > 0); /* those who were there come back */
    assert_int_equal(test_redis_ask(f->redis, "SISMEMBER tl:queues q"), 1);
}

static void a_lost_change_of_the_settings_is_made_again(void **state)
{
    struct feed_world *f = *state;
    feed_world_forget(f);
    set(f, "capacity", "9");
    tl_follower_reload(f->follower, "q");
    feed_world_until(f, "settings:q ");
    feed_world_forget(f);
    test_redis_ask(f->redis, "HSET %s capacity 3 changed 0", f->keys.names[TL_KEY_CONFIG]);
    feed_world_until(f, "entry:q"); /* CONFIG */
    assert_int_equal(test_redis_ask(f->redis, "HGET %s capacity", f->keys.names[TL_KEY_CONFIG]), 9);
}

/* The first that is found lets it look at all: not as many times as it checks some of them. */
static void a_loss_of_many_queues_is_found_at_once(void **state)
{
    enum { MANY = 300 };
    static const char lose[] =
        "for _, queue in ipairs(redis.call('SMEMBERS', 'tl:queues')) do "
        "redis.call('HINCRBY', 'tl:{' .. queue .. '}:state', 'base_seq', 1) end";
    struct feed_world *f = *state;
    struct tl_queue_settings settings;
    struct tl_args args = {0};
    struct tl_error err = {0};
    char name[16], told[32];
    tl_queue_settings_defaults(&settings);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "m%03d", i);
        assert_true(
            tl_queue_create(TEST_SITE(f->redis), "tl:", name, &settings, &test_actor, NULL, &err));
    }
    for (int i = 0; i < MANY; i++) {
        snprintf(told, sizeof(told), "line:m%03d ", i);
        feed_world_until(f, told);
    }
    feed_world_forget(f);
    tl_reply_free(test_redis_call(f->redis, "CONFIG RESETSTAT"));
    tl_args_strs(&args, "EVAL", lose, "0", NULL);
    assert_true(tl_redis_do(f->redis, &args, &err));
    tl_args_free(&args);
    for (int i = 0; i < MANY; i++) {
        snprintf(told, sizeof(told), "line:m%03d ", i);
        feed_world_until(f, told);
    }
    /* One in the script above, and one in each update: the last before the loss, the one that finds
     * it, and the next. Ten would check all queues once. */
    struct tl_reply *reply = test_redis_call(f->redis, "INFO commandstats");
    const char *found = strstr(tl_reply_string(reply, NULL), "cmdstat_smembers:calls=");
    assert_non_null(found);
    assert_in_range(strtoll(found + strlen("cmdstat_smembers:calls="), NULL, 10), 1, 4);
    tl_reply_free(reply);
}

static void make(struct feed_world *f, const char *queue)
{
    struct tl_queue_settings settings;
    struct tl_error err = {0};
    tl_queue_settings_defaults(&settings);
    if (!tl_queue_ensure(TEST_SITE(f->redis), "tl:", queue, &settings, &test_actor, NULL, &err))
        fail_msg("%s", err.text);
}

/* A queue of the configuration that another program makes: all are known once it is there, or is
 * missing for so long that it is a trouble. */
static void who_may_not_make_queues_waits_for_them(void **state)
{
    struct feed_world *f = *state;
    make(f, "late");
    feed_world_until(f, "listed ");
    const char *line = strstr(f->told, "line:late ");
    const char *known = line != NULL ? line : strstr(f->told, "trouble:late ");
    assert_non_null(known);
    assert_true(known < strstr(f->told, "listed "));
}

static void a_queue_that_nobody_makes_is_a_trouble_of_its_own(void **state)
{
    struct feed_world *f = *state;
    feed_world_until(f, "trouble:late ");
    feed_world_until(f, "listed ");
    make(f, "late");
    feed_world_until(f, "line:late ");
    feed_world_until(f, "sound:late ");
    feed_world_forget(f);
    tl_reply_free(test_redis_call(f->redis, "FLUSHALL"));
    feed_world_until(f, "trouble:q ");
    make(f, "q");
    feed_world_until(f, "sound:q ");
    assert_non_null(strstr(f->told, "line:q "));
    assert_null(strstr(f->told, "gone:"));
    assert_null(strstr(f->told, "down"));
}

#define CASE(name)       cmocka_unit_test_setup_teardown(name, feed_world_start_plain, feed_world_stop)
#define RESTRICTED(name) cmocka_unit_test_setup_teardown(name, set_up_restricted, feed_world_stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_lost_queue_comes_back_with_the_settings_in_force),
        CASE(a_lost_change_of_the_settings_is_made_again),
        CASE(a_loss_of_many_queues_is_found_at_once),
        RESTRICTED(who_may_not_make_queues_waits_for_them),
        RESTRICTED(a_queue_that_nobody_makes_is_a_trouble_of_its_own),
    };
    return test_side_by_side(tests, NULL, NULL);
}
