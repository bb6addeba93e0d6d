/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/auth/hex.h"
#include "common/base/clock.h"
#include "common/base/units.h"

#include "ctl/calls/calls.h"

enum {
    LINE_MAX_BYTES = 256,
    HEAD_LINES = 7, /* before the first id */
};

/* ---- writing ---- */

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

/* ---- the list, wherever it is from ---- */

static bool begin(struct tl_draw_check *check, const struct tl_draw_head *head,
                  struct tl_error *err)
{
    unsigned char hash[TL_DRAW_KEY_BYTES];
    check->head = *head;
    check->begun = true;
    check->n = check->rank = 0;
    tl_draw_hash(head->seed, hash);
    if (memcmp(hash, head->hash, sizeof(hash)) != 0)
        return tl_error_set(err, TL_ERR_INVALID,
                            "the seed does not have the hash that the list names");
    if (check->hash != NULL && memcmp(hash, check->hash, sizeof(hash)) != 0)
        return tl_error_set(err, TL_ERR_INVALID,
                            "the seed is another one than that whose hash was published");
    if (check->out != NULL)
        tl_draw_list_write_head(check->out, head);
    return true;
}

static bool add_id(struct tl_draw_check *check, const char *hex, struct tl_error *err)
{
    unsigned char id[TL_DRAW_ID_BYTES], key[TL_DRAW_KEY_BYTES];
    uint64_t line = HEAD_LINES + ++check->n;
    if (!tl_hex_parse(hex, strlen(hex), id, sizeof(id)))
        return tl_error_set(err, TL_ERR_INVALID,
                            "line %" PRIu64 ": expected a draw id of 32 hex digits", line);
    tl_draw_key(check->head.seed, id, key);
    if (check->n > 1 && memcmp(check->before, key, sizeof(key)) >= 0)
        return tl_error_set(err, TL_ERR_INVALID,
                            "line %" PRIu64 ": stands before the line above it by the draw: the "
                            "order is wrong",
                            line);
    memcpy(check->before, key, sizeof(key));
    if (check->id != NULL && memcmp(check->id, id, TL_DRAW_ID_BYTES) == 0)
        check->rank = check->n;
    if (check->out != NULL)
        tl_draw_list_write_id(check->out, id);
    return true;
}

static bool end(const struct tl_draw_check *check, struct tl_error *err)
{
    return check->n == check->head.drawn ||
           tl_error_set(err, TL_ERR_INVALID,
                        "the list names %" PRIu64 " drawn visitors, but has %" PRIu64,
                        check->head.drawn, check->n);
}

/* ---- text ---- */

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
    if (value == NULL || !tl_time_parse(value, &head->opens_at_ms, reader->err) ||
        !read_hex(reader, "seed_hash", head->hash) || !read_hex(reader, "seed", head->seed))
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

static bool verify_text(FILE *in, struct tl_draw_check *check, struct tl_error *err)
{
    struct reader reader = {.in = in, .err = err};
    struct tl_draw_head head = {0};
    bool ok = read_head(&reader, &head) && begin(check, &head, err);
    while (ok && next_line(&reader))
        ok = add_id(check, reader.line, err);
    return ok && err->kind == TL_OK && end(check, err);
}

/* ---- pages ---- */

static bool page_head(const json_t *page, struct tl_draw_head *head, struct tl_error *err)
{
    const char *hash = tl_json_text(page, "hash"), *seed = tl_json_text(page, "seed");
    const char *queue = tl_json_text(page, "queue");
    *head = (struct tl_draw_head){.drawn = tl_json_count(page, "drawn")};
    snprintf(head->queue, sizeof(head->queue), "%s", queue);
    if (strcmp(tl_json_text(page, "phase"), "done") != 0)
        return tl_error_set(err, TL_ERR_INVALID, "there is no list before the draw is done");
    if (!tl_queue_name_valid(queue, strlen(queue)) ||
        !tl_time_parse(tl_json_text(page, "opens_at"), &head->opens_at_ms, NULL) ||
        !tl_hex_parse(hash, strlen(hash), head->hash, sizeof(head->hash)) ||
        !tl_hex_parse(seed, strlen(seed), head->seed, sizeof(head->seed)))
        return tl_error_set(err, TL_ERR_INVALID, "the seed of the draw is gone");
    return true;
}

static bool is_same(const struct tl_draw_head *a, const struct tl_draw_head *b)
{
    return strcmp(a->queue, b->queue) == 0 && a->opens_at_ms == b->opens_at_ms &&
           memcmp(a->seed, b->seed, sizeof(a->seed)) == 0 &&
           memcmp(a->hash, b->hash, sizeof(a->hash)) == 0 && a->drawn == b->drawn;
}

/* The next page; the first one begins the list. */
static bool add_page(struct tl_draw_check *check, const json_t *page, struct tl_error *err)
{
    struct tl_draw_head head;
    const json_t *id;
    size_t i;
    bool ok = page_head(page, &head, err);
    if (ok && check->begun && !is_same(&check->head, &head))
        return tl_error_set(err, TL_ERR_INVALID, "the pages are of more than one draw");
    ok = ok && (check->begun || begin(check, &head, err));
    json_array_foreach(json_object_get(page, "ids"), i, id)
    {
        const char *hex = json_string_value(id);
        ok = ok && add_id(check, hex != NULL ? hex : "", err);
    }
    return ok;
}

bool tl_draw_verify_pages(struct tl_draw_check *check, tl_draw_fetch *fetch, void *context,
                          struct tl_error *err)
{
    struct tl_progress progress;
    uint64_t before = 0;
    bool ok;
    check->begun = false;
    tl_progress_begin(&progress, "list", tl_clock_ms());
    do {
        json_t *page = NULL;
        before = check->begun ? check->n : 0;
        ok = fetch(context, before, &page, err) && add_page(check, page, err);
        json_decref(page);
        tl_progress_at(&progress, check->n, check->head.drawn, tl_clock_ms());
    } while (ok && check->n > before && check->n < check->head.drawn);
    tl_progress_end(&progress);
    return ok && end(check, err);
}

/* The first byte that is no space, which stays to be read; EOF at the end. */
static int next_byte(FILE *in)
{
    int c;
    do
        c = getc(in);
    while (c != EOF && isspace(c));
    return c == EOF ? EOF : ungetc(c, in);
}

bool tl_draw_verify(FILE *in, struct tl_draw_check *check, struct tl_error *err)
{
    *err = (struct tl_error){0};
    check->begun = false;
    if (next_byte(in) != '{')
        return verify_text(in, check, err);
    while (next_byte(in) != EOF) {
        json_error_t problem;
        json_t *page = json_loadf(in, JSON_DISABLE_EOF_CHECK, &problem);
        if (page == NULL)
            return tl_error_set(err, TL_ERR_INVALID, "after %" PRIu64 " draw ids: %.150s", check->n,
                                problem.text);
        bool ok = add_page(check, page, err);
        json_decref(page);
        if (!ok)
            return false;
    }
    return end(check, err);
}
