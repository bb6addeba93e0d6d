/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "archiver/portion.h"
#include "archiver/rows.h"
#include "common/store/records.h"

static bool no_memory(struct tl_error *err)
{
    return tl_error_set(err, TL_ERR_NOMEM, "no memory for those who are compared");
}

void tl_portion_free(struct tl_portion *portion)
{
    free(portion->of);
    *portion = (struct tl_portion){0};
}

/* Changes what can be no id, after it was named by its own bytes. */
static void make_readable(char *name)
{
    for (; *name != '\0'; name++)
        if (*name <= ' ' || *name > '~')
            *name = '?';
}

static int compare_seqs(const void *a, const void *b)
{
    const struct tl_portion_one *first = a, *second = b;
    const uint64_t one = tl_place_seq(first->place), other = tl_place_seq(second->place);
    return (one > other) - (one < other);
}

static void set_name(struct tl_portion_one *one, const struct tl_reply *visitor,
                     const unsigned char *key)
{
    size_t length;
    const char *id = tl_reply_string(visitor, &length);
    const bool fits = key != NULL || length <= TL_VISITOR_MAX;
    tl_rows_name(key, id, fits ? length : TL_VISITOR_MAX, one->name);
    if (!fits)
        one->name[TL_VISITOR_MAX - 1] = '?';
    make_readable(one->name);
}

/* One whose scores are no whole numbers is left out, and so missing. */
static void add_list(struct tl_portion *portion, const struct tl_reply *list, size_t columns,
                     const unsigned char *key)
{
    for (size_t i = 0; i + columns <= tl_reply_count(list); i += columns) {
        struct tl_portion_one *one = &portion->of[portion->n];
        one->deadline = 0;
        if (!tl_record_place(tl_reply_text(list, i + 1), &one->place) ||
            (columns == 3 && !tl_record_score(tl_reply_text(list, i + 2), &one->deadline)))
            continue;
        set_name(one, tl_reply_at(list, i), key);
        portion->n++;
    }
}

bool tl_portion_read(struct tl_portion *portion, const struct tl_reply *rows, bool deadlines,
                     const unsigned char *key, struct tl_error *err)
{
    const size_t columns = deadlines ? 3 : 2;
    size_t n = 0;
    for (size_t i = 0; i < tl_reply_count(rows); i++)
        n += tl_reply_count(tl_reply_at(rows, i)) / columns;
    *portion = (struct tl_portion){.of = calloc(n + 1, sizeof(struct tl_portion_one))};
    if (portion->of == NULL)
        return no_memory(err);
    for (size_t i = 0; i < tl_reply_count(rows); i++)
        add_list(portion, tl_reply_at(rows, i), columns, key);
    qsort(portion->of, portion->n, sizeof(*portion->of), compare_seqs);
    return true;
}

bool tl_portion_sum(const struct tl_portion *portion, char sum[TL_PORTION_SUM_SIZE],
                    struct tl_error *err)
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    struct tl_text text = {0};
    for (size_t i = 0; i < portion->n; i++) {
        const struct tl_portion_one *one = &portion->of[i];
        tl_text_append(&text, "%s %u %" PRIu64 "\n", one->name, tl_place_lane(one->place),
                       tl_place_seq(one->place));
    }
    bool ok = !text.failed || no_memory(err);
    crypto_hash_sha256(hash, (const unsigned char *)(text.length > 0 ? text.data : ""),
                       text.length);
    sodium_bin2hex(sum, TL_PORTION_SUM_SIZE, hash, sizeof(hash));
    tl_text_free(&text);
    return ok;
}

bool tl_portion_texts(const struct tl_portion *portion, struct tl_portion_texts *texts,
                      struct tl_error *err)
{
    *texts = (struct tl_portion_texts){0};
    tl_text_append(&texts->visitors, "%s", "");
    for (size_t i = 0; i < portion->n; i++) {
        const struct tl_portion_one *one = &portion->of[i];
        const char *before = i > 0 ? "," : "{";
        tl_text_append(&texts->seqs, "%s%" PRIu64, before, tl_place_seq(one->place));
        tl_text_append(&texts->lanes, "%s%u", before, tl_place_lane(one->place));
        tl_text_append(&texts->visitors, "%s%s", i > 0 ? " " : "", one->name);
        if (one->deadline > 0)
            tl_text_append(&texts->deadlines, "%s%" PRIu64, before, one->deadline);
        else
            tl_text_append(&texts->deadlines, "%sNULL", before);
    }
    const char *end = portion->n > 0 ? "}" : "{}";
    tl_text_append(&texts->seqs, "%s", end);
    tl_text_append(&texts->lanes, "%s", end);
    tl_text_append(&texts->deadlines, "%s", end);
    if (!texts->seqs.failed && !texts->lanes.failed && !texts->visitors.failed &&
        !texts->deadlines.failed)
        return true;
    tl_portion_texts_free(texts);
    return no_memory(err);
}

void tl_portion_texts_free(struct tl_portion_texts *texts)
{
    tl_text_free(&texts->seqs);
    tl_text_free(&texts->lanes);
    tl_text_free(&texts->visitors);
    tl_text_free(&texts->deadlines);
}
