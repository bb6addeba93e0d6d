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
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "redis_server.h"
#include "side_by_side.h"
#include "worker/feed/follower.h"

#include "generated/store_scripts.h"

enum { WAIT_MS = 300000, TIMEOUT_MS = 60000 };

struct fixture {
    struct test_redis *server;
    struct tl_redis *redis;
    struct tl_keys keys;
    uv_loop_t loop;
    struct tl_follower *follower;
    char told[4096]; /* one word for each callback but clock and listed, in order */
    uint64_t capacity;
    int64_t offset_ms;
    enum tl_memory_level memory;
    bool clock_known;
    struct tl_recovery recovery;
    struct tl_turns_state turns;
};

static void tell(struct fixture *f, const char *what, const char *queue, const char *text,
                 size_t length)
{
    size_t used = strlen(f->told);
    snprintf(f->told + used, sizeof(f->told) - used, "%s%s%s%.*s ", what, queue,
             length > 0 ? "=" : "", (int)length, text);
}

static void on_line(void *context, const char *queue, const struct tl_queue_settings *settings,
                    struct tl_line *line)
{
    struct fixture *f = context;
    f->capacity = settings->capacity;
    assert_non_null(line);
    tl_line_free(&line);
    tell(f, "line:", queue, "", 0);
}

static void on_entry(void *context, const char *queue, const void *payload, size_t length)
{
    tell(context, "entry:", queue, payload, length);
}

static void on_settings(void *context, const char *queue, const struct tl_queue_settings *settings)
{
    struct fixture *f = context;
    f->capacity = settings->capacity;
    tell(f, "settings:", queue, "", 0);
}

static void on_notice(void *context, const char *queue, const char *text, size_t length)
{
    tell(context, "notice:", queue, text, length);
}

static void on_recovery(void *context, const char *queue, const struct tl_recovery *recovery)
{
    struct fixture *f = context;
    (void)queue;
    f->recovery = *recovery;
}

static void on_turns(void *context, const char *queue, const struct tl_turns_state *turns)
{
    struct fixture *f = context;
    f->turns = *turns;
    tell(f, "turns:", queue, turns->field, strlen(turns->field));
}

static void on_gone(void *context, const char *queue)
{
    tell(context, "gone:", queue, "", 0);
}

static void on_listed(void *context)
{
    struct fixture *f = context;
    if (strstr(f->told, "listed") == NULL)
        tell(f, "listed", "", "", 0);
}

static void on_clock(void *context, int64_t offset_ms)
{
    struct fixture *f = context;
    f->offset_ms = offset_ms;
    f->clock_known = true;
}

static void on_memory(void *context, const struct tl_store_memory *memory,
                      enum tl_memory_level level)
{
    struct fixture *f = context;
    (void)memory;
    if (level != f->memory)
        tell(f, level == TL_MEMORY_FULL ? "full" : "room", "", "", 0);
    f->memory = level;
}

static void on_blocks(void *context, struct tl_blocks *blocks)
{
    char text[32];
    int n = snprintf(text, sizeof(text), "%zu", blocks->n);
    tell(context, "blocks", "", text, (size_t)n);
    free(blocks);
}

static void on_store(void *context, bool up)
{
    tell(context, up ? "up" : "down", "", "", 0);
}

static void wake(uv_timer_t *timer)
{
    (void)timer;
}

/* Turns the loop until `expected` has been told. */
static void turn_until(struct fixture *f, const char *expected)
{
    uv_timer_t timer; /* so that the loop never sleeps past the deadline */
    int64_t until_ms = tl_clock_ms() + WAIT_MS;
    uv_timer_init(&f->loop, &timer);
    uv_timer_start(&timer, wake, 20, 20);
    while (strstr(f->told, expected) == NULL) {
        if (tl_clock_ms() > until_ms)
            fail_msg("waited for \"%s\", got \"%s\"", expected, f->told);
        uv_run(&f->loop, UV_RUN_ONCE);
    }
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&f->loop, UV_RUN_NOWAIT);
}

static void forget(struct fixture *f)
{
    f->told[0] = '\0';
}

/* The state is lost and made again, in one step: a follower that looked in between would set the
 * queue aside as damaged. */
static void lose_state(struct fixture *f)
{
    struct tl_queue_settings settings;
    struct tl_error err = {0};
    tl_queue_settings_defaults(&settings);
    settings.capacity = 4;
    struct tl_args args = {0};
    tl_args_strs(&args, "EVAL", tl_script_ensure, NULL);
    tl_keys_append(&f->keys, &args);
    tl_args_str(&args, "0");
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

static int set_up_with(void **state, const struct tl_config *config)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct tl_error err = {0};
    assert_non_null(f);
    f->server = test_redis_start_kept();
    f->redis = test_redis_connect(f->server);
    test_queue(f->redis, "capacity=3", &f->keys);
    uv_loop_init(&f->loop);
    const struct tl_follower_settings settings = {
        .redis = {.url = test_redis_url(f->server), .timeout_ms = TIMEOUT_MS},
        .key_prefix = "tl:",
        .context = f,
        .line = on_line,
        .entry = on_entry,
        .settings = on_settings,
        .notice = on_notice,
        .recovery = on_recovery,
        .turns = on_turns,
        .gone = on_gone,
        .listed = on_listed,
        .clock = on_clock,
        .store = on_store,
        .memory = on_memory,
        .blocks = on_blocks};
    f->follower = tl_follower_new(&f->loop, &settings, config, &err);
    if (f->follower == NULL)
        fail_msg("%s", err.text);
    turn_until(f, "up ");
    *state = f;
    return 0;
}

