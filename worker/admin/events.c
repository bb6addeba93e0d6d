/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/text.h"
#include "worker/admin/events.h"

enum {
    UNREAD_MAX = 256 * 1024, /* a reader that is so far behind misses numbers */
    RETRY_MS = 2000,         /* what a browser waits before it comes again */
};

struct subscriber {
    struct tl_admin_events *events;
    struct tl_admin_stream *stream;
    struct tl_admin_bearer bearer;
    bool closed; /* nobody reads any more */
    struct subscriber *next;
};

/* The streams of one queue. */
struct watch {
    struct tl_admin_pool_job job;
    struct tl_admin_events *events;
    char target[TL_TARGET_MAX]; /* of its numbers */
    bool running;               /* the job is submitted; only then are subscribers removed */
    struct subscriber *subscribers;
    struct watch *next;
};

struct tl_admin_events {
    struct tl_admin_access *access;
    struct tl_admin_pool *pool;
    pthread_t ticker;
    pthread_mutex_t mutex; /* for all that follows, and for the links and flags of watches */
    pthread_cond_t ended;
    bool ending;
    unsigned n; /* streams */
    struct watch *watches;
};

/* ---- one reading ---- */

static void write_event(struct tl_text *text, const char *event, const json_t *data)
{
    char *line = json_dumps(data, JSON_COMPACT);
    if (line != NULL)
        tl_text_append(text, "event: %s\ndata: %s\n\n", event, line);
    text->failed = text->failed || line == NULL;
    free(line);
}

/* The event for what a reading got. *over: no further one makes sense. */
static void read_numbers(struct tl_admin_backend *backend, const char *target, struct tl_text *text,
                         bool *over)
{
    static const struct tl_actor nobody = {.name = ""}; /* a reading changes nothing */
    struct tl_control_answer answer = {0};
    const struct tl_control_request request = {.method = "GET", .target = target, .actor = &nobody};
    tl_control_call(tl_admin_backend_control(backend), &request, &answer);
    *over = answer.status == 404;
    write_event(text,
                *over                           ? "end"
                : tl_control_succeeded(&answer) ? "stats"
                                                : "problem",
                answer.body);
    tl_control_answer_clear(&answer);
}

static void tell(struct tl_admin_events *events, struct tl_admin_backend *backend,
                 const struct subscriber *subscriber, const struct tl_text *text, bool over)
{
    static const char signed_out[] = "event: end\ndata: {\"type\":\"/problems/unauthorized\","
                                     "\"title\":\"A token of an operator is required\","
                                     "\"status\":401}\n\n";
    if (!tl_admin_access_still(events->access, backend, &subscriber->bearer)) {
        (void)tl_admin_stream_write(subscriber->stream, signed_out, sizeof(signed_out) - 1);
        tl_admin_stream_end(subscriber->stream, false);
        return;
    }
    if (text->failed || tl_admin_stream_left(subscriber->stream) > UNREAD_MAX)
        return;
    (void)tl_admin_stream_write(subscriber->stream, text->data, text->length);
    if (over)
        tl_admin_stream_end(subscriber->stream, false);
}

/* ---- watches ---- */

/* With the lock held. */
static void remove_closed(struct tl_admin_events *events, struct watch *watch)
{
    for (struct subscriber **at = &watch->subscribers; *at != NULL;) {
        struct subscriber *subscriber = *at;
        if (!subscriber->closed) {
            at = &subscriber->next;
            continue;
        }
        *at = subscriber->next;
        tl_admin_stream_release(&subscriber->stream);
        free(subscriber);
        events->n--;
    }
}

/* With the lock held. */
static void remove_watch(struct tl_admin_events *events, struct watch *watch)
{
    struct watch **at = &events->watches;
    while (*at != watch)
        at = &(*at)->next;
    *at = watch->next;
    free(watch);
}

static void run_watch(struct tl_admin_pool_job *job, void *thread_context)
{
    struct watch *watch = (struct watch *)(void *)job;
    struct tl_admin_events *events = watch->events;
    struct tl_text text = {0};
    bool over = false;
    pthread_mutex_lock(&events->mutex);
    remove_closed(events, watch);
    const struct subscriber *first = watch->subscribers;
    if (first == NULL) {
        remove_watch(events, watch);
        pthread_mutex_unlock(&events->mutex);
        return;
    }
    pthread_mutex_unlock(&events->mutex);
    read_numbers(thread_context, watch->target, &text, &over);
    /* New ones come before the first, and none is removed meanwhile. */
    for (const struct subscriber *at = first; at != NULL; at = at->next)
        tell(events, thread_context, at, &text, over);
    tl_text_free(&text);
    pthread_mutex_lock(&events->mutex);
    watch->running = false;
    pthread_mutex_unlock(&events->mutex);
}

/* Starts a reading for each queue once a second. */
static void *tick(void *context)
{
    struct tl_admin_events *events = context;
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    pthread_mutex_lock(&events->mutex);
    while (!events->ending) {
        at.tv_sec++;
        while (!events->ending && pthread_cond_timedwait(&events->ended, &events->mutex, &at) == 0)
            ;
        clock_gettime(CLOCK_MONOTONIC, &at);
        for (struct watch *watch = events->watches; watch != NULL && !events->ending;
             watch = watch->next) {
            if (!watch->running)
                tl_admin_pool_submit(events->pool, &watch->job);
            watch->running = true;
        }
    }
    pthread_mutex_unlock(&events->mutex);
    return NULL;
}

