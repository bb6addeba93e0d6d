/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "feed_world.h"

enum { WAIT_MS = 300000, TIMEOUT_MS = 60000 };

static void tell(struct feed_world *f, const char *what, const char *queue, const char *text,
                 size_t length)
{
    size_t used = strlen(f->told);
    snprintf(f->told + used, sizeof(f->told) - used, "%s%s%s%.*s ", what, queue,
             length > 0 ? "=" : "", (int)length, text);
}

static void on_line(void *context, const char *queue, const struct tl_queue_settings *settings,
                    struct tl_line *line)
{
    struct feed_world *f = context;
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
    struct feed_world *f = context;
    f->capacity = settings->capacity;
    tell(f, "settings:", queue, "", 0);
}

static void on_notice(void *context, const char *queue, const char *text, size_t length)
{
    tell(context, "notice:", queue, text, length);
}

static void on_recovery(void *context, const char *queue, const struct tl_recovery *recovery)
{
    struct feed_world *f = context;
    (void)queue;
    f->recovery = *recovery;
}

static void on_turns(void *context, const char *queue, const struct tl_turns_state *turns)
{
    struct feed_world *f = context;
    f->turns = *turns;
    tell(f, "turns:", queue, turns->field, strlen(turns->field));
}

static void on_gone(void *context, const char *queue)
{
    tell(context, "gone:", queue, "", 0);
}

static void on_listed(void *context)
{
    struct feed_world *f = context;
    if (strstr(f->told, "listed") == NULL)
        tell(f, "listed", "", "", 0);
}

static void on_trouble(void *context, const char *queue, const char *text, size_t length)
{
    (void)text;
    tell(context, length > 0 ? "trouble:" : "sound:", queue, "", 0);
}

static void on_clock(void *context, int64_t offset_ms)
{
    struct feed_world *f = context;
    f->offset_ms = offset_ms;
    f->clock_known = true;
}

static void on_memory(void *context, const struct tl_store_memory *memory,
                      enum tl_memory_level level)
{
    struct feed_world *f = context;
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

void feed_world_until(struct feed_world *f, const char *expected)
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

void feed_world_forget(struct feed_world *f)
{
    f->told[0] = '\0';
}

/* The user of the follower's connections may do what a worker's own user may: deploy/redis. */
static void restrict_user(struct feed_world *f)
{
    test_redis_ask(f->redis, "ACL SETUSER tester on >secret ~* &* +@all");
    test_redis_ask(f->redis, "AUTH tester secret");
    test_redis_ask(f->redis, "ACL SETUSER default resetkeys %%R~tl:* %%W~tl:{*}:ingest "
                             "~tl:{*}:state %%W~tl:{*}:events");
}

int feed_world_start(void **state, const struct tl_config *config, bool restricted)
{
    struct feed_world *f = calloc(1, sizeof(*f));
    struct tl_error err = {0};
    assert_non_null(f);
    f->server = test_redis_start_kept();
    f->redis = test_redis_connect(f->server);
    test_queue(f->redis, "capacity=3", &f->keys);
    if (restricted)
        restrict_user(f);
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
        .trouble = on_trouble,
        .listed = on_listed,
        .clock = on_clock,
        .store = on_store,
        .memory = on_memory,
        .blocks = on_blocks};
    f->follower = tl_follower_new(&f->loop, &settings, config, &err);
    if (f->follower == NULL)
        fail_msg("%s", err.text);
    feed_world_until(f, "up ");
    *state = f;
    return 0;
}

int feed_world_start_plain(void **state)
{
    static const struct tl_config config = {.n_queues = 0};
    return feed_world_start(state, &config, false);
}

int feed_world_stop(void **state)
{
    struct feed_world *f = *state;
    tl_follower_free(&f->follower);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    tl_redis_free(&f->redis);
    test_redis_stop(&f->server);
    free(f);
    return 0;
}
