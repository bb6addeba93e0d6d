/* Building a line from the store, page by page. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/tail.h"

#include "generated/common_scripts.h"

/* Places in one page: the store is held up for about a millisecond. */
#define PAGE "2000"

struct tl_snapshot {
    const struct tl_keys *keys;
    struct tl_tail_head head;
    struct tl_line *line;
    struct tl_script waiting_script, active_script;
    struct tl_args args;
    bool waiting_done;
    char from[32]; /* the last place of the page before, then the scan's cursor */
};

struct tl_snapshot *tl_snapshot_begin(struct tl_redis *redis, const struct tl_keys *keys,
                                      struct tl_error *err)
{
    struct tl_snapshot *snapshot = calloc(1, sizeof(*snapshot));
    struct tl_line *line = tl_line_new();
    if (snapshot == NULL || line == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the line of queue %s", keys->queue);
        free(snapshot);
        tl_line_free(&line);
        return NULL;
    }
    snapshot->keys = keys;
    snapshot->line = line;
    snapshot->waiting_script.source = tl_script_snapshot_waiting;
    snapshot->active_script.source = tl_script_snapshot_active;
    strcpy(snapshot->from, "0");
    if (!tl_tail_head(redis, keys, &snapshot->head, err)) {
        tl_snapshot_abandon(&snapshot);
        return NULL;
    }
    tl_line_start(line, snapshot->head.generation, snapshot->head.event);
    return snapshot;
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

static struct tl_reply *fetch(struct tl_snapshot *snapshot, struct tl_redis *redis,
                              struct tl_script *script, struct tl_error *err)
{
    if (!tl_script_begin(redis, script, &snapshot->args, err))
        return NULL;
    tl_keys_append(snapshot->keys, &snapshot->args);
    tl_args_strs(&snapshot->args, snapshot->from, PAGE, NULL);
    return tl_script_call(redis, script, &snapshot->args, err);
}

static void move_on(struct tl_snapshot *snapshot, const struct tl_reply *from)
{
    snprintf(snapshot->from, sizeof(snapshot->from), "%s", tl_reply_string(from, NULL));
}

/* page: { places in it, last place, runs } */
static bool take_waiting(struct tl_snapshot *snapshot, const struct tl_reply *page,
                         struct tl_error *err)
{
    if (tl_reply_integer(tl_reply_at(page, 0)) == 0) {
        snapshot->waiting_done = true;
        strcpy(snapshot->from, "0");
        return true;
    }
    size_t length;
    const char *packed = tl_reply_string(tl_reply_at(page, 2), &length);
    struct tl_runs runs;
    if (!tl_runs_decode(packed, length, &runs, err))
        return tl_error_prefix(err, "snapshot");
    bool ok = tl_line_add_waiting(snapshot->line, &runs);
    tl_runs_free(&runs);
    move_on(snapshot, tl_reply_at(page, 1));
    return ok || tl_error_set(err, TL_ERR_NOMEM, "no memory for the line of a queue");
}

/* page: { cursor, place, deadline, place, deadline, ... } */
static bool take_active(struct tl_snapshot *snapshot, const struct tl_reply *page,
                        struct tl_error *err)
{
    for (size_t i = 1; i + 1 < tl_reply_count(page); i += 2)
        if (!tl_line_add_active(snapshot->line, (tl_place)tl_reply_integer(tl_reply_at(page, i)),
                                tl_reply_integer(tl_reply_at(page, i + 1))))
            return tl_error_set(err, TL_ERR_NOMEM, "no memory for the sessions of a queue");
    move_on(snapshot, tl_reply_at(page, 0));
    return true;
}

bool tl_snapshot_step(struct tl_snapshot *snapshot, struct tl_redis *redis, bool *done,
                      struct tl_error *err)
{
    bool waiting = !snapshot->waiting_done;
    *done = false;
    struct tl_reply *page =
        fetch(snapshot, redis, waiting ? &snapshot->waiting_script : &snapshot->active_script, err);
    if (page == NULL)
        return false;
    bool ok = waiting ? take_waiting(snapshot, page, err) : take_active(snapshot, page, err);
    tl_reply_free(page);
    *done = ok && !waiting && strcmp(snapshot->from, "0") == 0;
    return ok;
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
