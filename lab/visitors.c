/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/client/http.h"
#include "common/config/queue_settings.h"

#include "lab/memory.h"
#include "lab/visitors.h"

#define NEVER INT64_MAX

/* For tl_random_of, beside the purposes of the simulation. */
enum { DRAWN_LEAVING = 100 };

enum {
    TRIES_MOST = 5, /* of a request that fails */
    RETRY_MS = 1000,
    RECHECKS_MOST = 3,
    RECHECK_MS = 100,
    STREAM_RETRY_LEAST_MS = 100,
    STREAM_RETRY_MOST_MS = 5000,
    PROGRESS_MS = 1000, /* on a terminal */
    PROGRESS_SELDOM_MS = 10000,
    PATH_SIZE = 128,
};

struct visitor;
typedef void handler(struct visitor *visitor, const struct tl_http_answer *answer);

struct visitor {
    struct crowd *crowd;
    struct tl_rehearsed *seen;
    void (*next)(struct visitor *visitor); /* what it does when it is due; or tries again */
    handler *then;                         /* takes the answer to the request */
    enum tl_fate last;                     /* when the visit is over: its fate */
    bool called, ended;                    /* told by the stream, which is about to end */
    unsigned tries;
    int64_t due_ms;      /* of `next`; NEVER: an answer comes first, or nothing */
    int64_t gives_up_ms; /* in the line */
    int64_t done_ms;     /* on the site */
    int64_t position;    /* told last by this stream; -1: none yet */
    struct tl_http_request *request;
    struct tl_event_reader reader;
    char ticket[TL_TICKET_MAX];
};

struct crowd {
    const struct tl_crowd_settings *settings;
    struct tl_rehearsal *rehearsal;
    struct tl_http *http;
    struct visitor *visitors;
    struct tl_dues dues; /* those that are out of date are passed over */
    size_t next;         /* arrival */
    size_t streams;
    int64_t start_ms, now_ms; /* local; since the start */
    uint64_t waiting, present, gone;
};

/* ---- times ---- */

static int64_t scaled(const struct crowd *crowd, int64_t ms)
{
    return ms == NEVER ? NEVER : ms / (int64_t)crowd->settings->speed;
}

static void look_at_clock(struct crowd *crowd)
{
    crowd->now_ms = tl_clock_ms() - crowd->start_ms;
}

static size_t index_of(const struct visitor *visitor)
{
    return (size_t)(visitor - visitor->crowd->visitors);
}

/* The visitor has something to do then; of several moments the earliest counts. */
static void wake_at(struct visitor *visitor, int64_t at_ms)
{
    visitor->due_ms = at_ms;
    if (at_ms != NEVER)
        tl_dues_push(&visitor->crowd->dues,
                     (struct tl_due){.at_ms = at_ms, .visitor = index_of(visitor)});
}

/* ---- what visitors are told ---- */

static void go(struct visitor *visitor, enum tl_fate fate)
{
    struct crowd *crowd = visitor->crowd;
    visitor->seen->fate = fate;
    visitor->seen->gone_ms = crowd->now_ms;
    visitor->due_ms = NEVER;
    tl_event_reader_free(&visitor->reader);
    crowd->gone++;
}

static void note_line(struct crowd *crowd, const struct tl_told *told)
{
    struct tl_rehearsal *rehearsal = crowd->rehearsal;
    if (told->waiting >= 0 && (uint64_t)told->waiting > rehearsal->longest_line) {
        rehearsal->longest_line = (uint64_t)told->waiting;
        rehearsal->longest_line_at_ms = crowd->now_ms;
    }
    if (told->active >= 0 && (uint64_t)told->active > rehearsal->most_active)
        rehearsal->most_active = (uint64_t)told->active;
}

static void note(struct visitor *visitor, const struct tl_told *told)
{
    struct crowd *crowd = visitor->crowd;
    struct tl_rehearsed *seen = visitor->seen;
    note_line(crowd, told);
    if (told->ticket[0] != '\0')
        memcpy(visitor->ticket, told->ticket, sizeof(visitor->ticket));
    if (seen->joined_ms < 0 && (told->status == TL_TOLD_WAITING || told->status == TL_TOLD_ACTIVE))
        seen->joined_ms = crowd->now_ms;
    if (told->status == TL_TOLD_ACTIVE && seen->called_ms < 0) {
        seen->called_ms = crowd->now_ms;
        seen->admitted_ms = told->expires_ms;
    }
    if (told->status != TL_TOLD_WAITING)
        return;
    /* Another process of the worker may be a moment behind: only within one stream. */
    if (visitor->position >= 0 && told->position > visitor->position)
        crowd->rehearsal->set_back++;
    if (told->position >= 0)
        visitor->position = told->position;
    if (seen->promised_ms < 0 && told->eta_low >= 0 && told->eta_high >= 0) {
        seen->promised_ms = crowd->now_ms;
        seen->low_ms = told->eta_low * 1000;
        seen->high_ms = told->eta_high * 1000;
    }
}

