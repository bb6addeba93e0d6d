#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/store/reply.h"
#include "common/store/script.h"
#include "common/wire/batch.h"

#include "dispatcher/apply.h"
#include "generated/dispatcher_scripts.h"

/* Of the script's protocol: what is no command of a batch. */
enum { ENTRY = 0, SPEND = 6 };

/* One entry of the stream. */
struct queued {
    bool lost; /* its payload was gone */
    size_t commands;
    char id[TL_STREAM_ID_MAX];
    char why[160]; /* it is set aside; else "" */
};

/* One call of a script, for as many of the entries as it takes. */
struct call {
    size_t first, n;
    size_t commands;
};

struct tl_apply {
    struct tl_script apply_script, poison_script;
    uint64_t events_length;
    char queue[TL_QUEUE_NAME_MAX + 1]; /* whose entries these are */
    size_t n_queued;
    struct queued queued[TL_APPLY_ENTRIES_MAX];
    size_t n_calls; /* those sent */
    struct call calls[TL_APPLY_ENTRIES_MAX];
    struct call open; /* being made in args; n is 0 if there is none */
    struct tl_args args;
};

struct tl_apply *tl_apply_new(uint64_t events_length)
{
    struct tl_apply *apply = calloc(1, sizeof(*apply));
    if (apply == NULL)
        return NULL;
    apply->apply_script.source = tl_script_apply;
    apply->poison_script.source = tl_script_poison;
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

/* How many commands from the first one on are JOINs of one lane that the script can take as one. */
static size_t joins_in_a_row(const struct tl_command *commands, size_t n)
{
    size_t count = 1;
    while (count < n && commands[count].kind == TL_COMMAND_JOIN && commands[count].invite == NULL &&
           commands[count].number == commands[0].number)
        count++;
    return count;
}

/* JOIN, lane, how many, and the visitors. Returns how many commands that are. */
static size_t append_joins(struct tl_args *args, const struct tl_command *commands, size_t n)
{
    size_t count = 1;
    if (commands->invite != NULL) { /* goes before the JOIN that spends it */
        tl_args_uint(args, SPEND);
        tl_args_bin(args, commands->invite, commands->invite_length);
        tl_args_uint(args, commands->invite_until_ms);
    } else {
        count = joins_in_a_row(commands, n);
    }
    tl_args_uint(args, TL_COMMAND_JOIN);
    tl_args_uint(args, commands->number);
    tl_args_uint(args, count);
    for (size_t i = 0; i < count; i++)
        tl_args_bin(args, commands[i].visitor, commands[i].visitor_length);
    return count;
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
        if (command->kind == TL_COMMAND_SEEN) {
            tl_args_uint(args, command->number);
            tl_args_uint(args, command->count);
        } else {
            tl_args_bin(args, command->visitor, command->visitor_length);
            tl_args_uint(args, command->number);
        }
        i++;
    }
}

/* Sends a call, made in args, for the entries it names. */
static bool send_call(struct tl_apply *apply, struct tl_redis *redis, const struct call *call,
                      struct tl_error *err)
{
    if (!tl_redis_append(redis, &apply->args, err))
        return false;
    apply->calls[apply->n_calls++] = *call;
    return tl_redis_flush(redis, err); /* it works on this one while we make the next */
}

static bool send_open(struct tl_apply *apply, struct tl_redis *redis, struct tl_error *err)
{
    struct call call = apply->open;
    apply->open.n = 0;
    return call.n == 0 || send_call(apply, redis, &call, err);
}

static bool is_full(const struct call *call, size_t n_commands)
{
    return call->n == TL_APPLY_CALL_ENTRIES_MAX ||
           call->commands + n_commands > TL_BATCH_COMMANDS_MAX;
}

/* Adds the entry to the call being made, or to a new one where that has enough to do: a call has no
 * more commands than one batch can have. */
static bool add_apply(struct tl_apply *apply, struct tl_redis *redis, const struct tl_keys *keys,
                      uint64_t fence, const char *id, const struct tl_batch *batch,
                      struct tl_error *err)
{
    struct tl_args *args = &apply->args;
    struct call *open = &apply->open;
    if (is_full(open, batch->n_commands) && !send_open(apply, redis, err))
        return false;
    if (open->n == 0) {
        if (!tl_script_begin(redis, &apply->apply_script, args, err))
            return false;
        tl_keys_append(keys, args);
        tl_args_uint(args, fence);
        tl_args_uint(args, apply->events_length);
        *open = (struct call){.first = apply->n_queued};
    }
    tl_args_uint(args, ENTRY);
    tl_args_strs(args, id, batch->worker, NULL);
    tl_args_uint(args, batch->number);
    append_commands(args, batch);
    open->n++;
    open->commands += batch->n_commands;
    return true;
}