static int set_up(void **state)
{
    static const struct tl_config config = {.n_queues = 0};
    return set_up_with(state, &config);
}

/* Queue "q" is in the configuration. */
static int set_up_configured(void **state)
{
    static struct tl_queue_config queue = {.name = "q"};
    static const struct tl_config config = {
        .n_queues = 1, .queues = &queue, .redis = {.changes_length = 1000}};
    tl_queue_settings_defaults(&queue.settings);
    return set_up_with(state, &config);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    tl_follower_free(&f->follower);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    tl_redis_free(&f->redis);
    test_redis_stop(&f->server);
    free(f);
    return 0;
}

static void add_entry(struct fixture *f, const char *payload)
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
    struct fixture *f = *state;
    assert_string_equal(f->told, "line:q notice:q listed up ");
    assert_int_equal(f->capacity, 3);
    assert_true(f->clock_known);
    assert_in_range(f->offset_ms + tl_clock_ms(), test_redis_ms(f->redis) - 1000,
                    test_redis_ms(f->redis) + 1000);
}

static void entries_come_in_order(void **state)
{
    struct fixture *f = *state;
    forget(f);
    for (int i = 0; i < 20; i++) {
        char payload[16];
        snprintf(payload, sizeof(payload), "e%d", i);
        add_entry(f, payload);
    }
    turn_until(f, "e19 ");
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
    struct fixture *f = *state;
    forget(f);
    test_redis_ask(f->redis, "HSET %s capacity 9", f->keys.names[TL_KEY_CONFIG]);
    turn_until(f, "settings:q ");
    assert_int_equal(f->capacity, 9);
}

/* After CONFIG: the turns of the lanes with the event up to which they are counted; and again when
 * settings were changed by hand. */
static void a_reload_brings_the_turns_of_the_lanes(void **state)
{
    struct fixture *f = *state;
    forget(f);
    test_redis_ask(f->redis, "HSET %s turns 3,1:3:1,0", f->keys.names[TL_KEY_STATE]);
    tl_follower_reload(f->follower, "q");
    turn_until(f, "turns:q=3,1:3:1,0 ");
    assert_int_equal(f->turns.event,
                     test_redis_ask(f->redis, "HGET %s event", f->keys.names[TL_KEY_STATE]));
    forget(f);
    test_redis_ask(f->redis, "HSET %s turns 3,1:3:0,2", f->keys.names[TL_KEY_STATE]);
    test_redis_ask(f->redis, "HSET %s capacity 9", f->keys.names[TL_KEY_CONFIG]);
    turn_until(f, "turns:q=3,1:3:0,2 ");
    assert_true(strstr(f->told, "settings:q") < strstr(f->told, "turns:q"));
}

static void a_reload_that_changes_nothing_tells_nothing(void **state)
{
    struct fixture *f = *state;
    forget(f);
    tl_follower_reload(f->follower, "q");
    tl_follower_reload(f->follower, "unknown");
    add_entry(f, "next");
    turn_until(f, "entry:q=next ");
    assert_null(strstr(f->told, "settings"));
}

static void a_rebuild_brings_a_new_line_with_the_notice(void **state)
{
    struct fixture *f = *state;
    struct tl_error err = {0};
    if (!tl_queue_notice(f->redis, &f->keys, "soon", &test_actor, &err))
        fail_msg("%s", err.text);
    turn_until(f, "entry:q");
    forget(f);
    tl_follower_rebuild(f->follower, "unknown");
    tl_follower_rebuild(f->follower, "q");
    turn_until(f, "line:q notice:q=soon ");
}

/* The entry that tells of it may have an id below those that were read, when the store's clock went
 * back. */
static void an_incarnation_is_found_without_its_entry(void **state)
{
    struct fixture *f = *state;
    forget(f);
    test_redis_ask(f->redis, "HSET %s base_seq 77", f->keys.names[TL_KEY_STATE]);
    turn_until(f, "line:q notice:q ");
    test_redis_ask(f->redis, "HSET %s capacity 9", f->keys.names[TL_KEY_CONFIG]);
    turn_until(f, "settings:q ");
    assert_null(strstr(strstr(f->told, "line:q") + 1, "line:q")); /* once */
}

