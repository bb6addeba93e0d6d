/* SPDX-License-Identifier: Apache-2.0 */
/* Events: decoding. They are written in the store (common/store/line/state.lua). */
#include <stdlib.h>
#include <string.h>

#include "common/wire/batch.h"
#include "common/wire/events.h"
#include "common/wire/fields.h"

#define DEADLINE_LIMIT ((uint64_t)1 << 53)

static bool decode_applied(struct tl_fields *fields, struct tl_event *event)
{
    const msgpack_object *list;
    if (!tl_fields_name(fields, event->worker, sizeof(event->worker)) ||
        !tl_fields_uint(fields, UINT64_MAX, &event->batch) ||
        !tl_fields_uint(fields, TL_PLACE_SEQ_MAX, &event->first_seq) ||
        !tl_fields_array(fields, &list))
        return false;
    size_t n = list->via.array.size;
    if (n == 0)
        return true;
    event->exceptions = calloc(n, sizeof(*event->exceptions));
    if (event->exceptions == NULL)
        return tl_error_set(fields->err, TL_ERR_NOMEM, "no memory for %zu exceptions", n);
    for (size_t i = 0; i < n; i++) {
        struct tl_exception *exception = &event->exceptions[i];
        struct tl_fields parts;
        uint64_t outcome, deadline;
        if (!tl_fields_open(&parts, &list->via.array.ptr[i], 4, 4, fields->err) ||
            !tl_fields_uint(&parts, TL_BATCH_COMMANDS_MAX - 1, &exception->index) ||
            !tl_fields_uint(&parts, TL_OUTCOME_FULL, &outcome) ||
            !tl_fields_uint(&parts, TL_PLACE_MAX, &exception->place) ||
            !tl_fields_uint(&parts, DEADLINE_LIMIT, &deadline))
            return false;
        exception->outcome = (enum tl_outcome)outcome;
        exception->deadline_ms = (int64_t)deadline;
    }
    event->n_exceptions = n;
    return true;
}

static bool decode_reason(struct tl_fields *fields, struct tl_event *event)
{
    uint64_t reason;
    const bool may_move = event->kind == TL_EVENT_REMOVED;
    if (!tl_fields_uint(fields, may_move ? TL_REASON_MOVED : TL_REASON_REMOVED, &reason))
        return false;
    if (reason == 0)
        return tl_error_set(fields->err, TL_ERR_INVALID, "an end without a reason");
    event->reason = (enum tl_reason)reason;
    return true;
}

static bool decode_deadline(struct tl_fields *fields, struct tl_event *event)
{
    uint64_t deadline;
    if (!tl_fields_uint(fields, DEADLINE_LIMIT, &deadline))
        return false;
    event->deadline_ms = (int64_t)deadline;
    return true;
}

/* The place of an event that concerns one. */
static bool decode_place(struct tl_fields *fields, struct tl_event *event)
{
    uint64_t place;
    if (!tl_fields_uint(fields, TL_PLACE_MAX, &place))
        return false;
    if (place == 0)
        return tl_error_set(fields->err, TL_ERR_INVALID, "place 0 is not a visitor's place");
    event->places.runs = calloc(1, sizeof(*event->places.runs));
    if (event->places.runs == NULL)
        return tl_error_set(fields->err, TL_ERR_NOMEM, "no memory for an event");
    event->places.runs[0] = (struct tl_run){.first = place, .count = 1};
    event->places.n = 1;
    return true;
}

static bool decode_handed(struct tl_fields *fields, struct tl_event *event)
{
    uint64_t serial;
    if (!decode_place(fields, event) || !tl_fields_uint(fields, TL_BATCH_SERIAL_MAX, &serial))
        return false;
    event->serial = (uint32_t)serial;
    return serial > 0 || tl_error_set(fields->err, TL_ERR_INVALID, "a hand-over with the serial 0");
}

/* An event of a kind this version does not know is an error: a reader that skipped it would have a
 * wrong line without noticing. */
static bool decode_event(const msgpack_object *object, struct tl_event *event, struct tl_error *err)
{
    struct tl_fields fields;
    uint64_t kind;
    bool ok = false;
    if (!tl_fields_open(&fields, object, 1, 5, err) || !tl_fields_uint(&fields, UINT64_MAX, &kind))
        return false;
    event->kind = (enum tl_event_kind)kind;
    switch (kind) {
    case TL_EVENT_APPLIED:
        ok = decode_applied(&fields, event);
        break;
    case TL_EVENT_JOINED:
        ok = tl_fields_runs(&fields, &event->places);
        break;
    case TL_EVENT_ADMITTED:
        ok = tl_fields_runs(&fields, &event->places) && decode_deadline(&fields, event);
        break;
    case TL_EVENT_REMOVED:
    case TL_EVENT_FREED:
        ok = tl_fields_runs(&fields, &event->places) && decode_reason(&fields, event);
        break;
    case TL_EVENT_RENEWED:
    case TL_EVENT_EXTENDED:
        ok = decode_place(&fields, event) && decode_deadline(&fields, event);
        break;
    case TL_EVENT_HANDED:
        ok = decode_handed(&fields, event);
        break;
    case TL_EVENT_CONFIG:
        ok = true;
        break;
    case TL_EVENT_NOTICE:
        ok = tl_fields_string(&fields, &event->text, &event->text_length);
        break;
    default:
        tl_error_set(err, TL_ERR_INVALID, "event %llu is not one this version knows",
                     (unsigned long long)kind);
    }
    return ok && tl_fields_end(&fields);
}

static bool decode_entry(const msgpack_object *object, struct tl_event_entry *entry,
                         struct tl_error *err)
{
    struct tl_fields fields;
    uint64_t version;
    const msgpack_object *list;
    if (!tl_fields_open(&fields, object, 6, 6, err) ||
        !tl_fields_version(&fields, TL_EVENTS_VERSION, TL_EVENTS_VERSION, &version) ||
        !tl_fields_uint(&fields, UINT64_MAX, &entry->number) ||
        !tl_fields_uint(&fields, UINT64_MAX, &entry->generation) ||
        !tl_fields_uint(&fields, UINT64_MAX, &entry->waiting) ||
        !tl_fields_uint(&fields, UINT64_MAX, &entry->active) || !tl_fields_array(&fields, &list))
        return false;
    size_t n = list->via.array.size;
    entry->events = calloc(n > 0 ? n : 1, sizeof(*entry->events));
    if (entry->events == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for %zu events", n);
    for (size_t i = 0; i < n; i++) {
        entry->n_events = i + 1; /* so that a half-decoded event is freed too */
        if (!decode_event(&list->via.array.ptr[i], &entry->events[i], err))
            return tl_error_prefix(err, "event %zu", i);
    }
    return true;
}

bool tl_events_decode(const void *bytes, size_t length, struct tl_event_entry *entry,
                      struct tl_error *err)
{
    *entry = (struct tl_event_entry){0};
    struct tl_unpacked unpacked;
    if (!tl_unpack(bytes, length, &unpacked, err))
        return false;
    bool ok = decode_entry(&unpacked.object, entry, err);
    tl_unpacked_free(&unpacked);
    if (!ok)
        tl_events_free(entry);
    return ok;
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
