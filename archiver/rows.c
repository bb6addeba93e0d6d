/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <jansson.h>
#include <sodium.h>

#include "archiver/rows.h"
#include "common/auth/secret_file.h"
#include "common/base/big_endian.h"
#include "common/base/grow.h"

#define EPOCH_MS INT64_C(946684800000) /* PostgreSQL counts microseconds from 2000-01-01 */

enum {
    NAME_BYTES = 16, /* of a pseudonym */
    COLUMNS = 15,
    ROW_MAX = 2 + COLUMNS * (4 + 8) + 16 + TL_VISITOR_MAX
};

static const char head[19] = "PGCOPY\n\377\r\n"; /* its zero, flags and extensions follow */

void tl_rows_name(const unsigned char *key, const char *visitor, size_t length,
                  char name[TL_VISITOR_MAX + 1])
{
    unsigned char hash[NAME_BYTES];
    if (key == NULL) {
        memcpy(name, visitor, length);
        name[length] = '\0';
        return;
    }
    crypto_generichash(hash, sizeof(hash), (const unsigned char *)visitor, length, key,
                       TL_SECRET_KEY_BYTES);
    sodium_bin2hex(name, TL_VISITOR_MAX + 1, hash, sizeof(hash));
}

char *tl_rows_change(const unsigned char *key, const char *members)
{
    char name[TL_VISITOR_MAX + 1];
    json_t *object = json_loads(members, 0, NULL);
    const json_t *visitor = json_object_get(object, "visitor");
    size_t length = json_string_length(visitor);
    bool ok = json_is_object(object) && length <= TL_VISITOR_MAX;
    if (ok && json_is_string(visitor)) {
        tl_rows_name(key, json_string_value(visitor), length, name);
        ok = json_object_set_new(object, "visitor", json_string(name)) == 0;
    }
    char *text = ok ? json_dumps(object, JSON_COMPACT) : strdup("{}");
    json_decref(object);
    return text;
}

void tl_rows_put(struct tl_text *out, uint64_t value, size_t n)
{
    tl_put_be((unsigned char *)out->data + out->length, value, n);
    out->length += n;
}

void tl_rows_put_number(struct tl_text *out, uint64_t value, size_t n)
{
    tl_rows_put(out, n, 4);
    tl_rows_put(out, value, n);
}

static void put_null(struct tl_text *out)
{
    tl_rows_put(out, UINT32_MAX, 4);
}

static void put_text(struct tl_text *out, const char *text)
{
    size_t length = strlen(text);
    tl_rows_put(out, length, 4);
    memcpy(out->data + out->length, text, length);
    out->length += length;
}

static void put_time(struct tl_text *out, int64_t ms)
{
    if (ms == 0)
        put_null(out);
    else
        tl_rows_put_number(out, (uint64_t)((ms - EPOCH_MS) * 1000), 8);
}

static void put_row(const struct tl_archive_batch *batch, const struct tl_entry_row *row,
                    const unsigned char *key, struct tl_text *out)
{
    char name[TL_VISITOR_MAX + 1];
    tl_rows_put(out, COLUMNS, 2);
    tl_rows_put_number(out, (uint64_t)batch->parts[row->part].generation_id, 4);
    tl_rows_put_number(out, tl_place_seq(row->place), 8);
    tl_rows_put_number(out, tl_place_lane(row->place), 2);
    if (row->status == TL_ENTRY_SAME)
        put_null(out);
    else
        put_text(out, tl_entry_status_name(row->status));
    if (row->serial == 0)
        put_null(out);
    else
        tl_rows_put_number(out, row->serial, 8);
    put_time(out, row->joined_ms);
    put_time(out, row->restored_ms);
    put_time(out, row->admitted_ms);
    put_time(out, row->claimed_ms);
    put_time(out, row->deadline_ms);
    put_time(out, row->ended_ms);
    tl_rows_put_number(out, row->event, 8);
    put_null(out); /* joined_seq */
    tl_rows_name(key, batch->names + row->visitor, row->length, name);
    put_text(out, name);
    if (row->leaf == 0 || batch->parts[row->part].first_leaf == TL_TRAIL_NO_LEAF)
        put_null(out);
    else
        tl_rows_put_number(out, batch->parts[row->part].first_leaf + row->leaf - 1, 8);
}

bool tl_rows_begin(struct tl_text *out, size_t room)
{
    char *data = tl_grow(out->data, &out->capacity, sizeof(head) + room, 1);
    if (data == NULL)
        return false;
    out->data = data;
    memcpy(data, head, sizeof(head));
    out->length = sizeof(head);
    return true;
}

bool tl_rows_write(const struct tl_archive_batch *batch, const unsigned char *key,
                   struct tl_text *out, struct tl_error *err)
{
    if (!tl_rows_begin(out, batch->n_rows * ROW_MAX + 2))
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for %zu rows", batch->n_rows);
    for (size_t i = 0; i < batch->n_rows; i++)
        put_row(batch, &batch->rows[i], key, out);
    tl_rows_put(out, UINT16_MAX, 2);
    return true;
}