static bool add_poison(struct tl_apply *apply, struct tl_redis *redis, const struct tl_keys *keys,
                       uint64_t fence, const struct queued *queued, const void *payload,
                       size_t length, struct tl_error *err)
{
    struct tl_args *args = &apply->args;
    if (!send_open(apply, redis, err) || !tl_script_begin(redis, &apply->poison_script, args, err))
        return false;
    tl_keys_append(keys, args);
    tl_args_uint(args, fence);
    tl_args_strs(args, queued->id, queued->why, NULL);
    tl_args_bin(args, payload, length);
    return send_call(apply, redis, &(struct call){.first = apply->n_queued, .n = 1}, err);
}

/* Before the first of a pipeline: loading a script in the midst of one would take the reply of
 * something else for its own. */
static bool load_scripts(struct tl_apply *apply, struct tl_redis *redis, struct tl_error *err)
{
    return (apply->apply_script.sha[0] != '\0' ||
            tl_script_load(redis, &apply->apply_script, err)) &&
           (apply->poison_script.sha[0] != '\0' ||
            tl_script_load(redis, &apply->poison_script, err));
}

bool tl_apply_add(struct tl_apply *apply, struct tl_redis *redis, const struct tl_keys *keys,
                  uint64_t fence, const char *id, const void *payload, size_t length,
                  struct tl_error *err)
{
    if (apply->n_queued == 0 && !load_scripts(apply, redis, err))
        return false;
    struct queued *queued = &apply->queued[apply->n_queued];
    *queued = (struct queued){.lost = payload == NULL};
    snprintf(apply->queue, sizeof(apply->queue), "%s", keys->queue);
    snprintf(queued->id, sizeof(queued->id), "%s", id);
    struct tl_batch batch = {0};
    struct tl_error why = {0};
    if (payload == NULL) {
        tl_error_set(&why, TL_ERR_INVALID, "the payload was trimmed away before it was applied");
    } else if (!tl_batch_decode(payload, length, &batch, &why) && why.kind != TL_ERR_INVALID) {
        *err = why; /* out of memory: the entry stays pending */
        return false;
    }
    bool ok;
    if (why.kind == TL_OK) {
        queued->commands = batch.n_commands;
        ok = add_apply(apply, redis, keys, fence, id, &batch, err);
    } else {
        snprintf(queued->why, sizeof(queued->why), "%.150s", why.text);
        ok = add_poison(apply, redis, keys, fence, queued, payload, length, err);
    }
    tl_batch_free(&batch);
    apply->n_queued += ok ? 1 : 0;
    return ok;
}

static void count_poison(const struct tl_apply *apply, const struct queued *queued,
                         struct tl_apply_counts *counts)
{
    counts->poison++;
    counts->lost += queued->lost ? 1 : 0;
    const struct tl_log_fields fields = {.queue = apply->queue};
    tl_log(TL_LOG_ERROR, &fields, "ingest entry %s set aside in the poison stream: %s", queued->id,
           queued->why);
}

/* The apply script answers with a number for each entry, the poison script with one. */
static void count(const struct tl_apply *apply, const struct call *call,
                  const struct tl_reply *reply, struct tl_apply_counts *counts)
{
    for (size_t i = 0; i < call->n; i++) {
        const struct queued *queued = &apply->queued[call->first + i];
        bool poison = queued->why[0] != '\0';
        int64_t result = tl_reply_integer(poison ? reply : tl_reply_at(reply, i));
        if (poison && result == 1)
            count_poison(apply, queued, counts);
        else if (!poison) {
            counts->applied += result == 1;
            counts->repeated += result == 2;
            counts->commands += result == 1 ? queued->commands : 0;
        }
    }
}

bool tl_apply_settle(struct tl_apply *apply, struct tl_redis *redis, struct tl_apply_counts *counts,
                     struct tl_error *err)
{
    bool ok = send_open(apply, redis, err);
    for (size_t i = 0; i < apply->n_calls; i++) {
        struct tl_error why = {0};
        struct tl_reply *reply = tl_redis_next(redis, &why);
        if (reply != NULL) {
            count(apply, &apply->calls[i], reply, counts);
            tl_reply_free(reply);
            continue;
        }
        if (why.kind == TL_ERR_NOSCRIPT) /* emptied script cache: load anew with the next entry */
            apply->apply_script.sha[0] = apply->poison_script.sha[0] = '\0';
        if (ok)
            *err = why;
        ok = false;
    }
    apply->n_queued = apply->n_calls = 0;
    return ok;
}