/* ---- requests ---- */

static void count(struct tl_reasons *reasons, const struct tl_http_answer *answer, const char *what)
{
    char text[TL_REASON_MAX];
    bool answered = answer->status != 0;
    tl_problem_describe(answer->status, answered ? answer->body : answer->problem,
                        answered ? answer->length : strlen(answer->problem), what, text,
                        sizeof(text));
    tl_reasons_count(reasons, text);
}

static void count_error(struct visitor *visitor, const struct tl_http_answer *answer,
                        const char *what)
{
    count(&visitor->crowd->rehearsal->errors, answer, what);
}

static void take_answer(void *context, const struct tl_http_answer *answer)
{
    struct visitor *visitor = context;
    visitor->request = NULL;
    look_at_clock(visitor->crowd);
    visitor->then(visitor, answer);
}

/* what: the last part of the path. */
static void start(struct visitor *visitor, const char *what, struct tl_http_call call,
                  handler *then)
{
    struct crowd *crowd = visitor->crowd;
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "/v1/queues/%s/%s", crowd->settings->queue, what);
    call.path = path;
    call.context = visitor;
    call.done = take_answer;
    if (call.bearer == NULL && visitor->ticket[0] != '\0')
        call.bearer = visitor->ticket;
    visitor->due_ms = NEVER;
    visitor->then = then;
    visitor->request = tl_http_start(crowd->http, &call);
    if (visitor->request == NULL)
        tl_no_memory();
    crowd->rehearsal->requests++;
}

/* A request failed: tries again later, or gives up for good. */
static void fail(struct visitor *visitor)
{
    if (++visitor->tries < TRIES_MOST)
        wake_at(visitor, visitor->crowd->now_ms + RETRY_MS);
    else
        go(visitor, TL_FATE_FAILED);
}

static void leaves_line(struct crowd *crowd)
{
    if (--crowd->waiting == 0)
        crowd->rehearsal->line_empty_from_ms = crowd->now_ms;
}

/* ---- on the site ---- */

static void ended(struct visitor *visitor, const struct tl_http_answer *answer)
{
    if (answer->status == 200) {
        go(visitor, visitor->last);
        return;
    }
    count_error(visitor, answer, visitor->last == TL_FATE_LEFT ? "leave" : "complete");
    fail(visitor);
}

static void end_visit(struct visitor *visitor)
{
    visitor->next = end_visit;
    start(visitor, visitor->last == TL_FATE_LEFT ? "leave" : "complete",
          (struct tl_http_call){.method = "POST"}, ended);
}

/* A sliding session needs a request now and then; any other is looked at once. */
static void plan_next_look(struct visitor *visitor)
{
    const struct tl_queue_settings *settings = visitor->crowd->settings->settings;
    int64_t look_ms = settings->session_sliding
                          ? visitor->crowd->now_ms + settings->session_ttl_ms / 2
                          : visitor->done_ms;
    wake_at(visitor, look_ms < visitor->done_ms ? look_ms : visitor->done_ms);
}

static void checked(struct visitor *visitor, const struct tl_http_answer *answer)
{
    /* Another process of the worker may learn of the admission a moment later. */
    if (answer->status == 401 && visitor->tries++ < RECHECKS_MOST) {
        int64_t again_ms = visitor->crowd->now_ms + RECHECK_MS;
        wake_at(visitor, again_ms < visitor->done_ms ? again_ms : visitor->done_ms);
        return;
    }
    if (answer->status != 204)
        count_error(visitor, answer, "check");
    visitor->tries = 0;
    plan_next_look(visitor);
}

static void leave_site(struct visitor *visitor)
{
    visitor->tries = 0;
    visitor->crowd->present--;
    if (visitor->last == TL_FATE_CUT_OFF)
        go(visitor, TL_FATE_CUT_OFF); /* without a word, as the session is over */
    else
        end_visit(visitor);
}

