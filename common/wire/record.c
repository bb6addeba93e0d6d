/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/wire/record.h"

#define NUMBER_LIMIT (UINT64_C(1) << 53)

bool tl_note_name(struct tl_note *note, const char **visitor, size_t *length)
{
    if (note->length == 0)
        return false;
    const char *space = memchr(note->visitors, ' ', note->length);
    *visitor = note->visitors;
    *length = space != NULL ? (size_t)(space - note->visitors) : note->length;
    size_t taken = *length + (space != NULL);
    note->visitors += taken;
    note->length -= taken;
    return true;
}

/* Are they ids, and as many as the places? Else nobody knows whose place is which. */
static bool check_visitors(struct tl_note note, bool has_places, uint64_t places,
                           struct tl_error *err)
{
    const char *visitor;
    size_t length;
    uint64_t n = 0;
    for (; tl_note_name(&note, &visitor, &length); n++)
        if (!tl_visitor_valid(visitor, length))
            return tl_error_set(err, TL_ERR_INVALID, "a visitor that is no id");
    return !has_places || n == places ||
           tl_error_set(err, TL_ERR_INVALID, "%llu visitors at %llu places", (unsigned long long)n,
                        (unsigned long long)places);
}

static bool check_rules(const struct tl_note *note, struct tl_error *err)
{
    bool ok = note->length > 0 && note->length <= TL_RULES_MAX;
    for (size_t i = 0; ok && i < note->length; i++)
        ok = note->visitors[i] > ' ' && note->visitors[i] <= '~';
    return ok || tl_error_set(err, TL_ERR_INVALID, "rules that are none");
}

static bool take_note(struct tl_fields *fields, struct tl_note *note)
{
    uint64_t kind;
    size_t n;
    *note = (struct tl_note){0};
    if (!tl_fields_array(fields, &n) || !tl_fields_expect(fields, n, 4) ||
        !tl_fields_uint(fields, TL_NOTE_RULES, &kind) ||
        !tl_fields_uint(fields, NUMBER_LIMIT, &note->detail) ||
        !tl_fields_string(fields, &note->visitors, &note->length) ||
        !tl_fields_array(fields, &note->n_numbers))
        return false;
    note->kind = (enum tl_record_note)kind;
    note->numbers = *fields;
    uint64_t places = 0;
    for (size_t i = 0; i < note->n_numbers; i++) {
        uint64_t number;
        if (!tl_fields_uint(fields, NUMBER_LIMIT, &number))
            return false;
        if (i % 2 == 1 && (i == 1 || kind != TL_NOTE_STAYS))
            places += number;
    }
    if (kind == TL_NOTE_RULES)
        return check_rules(note, fields->err);
    bool has_places = kind != TL_NOTE_BEGINS && kind != TL_NOTE_FORGOTTEN;
    return check_visitors(*note, has_places, places, fields->err);
}

bool tl_record_open(const void *bytes, size_t length, struct tl_record *record,
                    struct tl_error *err)
{
    struct tl_fields *fields = &record->rest;
    uint64_t version, at;
    size_t n;
    *record = (struct tl_record){.rest = {.at = bytes, .err = err}};
    if (length > TL_RECORD_BYTES_MAX)
        return tl_error_set(err, TL_ERR_INVALID, "%zu bytes; the limit is %d", length,
                            TL_RECORD_BYTES_MAX);
    fields->end = fields->at + length;
    if (!tl_fields_array(fields, &n) || !tl_fields_uint(fields, UINT64_MAX, &version))
        return false;
    if (version != TL_RECORD_VERSION)
        return tl_error_set(err, TL_ERR_PROTOCOL,
                            "format version %llu of the record, but this program knows only "
                            "version %d: upgrade this program",
                            (unsigned long long)version, TL_RECORD_VERSION);
    if (!tl_fields_expect(fields, n, 4) ||
        !tl_fields_uint(fields, NUMBER_LIMIT, &record->generation) ||
        !tl_fields_uint(fields, NUMBER_LIMIT, &record->event) ||
        !tl_fields_uint(fields, NUMBER_LIMIT, &at))
        return false;
    record->at_ms = (int64_t)at;
    struct tl_record all = *record;
    struct tl_note note;
    while (all.rest.at < all.rest.end)
        if (!take_note(&all.rest, &note))
            return false;
    return true;
}

bool tl_record_next(struct tl_record *record, struct tl_note *note)
{
    return record->rest.at < record->rest.end && take_note(&record->rest, note);
}

const char *tl_note_rules(const struct tl_note *note, size_t *length)
{
    *length = note->length;
    return note->visitors;
}

uint64_t tl_note_number(struct tl_note *note)
{
    uint64_t number;
    if (note->n_numbers == 0 || !tl_fields_uint(&note->numbers, NUMBER_LIMIT, &number))
        return 0;
    note->n_numbers--;
    return number;
}

bool tl_note_visitor(struct tl_note *note, const char **visitor, size_t *length, tl_place *place)
{
    if (!tl_note_name(note, visitor, length))
        return false;
    if (note->count == 0) {
        note->next = tl_note_number(note);
        note->count = tl_note_number(note);
    }
    if (note->count == 0 || note->next == 0 || note->next > TL_PLACE_MAX)
        return false;
    *place = note->next++;
    note->count--;
    return true;
}
