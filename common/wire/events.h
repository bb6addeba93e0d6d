/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events, what the functions report to everyone who follows a queue: one entry of the events
 * stream, field "d", a msgpack array [version, number, generation, waiting, active, [event...]].
 * The kinds of events are in protocol.def. Every field is documented in
 * docs/contributors/wire-format.md, which changes in the same commit as these files. The decoder is
 * as strict as that of batches (common/wire/batch.h).
 */
#ifndef TL_EVENTS_H
#define TL_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/wire/names.h"
#include "common/wire/place.h"

#include "generated/protocol.h"

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