static void be_on_site(struct visitor *visitor)
{
    if (visitor->crowd->now_ms >= visitor->done_ms)
        leave_site(visitor);
    else
        start(visitor, "check", (struct tl_http_call){0}, checked);
}

static void come(struct visitor *visitor)
{
    struct crowd *crowd = visitor->crowd;
    const struct tl_queue_settings *settings = crowd->settings->settings;
    int64_t limit_ms = tl_queue_session_longest_ms(settings);
    int64_t stays_ms =
        scaled(crowd, tl_visitor_session_ms(crowd->settings->visitors, crowd->settings->arrivals,
                                            index_of(visitor)));
    visitor->next = be_on_site;
    visitor->tries = 0;
    visitor->last = stays_ms > limit_ms ? TL_FATE_CUT_OFF : TL_FATE_SERVED;
    visitor->done_ms = visitor->seen->called_ms + (stays_ms > limit_ms ? limit_ms : stays_ms);
    if (++crowd->present > crowd->rehearsal->most_on_the_site)
        crowd->rehearsal->most_on_the_site = crowd->present;
    be_on_site(visitor);
}

static void claimed(struct visitor *visitor, const struct tl_http_answer *answer)
{
    struct tl_told told;
    if (answer->status == 200 && tl_told_read(answer->body, answer->length, &told) &&
        told.status == TL_TOLD_ACTIVE) {
        note(visitor, &told);
        come(visitor);
        return;
    }
    count_error(visitor, answer, "renew");
    fail(visitor);
}

static void claim(struct visitor *visitor)
{
    start(visitor, "renew", (struct tl_http_call){.method = "POST"}, claimed);
}

static void be_called(struct visitor *visitor)
{
    struct crowd *crowd = visitor->crowd;
    visitor->next = claim;
    visitor->tries = 0;
    leaves_line(crowd);
    if (tl_visitor_comes(crowd->settings->visitors, index_of(visitor)))
        claim(visitor);
    else
        go(visitor, TL_FATE_NO_SHOW);
}

/* ---- in the line ---- */

static void take_event(void *context, const char *name, const char *data, size_t length)
{
    struct visitor *visitor = context;
    struct tl_told told;
    if (strcmp(name, "notice") == 0 || !tl_told_read(data, length, &told))
        return;
    note(visitor, &told);
    visitor->called = visitor->called || told.status == TL_TOLD_ACTIVE;
    visitor->ended = visitor->ended || told.status == TL_TOLD_ENDED;
}

static bool take_bytes(void *context, const char *bytes, size_t length)
{
    struct visitor *visitor = context;
    look_at_clock(visitor->crowd);
    bool ok = tl_event_reader_take(&visitor->reader, bytes, length, take_event, visitor);
    if (!ok)
        tl_reasons_count(&visitor->crowd->rehearsal->errors, "events: too long");
    visitor->tries = 0;
    return ok && !visitor->called && !visitor->ended;
}

/* Wakes when it is time to listen again, or to give up. */
static void wait_in_line(struct visitor *visitor, int64_t listens_ms)
{
    wake_at(visitor, listens_ms < visitor->gives_up_ms ? listens_ms : visitor->gives_up_ms);
}

static void stream_done(struct visitor *visitor, const struct tl_http_answer *answer)
{
    struct crowd *crowd = visitor->crowd;
    int64_t retry_ms = visitor->reader.retry_ms;
    crowd->streams--;
    tl_event_reader_free(&visitor->reader);
    if (visitor->called) {
        be_called(visitor);
        return;
    }
    if (visitor->ended) {
        leaves_line(crowd);
        go(visitor, TL_FATE_DROPPED);
        return;
    }
    if (answer->status != 200) {
        count_error(visitor, answer, "events");
        retry_ms = RETRY_MS;
        if (++visitor->tries == TRIES_MOST) {
            leaves_line(crowd);
            go(visitor, TL_FATE_FAILED);
            return;
        }
    }
    if (retry_ms < STREAM_RETRY_LEAST_MS)
        retry_ms = STREAM_RETRY_LEAST_MS;
    if (retry_ms > STREAM_RETRY_MOST_MS)
        retry_ms = STREAM_RETRY_MOST_MS;
    wait_in_line(visitor, crowd->now_ms + retry_ms);
}