/* Its rebuild waits for its turn, and comes. */
static void a_large_line_is_rebuilt_after_an_incarnation(void **state)
{
    struct fixture *f = *state;
    forget(f);
    test_redis_ask(f->redis, "HSET %s base_seq 78 waiting 100000", f->keys.names[TL_KEY_STATE]);
    tl_follower_rebuild(f->follower, "q");
    turn_until(f, "line:q notice:q ");
    test_redis_ask(f->redis, "HSET %s capacity 9", f->keys.names[TL_KEY_CONFIG]);
    turn_until(f, "settings:q ");
    assert_null(strstr(strstr(f->told, "line:q") + 1, "line:q")); /* once */
}

static void a_deleted_queue_is_gone_and_a_created_one_comes(void **state)
{
    struct fixture *f = *state;
    forget(f);
    tl_reply_free(test_redis_call(f->redis, "FLUSHALL"));
    turn_until(f, "gone:q ");
    forget(f);
    test_queue(f->redis, "capacity=4", &f->keys);
    turn_until(f, "line:q notice:q ");
    assert_int_equal(f->capacity, 4);
}

/* Although it is in the configuration: nobody creates it again but an operator. */
static void a_queue_that_an_operator_deleted_stays_away(void **state)
{
    struct fixture *f = *state;
    struct tl_queue_settings settings;
    struct tl_error err = {0};
    bool created;
    forget(f);
    test_redis_ask(f->redis, "HSET tl:{q}:retired generation 5 away 1");
    test_redis_ask(f->redis, "UNLINK tl:{q}:state tl:{q}:config tl:{q}:events tl:{q}:ingest");
    test_redis_ask(f->redis, "SREM tl:queues q");
    turn_until(f, "gone:q ");
    forget(f);
    tl_queue_settings_defaults(&settings);
    assert_true(tl_queue_create(f->redis, "tl:", "other", &settings, &test_actor, NULL, &err));
    turn_until(f, "line:other "); /* a whole update later */
    assert_int_equal(test_redis_ask(f->redis, "EXISTS tl:{q}:state"), 0);
    assert_false(tl_queue_ensure(f->redis, "tl:", "q", &settings, &test_actor, &created, &err));
    assert_int_equal(err.kind, TL_ERR_RETIRED);
    forget(f);
    assert_true(tl_queue_create(f->redis, "tl:", "q", &settings, &test_actor, &created, &err));
    assert_true(created);
    turn_until(f, "line:q ");
}

/* The table is posted when it changes. One that is lost, or cannot be read, stops nothing. */
static void blocked_prefixes_are_followed(void **state)
{
    struct fixture *f = *state;
    forget(f);
    test_redis_ask(f->redis, "HSET tl:blocks version 7 192.0.2.7 0 10.0.0.0/8 0");
    turn_until(f, "blocks=2 ");
    test_redis_ask(f->redis, "HSET tl:blocks version 8 192.0.2.8 0");
    turn_until(f, "blocks=3 ");
    forget(f);
    test_redis_ask(f->redis, "DEL tl:blocks");
    test_redis_ask(f->redis, "RPUSH tl:blocks damaged");
    lose_state(f);
    turn_until(f, "line:q ");
    test_redis_ask(f->redis, "DEL tl:blocks");
    test_redis_ask(f->redis, "HSET tl:blocks version 9");
    turn_until(f, "blocks=0 ");
    assert_null(strstr(f->told, "down"));
}

static void a_queue_that_comes_back_empty_recovers(void **state)
{
    struct fixture *f = *state;
    uint64_t lost = f->recovery.present;
    assert_int_equal(f->recovery.until_ms, 0);
    forget(f);
    lose_state(f);
    turn_until(f, "line:q ");
    assert_true(f->recovery.present > lost);
    assert_int_equal(f->recovery.lost_generation, lost); /* named by the follower */
    assert_true(f->recovery.until_ms > 0);
}

static void a_store_that_went_away_is_followed_again(void **state)
{
    struct fixture *f = *state;
    forget(f);
    test_redis_kill(f->server);
    turn_until(f, "down ");
    test_redis_restart(f->server);
    turn_until(f, "up ");
    tl_redis_close(f->redis);
    struct tl_error err = {0};
    assert_true(tl_redis_connect(f->redis, &err));
    add_entry(f, "after");
    turn_until(f, "entry:q=after ");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void memory_that_runs_out_is_told_and_told_back(void **state)
{
    struct fixture *f = *state;
    test_redis_ask(f->redis, "CONFIG SET maxmemory 100mb");
    test_redis_ask(f->redis, "SETRANGE ballast 99000000 x"); /* a string of 99 MB */
    turn_until(f, "full ");
    assert_null(strstr(f->told, "room"));
    test_redis_ask(f->redis, "DEL ballast");
    turn_until(f, "room ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(memory_that_runs_out_is_told_and_told_back, set_up,
                                        tear_down),
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
                                        set_up_configured, tear_down),
        CASE(blocked_prefixes_are_followed),
        CASE(a_queue_that_comes_back_empty_recovers),
        CASE(a_store_that_went_away_is_followed_again),
    };
    return test_side_by_side(tests, NULL, NULL);
}
