/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/auth/hex.h"
#include "common/base/units.h"

#include "ctl/calls/draw_page.h"
#include "ctl/calls/rows.h"
#include "ctl/shell/json.h"

/* What the list begins with. */
static bool read_head(const json_t *page, struct tl_draw_head *head, struct tl_error *err)
{
    const char *hash = tl_json_text(page, "hash"), *seed = tl_json_text(page, "seed");
    const char *queue = tl_json_text(page, "queue");
    *head = (struct tl_draw_head){.drawn = tl_row_number(page, "drawn")};
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

bool tl_draw_copy_add(struct tl_draw_copy *copy, const json_t *page, struct tl_error *err)
{
    struct tl_draw_head head;
    const json_t *id;
    size_t i;
    if (!read_head(page, &head, err))
        return false;
    if (copy->begun && !is_same(&copy->head, &head))
        return tl_error_set(err, TL_ERR_INVALID, "the pages are of more than one draw");
    if (!copy->begun)
        tl_draw_list_write_head(copy->out, &head);
    copy->head = head;
    copy->begun = true;
    json_array_foreach(json_object_get(page, "ids"), i, id)
    {
        unsigned char bytes[TL_DRAW_ID_BYTES];
        const char *hex = json_string_value(id);
        if (hex == NULL || !tl_hex_parse(hex, strlen(hex), bytes, sizeof(bytes)))
            return tl_error_set(err, TL_ERR_INVALID, "place %" PRIu64 " has no draw id",
                                copy->written + 1);
        tl_draw_list_write_id(copy->out, bytes);
        copy->written++;
    }
    return true;
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

static bool copy_pages(FILE *in, struct tl_draw_copy *copy, struct tl_error *err)
{
    while (next_byte(in) != EOF) {
        json_error_t problem;
        json_t *page = json_loadf(in, JSON_DISABLE_EOF_CHECK, &problem);
        if (page == NULL)
            return tl_error_set(err, TL_ERR_INVALID, "after %" PRIu64 " draw ids: %.150s",
                                copy->written, problem.text);
        bool ok = tl_draw_copy_add(copy, page, err);
        json_decref(page);
        if (!ok)
            return false;
    }
    return true;
}

FILE *tl_draw_copy_open(FILE *in, struct tl_error *err)
{
    if (next_byte(in) != '{')
        return in;
    struct tl_draw_copy copy = {.out = tmpfile()};
    if (copy.out == NULL) {
        tl_error_set(err, TL_ERR_SYSTEM, "no temporary file: %s", strerror(errno));
        return NULL;
    }
    bool ok = copy_pages(in, &copy, err);
    if (ok && fflush(copy.out) != 0)
        ok = tl_error_set(err, TL_ERR_SYSTEM, "the temporary file: %s", strerror(errno));
    if (!ok) {
        fclose(copy.out);
        return NULL;
    }
    rewind(copy.out);
    return copy.out;
}