static void listen_on(struct visitor *visitor)
{
    struct crowd *crowd = visitor->crowd;
    if (crowd->streams >= crowd->settings->streams_most) {
        tl_reasons_count(&crowd->rehearsal->errors, "events: no file descriptor is left here");
        wait_in_line(visitor, crowd->now_ms + RETRY_MS);
        return;
    }
    visitor->position = -1;
    start(visitor, "events", (struct tl_http_call){.bytes = take_bytes}, stream_done);
    crowd->streams++;
    wait_in_line(visitor, NEVER);
}

static void give_up(struct visitor *visitor)
{
    struct crowd *crowd = visitor->crowd;
    double drawn = tl_random_of(crowd->settings->visitors->seed, index_of(visitor), DRAWN_LEAVING);
    if (visitor->request != NULL)
        crowd->streams--;
    tl_http_cancel(crowd->http, &visitor->request);
    leaves_line(crowd);
    visitor->last = TL_FATE_LEFT;
    visitor->tries = 0;
    if (drawn < crowd->settings->leaving)
        end_visit(visitor);
    else
        go(visitor, TL_FATE_GAVE_UP);
}

static void wait_on(struct visitor *visitor)
{
    if (visitor->crowd->now_ms >= visitor->gives_up_ms)
        give_up(visitor);
    else if (visitor->request == NULL)
        listen_on(visitor);
}

static void answer_join(struct visitor *visitor, const struct tl_http_answer *answer)
{
    struct crowd *crowd = visitor->crowd;
    struct tl_told told;
    bool good = (answer->status == 200 || answer->status == 202) &&
                tl_told_read(answer->body, answer->length, &told) && told.ticket[0] != '\0';
    if (good) {
        int64_t patience_ms =
            scaled(crowd, tl_visitor_patience_ms(crowd->settings->visitors, index_of(visitor)));
        visitor->next = wait_on;
        visitor->gives_up_ms = patience_ms == NEVER ? NEVER : visitor->seen->joins_ms + patience_ms;
        visitor->tries = 0;
        note(visitor, &told);
        crowd->waiting++;
        crowd->rehearsal->line_empty_from_ms = -1;
        if (told.status == TL_TOLD_ACTIVE)
            be_called(visitor);
        else
            listen_on(visitor);
        return;
    }
    char type[32];
    tl_problem_read(answer->body, answer->length, type, sizeof(type));
    bool passes = answer->status == 0 || (answer->status == 503 && strcmp(type, "full") != 0) ||
                  answer->status == 200 || answer->status == 202;
    if (passes) {
        count_error(visitor, answer, "join");
        fail(visitor);
        return;
    }
    count(&crowd->rehearsal->refused, answer, "join");
    go(visitor, TL_FATE_REFUSED);
}

static void join(struct visitor *visitor)
{
    struct crowd *crowd = visitor->crowd;
    const struct tl_crowd_settings *settings = crowd->settings;
    char body[TL_DOOR_BODY_MAX];
    struct tl_error err = {0};
    struct tl_http_call call = {.method = "POST"};
    if (!tl_door_join(settings->door, settings->queue, index_of(visitor),
                      settings->settings->lanes[visitor->seen->lane],
                      crowd->now_ms + crowd->start_ms, body, &call.bearer, &err)) {
        tl_reasons_count(&crowd->rehearsal->errors, err.text);
        go(visitor, TL_FATE_FAILED);
        return;
    }
    call.body = body[0] != '\0' ? body : NULL;
    if (visitor->seen->joins_ms < 0)
        visitor->seen->joins_ms = crowd->now_ms;
    start(visitor, "join", call, answer_join);
}

/* ---- the run ---- */

/* Does all that is due; returns when the next thing is. */
static int64_t act_due(struct crowd *crowd)
{
    const struct tl_arrivals *arrivals = crowd->settings->arrivals;
    look_at_clock(crowd);
    for (; crowd->next < arrivals->n; crowd->next++) {
        int64_t at_ms = scaled(crowd, arrivals->list[crowd->next].at_ms);
        if (at_ms > crowd->now_ms)
            break;
        join(&crowd->visitors[crowd->next]);
    }
    while (crowd->dues.n > 0 && crowd->dues.list[0].at_ms <= crowd->now_ms) {
        struct tl_due due = tl_dues_pop(&crowd->dues);
        struct visitor *visitor = &crowd->visitors[due.visitor];
        if (visitor->due_ms == due.at_ms)
            visitor->next(visitor);
    }
    int64_t next_ms = crowd->dues.n > 0 ? crowd->dues.list[0].at_ms : NEVER;
    if (crowd->next < arrivals->n) {
        int64_t at_ms = scaled(crowd, arrivals->list[crowd->next].at_ms);
        next_ms = at_ms < next_ms ? at_ms : next_ms;
    }
    return next_ms;
}

