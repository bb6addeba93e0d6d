/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/control/control.h"
#include "common/control/target.h"
#include "worker/admin/streams.h"

enum {
    BLOCK = 16 * 1024, /* bytes read at once */
    UNTAKEN_S = 30,    /* for this long a client may take nothing of what is made */
    INTERVAL_MS = 1000,
    RETRY_MS = 2000, /* what a browser waits before it comes again */
    PAUSE_MAX_US = 20000,
};

/* The numbers of one queue, for all who follow them. */
struct watch {
    char target[TL_TARGET_MAX]; /* of the numbers */
    unsigned followers;
    bool reading;        /* the thread of one of them asks the store */
    int64_t next_ms;     /* when the next reading is due */
    uint64_t number;     /* of the last one, */
    struct tl_text text; /* its event */
    bool over;           /* and it is the last that makes sense */
    struct watch *next;
};

struct tl_admin_streams {
    const struct tl_config *config;
    struct tl_admin_access *access;
    struct tl_admin_backends *backends;
    pthread_mutex_t turn;   /* one follower at a time is checked: backends are for calls */
    pthread_mutex_t mutex;  /* for what follows, and all of the watches */
    pthread_cond_t changed; /* a reading is done, or the streams end */
    bool ending;
    unsigned events, exports; /* also those that are just beginning */
    struct watch *watches;
};

/* A stream of events. */
struct follower {
    struct tl_admin_streams *streams;
    struct MHD_Connection *connection;
    struct tl_admin_bearer bearer;
    struct watch *watch;
    uint64_t seen;       /* the number of its reading */
    struct tl_text text; /* to be sent, */
    size_t sent;         /* and how much of it was */
    bool over;           /* nothing comes behind it */
};

struct export
{
    struct tl_admin_streams *streams;
    struct MHD_Connection *connection;
    struct tl_control *control;
    struct tl_control_export *pages;
    const char *bytes; /* the rest of the page, borrowed */
    size_t length;
};

/* The library's limit is for clients, and not for the store and our waiting. 0: none. */
static void limit_connection(struct MHD_Connection *connection, unsigned seconds)
{
    (void)MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, seconds);
}

/* The response, which calls `close` with the context in any case. */
static struct MHD_Response *respond(struct MHD_Connection *connection,
                                    MHD_ContentReaderCallback read, void *context,
                                    MHD_ContentReaderFreeCallback close,
                                    struct tl_control_answer *answer)
{
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read, context, close);
    limit_connection(connection, UNTAKEN_S);
    if (response == NULL) {
        close(context);
        tl_control_problem(answer, TL_REFUSAL_INTERNAL, "out of memory");
    }
    return response;
}

/* ---- events: one reading ---- */

static void write_event(struct tl_text *text, const char *event, const json_t *data)
{
    char *line = json_dumps(data, JSON_COMPACT);
    if (line != NULL)
        tl_text_append(text, "event: %s\ndata: %s\n\n", event, line);
    text->failed = text->failed || line == NULL;
    free(line);
}

/* The event for what a reading got. *over: no further one makes sense. */
static void read_numbers(struct tl_control *control, const char *target, struct tl_text *text,
                         bool *over)
{
    static const struct tl_actor nobody = {.name = ""}; /* a reading changes nothing */
    struct tl_control_answer answer = {0};
    const struct tl_control_request request = {.method = "GET", .target = target, .actor = &nobody};
    tl_control_call(control, &request, &answer);
    *over = answer.status == 404;
    write_event(text,
                *over                           ? "end"
                : tl_control_succeeded(&answer) ? "stats"
                                                : "problem",
                answer.body);
    tl_control_answer_clear(&answer);
}

