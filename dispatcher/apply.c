/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "common/store/library.h"
#include "common/store/reply.h"
#include "common/wire/batch.h"

#include "dispatcher/apply.h"

/* A batch that is so late (more than a store far away makes it) may have joins of visitors who were
 * placed through another worker meanwhile, and have gone. With more, the clocks differ: that tells
 * nothing. */
enum { LATE_MS = 2000, LATE_MAX_MS = 900000 };

/* One entry of the stream. */
struct entry {
    bool lost; /* its payload was gone */
    size_t commands;
    char id[TL_STREAM_ID_MAX];
    char why[160]; /* it is set aside; else "" */
};

/* One call of a function, for as many entries as it can take. */
struct call {
    size_t first, n; /* of the entries */
    size_t commands;
};

struct tl_apply {
    uint64_t events_length;
    struct tl_args args;
    /* Of the pipeline: */
    const struct tl_held_queue *held;
    size_t n_entries;
    struct entry entries[TL_APPLY_ENTRIES_MAX];
    size_t n_calls; /* sent */
    struct call calls[TL_APPLY_ENTRIES_MAX];
    struct call open; /* the call whose arguments are being built; n is 0 if there is none */
};

struct tl_apply *tl_apply_new(uint64_t events_length)
{
    struct tl_apply *apply = calloc(1, sizeof(*apply));
    if (apply == NULL)
        return NULL;
    apply->events_length = events_length;
    return apply;
}

void tl_apply_free(struct tl_apply **apply)
{
    if (*apply == NULL)
        return;
    tl_args_free(&(*apply)->args);
    free(*apply);
    *apply = NULL;
}

/* ---- arguments of the function apply ---- */

/* JOIN, lane, how many, and the visitors. Returns how many commands that covers: successive JOINs
 * of one lane without an invite are one step of the function. */
static size_t append_joins(struct tl_args *args, const struct tl_command *commands, size_t n)
{
    size_t count = 1;
    if (commands->invite != NULL) { /* the step before the JOIN */
        tl_args_uint(args, TL_STEP_SPEND);
        tl_args_bin(args, commands->invite, commands->invite_length);
        tl_args_uint(args, commands->invite_until_ms);
    } else {
        while (count < n && commands[count].kind == TL_COMMAND_JOIN &&
               commands[count].invite == NULL && commands[count].numbers[0] == commands->numbers[0])
            count++;
    }
    tl_args_uint(args, TL_COMMAND_JOIN);
    tl_args_uint(args, commands->numbers[0]);
    tl_args_uint(args, count);
    for (size_t i = 0; i < count; i++)
        tl_args_bin(args, commands[i].visitor, commands[i].visitor_length);
    return count;
}

/* Was the batch made long before its entry, whose id is the time of the store? */
static bool is_late(const char *id, const struct tl_batch *batch)
{
    uint64_t entry_ms = strtoull(id, NULL, 10);
    return batch->made_ms != 0 && entry_ms > batch->made_ms + LATE_MS &&
           entry_ms < batch->made_ms + LATE_MAX_MS;
}

static void append_commands(struct tl_args *args, const struct tl_batch *batch)
{
    for (size_t i = 0; i < batch->n_commands;) {
        const struct tl_command *command = &batch->commands[i];
        if (command->kind == TL_COMMAND_JOIN) {
            i += append_joins(args, command, batch->n_commands - i);
            continue;
        }
        tl_args_uint(args, command->kind);
        if (command->visitor != NULL)
            tl_args_bin(args, command->visitor, command->visitor_length);
        for (size_t k = 0; k < tl_command_numbers(command->kind); k++)
            tl_args_uint(args, command->numbers[k]);
        i++;
    }
}

/* ---- calls ---- */

/* Starts the arguments of a call: the fence comes first in both. */
static void begin_call(struct tl_apply *apply, const char *function)
{
    tl_call_begin(&apply->args, function, &apply->held->keys);
    tl_args_uint(&apply->args, apply->held->fence);
}

/* Sends the open call, if there is one: the store works while we build the next. */
static bool send_open(struct tl_apply *apply, struct tl_error *err)
{
    const struct call call = apply->open;
    apply->open.n = 0;
    if (call.n == 0)
        return true;
    if (!tl_redis_append(apply->held->redis, &apply->args, err))
        return false;
    apply->calls[apply->n_calls++] = call;
    return tl_redis_flush(apply->held->redis, err);
}

/* Adds a batch to the open call. A full call is sent first: it has no more entries than the
 * function takes, and no more commands than one batch may have. */
static bool add_batch(struct tl_apply *apply, const char *id, const struct tl_batch *batch,
                      struct tl_error *err)
{
    struct tl_args *args = &apply->args;
    struct call *open = &apply->open;
    bool full = open->n == TL_APPLY_CALL_ENTRIES_MAX ||
                open->commands + batch->n_commands > TL_BATCH_COMMANDS_MAX;
    if (full && !send_open(apply, err))
        return false;
    if (open->n == 0) {
        begin_call(apply, TL_FN_APPLY);
        tl_args_uint(args, apply->events_length);
        *open = (struct call){.first = apply->n_entries};
    }
    tl_args_uint(args, TL_STEP_ENTRY);
    tl_args_strs(args, id, batch->worker, NULL);
    tl_args_uint(args, batch->number);
    if (batch->generation != 0) {
        tl_args_uint(args, TL_STEP_OF);
        tl_args_uint(args, batch->generation);
    }
    if (is_late(id, batch)) {
        tl_args_uint(args, TL_STEP_SINCE);
        tl_args_uint(args, batch->made_ms);
    }
    append_commands(args, batch);
    open->n++;
    open->commands += batch->n_commands;
    return true;
}

