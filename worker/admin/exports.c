/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/control/control.h"
#include "worker/admin/backend.h"
#include "worker/admin/exports.h"

enum {
    UNREAD_MAX = 128 * 1024, /* in the buffer, before another page is fetched */
    PAUSE_MAX_US = 20000,
};

struct one {
    struct tl_admin_pool_job job;
    struct tl_admin_exports *exports;
    struct tl_control *control;
    struct tl_control_export *export;
    struct tl_admin_stream *stream;
    bool scheduled, closed, over; /* over: nothing more comes */
    struct one *next;
};

struct tl_admin_exports {
    const struct tl_config *config;
    struct tl_admin_pool *pool;
    pthread_mutex_t mutex; /* for all that follows, and for the flags of each */
    bool ending;
    unsigned n; /* also those that are just beginning */
    struct one *list;
};

struct tl_admin_exports *tl_admin_exports_new(const struct tl_config *config,
                                              struct tl_admin_pool *pool, struct tl_error *err)
{
    struct tl_admin_exports *exports = calloc(1, sizeof(*exports));
    if (exports == NULL || pthread_mutex_init(&exports->mutex, NULL) != 0) {
        free(exports);
        tl_error_set(err, TL_ERR_NOMEM, "no memory for exports");
        return NULL;
    }
    exports->config = config;
    exports->pool = pool;
    return exports;
}

static void free_one(struct one *one)
{
    tl_control_export_end(&one->export);
    tl_control_free(&one->control);
    tl_admin_stream_release(&one->stream);
    free(one);
}

static void remove_one(struct one *one)
{
    struct tl_admin_exports *exports = one->exports;
    pthread_mutex_lock(&exports->mutex);
    struct one **at = &exports->list;
    while (*at != one)
        at = &(*at)->next;
    *at = one->next;
    exports->n--;
    pthread_mutex_unlock(&exports->mutex);
    free_one(one);
}

/* The next page. True: nothing more comes. */
static bool fetch(struct one *one)
{
    struct tl_error err = {0};
    const char *bytes;
    size_t length;
    if (!tl_control_export_next(one->export, &bytes, &length, &err)) {
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.error = &err}, "an export was broken off");
        tl_admin_stream_end(one->stream, true);
        return true;
    }
    if (length == 0)
        tl_admin_stream_end(one->stream, false);
    return length == 0 || !tl_admin_stream_write(one->stream, bytes, length);
}

/* Pauses as long as the page took: an export takes no more than half of the time of the store and
 * of a processor, which visitors need, too. */
static void pause_after(int64_t took_us)
{
    int64_t pause_us = took_us < PAUSE_MAX_US ? took_us : PAUSE_MAX_US;
    const struct timespec pause = {.tv_nsec = pause_us * 1000};
    (void)nanosleep(&pause, NULL);
}

static void run_one(struct tl_admin_pool_job *job, void *thread_context)
{
    struct one *one = (struct one *)(void *)job;
    struct tl_admin_exports *exports = one->exports;
    (void)thread_context;
    pthread_mutex_lock(&exports->mutex);
    bool over = one->closed || one->over || exports->ending;
    pthread_mutex_unlock(&exports->mutex);
    if (!over) {
        int64_t began_us = tl_clock_us();
        over = fetch(one);
        pause_after(tl_clock_us() - began_us);
    }
    pthread_mutex_lock(&exports->mutex);
    one->over = over;
    /* A reader who waits asks no more, so go on until there is something. */
    one->scheduled = !over && !one->closed && tl_admin_stream_left(one->stream) < UNREAD_MAX;
    bool closed = one->closed;
    bool again = one->scheduled;
    pthread_mutex_unlock(&exports->mutex);
    if (again)
        tl_admin_pool_submit(exports->pool, &one->job);
    else if (closed)
        remove_one(one);
}

/* The reader took some, or is gone: one more run. */
static void schedule(struct one *one, bool closed)
{
    struct tl_admin_exports *exports = one->exports;
    pthread_mutex_lock(&exports->mutex);
    one->closed = one->closed || closed;
    bool now = !one->scheduled && (closed || !one->over);
    one->scheduled = one->scheduled || now;
    pthread_mutex_unlock(&exports->mutex);
    if (now)
        tl_admin_pool_submit(exports->pool, &one->job);
}

static void on_drained(void *context)
{
    schedule(context, false);
}

static void on_closed(void *context)
{
    schedule(context, true);
}

static bool take_place(struct tl_admin_exports *exports, struct tl_control_answer *answer)
{
    pthread_mutex_lock(&exports->mutex);
    bool room = !exports->ending && exports->n < TL_ADMIN_EXPORTS_MAX;
    exports->n += room;
    pthread_mutex_unlock(&exports->mutex);
    if (!room)
        tl_control_problem(answer, 503, "%u exports are running already", TL_ADMIN_EXPORTS_MAX);
    return room;
}

static void give_place_back(struct tl_admin_exports *exports)
{
    pthread_mutex_lock(&exports->mutex);
    exports->n--;
    pthread_mutex_unlock(&exports->mutex);
}

struct tl_admin_stream *tl_admin_exports_open(struct tl_admin_exports *exports,
                                              const struct tl_control_request *request,
                                              const char **type, struct tl_control_answer *answer)
{
    struct tl_error err = {.kind = TL_ERR_NOMEM, .text = "no memory for an export"};
    if (!take_place(exports, answer))
        return NULL;
    struct one *one = calloc(1, sizeof(*one));
    const struct tl_admin_stream_writer writer = {
        .context = one, .drained = on_drained, .closed = on_closed};
    if (one != NULL)
        *one = (struct one){.job = {.run = run_one}, .exports = exports, .scheduled = true};
    if (one != NULL)
        one->control =
            tl_control_new(exports->config, tl_admin_backend_redis_url(exports->config), &err);
    if (one != NULL && one->control != NULL)
        one->export = tl_control_export_begin(one->control, request, answer);
    else
        tl_control_problem_of(answer, &err);
    if (one != NULL && one->export != NULL)
        one->stream = tl_admin_stream_new(&writer);
    if (one == NULL || one->stream == NULL) {
        if (one != NULL && one->export != NULL)
            tl_control_problem(answer, 503, "no memory for an export");
        if (one != NULL)
            free_one(one);
        give_place_back(exports);
        return NULL;
    }
    struct tl_admin_stream *stream = one->stream;
    *type = tl_control_export_type(one->export);
    pthread_mutex_lock(&exports->mutex);
    one->next = exports->list;
    exports->list = one;
    bool ending = exports->ending;
    pthread_mutex_unlock(&exports->mutex);
    if (ending)
        tl_admin_stream_end(stream, true);
    tl_admin_pool_submit(exports->pool, &one->job);
    return stream;
}

void tl_admin_exports_end(struct tl_admin_exports *exports)
{
    pthread_mutex_lock(&exports->mutex);
    exports->ending = true;
    for (const struct one *one = exports->list; one != NULL; one = one->next)
        tl_admin_stream_end(one->stream, true);
    pthread_mutex_unlock(&exports->mutex);
}

void tl_admin_exports_free(struct tl_admin_exports **exports)
{
    if (*exports == NULL)
        return;
    pthread_mutex_destroy(&(*exports)->mutex);
    free(*exports);
    *exports = NULL;
}
