/* SPDX-License-Identifier: Apache-2.0 */
/* Events: decoding. They are written in the store (common/store/line/state.lua). */
#include <stdlib.h>

#include "common/wire/batch.h"
#include "common/wire/events.h"
#include "common/wire/fields.h"

#define DEADLINE_LIMIT (UINT64_C(1) << 53)

/* What an event has behind its kind. */
enum part { NOTHING, BATCH, RUNS, PLACE, DEADLINE, REASON, SERIAL, TEXT };

static const struct layout {
    unsigned char fields; /* with the kind; 0: there is no such event */
    unsigned char parts[2];
} layouts[] = {
    [TL_EVENT_APPLIED] = {5, {BATCH}},
    [TL_EVENT_JOINED] = {2, {RUNS}},
    [TL_EVENT_ADMITTED] = {3, {RUNS, DEADLINE}},
    [TL_EVENT_REMOVED] = {3, {RUNS, REASON}},
    [TL_EVENT_FREED] = {3, {RUNS, REASON}},
    [TL_EVENT_RENEWED] = {3, {PLACE, DEADLINE}},
    [TL_EVENT_CONFIG] = {1, {NOTHING}},
    [TL_EVENT_NOTICE] = {2, {TEXT}},
    [TL_EVENT_EXTENDED] = {3, {PLACE, DEADLINE}},
    [TL_EVENT_HANDED] = {3, {PLACE, SERIAL}},
};

/* A number from 1 to this limit. */
static bool decode_positive(struct tl_fields *fields, uint64_t limit, const char *what,
                            uint64_t *value)
{
    return tl_fields_uint(fields, limit, value) &&
           (*value > 0 ||
            tl_error_set(fields->err, TL_ERR_INVALID, "an event with the %s 0", what));
}

static bool decode_deadline(struct tl_fields *fields, int64_t *deadline_ms)
{
    uint64_t deadline;
    if (!tl_fields_uint(fields, DEADLINE_LIMIT, &deadline))
        return false;
    *deadline_ms = (int64_t)deadline;
    return true;
}

static bool decode_exception(struct tl_fields *fields, struct tl_exception *exception)
{
    size_t n;
    uint64_t outcome;
    if (!tl_fields_array(fields, &n) || !tl_fields_expect(fields, n, 4) ||
        !tl_fields_uint(fields, TL_BATCH_COMMANDS_MAX - 1, &exception->index) ||
        !tl_fields_uint(fields, TL_OUTCOME_FULL, &outcome) ||
        !tl_fields_uint(fields, TL_PLACE_MAX, &exception->place) ||
        !decode_deadline(fields, &exception->deadline_ms))
        return false;
    exception->outcome = (enum tl_outcome)outcome;
    return true;
}

/* The worker, its batch, the first seq and the exceptions. */
static bool decode_applied(struct tl_fields *fields, struct tl_event *event)
{
    size_t n;
    if (!tl_fields_worker(fields, event->worker) ||
        !tl_fields_uint(fields, UINT64_MAX, &event->batch) ||
        !tl_fields_uint(fields, TL_PLACE_SEQ_MAX, &event->first_seq) ||
        !tl_fields_array(fields, &n))
        return false;
    if (n == 0)
        return true;
    event->exceptions = calloc(n, sizeof(*event->exceptions));
    if (event->exceptions == NULL)
        return tl_error_set(fields->err, TL_ERR_NOMEM, "no memory for %zu exceptions", n);
    for (; event->n_exceptions < n; event->n_exceptions++)
        if (!decode_exception(fields, &event->exceptions[event->n_exceptions]))
            return false;
    return true;
}

static bool new_runs(struct tl_fields *fields, size_t n, struct tl_runs *runs)
{
    runs->runs = calloc(n, sizeof(*runs->runs));
    return runs->runs != NULL ||
           tl_error_set(fields->err, TL_ERR_NOMEM, "no memory for %zu runs", n);
}

