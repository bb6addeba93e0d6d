/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/store/history.h"
#include "common/store/reply.h"

static const char *const names[TL_HISTORY_FIELDS] = {TL_HISTORY_TEXTS};

const char *tl_history_field_name(enum tl_history_field field)
{
    return names[field];
}

/* One entry of the stream: id, then names and values in turn. Names of a later release are skipped.
 */
static bool read_point(const struct tl_reply *entry, struct tl_history_point *point)
{
    const struct tl_reply *pairs = tl_reply_at(entry, 1);
    *point = (struct tl_history_point){.at_ms = strtoll(tl_reply_text(entry, 0), NULL, 10)};
    for (int field = 0; field < TL_HISTORY_FIELDS; field++)
        point->values[field] = (uint64_t)tl_reply_integer(tl_reply_of(pairs, names[field]));
    snprintf(point->mode, sizeof(point->mode), "%s",
             tl_reply_string(tl_reply_of(pairs, "mode"), NULL));
    return point->at_ms > 0;
}

/* The points of both ranges, oldest first; NULL with err. There is room for one more than `later`
 * has. */
static struct tl_history_point *join_ranges(const struct tl_reply *before,
                                            const struct tl_reply *later, size_t *n,
                                            struct tl_error *err)
{
    struct tl_history_point *points = calloc(tl_reply_count(later) + 1, sizeof(*points));
    if (points == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for a history");
        return NULL;
    }
    *n = read_point(tl_reply_at(before, 0), &points[0]) ? 1 : 0;
    for (size_t i = tl_reply_count(later); i > 0; i--) {
        struct tl_history_point *point = &points[*n];
        bool newer = read_point(tl_reply_at(later, i - 1), point) &&
                     (*n == 0 || point->at_ms > points[*n - 1].at_ms); /* one may be in both */
        *n += newer ? 1 : 0;
    }
    return points;
}

bool tl_history_read(struct tl_redis *redis, const struct tl_keys *keys, bool minutes,
                     int64_t from_ms, int64_t to_ms, size_t most, struct tl_history_point **points,
                     size_t *n, struct tl_error *err)
{
    char key[TL_KEY_MAX], from[24], to[24], count[24];
    tl_key(keys, minutes ? TL_KEY_HISTORY_MINUTES : TL_KEY_HISTORY, key);
    snprintf(from, sizeof(from), "%" PRId64, from_ms);
    snprintf(to, sizeof(to), "%" PRId64, to_ms);
    *points = NULL;
    *n = 0;
    most = most > TL_HISTORY_READ_MAX ? TL_HISTORY_READ_MAX : most;
    snprintf(count, sizeof(count), "%zu", most);
    struct tl_reply *later = tl_ask(redis, err, "XREVRANGE", key, to, from, "COUNT", count, NULL);
    if (later == NULL)
        return false;
    bool full = tl_reply_count(later) == most;
    struct tl_reply *before =
        full ? NULL : tl_ask(redis, err, "XREVRANGE", key, from, "-", "COUNT", "1", NULL);
    if (full || before != NULL)
        *points = join_ranges(before, later, n, err);
    tl_reply_free(later);
    tl_reply_free(before);
    return *points != NULL;
}
