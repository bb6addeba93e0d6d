/*
 * Events, what the scripts report to everyone who follows a queue: one entry of the events stream,
 * field "d", a msgpack array [version, number, generation, waiting, active, [event...]]. Every
 * field is documented in docs/contributors/wire-format.md, which changes in the same commit as this
 * file. The decoder is as strict as that of batches (common/wire/batch.h).
 */
#ifndef TL_EVENTS_H
#define TL_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/wire/names.h"
#include "common/wire/place.h"
#include "common/wire/runs.h"

#define TL_EVENTS_VERSION 1

/* Each with its msgpack array. */
enum tl_event_kind {
    /* [1, worker, batch, first seq, [[index, outcome, place, deadline]...]] */
    TL_EVENT_APPLIED = 1,
    /* [2, runs of places] */
    TL_EVENT_JOINED = 2,
    /* [3, runs of places, deadline] */
    TL_EVENT_ADMITTED = 3,
    /* [4, runs of places, reason]: left the line without being admitted */
    TL_EVENT_REMOVED = 4,
    /* [5, runs of places, reason]: the session ended, its capacity is free */
    TL_EVENT_FREED = 5,
    /* [6, place, deadline] */
    TL_EVENT_RENEWED = 6,
    /* [7]: settings changed, read them again */
    TL_EVENT_CONFIG = 7,
    /* [8, text]: "" withdraws the notice */
    TL_EVENT_NOTICE = 8,
    /* [9, place, deadline]: the session may be claimed until then; it is not claimed yet */
    TL_EVENT_EXTENDED = 9,
    /* [10, place, serial]: on another device now; tickets with a lower serial do not count */
    TL_EVENT_HANDED = 10,
};

/* Why a visitor is no longer waiting or active; also the low 3 bits of a score in tl:{q}:ended. */
enum tl_reason {
    TL_REASON_COMPLETED = 1,
    TL_REASON_LEFT = 2,
    TL_REASON_EXPIRED = 3,   /* the session's time was over */
    TL_REASON_UNCLAIMED = 4, /* admitted, but never showed up */
    TL_REASON_ABSENT = 5,    /* waiting, but not seen for waiting_ttl */
    TL_REASON_REMOVED = 6,   /* by the operator */
    TL_REASON_MOVED = 7,     /* no end: to another lane, with the same seq; REMOVED only */
};

/* What became of a command, where it is not the plain success. */
enum tl_outcome {
    TL_OUTCOME_DONE = 0,
    TL_OUTCOME_WAITING = 1, /* JOIN: already waits, at `place`. COMPLETE, RENEW: not admitted yet */
    TL_OUTCOME_ACTIVE = 2,  /* JOIN: already active, with `place` and `deadline` */
    TL_OUTCOME_SPENT = 4,   /* JOIN: its invite was spent before; there is no place */
    TL_OUTCOME_FULL = 5,    /* JOIN: the line is full; there is no place */
    TL_OUTCOME_GONE = 3,    /* LEAVE, COMPLETE, RENEW: neither waiting nor active at that place */
};

struct tl_exception {
    uint64_t index; /* of the command in its batch */
    enum tl_outcome outcome;
    tl_place place;
    int64_t deadline_ms;
};

struct tl_event {
    enum tl_event_kind kind;
    /* APPLIED */
    char worker[TL_WORKER_ID_MAX + 1];
    uint64_t batch;
    uint64_t first_seq; /* the k-th JOIN of the batch (from 0) without an exception has seq
                           first_seq + k */
    size_t n_exceptions;
    struct tl_exception *exceptions;
    /* JOINED, ADMITTED, REMOVED, FREED; RENEWED, EXTENDED and HANDED have one run of one place */
    struct tl_runs places;
    int64_t deadline_ms;   /* ADMITTED, RENEWED, EXTENDED: Redis server time, Unix ms */
    enum tl_reason reason; /* REMOVED, FREED */
    uint32_t serial;       /* HANDED */
    /* NOTICE: borrowed from the payload, not terminated */
    const char *text;
    size_t text_length;
};

struct tl_event_entry {
    uint64_t number;          /* consecutive within a generation: a jump is a gap */
    uint64_t generation;      /* changes when the queue's data was lost or the queue recreated */
    uint64_t waiting, active; /* sizes after the step */
    size_t n_events;
    struct tl_event *events; /* owned */
};

bool tl_events_decode(const void *bytes, size_t length, struct tl_event_entry *entry,
                      struct tl_error *err);
void tl_events_free(struct tl_event_entry *entry);

#endif