/* ---- streams ---- */

static void on_closed(void *context)
{
    struct subscriber *subscriber = context;
    struct tl_admin_events *events = subscriber->events;
    pthread_mutex_lock(&events->mutex);
    subscriber->closed = true;
    pthread_mutex_unlock(&events->mutex);
}

/* The watch of this target, new if there is none; NULL when out of memory. With the lock held. */
static struct watch *find_watch(struct tl_admin_events *events, const char *target)
{
    for (struct watch *watch = events->watches; watch != NULL; watch = watch->next)
        if (strcmp(watch->target, target) == 0)
            return watch;
    struct watch *watch = calloc(1, sizeof(*watch));
    if (watch == NULL)
        return NULL;
    *watch = (struct watch){.job = {.run = run_watch}, .events = events, .next = events->watches};
    memcpy(watch->target, target, strlen(target) + 1);
    events->watches = watch;
    return watch;
}

static bool subscribe(struct tl_admin_events *events, struct subscriber *subscriber,
                      const char *target, struct tl_control_answer *answer)
{
    pthread_mutex_lock(&events->mutex);
    bool room = !events->ending && events->n < TL_ADMIN_EVENTS_STREAMS_MAX;
    struct watch *watch = room ? find_watch(events, target) : NULL;
    if (watch != NULL) {
        subscriber->next = watch->subscribers;
        watch->subscribers = subscriber;
        events->n++;
    }
    pthread_mutex_unlock(&events->mutex);
    if (watch == NULL)
        tl_control_problem(answer, 503, "%s",
                           room ? "out of memory" : "too many event streams are open");
    return watch != NULL;
}

struct tl_admin_stream *tl_admin_events_open(struct tl_admin_events *events,
                                             struct tl_admin_backend *backend, const char *target,
                                             const struct tl_admin_bearer *bearer,
                                             struct tl_control_answer *answer)
{
    static const char last[] = "events", numbers[] = "stats";
    char stats[TL_TARGET_MAX];
    struct tl_text text = {0};
    bool over = false;
    size_t path = strcspn(target, "?") - (sizeof(last) - 1); /* as its route ends */
    if (path + sizeof(numbers) > sizeof(stats)) {
        tl_control_problem(answer, 400, "the path is too long");
        return NULL;
    }
    memcpy(stats, target, path);
    memcpy(stats + path, numbers, sizeof(numbers));
    struct subscriber *subscriber = calloc(1, sizeof(*subscriber));
    const struct tl_admin_stream_writer writer = {.context = subscriber, .closed = on_closed};
    struct tl_admin_stream *stream = subscriber != NULL ? tl_admin_stream_new(&writer) : NULL;
    if (stream == NULL) {
        free(subscriber);
        tl_control_problem(answer, 503, "out of memory");
        return NULL;
    }
    *subscriber = (struct subscriber){.events = events, .stream = stream, .bearer = *bearer};
    tl_text_append(&text, "retry: %d\n\n", RETRY_MS);
    read_numbers(backend, stats, &text, &over);
    if (!text.failed)
        (void)tl_admin_stream_write(stream, text.data, text.length);
    tl_text_free(&text);
    if (over)
        tl_admin_stream_end(stream, false);
    if (subscribe(events, subscriber, stats, answer))
        return stream;
    tl_admin_stream_release(&stream); /* the response's share, too: there will be none */
    tl_admin_stream_release(&subscriber->stream);
    free(subscriber);
    return NULL;
}

/* ---- life ---- */

struct tl_admin_events *tl_admin_events_new(struct tl_admin_access *access,
                                            struct tl_admin_pool *pool, struct tl_error *err)
{
    pthread_condattr_t monotonic;
    struct tl_admin_events *events = calloc(1, sizeof(*events));
    if (events == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for event streams");
        return NULL;
    }
    events->access = access;
    events->pool = pool;
    pthread_mutex_init(&events->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&events->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&events->ticker, NULL, tick, events) == 0)
        return events;
    tl_error_set(err, TL_ERR_SYSTEM, "a thread could not be started");
    events->ending = true;
    pthread_cond_destroy(&events->ended);
    pthread_mutex_destroy(&events->mutex);
    free(events);
    return NULL;
}

void tl_admin_events_end(struct tl_admin_events *events)
{
    pthread_mutex_lock(&events->mutex);
    bool before = events->ending;
    events->ending = true;
    pthread_cond_signal(&events->ended);
    for (const struct watch *watch = events->watches; watch != NULL; watch = watch->next)
        for (const struct subscriber *at = watch->subscribers; at != NULL; at = at->next)
            tl_admin_stream_end(at->stream, false);
    pthread_mutex_unlock(&events->mutex);
    if (!before)
        pthread_join(events->ticker, NULL);
}

void tl_admin_events_free(struct tl_admin_events **events_in)
{
    struct tl_admin_events *events = *events_in;
    if (events == NULL)
        return;
    tl_admin_events_end(events);
    while (events->watches != NULL) {
        remove_closed(events, events->watches);
        remove_watch(events, events->watches);
    }
    pthread_cond_destroy(&events->ended);
    pthread_mutex_destroy(&events->mutex);
    free(events);
    *events_in = NULL;
}
