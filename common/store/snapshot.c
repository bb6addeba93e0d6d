/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The visitors who joined last stand in long runs without gaps. To save the store reading them all
 * out, we ask for the number of visitors in each block of places: a count of none or of all says
 * which places are taken. Only the other blocks are read out. Where most blocks have gaps, for
 * instance in a line of several lanes, counting does not pay and everything is read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/library.h"
#include "common/store/records.h"
#include "common/store/reply.h"
#include "common/store/snapshot.h"
#include "common/wire/place.h"

/* One page takes the store 2 ms at most: 0.25 us to read out a visitor, 1.6 us to count a block. */
enum { PAGE = 4000, BLOCK = 128, BLOCKS = 64 };
/* Sessions in one page. */
#define ACTIVE_PAGE "2000"
/* Serials in one page. */
#define SERIALS_PAGE "1000"

struct tl_snapshot {
    const struct tl_keys *keys;
    struct tl_tail_head head;
    struct tl_line *line;
    struct tl_args args;
    bool waiting_done, serials_done;
    tl_place next;   /* waiting places below it have been read */
    bool dense;      /* the last page had hardly any gaps */
    char cursor[32]; /* of the scan of the serials, then of the active sessions */
};

struct tl_snapshot *tl_snapshot_begin(struct tl_redis *redis, const struct tl_keys *keys,
                                      struct tl_error *err)
{
    struct tl_snapshot *snapshot = calloc(1, sizeof(*snapshot));
    if (snapshot == NULL || (snapshot->line = tl_line_new()) == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the line of queue %s", keys->queue);
    } else if (tl_tail_head(redis, keys, &snapshot->head, err)) {
        const struct tl_tail_head *head = &snapshot->head;
        snapshot->keys = keys;
        snapshot->next = 1;
        strcpy(snapshot->cursor, "0");
        tl_line_start(snapshot->line, head->generation, head->event);
        snapshot->line->last_seq = head->seq;
        tl_line_set_turns(snapshot->line, head->turns.field, head->turns.event);
        if (head->found_seq > 0) /* else it is the first incarnation */
            tl_line_set_lost(snapshot->line, head->found_seq, head->base_seq);
        return snapshot;
    }
    tl_snapshot_abandon(&snapshot);
    return NULL;
}

void tl_snapshot_abandon(struct tl_snapshot **snapshot)
{
    if (*snapshot == NULL)
        return;
    tl_line_free(&(*snapshot)->line);
    tl_args_free(&(*snapshot)->args);
    free(*snapshot);
    *snapshot = NULL;
}

struct tl_line *tl_snapshot_finish(struct tl_snapshot **snapshot, struct tl_tail_head *head)
{
    struct tl_line *line = (*snapshot)->line;
    *head = (*snapshot)->head;
    (*snapshot)->line = NULL;
    tl_snapshot_abandon(snapshot);
    return line;
}

/* ---- waiting visitors ---- */

static bool add_waiting(struct tl_snapshot *snapshot, tl_place first, uint64_t count,
                        struct tl_error *err)
{
    return tl_line_add_waiting(snapshot->line, first, count) ||
           tl_error_set(err, TL_ERR_NOMEM, "no memory for the line of a queue");
}

/* Starts a command about the waiting places from first to last (0: to the end). */
static struct tl_args *begin(struct tl_snapshot *snapshot, const char *command, tl_place first,
                             tl_place last)
{
    struct tl_args *args = &snapshot->args;
    tl_args_reset(args);
    tl_args_strs(args, command, snapshot->keys->names[TL_KEY_WAITING], NULL);
    tl_args_uint(args, first);
    if (last != 0)
        tl_args_uint(args, last);
    else
        tl_args_str(args, "+inf");
    return args;
}

static bool read_place(const struct tl_reply *score, tl_place *place, struct tl_error *err)
{
    const char *text = tl_reply_string(score, NULL);
    return tl_record_place(text, place) ||
           tl_error_set(err, TL_ERR_PROTOCOL, "snapshot: a score is not a place: %.40s", text);
}

/* page: visitor, place, visitor, place, ... in the order of places, none below `first`. *past gets
 * the place after the last one. */
