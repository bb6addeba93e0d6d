/* SPDX-License-Identifier: Apache-2.0 */
/* The visitors of a rehearsal: they join, wait, come when called, stay and complete, over HTTP. */
#ifndef TL_LAB_VISITORS_H
#define TL_LAB_VISITORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/auth/ticket.h"
#include "common/base/error.h"
#include "common/config/config.h"
#include "common/role/signals.h"

#include "lab/figures.h"

/* ---- the door: by an API key, by invites that the rehearsal signs itself, or as anybody does ----
 */

enum { TL_DOOR_BODY_MAX = 2200 };

struct tl_door;

/* Reads the files of secrets.api_keys and secrets.invite_keys that there are. The first API key is
 * used; without one the first HS256 key signs invites. NULL on failure. */
struct tl_door *tl_door_new(const struct tl_config *config, struct tl_error *err);
void tl_door_free(struct tl_door **door); /* wipes the keys; NULL allowed */

/* Does it open what is closed to anybody: limits, challenges, invitations, the choice of a lane? */
bool tl_door_trusted(const struct tl_door *door);

/* The store's clock, for how long an invite is good: `store_s` (Unix time) at now_ms (tl_clock_ms).
 * To be set before the first join. */
void tl_door_set_clock(struct tl_door *door, int64_t store_s, int64_t now_ms);

/* The body of a join, "" for none, and what goes to Authorization, borrowed, NULL for none. lane:
 * the name; without trust everybody joins the default lane. */
bool tl_door_join(const struct tl_door *door, const char *queue, size_t visitor, const char *lane,
                  int64_t now_ms, char body[TL_DOOR_BODY_MAX], const char **bearer,
                  struct tl_error *err);

/* ---- what a worker tells a visitor ---- */

/*
 * What a worker tells a visitor: the view of a place (JSON), and the stream of events that carries
 * views (server-sent events; WHATWG HTML, 9.2). Pure decoders of bytes from outside. Members and
 * events that are not known here are passed over.
 */

enum tl_told_status {
    TL_TOLD_OTHER, /* one that is not known here */
    TL_TOLD_PENDING,
    TL_TOLD_WAITING,
    TL_TOLD_ACTIVE,
    TL_TOLD_ENDED, /* completed, expired or left */
};

/* Numbers that are absent, or not whole and at least 0, are -1. */
struct tl_told {
    enum tl_told_status status;
    char ticket[TL_TICKET_MAX]; /* "" when absent */
    int64_t position, eta_low, eta_high;
    int64_t waiting, active;
    int64_t expires_ms; /* Unix time; -1: absent */
};

/* False when the text is no JSON object with a status. */
bool tl_told_read(const char *text, size_t length, struct tl_told *told);
/* The last part of the `type` of a problem (RFC 9457), "too-many-joins"; "" when there is none. */
void tl_problem_read(const char *text, size_t length, char *type, size_t size);
/* A request that had this answer, in a few words: "join: 429 too-many-joins". status 0: there was
 * no answer, and text is a sentence why. */
void tl_problem_describe(unsigned status, const char *text, size_t length, const char *what,
                         char *words, size_t size);

enum { TL_EVENT_BYTES_MAX = 32768, TL_EVENT_NAME_MAX = 32 };

/* A stream of events. Zeroed at its beginning; the bytes are freed with tl_event_reader_free. */
struct tl_event_reader {
    char *line; /* the line that is not complete yet */
    size_t length, capacity;
    char *data; /* of the event that is not complete yet */
    size_t data_length, data_capacity;
    char name[TL_EVENT_NAME_MAX]; /* "" when the event has none, or a longer one */
    bool after_cr;                /* a line feed now belongs to the line before */
    int64_t retry_ms;             /* how long to wait before coming again; 0: not told */
};

/* Called for each complete event with data. The bytes are valid during the call. */
typedef void tl_event_handler(void *context, const char *name, const char *data, size_t length);

/* Takes the next bytes. False when a line or an event is longer than TL_EVENT_BYTES_MAX; then the
 * stream is to be left. */
bool tl_event_reader_take(struct tl_event_reader *reader, const char *bytes, size_t length,
                          tl_event_handler *handler, void *context);
void tl_event_reader_free(struct tl_event_reader *reader);

/* ---- the crowd ---- */

struct tl_crowd_settings {
    const char *target, *queue;               /* where they go; the queue is there already */
    struct tl_door *door;                     /* how they join */
    const struct tl_queue_settings *settings; /* of the queue */
    const struct tl_arrivals *arrivals;       /* of the sale, like the visitors */
    const struct tl_simulation_visitors *visitors;
    double leaving; /* share of those who give up and say so */
    uint64_t speed;
    size_t streams_most;
    int64_t opens_in_ms; /* the queue opens this long after the beginning; 0 or less: it is open */
    int64_t limit_ms;    /* of the whole */
    const struct tl_signals *signals; /* a stop ends it */
    bool terminal;                    /* standard error is one: progress is a line that changes */
};

/* Runs until all are gone, the operator stops it, or time is up, and writes how it goes on to
 * standard error. The rehearsal's visitors are
 * allocated here, and freed by the caller with free(), also on failure. */
bool tl_crowd_run(const struct tl_crowd_settings *settings, struct tl_rehearsal *rehearsal,
                  struct tl_error *err);

#endif
