/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker tells a visitor: the view of a place (JSON), and the stream of events that carries
 * views (server-sent events; WHATWG HTML, 9.2). Pure decoders of bytes from outside. Members and
 * events that are not known here are passed over.
 */
#ifndef TL_LAB_TOLD_H
#define TL_LAB_TOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/auth/ticket.h"

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
    int64_t waiting, active, capacity;
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

/* Takes the next bytes. False when a line or an event is longer than TL_EVENT_BYTES_MAX, or out of
 * memory; then the stream is to be left. */
bool tl_event_reader_take(struct tl_event_reader *reader, const char *bytes, size_t length,
                          tl_event_handler *handler, void *context);
void tl_event_reader_free(struct tl_event_reader *reader);

#endif
