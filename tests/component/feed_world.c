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

static void on_change(void *context, struct tl_change *change)
{
    struct feed_world *f = context;
    const char *queue = change->queue;
    char text[32];
    switch (change->kind) {
    case TL_CHANGE_LINE:
        f->capacity = change->settings->capacity;
        assert_non_null(change->line);
        tell(f, "line:", queue, "", 0);
        break;
    case TL_CHANGE_ENTRY:
        tell(f, "entry:", queue, change->bytes, change->length);
        break;
    case TL_CHANGE_SETTINGS:
        f->capacity = change->settings->capacity;
        tell(f, "settings:", queue, "", 0);
        break;
    case TL_CHANGE_NOTICE:
        tell(f, "notice:", queue, change->bytes, change->length);
        break;
    case TL_CHANGE_RECOVERY:
        f->recovery = change->recovery;
        break;
    case TL_CHANGE_TURNS:
        f->turns = change->turns;
        tell(f, "turns:", queue, f->turns.field, strlen(f->turns.field));
        break;
    case TL_CHANGE_GONE:
        tell(f, "gone:", queue, "", 0);
        break;
    case TL_CHANGE_TROUBLE:
        tell(f, "trouble:", queue, "", 0);
        break;
    case TL_CHANGE_SOUND:
        tell(f, "sound:", queue, "", 0);
        break;
    case TL_CHANGE_LISTED:
        if (strstr(f->told, "listed") == NULL)
            tell(f, "listed", "", "", 0);
        break;
    case TL_CHANGE_CLOCK:
        f->offset_ms = change->offset_ms;
        f->clock_known = true;
        break;
    case TL_CHANGE_STORE:
        tell(f, change->up ? "up" : "down", "", "", 0);
        break;
    case TL_CHANGE_MEMORY:
        if (change->level != f->memory)
            tell(f, change->level == TL_MEMORY_FULL ? "full" : "room", "", "", 0);
        f->memory = change->level;
        break;
    case TL_CHANGE_BLOCKS:
        tell(f, "blocks", "", text, (size_t)snprintf(text, sizeof(text), "%zu", change->blocks->n));
        break;
    }
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
        .changed = on_change};
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