/* With the lock held, which is released meanwhile: `reading` keeps the others out. */
static void read_watch(struct tl_admin_streams *streams, struct watch *watch)
{
    struct tl_text text = {0};
    bool over = false;
    watch->reading = true;
    pthread_mutex_unlock(&streams->mutex);
    struct tl_control *control = tl_admin_backend_borrow(streams->backends, NULL);
    if (control != NULL) {
        read_numbers(control, watch->target, &text, &over);
        tl_admin_backend_return(streams->backends, control);
    }
    pthread_mutex_lock(&streams->mutex);
    tl_text_free(&watch->text);
    watch->text = text;
    watch->over = over;
    watch->number++;
    watch->reading = false;
    for (int64_t now_ms = tl_clock_ms(); watch->next_ms <= now_ms;)
        watch->next_ms += INTERVAL_MS; /* one that took longer leaves some out */
    pthread_cond_broadcast(&streams->changed);
}

/* ---- events: who follows ---- */

/* With the lock held: until the time, or until something changed. */
static void wait_until(struct tl_admin_streams *streams, int64_t time_ms)
{
    const struct timespec at = {.tv_sec = time_ms / 1000, .tv_nsec = time_ms % 1000 * 1000000};
    (void)pthread_cond_timedwait(&streams->changed, &streams->mutex, &at);
}

/* Waits for the numbers of the next second and takes them. The follower that finds them due reads
 * them for all. False: the streams end. */
static bool take_numbers(struct follower *follower)
{
    struct tl_admin_streams *streams = follower->streams;
    struct watch *watch = follower->watch;
    pthread_mutex_lock(&streams->mutex);
    while (!streams->ending && watch->number == follower->seen) {
        if (watch->reading)
            pthread_cond_wait(&streams->changed, &streams->mutex);
        else if (tl_clock_ms() < watch->next_ms)
            wait_until(streams, watch->next_ms);
        else
            read_watch(streams, watch);
    }
    bool ending = streams->ending;
    follower->seen = watch->number;
    if (watch->text.length > 0 && !watch->text.failed) {
        tl_text_append(&follower->text, "%s", watch->text.data);
        follower->over = watch->over;
    }
    pthread_mutex_unlock(&streams->mutex);
    return !ending;
}

/* False: the streams end. Without memory for it there is no text. */
static bool next_event(struct follower *follower)
{
    struct tl_admin_streams *streams = follower->streams;
    tl_text_free(&follower->text);
    follower->sent = 0;
    if (!take_numbers(follower))
        return false;
    pthread_mutex_lock(&streams->turn);
    struct tl_control *control = tl_admin_backend_borrow(streams->backends, NULL);
    bool still =
        control != NULL && tl_admin_access_still(streams->access, control, &follower->bearer);
    if (control != NULL)
        tl_admin_backend_return(streams->backends, control);
    pthread_mutex_unlock(&streams->turn);
    if (control == NULL)
        return false;
    if (!still) {
        struct tl_control_answer signed_out = {0};
        tl_control_problem(&signed_out, TL_REFUSAL_BAD_TOKEN,
                           "The token was revoked, or the session is over");
        tl_text_free(&follower->text);
        write_event(&follower->text, "end", signed_out.body);
        tl_control_answer_clear(&signed_out);
        follower->over = true;
    }
    if (follower->text.failed)
        tl_text_free(&follower->text);
    return true;
}

static ssize_t read_events(void *context, uint64_t position, char *out, size_t size)
{
    struct follower *follower = context;
    (void)position;
    while (follower->sent == follower->text.length) {
        if (follower->over)
            return MHD_CONTENT_READER_END_OF_STREAM;
        limit_connection(follower->connection, 0);
        bool more = next_event(follower);
        limit_connection(follower->connection, UNTAKEN_S);
        if (!more)
            return MHD_CONTENT_READER_END_OF_STREAM;
    }
    size_t left = follower->text.length - follower->sent;
    size_t n = left < size ? left : size;
    memcpy(out, follower->text.data + follower->sent, n);
    follower->sent += n;
    return (ssize_t)n;
}

/* The watch of this target, new if there is none; NULL when out of memory. With the lock held. */
static struct watch *find_watch(struct tl_admin_streams *streams, const char *target)
{
    for (struct watch *watch = streams->watches; watch != NULL; watch = watch->next)
        if (strcmp(watch->target, target) == 0)
            return watch;
    struct watch *watch = calloc(1, sizeof(*watch));
    if (watch == NULL)
        return NULL;
    *watch = (struct watch){.next_ms = tl_clock_ms() + INTERVAL_MS, .next = streams->watches};
    memcpy(watch->target, target, strlen(target) + 1);
    streams->watches = watch;
    return watch;
}