static bool add_page(struct tl_snapshot *snapshot, const struct tl_reply *page, tl_place first,
                     tl_place *past, struct tl_error *err)
{
    struct tl_run run = {.first = first};
    for (size_t i = 1; i < tl_reply_count(page); i += 2) {
        tl_place place;
        if (!read_place(tl_reply_at(page, i), &place, err))
            return false;
        if (place < run.first)
            return tl_error_set(err, TL_ERR_PROTOCOL, "snapshot: places out of order");
        if (place != run.first + run.count) {
            if (!add_waiting(snapshot, run.first, run.count, err))
                return false;
            run = (struct tl_run){.first = place};
        }
        run.count++;
    }
    *past = run.first + run.count;
    return add_waiting(snapshot, run.first, run.count, err);
}

/* Does counting pay after a page of `count` visitors on `span` places? With two gaps per block on
 * average, one block in seven has none, which saves more than counting all seven costs. */
static bool is_dense(uint64_t span, uint64_t count)
{
    return count > 0 && span - count <= span / BLOCK * 2;
}

/* Reads the next page. */
static bool read_page(struct tl_snapshot *snapshot, struct tl_redis *redis, struct tl_error *err)
{
    struct tl_args *args = begin(snapshot, "ZRANGE", snapshot->next, 0);
    tl_args_strs(args, "BYSCORE", "LIMIT", "0", NULL);
    tl_args_uint(args, PAGE);
    tl_args_str(args, "WITHSCORES");
    struct tl_reply *page = tl_redis_call(redis, args, err);
    if (page == NULL)
        return false;
    size_t count = tl_reply_count(page) / 2;
    tl_place past = snapshot->next;
    bool ok = add_page(snapshot, page, snapshot->next, &past, err);
    tl_reply_free(page);
    if (!ok)
        return false;
    snapshot->dense = is_dense(past - snapshot->next, count);
    snapshot->next = past;
    snapshot->waiting_done = count < PAGE;
    return true;
}

static bool must_be_read(uint64_t count)
{
    return count != 0 && count != BLOCK;
}

/* Adds the full blocks and reads out those with gaps, adjacent ones by one command. */
static bool add_counted(struct tl_snapshot *snapshot, struct tl_redis *redis,
                        const uint64_t counts[BLOCKS], struct tl_error *err)
{
    tl_place firsts[BLOCKS]; /* of each command */
    size_t requests = 0;
    for (unsigned i = 0; i < BLOCKS; i++) {
        tl_place first = snapshot->next + i * BLOCK;
        if (counts[i] == BLOCK && !add_waiting(snapshot, first, BLOCK, err))
            return false;
        if (!must_be_read(counts[i]))
            continue;
        while (i + 1 < BLOCKS && must_be_read(counts[i + 1]))
            i++;
        struct tl_args *args =
            begin(snapshot, "ZRANGE", first, snapshot->next + (i + 1) * BLOCK - 1);
        tl_args_strs(args, "BYSCORE", "WITHSCORES", NULL);
        if (!tl_redis_append(redis, args, err))
            return false;
        firsts[requests++] = first;
    }
    for (size_t i = 0; i < requests; i++) {
        struct tl_reply *page = tl_redis_next(redis, err);
        tl_place past = firsts[i];
        bool ok = page != NULL && add_page(snapshot, page, firsts[i], &past, err);
        tl_reply_free(page);
        if (!ok)
            return false;
    }
    return true;
}

/* Counts the next blocks and reads out those with gaps. */
static bool count_page(struct tl_snapshot *snapshot, struct tl_redis *redis, struct tl_error *err)
{
    uint64_t counts[BLOCKS] = {0}, total = 0;
    bool ok = true;
    for (unsigned i = 0; ok && i < BLOCKS; i++) {
        tl_place first = snapshot->next + i * BLOCK;
        ok = tl_redis_append(redis, begin(snapshot, "ZCOUNT", first, first + BLOCK - 1), err);
    }
    for (unsigned i = 0; ok && i < BLOCKS; i++) {
        struct tl_reply *reply = tl_redis_next(redis, err);
        ok = reply != NULL;
        counts[i] = (uint64_t)tl_reply_integer(reply);
        total += counts[i];
        tl_reply_free(reply);
    }
    if (!ok || !add_counted(snapshot, redis, counts, err)) {
        tl_redis_close(redis); /* later commands would read the replies still to come */
        return false;
    }
    snapshot->dense = is_dense(BLOCKS * BLOCK, total);
    snapshot->next += BLOCKS * BLOCK;
    return true;
}

/* ---- serials ---- */