static bool decode_runs(struct tl_fields *fields, struct tl_runs *runs)
{
    size_t n;
    if (!tl_fields_array(fields, &n))
        return false;
    if (n % 2 != 0)
        return tl_error_set(fields->err, TL_ERR_INVALID, "runs come in pairs");
    if (n == 0)
        return true;
    if (!new_runs(fields, n / 2, runs))
        return false;
    uint64_t next = 0; /* the number after the run before */
    for (; runs->n < n / 2; runs->n++) {
        uint64_t gap, count;
        if (!tl_fields_uint(fields, UINT64_MAX, &gap) ||
            !tl_fields_uint(fields, UINT64_MAX, &count))
            return false;
        if (gap == 0 || gap > TL_PLACE_MAX - next || count == 0 ||
            count > TL_PLACE_MAX - (next + gap))
            return tl_error_set(fields->err, TL_ERR_INVALID, "a run out of bounds");
        runs->runs[runs->n] = (struct tl_run){.first = next + gap, .count = count};
        next += gap + count;
    }
    return true;
}

static bool decode_part(struct tl_fields *fields, enum part part, struct tl_event *event)
{
    const bool may_move = event->kind == TL_EVENT_REMOVED;
    uint64_t number;
    switch (part) {
    case NOTHING:
        return true;
    case BATCH:
        return decode_applied(fields, event);
    case RUNS:
        return decode_runs(fields, &event->places);
    case PLACE: /* a run of one */
        if (!decode_positive(fields, TL_PLACE_MAX, "place", &number) ||
            !new_runs(fields, 1, &event->places))
            return false;
        event->places.runs[event->places.n++] = (struct tl_run){.first = number, .count = 1};
        return true;
    case DEADLINE:
        return decode_deadline(fields, &event->deadline_ms);
    case REASON:
        if (!decode_positive(fields, may_move ? TL_REASON_MOVED : TL_REASON_REMOVED, "reason",
                             &number))
            return false;
        event->reason = (enum tl_reason)number;
        return true;
    case SERIAL:
        if (!decode_positive(fields, TL_BATCH_SERIAL_MAX, "serial", &number))
            return false;
        event->serial = (uint32_t)number;
        return true;
    case TEXT:
        return tl_fields_string(fields, &event->text, &event->text_length);
    }
    return false;
}

/* An event of a kind this version does not know is an error: a reader that skipped it would have a
 * wrong line without noticing. */
static bool decode_event(struct tl_fields *fields, struct tl_event *event)
{
    size_t n;
    uint64_t kind;
    if (!tl_fields_array(fields, &n) || !tl_fields_uint(fields, UINT64_MAX, &kind))
        return false;
    if (kind >= sizeof(layouts) / sizeof(layouts[0]) || layouts[kind].fields == 0)
        return tl_error_set(fields->err, TL_ERR_INVALID, "event %llu is not one this version knows",
                            (unsigned long long)kind);
    const struct layout *layout = &layouts[kind];
    event->kind = (enum tl_event_kind)kind;
    return tl_fields_expect(fields, n, layout->fields) &&
           decode_part(fields, layout->parts[0], event) &&
           decode_part(fields, layout->parts[1], event);
}

static bool decode_entry(struct tl_fields *fields, struct tl_event_entry *entry)
{
    size_t n;
    if (!tl_fields_uint(fields, UINT64_MAX, &entry->number) ||
        !tl_fields_uint(fields, UINT64_MAX, &entry->generation) ||
        !tl_fields_uint(fields, UINT64_MAX, &entry->waiting) ||
        !tl_fields_uint(fields, UINT64_MAX, &entry->active) || !tl_fields_array(fields, &n))
        return false;
    entry->events = calloc(n > 0 ? n : 1, sizeof(*entry->events));
    if (entry->events == NULL)
        return tl_error_set(fields->err, TL_ERR_NOMEM, "no memory for %zu events", n);
    for (size_t i = 0; i < n; i++) {
        entry->n_events = i + 1; /* so that a half-decoded event is freed too */
        if (!decode_event(fields, &entry->events[i]))
            return tl_error_prefix(fields->err, "event %zu", i);
    }
    return tl_fields_end(fields);
}

bool tl_events_decode(const void *bytes, size_t length, struct tl_event_entry *entry,
                      struct tl_error *err)
{
    struct tl_fields fields = {.err = err};
    *entry = (struct tl_event_entry){0};
    if (tl_fields_begin(&fields, bytes, length, TL_EVENTS_VERSION, 6) &&
        decode_entry(&fields, entry))
        return true;
    tl_events_free(entry);
    return false;
}

void tl_events_free(struct tl_event_entry *entry)
{
    for (size_t i = 0; i < entry->n_events; i++) {
        free(entry->events[i].exceptions);
        free(entry->events[i].places.runs);
    }
    free(entry->events);
    entry->events = NULL;
    entry->n_events = 0;
}