/* With the lock held. */
static void leave_watch(struct tl_admin_streams *streams, struct watch *watch)
{
    struct watch **at = &streams->watches;
    if (--watch->followers > 0)
        return;
    while (*at != watch)
        at = &(*at)->next;
    *at = watch->next;
    tl_text_free(&watch->text);
    free(watch);
}

static bool follow(struct follower *follower, const char *target, struct tl_control_answer *answer)
{
    struct tl_admin_streams *streams = follower->streams;
    pthread_mutex_lock(&streams->mutex);
    bool room = !streams->ending && streams->events < TL_ADMIN_EVENTS_MAX;
    struct watch *watch = room ? find_watch(streams, target) : NULL;
    if (watch != NULL) {
        watch->followers++;
        streams->events++;
        follower->watch = watch;
        follower->seen = watch->number;
    }
    pthread_mutex_unlock(&streams->mutex);
    if (!room)
        tl_control_problem(answer, TL_REFUSAL_BUSY, "too many event streams are open");
    else if (watch == NULL)
        tl_control_problem(answer, TL_REFUSAL_INTERNAL, "out of memory");
    return watch != NULL;
}

static void close_events(void *context)
{
    struct follower *follower = context;
    struct tl_admin_streams *streams = follower->streams;
    pthread_mutex_lock(&streams->mutex);
    leave_watch(streams, follower->watch);
    streams->events--;
    pthread_mutex_unlock(&streams->mutex);
    tl_text_free(&follower->text);
    free(follower);
}

struct MHD_Response *tl_admin_events_open(struct tl_admin_streams *streams,
                                          struct tl_control *control,
                                          struct MHD_Connection *connection, const char *target,
                                          const struct tl_admin_bearer *bearer,
                                          struct tl_control_answer *answer)
{
    static const char last[] = "events", numbers[] = "stats";
    char stats[TL_TARGET_MAX];
    size_t path = strcspn(target, "?") - (sizeof(last) - 1); /* as its route ends */
    if (path + sizeof(numbers) > sizeof(stats)) {
        tl_control_problem(answer, TL_REFUSAL_BAD_REQUEST, "the path is too long");
        return NULL;
    }
    memcpy(stats, target, path);
    memcpy(stats + path, numbers, sizeof(numbers));
    struct follower *follower = calloc(1, sizeof(*follower));
    if (follower == NULL) {
        tl_control_problem(answer, TL_REFUSAL_INTERNAL, "out of memory");
        return NULL;
    }
    *follower = (struct follower){.streams = streams, .connection = connection, .bearer = *bearer};
    if (!follow(follower, stats, answer)) {
        free(follower);
        return NULL;
    }
    tl_text_append(&follower->text, "retry: %d\n\n", RETRY_MS);
    read_numbers(control, stats, &follower->text, &follower->over);
    if (follower->text.failed)
        tl_text_free(&follower->text);
    return respond(connection, read_events, follower, close_events, answer);
}

/* ---- exports ---- */

/* Pauses as long as the page took: an export takes no more than half of the time of the store and
 * of a processor, which visitors need, too. */
static void pause_after(int64_t took_us)
{
    int64_t pause_us = took_us < PAUSE_MAX_US ? took_us : PAUSE_MAX_US;
    const struct timespec pause = {.tv_nsec = pause_us * 1000};
    (void)nanosleep(&pause, NULL);
}

/* The next page; one without bytes is the end. False: the export is broken off. */
static bool fetch(struct export *export)
{
    struct tl_admin_streams *streams = export->streams;
    struct tl_error err = {0};
    pthread_mutex_lock(&streams->mutex);
    bool ending = streams->ending;
    pthread_mutex_unlock(&streams->mutex);
    if (ending)
        return false;
    int64_t began_us = tl_clock_us();
    if (!tl_control_export_next(export->pages, &export->bytes, &export->length, &err)) {
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.error = &err}, "an export was broken off");
        return false;
    }
    pause_after(tl_clock_us() - began_us);
    return true;
}