static bool prepare(struct crowd *crowd, struct tl_error *err)
{
    const struct tl_crowd_settings *settings = crowd->settings;
    struct tl_rehearsal *rehearsal = crowd->rehearsal;
    size_t n = settings->arrivals->n;
    *rehearsal =
        (struct tl_rehearsal){.n = n,
                              .line_empty_from_ms = 0,
                              .opened_ms = settings->opens_in_ms > 0 ? settings->opens_in_ms : 0};
    rehearsal->visitors = tl_xalloc(n, sizeof(*rehearsal->visitors));
    crowd->visitors = tl_xalloc(n, sizeof(*crowd->visitors));
    for (size_t i = 0; i < n; i++) {
        rehearsal->visitors[i] =
            (struct tl_rehearsed){.lane = tl_visitor_lane(settings->visitors, i),
                                  .joins_ms = -1,
                                  .joined_ms = -1,
                                  .called_ms = -1,
                                  .admitted_ms = -1,
                                  .promised_ms = -1,
                                  .gone_ms = -1};
        crowd->visitors[i] = (struct visitor){.crowd = crowd,
                                              .seen = &rehearsal->visitors[i],
                                              .next = join,
                                              .due_ms = NEVER,
                                              .position = -1};
    }
    crowd->http = tl_http_new(settings->target, settings->signals->fd, err);
    return crowd->http != NULL;
}

/* Progress, in the time of the sale. Returns when to show it again. */
static int64_t show(const struct crowd *crowd)
{
    const bool terminal = crowd->settings->terminal;
    int64_t seconds = crowd->now_ms * (int64_t)crowd->settings->speed / 1000;
    fprintf(stderr,
            "%safter %" PRId64 ":%02" PRId64 ":%02" PRId64 ": %zu arrived, %" PRIu64
            " wait, %" PRIu64 " are on the site, %" PRIu64 " are gone%s",
            terminal ? "\r\033[K" : "", seconds / 3600, seconds / 60 % 60, seconds % 60,
            crowd->next, crowd->waiting, crowd->present, crowd->gone, terminal ? "" : "\n");
    return crowd->now_ms + (terminal ? PROGRESS_MS : PROGRESS_SELDOM_MS);
}

static bool run(struct crowd *crowd, struct tl_error *err)
{
    int64_t progress_ms = 0;
    crowd->start_ms = tl_clock_ms();
    while (crowd->gone < crowd->rehearsal->n) {
        int64_t next_ms = act_due(crowd);
        if (crowd->now_ms >= progress_ms)
            progress_ms = show(crowd);
        next_ms = progress_ms < next_ms ? progress_ms : next_ms;
        int64_t wait_ms = next_ms > crowd->now_ms ? next_ms - crowd->now_ms : 0;
        if (!tl_http_turn(crowd->http, wait_ms, err))
            return false;
        look_at_clock(crowd);
        crowd->rehearsal->stopped = tl_signals_next(crowd->settings->signals) == TL_SIGNAL_STOP;
        crowd->rehearsal->overtime = crowd->now_ms >= crowd->settings->limit_ms;
        if (crowd->rehearsal->stopped || crowd->rehearsal->overtime)
            break;
    }
    return true;
}

bool tl_crowd_run(const struct tl_crowd_settings *settings, struct tl_rehearsal *rehearsal,
                  struct tl_error *err)
{
    struct crowd crowd = {.settings = settings, .rehearsal = rehearsal};
    bool ok = prepare(&crowd, err) && run(&crowd, err);
    rehearsal->end_ms = crowd.now_ms;
    if (settings->terminal)
        fputc('\n', stderr);
    tl_http_free(&crowd.http);
    for (size_t i = 0; i < rehearsal->n; i++)
        tl_event_reader_free(&crowd.visitors[i].reader);
    free(crowd.visitors);
    free(crowd.dues.list);
    return ok;
}