/* A damaged record counts as none: the audit reports it. */
static bool add_serial(struct tl_snapshot *snapshot, const char *seq, const char *record,
                       struct tl_error *err)
{
    uint64_t number, serial;
    char digits[16];
    snprintf(digits, sizeof(digits), "%.*s", (int)strcspn(record, ":"), record);
    if (!tl_record_score(seq, &number) || number > TL_PLACE_SEQ_MAX ||
        !tl_record_score(digits, &serial) || serial > UINT32_MAX)
        return true;
    return tl_line_add_serial(snapshot->line, number, (uint32_t)serial) ||
           tl_error_set(err, TL_ERR_NOMEM, "no memory for the line of a queue");
}

/* Reads the next page of the places that were handed over. */
static bool read_serials(struct tl_snapshot *snapshot, struct tl_redis *redis, struct tl_error *err)
{
    char key[TL_KEY_MAX];
    struct tl_reply *reply =
        tl_ask(redis, err, "HSCAN", tl_key(snapshot->keys, TL_KEY_SERIALS, key), snapshot->cursor,
               "COUNT", SERIALS_PAGE, NULL);
    if (reply == NULL)
        return false;
    const struct tl_reply *page = tl_reply_at(reply, 1);
    bool ok = true;
    for (size_t i = 0; ok && i + 1 < tl_reply_count(page); i += 2)
        ok = add_serial(snapshot, tl_reply_text(page, i), tl_reply_text(page, i + 1), err);
    snprintf(snapshot->cursor, sizeof(snapshot->cursor), "%s", tl_reply_text(reply, 0));
    tl_reply_free(reply);
    snapshot->serials_done = ok && strcmp(snapshot->cursor, "0") == 0;
    return ok;
}

/* ---- active sessions ---- */

/* The pages may contain changes up to this event. */
static bool read_end(struct tl_snapshot *snapshot, struct tl_redis *redis, struct tl_error *err)
{
    struct tl_reply *event =
        tl_ask(redis, err, "HGET", snapshot->keys->names[TL_KEY_STATE], "event", NULL);
    if (event == NULL)
        return false;
    snapshot->line->compare_from = (uint64_t)tl_reply_integer(event);
    tl_reply_free(event);
    return true;
}

/* Reads the next page of the scan: { cursor, place, deadline, place, deadline, ... }. */
static bool read_active(struct tl_snapshot *snapshot, struct tl_redis *redis, bool *done,
                        struct tl_error *err)
{
    tl_call_begin_read(&snapshot->args, TL_FN_SNAPSHOT_ACTIVE, snapshot->keys);
    tl_args_strs(&snapshot->args, snapshot->cursor, ACTIVE_PAGE, NULL);
    struct tl_reply *page = tl_call(redis, &snapshot->args, err);
    if (page == NULL)
        return false;
    bool ok = true;
    for (size_t i = 1; ok && i + 1 < tl_reply_count(page); i += 2) {
        tl_place place;
        uint64_t deadline_ms;
        const char *deadline = tl_reply_text(page, i + 1);
        ok = read_place(tl_reply_at(page, i), &place, err) &&
             (tl_record_score(deadline, &deadline_ms) ||
              tl_error_set(err, TL_ERR_PROTOCOL, "snapshot: a score is not a deadline: %.40s",
                           deadline)) &&
             (tl_line_add_active(snapshot->line, place, (int64_t)deadline_ms) ||
              tl_error_set(err, TL_ERR_NOMEM, "no memory for the sessions of a queue"));
    }
    snprintf(snapshot->cursor, sizeof(snapshot->cursor), "%s", tl_reply_text(page, 0));
    tl_reply_free(page);
    *done = ok && strcmp(snapshot->cursor, "0") == 0;
    return ok && (!*done || read_end(snapshot, redis, err));
}

bool tl_snapshot_step(struct tl_snapshot *snapshot, struct tl_redis *redis, bool *done,
                      struct tl_error *err)
{
    *done = false;
    if (snapshot->waiting_done && !snapshot->serials_done)
        return read_serials(snapshot, redis, err);
    if (snapshot->waiting_done)
        return read_active(snapshot, redis, done, err);
    return snapshot->dense ? count_page(snapshot, redis, err) : read_page(snapshot, redis, err);
}

struct tl_line *tl_snapshot(struct tl_redis *redis, const struct tl_keys *keys,
                            struct tl_tail_head *head, struct tl_error *err)
{
    struct tl_snapshot *snapshot = tl_snapshot_begin(redis, keys, err);
    bool done = false;
    while (snapshot != NULL && !done)
        if (!tl_snapshot_step(snapshot, redis, &done, err))
            tl_snapshot_abandon(&snapshot);
    return snapshot != NULL ? tl_snapshot_finish(&snapshot, head) : NULL;
}