static ssize_t read_export(void *context, uint64_t position, char *out, size_t size)
{
    struct export *export = context;
    (void)position;
    if (export->length == 0) {
        limit_connection(export->connection, 0);
        bool sound = fetch(export);
        limit_connection(export->connection, UNTAKEN_S);
        if (!sound)
            return MHD_CONTENT_READER_END_WITH_ERROR;
        if (export->length == 0)
            return MHD_CONTENT_READER_END_OF_STREAM;
    }
    size_t n = export->length < size ? export->length : size;
    memcpy(out, export->bytes, n);
    export->bytes += n;
    export->length -= n;
    return (ssize_t)n;
}

static void close_export(void *context)
{
    struct export *export = context;
    struct tl_admin_streams *streams = export->streams;
    tl_control_export_end(&export->pages);
    tl_control_free(&export->control);
    free(export);
    pthread_mutex_lock(&streams->mutex);
    streams->exports--;
    pthread_mutex_unlock(&streams->mutex);
}

static bool take_place(struct tl_admin_streams *streams, struct tl_control_answer *answer)
{
    pthread_mutex_lock(&streams->mutex);
    bool room = !streams->ending && streams->exports < TL_ADMIN_EXPORTS_MAX;
    streams->exports += room;
    pthread_mutex_unlock(&streams->mutex);
    if (!room)
        tl_control_problem(answer, TL_REFUSAL_BUSY, "%u exports are running already",
                           TL_ADMIN_EXPORTS_MAX);
    return room;
}

struct MHD_Response *tl_admin_export_open(struct tl_admin_streams *streams,
                                          struct MHD_Connection *connection,
                                          const struct tl_control_request *request,
                                          const char **type, struct tl_control_answer *answer)
{
    struct tl_error err = {0};
    struct export *export = calloc(1, sizeof(*export));
    if (export == NULL) {
        tl_control_problem(answer, TL_REFUSAL_INTERNAL, "no memory for an export");
        return NULL;
    }
    if (!take_place(streams, answer)) {
        free(export);
        return NULL;
    }
    *export = (struct export){.streams = streams, .connection = connection};
    const char *url = tl_admin_backend_redis_url(streams->config);
    export->control = tl_control_new(streams->config, url, &err);
    if (export->control == NULL)
        tl_control_problem_of(answer, &err);
    else
        export->pages = tl_control_export_begin(export->control, request, answer);
    if (export->pages == NULL) {
        close_export(export);
        return NULL;
    }
    *type = tl_control_export_type(export->pages);
    return respond(connection, read_export, export, close_export, answer);
}

/* ---- life ---- */

struct tl_admin_streams *tl_admin_streams_new(const struct tl_config *config,
                                              struct tl_admin_access *access,
                                              struct tl_admin_backends *backends,
                                              struct tl_error *err)
{
    pthread_condattr_t monotonic;
    struct tl_admin_streams *streams = calloc(1, sizeof(*streams));
    if (streams == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the streams of the admin API");
        return NULL;
    }
    streams->config = config;
    streams->access = access;
    streams->backends = backends;
    pthread_mutex_init(&streams->mutex, NULL);
    pthread_mutex_init(&streams->turn, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&streams->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return streams;
}

void tl_admin_streams_end(struct tl_admin_streams *streams)
{
    pthread_mutex_lock(&streams->mutex);
    streams->ending = true;
    pthread_cond_broadcast(&streams->changed);
    pthread_mutex_unlock(&streams->mutex);
}

void tl_admin_streams_free(struct tl_admin_streams **streams)
{
    if (*streams == NULL)
        return;
    pthread_cond_destroy(&(*streams)->changed);
    pthread_mutex_destroy(&(*streams)->mutex);
    pthread_mutex_destroy(&(*streams)->turn);
    free(*streams);
    *streams = NULL;
}
