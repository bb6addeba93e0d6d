/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/auth/hex.h"
#include "common/base/units.h"

#include "ctl/calls/draw_list.h"

enum { LINE_MAX_BYTES = 256 };

static void write_hex(FILE *out, const char *name, const unsigned char *bytes, size_t n)
{
    char digits[TL_DRAW_KEY_DIGITS + 1];
    tl_hex_format(bytes, n, digits);
    fprintf(out, "%s%s\n", name, digits);
}

void tl_draw_list_write_head(FILE *out, const struct tl_draw_head *head)
{
    char opens_at[TL_UNITS_TEXT_MAX];
    tl_time_format(head->opens_at_ms, opens_at, sizeof(opens_at));
    fprintf(out, "tellerline-draw 1\nqueue %s\nopens_at %s\n", head->queue, opens_at);
    write_hex(out, "seed_hash ", head->hash, sizeof(head->hash));
    write_hex(out, "seed ", head->seed, sizeof(head->seed));
    fprintf(out, "drawn %" PRIu64 "\n\n", head->drawn);
}

void tl_draw_list_write_id(FILE *out, const unsigned char id[TL_DRAW_ID_BYTES])
{
    write_hex(out, "", id, TL_DRAW_ID_BYTES);
}

/* ---- verification ---- */

struct reader {
    FILE *in;
    uint64_t number; /* of the line, from 1 */
    char line[LINE_MAX_BYTES];
    struct tl_error *err;
};

static bool wrong(const struct reader *reader, const char *what)
{
    return tl_error_set(reader->err, TL_ERR_INVALID, "line %" PRIu64 ": %s", reader->number, what);
}

/* The next line, without its end. False at the end of the list, and for a line that is too long
 * (then err is set). */
static bool next_line(struct reader *reader)
{
    if (fgets(reader->line, sizeof(reader->line), reader->in) == NULL)
        return false;
    reader->number++;
    size_t length = strlen(reader->line);
    if (length + 1 == sizeof(reader->line) && reader->line[length - 1] != '\n')
        return wrong(reader, "longer than a line of a list is");
    while (length > 0 && (reader->line[length - 1] == '\n' || reader->line[length - 1] == '\r'))
        reader->line[--length] = '\0';
    return true;
}

/* The next line must be `name value`. */
static const char *value_of(struct reader *reader, const char *name)
{
    size_t length = strlen(name);
    if (next_line(reader) && strncmp(reader->line, name, length) == 0 &&
        reader->line[length] == ' ')
        return reader->line + length + 1;
    (void)tl_error_set(reader->err, TL_ERR_INVALID, "line %" PRIu64 ": expected `%s` and its value",
                       reader->number, name);
    return NULL;
}

static bool read_hex(struct reader *reader, const char *name,
                     unsigned char bytes[TL_DRAW_KEY_BYTES])
{
    const char *value = value_of(reader, name);
    return value != NULL && (tl_hex_parse(value, strlen(value), bytes, TL_DRAW_KEY_BYTES) ||
                             wrong(reader, "expected 64 hex digits"));
}

static bool read_head(struct reader *reader, struct tl_draw_head *head)
{
    const char *value = value_of(reader, "tellerline-draw");
    if (value == NULL)
        return false;
    if (strcmp(value, "1") != 0)
        return wrong(reader, "a format that this version does not know");
    value = value_of(reader, "queue");
    if (value == NULL)
        return false;
    snprintf(head->queue, sizeof(head->queue), "%.*s", TL_QUEUE_NAME_MAX, value);
    value = value_of(reader, "opens_at");
    if (value == NULL)
        return false;
    if (!tl_time_parse(value, &head->opens_at_ms, reader->err))
        return false;
    if (!read_hex(reader, "seed_hash", head->hash) || !read_hex(reader, "seed", head->seed))
        return false;
    value = value_of(reader, "drawn");
    if (value == NULL)
        return false;
    char *end = NULL;
    head->drawn = strtoull(value, &end, 10);
    if (*value < '0' || *value > '9' || *end != '\0')
        return wrong(reader, "expected how many were drawn");
    return (next_line(reader) && reader->line[0] == '\0') ||
           wrong(reader, "expected an empty line");
}

static bool check_seed(struct reader *reader, const struct tl_draw_check *check)
{
    unsigned char hash[TL_DRAW_KEY_BYTES];
    tl_draw_hash(check->head.seed, hash);
    if (memcmp(hash, check->head.hash, sizeof(hash)) != 0)
        return tl_error_set(reader->err, TL_ERR_INVALID,
                            "the seed does not have the hash that the list names");
    if (check->hash != NULL && memcmp(hash, check->hash, sizeof(hash)) != 0)
        return tl_error_set(reader->err, TL_ERR_INVALID,
                            "the seed is another one than that whose hash was published");
    return true;
}

static bool check_ids(struct reader *reader, struct tl_draw_check *check)
{
    unsigned char id[TL_DRAW_ID_BYTES], key[TL_DRAW_KEY_BYTES], before[TL_DRAW_KEY_BYTES];
    uint64_t n = 0;
    while (next_line(reader)) {
        if (!tl_hex_parse(reader->line, strlen(reader->line), id, sizeof(id)))
            return wrong(reader, "expected a draw id of 32 hex digits");
        tl_draw_key(check->head.seed, id, key);
        if (n > 0 && memcmp(before, key, sizeof(key)) >= 0)
            return wrong(reader, "stands before the line above it by the draw: the order is wrong");
        memcpy(before, key, sizeof(key));
        n++;
        if (check->id != NULL && memcmp(check->id, id, sizeof(id)) == 0)
            check->rank = n;
    }
    if (reader->err->kind != TL_OK)
        return false;
    if (n != check->head.drawn)
        return tl_error_set(reader->err, TL_ERR_INVALID,
                            "the list names %" PRIu64 " drawn visitors, but has %" PRIu64,
                            check->head.drawn, n);
    return true;
}

bool tl_draw_list_verify(FILE *in, struct tl_draw_check *check, struct tl_error *err)
{
    struct reader reader = {.in = in, .err = err};
    *err = (struct tl_error){0};
    check->rank = 0;
    return read_head(&reader, &check->head) && check_seed(&reader, check) &&
           check_ids(&reader, check);
}
