/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "common/base/units.h"

#include "lab/memory.h"
#include "lab/visitors.h"

/* ---- views ---- */

static int64_t number_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;
    return number >= 0 ? (int64_t)number : -1;
}

static enum tl_told_status status_of(const char *name)
{
    static const struct {
        const char *name;
        enum tl_told_status status;
    } names[] = {
        {"pending", TL_TOLD_PENDING}, {"waiting", TL_TOLD_WAITING}, {"active", TL_TOLD_ACTIVE},
        {"completed", TL_TOLD_ENDED}, {"expired", TL_TOLD_ENDED},   {"left", TL_TOLD_ENDED},
        {"removed", TL_TOLD_ENDED},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i].name) == 0)
            return names[i].status;
    }
    return TL_TOLD_OTHER;
}

bool tl_told_read(const char *text, size_t length, struct tl_told *told)
{
    json_t *view = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
    const char *status = json_string_value(json_object_get(view, "status"));
    const char *ticket = json_string_value(json_object_get(view, "ticket"));
    const char *expires = json_string_value(json_object_get(view, "expires_at"));
    bool good = status != NULL;
    *told = (struct tl_told){.status = good ? status_of(status) : TL_TOLD_OTHER,
                             .position = number_of(view, "position"),
                             .eta_low = number_of(view, "eta_low"),
                             .eta_high = number_of(view, "eta_high"),
                             .waiting = number_of(view, "waiting"),
                             .active = number_of(view, "active"),
                             .expires_ms = -1};
    if (ticket != NULL && strlen(ticket) < sizeof(told->ticket))
        memcpy(told->ticket, ticket, strlen(ticket) + 1);
    if (expires != NULL && !tl_time_parse(expires, &told->expires_ms, NULL))
        told->expires_ms = -1;
    json_decref(view);
    return good;
}

void tl_problem_read(const char *text, size_t length, char *type, size_t size)
{
    json_t *problem = json_loadb(text, length, 0, NULL);
    const char *whole = json_string_value(json_object_get(problem, "type"));
    const char *slash = whole != NULL ? strrchr(whole, '/') : NULL;
    const char *name = slash != NULL ? slash + 1 : "";
    bool plain = name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
    snprintf(type, size, "%s", plain ? name : "");
    json_decref(problem);
}

void tl_problem_describe(unsigned status, const char *text, size_t length, const char *what,
                         char *words, size_t size)
{
    char type[32];
    tl_problem_read(text, length, type, sizeof(type));
    if (status == 0)
        snprintf(words, size, "%s: %.48s", what, text);
    else if (type[0] != '\0')
        snprintf(words, size, "%s: %u %s", what, status, type);
    else
        snprintf(words, size, "%s: %u", what, status);
}

/* ---- events ---- */

/* Appends bytes to a buffer, within the limit. */
static bool append(char **buffer, size_t *used, size_t *capacity, const char *bytes, size_t length)
{
    if (length > TL_EVENT_BYTES_MAX - *used)
        return false;
    *buffer = tl_xgrow(*buffer, capacity, *used + length + 1, 1);
    if (length > 0)
        memcpy(*buffer + *used, bytes, length);
    *used += length;
    return true;
}

static void take_name(struct tl_event_reader *reader, const char *value, size_t length)
{
    bool fits = length < sizeof(reader->name) && memchr(value, '\0', length) == NULL;
    if (fits)
        memcpy(reader->name, value, length);
    reader->name[fits ? length : 0] = '\0';
}

static void take_retry(struct tl_event_reader *reader, const char *value, size_t length)
{
    char text[16];
    uint64_t ms;
    if (length >= sizeof(text))
        return;
    memcpy(text, value, length);
    text[length] = '\0';
    if (tl_number_parse(text, &ms, NULL) && ms <= INT32_MAX)
        reader->retry_ms = (int64_t)ms;
}

static bool is(const char *name, size_t length, const char *field)
{
    return length == strlen(field) && memcmp(name, field, length) == 0;
}

/* A complete line that is not empty: a field, or a comment. */
static bool take_field(struct tl_event_reader *reader)
{
    const char *colon = memchr(reader->line, ':', reader->length);
    size_t name = colon != NULL ? (size_t)(colon - reader->line) : reader->length;
    size_t at = colon != NULL ? name + 1 : name;
    at += at < reader->length && reader->line[at] == ' ' ? 1 : 0;
    const char *value = reader->line + at;
    size_t length = reader->length - at;
    if (is(reader->line, name, "event"))
        take_name(reader, value, length);
    else if (is(reader->line, name, "retry"))
        take_retry(reader, value, length);
    else if (is(reader->line, name, "data"))
        /* Each line of data ends with a line feed; the last one is taken off again. */
        return append(&reader->data, &reader->data_length, &reader->data_capacity, value, length) &&
               append(&reader->data, &reader->data_length, &reader->data_capacity, "\n", 1);
    return true;
}

static bool end_line(struct tl_event_reader *reader, tl_event_handler *handler, void *context)
{
    bool ok = true;
    if (reader->length > 0) {
        ok = take_field(reader);
    } else {
        if (reader->data_length > 0)
            handler(context, reader->name, reader->data, reader->data_length - 1);
        reader->data_length = 0;
        reader->name[0] = '\0';
    }
    reader->length = 0;
    return ok;
}

bool tl_event_reader_take(struct tl_event_reader *reader, const char *bytes, size_t length,
                          tl_event_handler *handler, void *context)
{
    const char *end = bytes + length;
    for (const char *at = bytes; at < end;) {
        if (reader->after_cr && *at == '\n')
            at++;
        reader->after_cr = false;
        size_t n = 0;
        while (at + n < end && at[n] != '\n' && at[n] != '\r')
            n++;
        if (!append(&reader->line, &reader->length, &reader->capacity, at, n))
            return false;
        at += n;
        if (at == end)
            break;
        reader->after_cr = *at == '\r';
        at++;
        if (!end_line(reader, handler, context))
            return false;
    }
    return true;
}

void tl_event_reader_free(struct tl_event_reader *reader)
{
    free(reader->line);
    free(reader->data);
    *reader = (struct tl_event_reader){0};
}
