/*
 * The wire format between our programs: msgpack arrays in stream entries, field "d". Documented
 * with every field in docs/contributors/wire-format.md, which changes in the same commit as this
 * file.
 *
 * Decoders are strict and bounded: sizes, counts and nesting are checked against the bytes at hand
 * before any memory is asked for; anything unexpected is TL_ERR_INVALID and nothing of the entry is
 * used.
 */
#ifndef TL_WIRE_H
#define TL_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/wire/place.h"

#define TL_WIRE_VERSION       1
#define TL_WIRE_BYTES_MAX     (256 * 1024) /* one entry's payload */
#define TL_WIRE_DEPTH_MAX     8
#define TL_BATCH_COMMANDS_MAX 1000
#define TL_BATCH_NUMBER_MAX   ((UINT64_C(1) << 53) - 1) /* exact in the scripts */
#define TL_WORKER_ID_MAX      32
#define TL_WIRE_INVITE_MAX    128 /* bytes of an invite's id */

/* ---- ingest: [version, worker, batch, [command...]] ---- */

enum tl_command_kind {
    TL_COMMAND_JOIN =
        1, /* [1, visitor, lane], with an invite [1, visitor, lane, its id, its end in Unix ms] */
    TL_COMMAND_LEAVE = 2,    /* [2, visitor, place] */
    TL_COMMAND_COMPLETE = 3, /* [3, visitor, place] */
    TL_COMMAND_RENEW = 4,    /* [4, visitor, place]: shows up, or slides the session on */
    TL_COMMAND_SEEN =
        5, /* [5, first seq, count]: these waiting visitors are there; count may be 0 */
};

struct tl_command {
    enum tl_command_kind kind;
    const char *visitor; /* borrowed from the payload, not terminated; NULL for SEEN */
    size_t visitor_length;
    uint64_t number;    /* JOIN: lane; SEEN: first seq; else place */
    uint64_t count;     /* SEEN */
    const char *invite; /* JOIN: id of the invite it spends, borrowed, not terminated; NULL: none */
    size_t invite_length;
    uint64_t invite_until_ms; /* until then its id is remembered as spent */
};

struct tl_batch {
    char worker[TL_WORKER_ID_MAX + 1];
    uint64_t number;
    size_t n_commands;
    struct tl_command *commands; /* owned; visitors point into the payload given to decode */
};

/* Decodes a payload; it must stay in place as long as the batch is used. */
bool tl_batch_decode(const void *bytes, size_t length, struct tl_batch *batch,
                     struct tl_error *err);
void tl_batch_free(struct tl_batch *batch);

/* Builds a batch. */
struct tl_batch_writer;
struct tl_batch_writer *tl_batch_writer_new(void);
void tl_batch_writer_free(struct tl_batch_writer **writer);
void tl_batch_writer_reset(struct tl_batch_writer *writer);
/* Each adds one command and returns its index in the batch, or -1 when the batch is full (send it,
 * reset, add again) or memory ran out. visitor is length bytes. */
int tl_batch_join(struct tl_batch_writer *writer, const char *visitor, size_t length,
                  unsigned lane);
/* A join that spends an invite: refused (TL_OUTCOME_SPENT) if the id was spent before. */
int tl_batch_join_invited(struct tl_batch_writer *writer, const char *visitor, size_t length,
                          unsigned lane, const char *invite, uint64_t invite_until_ms);
int tl_batch_place(struct tl_batch_writer *writer, enum tl_command_kind kind, const char *visitor,
                   size_t length, tl_place place); /* LEAVE, COMPLETE, RENEW */
int tl_batch_seen(struct tl_batch_writer *writer, uint64_t first_seq, uint64_t count);
size_t tl_batch_count(const struct tl_batch_writer *writer);
/* The whole payload, borrowed until the next call on the writer; NULL when out of memory. */
const void *tl_batch_finish(struct tl_batch_writer *writer, const char *worker, uint64_t number,
                            size_t *length);

/* ---- runs: ascending numbers as [first, count, gap, count, gap, count, ...] ----
 * gap (>= 1) is how many numbers are left out between the end of a run and the start of the next.
 */

struct tl_run {
    uint64_t first, count;
};

struct tl_runs {
    size_t n;
    struct tl_run *runs; /* owned by the event it is part of */
};

/* ---- events: [version, number, generation, waiting, active, [event...]] ---- */

enum tl_event_kind {
    TL_EVENT_APPLIED =
        1,               /* [1, worker, batch, first seq, [[index, outcome, place, deadline]...]] */
    TL_EVENT_JOINED = 2, /* [2, runs of places] */
    TL_EVENT_ADMITTED = 3, /* [3, runs of places, deadline] */
    TL_EVENT_REMOVED =
        4, /* [4, runs of places, reason]: left the waiting line without being admitted */
    TL_EVENT_FREED =
        5, /* [5, runs of places, reason]: ended an active session, its counter is free */
    TL_EVENT_RENEWED = 6, /* [6, place, deadline] */
    TL_EVENT_CONFIG = 7,  /* [7]: settings changed, read them again */
    TL_EVENT_NOTICE = 8,  /* [8, text]: "" takes the notice back */
};

/* Why a visitor is no longer waiting or active; also the low 3 bits of a score in tl:{q}:ended. */
enum tl_reason {
    TL_REASON_COMPLETED = 1,
    TL_REASON_LEFT = 2,
    TL_REASON_EXPIRED = 3,   /* the session's time was over */
    TL_REASON_UNCLAIMED = 4, /* admitted, but never showed up */
    TL_REASON_ABSENT = 5,    /* waiting, but not seen for waiting_ttl */
};

/* What became of a command, where it is not the plain success. */
enum tl_outcome {
    TL_OUTCOME_DONE = 0,
    TL_OUTCOME_WAITING = 1, /* JOIN: already waits, at `place`. COMPLETE, RENEW: not admitted yet */
    TL_OUTCOME_ACTIVE = 2,  /* JOIN: already active, with `place` and `deadline` */
    TL_OUTCOME_SPENT = 4,   /* JOIN: its invite was spent before; there is no place */
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
    /* JOINED, ADMITTED, REMOVED, FREED; RENEWED has one run of one place */
    struct tl_runs places;
    int64_t deadline_ms;   /* ADMITTED, RENEWED: Redis server time, Unix ms */
    enum tl_reason reason; /* REMOVED, FREED */
    /* NOTICE: borrowed from the payload, not terminated */
    const char *text;
    size_t text_length;
};

struct tl_event_entry {
    uint64_t number;          /* consecutive within a generation: a jump is a gap */
    uint64_t generation;      /* of the queue: changes when its data was lost or it was made anew */
    uint64_t waiting, active; /* sizes after the step */
    size_t n_events;
    struct tl_event *events; /* owned */
};

bool tl_events_decode(const void *bytes, size_t length, struct tl_event_entry *entry,
                      struct tl_error *err);
void tl_events_free(struct tl_event_entry *entry);

#endif