static const char *id_of(const struct tl_reply *entry)
{
    return tl_reply_text(entry, 0);
}

/* Adds the next entry. One that cannot be decoded is set aside. One without payload was trimmed
 * away while it was pending, which is logged as an error. */
static bool add_entry(struct tl_apply *apply, const struct tl_reply *read, struct tl_error *err)
{
    const struct tl_reply *field = tl_reply_at(tl_reply_at(read, 1), 1);
    size_t length;
    const char *payload = tl_reply_string(field, &length);
    struct entry *entry = &apply->entries[apply->n_entries];
    *entry = (struct entry){.lost = field == NULL};
    snprintf(entry->id, sizeof(entry->id), "%s", id_of(read));
    struct tl_batch batch = {0};
    struct tl_error why = {0};
    if (field == NULL) {
        tl_error_set(&why, TL_ERR_INVALID, "the payload was trimmed away before it was applied");
    } else if (!tl_batch_decode(payload, length, &batch, &why) && why.kind != TL_ERR_INVALID) {
        *err = why; /* out of memory: the entry stays pending */
        return false;
    }
    bool ok;
    if (why.kind == TL_OK) {
        entry->commands = batch.n_commands;
        ok = add_batch(apply, entry->id, &batch, err);
    } else {
        snprintf(entry->why, sizeof(entry->why), "%.150s", why.text);
        ok = send_open(apply, err);
        if (ok) {
            begin_call(apply, TL_FN_POISON);
            tl_args_strs(&apply->args, entry->id, entry->why, NULL);
            tl_args_bin(&apply->args, payload, length);
            apply->open = (struct call){.first = apply->n_entries, .n = 1};
            ok = send_open(apply, err);
        }
    }
    tl_batch_free(&batch);
    apply->n_entries += ok ? 1 : 0;
    return ok;
}

/* ---- results ---- */

/* The function apply answers with one number per entry, the poison function with one. */
static void count_results(const struct tl_apply *apply, const struct call *call,
                          const struct tl_reply *reply, struct tl_apply_counts *counts)
{
    const struct tl_log_fields fields = {.queue = apply->held->keys.queue};
    for (size_t i = 0; i < call->n; i++) {
        const struct entry *entry = &apply->entries[call->first + i];
        bool poison = entry->why[0] != '\0';
        int64_t result = tl_reply_integer(poison ? reply : tl_reply_at(reply, i));
        if (poison && result == 1) {
            counts->poison++;
            counts->lost += entry->lost ? 1 : 0;
            tl_log(TL_LOG_ERROR, &fields, "ingest entry %s set aside in the poison stream: %s",
                   entry->id, entry->why);
        } else if (!poison) {
            counts->applied += result == 1;
            counts->repeated += result == 2;
            counts->commands += result == 1 ? entry->commands : 0;
        }
    }
}

/* Waits for the results of all entries and adds them to counts. False with the first error. */
static bool finish(struct tl_apply *apply, struct tl_apply_counts *counts, struct tl_error *err)
{
    bool ok = send_open(apply, err);
    bool is_missing = false;
    struct tl_error unloaded = {0};
    for (size_t i = 0; i < apply->n_calls; i++) {
        struct tl_error why = {0};
        struct tl_reply *reply = tl_redis_next(apply->held->redis, &why);
        if (reply != NULL) {
            count_results(apply, &apply->calls[i], reply, counts);
            tl_reply_free(reply);
            continue;
        }
        is_missing = is_missing || why.kind == TL_ERR_NOFUNCTION;
        if (ok)
            *err = why;
        ok = false;
    }
    if (is_missing && !tl_library_load(apply->held->redis, &unloaded))
        *err = unloaded;
    apply->n_entries = apply->n_calls = 0;
    return ok;
}

bool tl_apply_entries(struct tl_apply *apply, const struct tl_held_queue *held,
                      const struct tl_reply *entries, struct tl_apply_counts *counts,
                      struct tl_error *err)
{
    size_t n = tl_reply_count(entries);
    bool ok = true;
    apply->held = held;
    for (size_t i = 0; ok && i < n;) {
        size_t end = n - i > TL_APPLY_ENTRIES_MAX ? i + TL_APPLY_ENTRIES_MAX : n;
        for (; ok && i < end; i++)
            ok = add_entry(apply, tl_reply_at(entries, i), err);
        struct tl_error after = {0}; /* the first error counts */
        ok = finish(apply, counts, ok ? err : &after) && ok;
        if (ok)
            snprintf(counts->last, sizeof(counts->last), "%s",
                     id_of(tl_reply_at(entries, end - 1)));
    }
    return ok;
}

uint64_t tl_apply_read_size(const struct tl_apply_counts *counts)
{
    uint64_t commands = counts->commands > 0 ? counts->commands : 1;
    uint64_t entries = TL_READ_COMMANDS * counts->applied / commands;
    if (entries < TL_READ_ENTRIES_MIN)
        return TL_READ_ENTRIES_MIN;
    return entries < TL_READ_ENTRIES_MAX ? entries : TL_READ_ENTRIES_MAX;
}
