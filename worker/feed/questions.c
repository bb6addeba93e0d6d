/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "common/auth/draw.h"
#include "common/base/text.h"
#include "common/store/feedback.h"
#include "common/store/keys.h"
#include "common/store/library.h"
#include "common/store/records.h"
#include "common/store/reply.h"
#include "common/store/signs.h"
#include "worker/feed/ingest.h"

/* ---- questions ---- */

/* A question of this kind, without commands yet; *keys: those of its queue. */
static struct tl_job question(const struct tl_ingest *ingest, enum tl_ingest_kind kind,
                              const char *queue, uint64_t number, struct tl_keys *keys)
{
    struct tl_job job = {.kind = kind, .number = number};
    snprintf(job.queue, sizeof(job.queue), "%s", queue);
    tl_keys_init(keys, tl_ingest_key_prefix(ingest), queue);
    return job;
}

/* Hands a copy of the job to the thread. False when it or its commands found no memory. */
static bool ask(struct tl_ingest *ingest, struct tl_job *job)
{
    struct tl_job *copy = malloc(sizeof(*copy));
    bool failed = copy == NULL;
    for (size_t i = 0; i < TL_JOB_COMMANDS_MAX; i++) {
        failed = failed || job->commands[i].failed;
        job->n += job->commands[i].n > 0;
    }
    if (failed) {
        for (size_t i = 0; i < TL_JOB_COMMANDS_MAX; i++)
            tl_args_free(&job->commands[i]);
        free(copy);
        return false;
    }
    *copy = *job;
    tl_ingest_put(ingest, copy);
    return true;
}

bool tl_ingest_send(struct tl_ingest *ingest, const char *queue, uint64_t number, void *bytes,
                    size_t length, bool joins)
{
    struct tl_job job = {.kind = TL_INGEST_BATCH,
                         .number = number,
                         .n = 1, /* its command is made for each attempt */
                         .bytes = bytes,
                         .length = length,
                         .joins = joins};
    (void)tl_text_copy(job.queue, sizeof(job.queue), queue);
    return ask(ingest, &job);
}

bool tl_ingest_check(struct tl_ingest *ingest, const char *queue, const char *worker,
                     uint64_t number, const char *entry)
{
    struct tl_keys keys;
    struct tl_job job = question(ingest, TL_INGEST_CHECK, queue, number, &keys);
    char field[sizeof(TL_BATCH_FIELD) + TL_WORKER_ID_MAX];
    snprintf(field, sizeof(field), "%s%s", TL_BATCH_FIELD, worker);
    tl_args_strs(&job.commands[0], "XRANGE", keys.names[TL_KEY_INGEST], entry, entry, NULL);
    tl_args_strs(&job.commands[1], "HGET", keys.names[TL_KEY_STATE], field, NULL);
    tl_args_strs(&job.commands[2], "HGET", keys.names[TL_KEY_STATE], "event", NULL);
    return ask(ingest, &job);
}

bool tl_ingest_look(struct tl_ingest *ingest, const char *queue, const struct tl_ticket *ticket,
                    uint64_t number)
{
    const char *visitor = ticket->visitor;
    struct tl_keys keys;
    struct tl_job job = question(ingest, TL_INGEST_LOOKUP, queue, number, &keys);
    tl_args_strs(&job.commands[0], "ZSCORE", keys.names[TL_KEY_WAITING], visitor, NULL);
    tl_args_strs(&job.commands[1], "HGET", keys.names[TL_KEY_SESSIONS], visitor, NULL);
    tl_args_strs(&job.commands[2], "ZSCORE", keys.names[TL_KEY_ENDED], visitor, NULL);
    job.place = ticket->place;
    if (tl_place_seq(ticket->place) == 0)
        job.since_ms = ((int64_t)ticket->issued - TL_TICKET_CLOCK_S) * 1000;
    return ask(ingest, &job);
}

bool tl_ingest_drawn(struct tl_ingest *ingest, const char *queue, uint64_t from, uint64_t n,
                     uint64_t number)
{
    struct tl_keys keys;
    char key[TL_KEY_MAX];
    struct tl_job job = question(ingest, TL_INGEST_DRAWN, queue, number, &keys);
    job.denied = "visitors cannot read the list of the draw";
    tl_args_strs(&job.commands[0], "GETRANGE", tl_key(&keys, TL_KEY_DRAWN, key), NULL);
    /* The key has 16 bytes that are no id before the first one. */
    tl_args_uint(&job.commands[0], from * TL_DRAW_ID_BYTES);
    tl_args_uint(&job.commands[0], (from + n) * TL_DRAW_ID_BYTES - 1);
    return ask(ingest, &job);
}

bool tl_ingest_note(struct tl_ingest *ingest, enum tl_note note, const char *queue,
                    const char *text)
{
    static const struct {
        enum tl_key key;
        int64_t kept; /* exactly as many as readers look at, 50 KB of memory at most */
        const char *denied;
    } notes[] = {[TL_NOTE_SIGNS] = {TL_KEY_SIGNS, TL_SIGNS_KEPT, "signs of misuse are not kept"},
                 [TL_NOTE_FEEDBACK] = {TL_KEY_FEEDBACK, TL_FEEDBACK_KEPT,
                                       "the site's feedback does not reach the store"}};
    struct tl_keys keys;
    char key[TL_KEY_MAX];
    struct tl_job job = question(ingest, TL_INGEST_NOTE, queue, 0, &keys);
    job.denied = notes[note].denied;
    tl_args_strs(&job.commands[0], "XADD", tl_key(&keys, notes[note].key, key), "MAXLEN", NULL);
    tl_args_int(&job.commands[0], notes[note].kept);
    tl_args_strs(&job.commands[0], "*", "d", text, NULL);
    return ask(ingest, &job);
}

void tl_ingest_promised(struct tl_ingest *ingest, const char *queue,
                        const uint64_t promised[TL_PROMISED_FIELDS])
{
    struct tl_keys keys;
    struct tl_job job = question(ingest, TL_INGEST_NOTE, queue, 0, &keys);
    job.denied = "what came true of the waits told is not counted";
    tl_call_begin(&job.commands[0], TL_FN_PROMISED, &keys);
    for (unsigned field = 0; field < TL_PROMISED_FIELDS; field++)
        tl_args_uint(&job.commands[0], promised[field]);
    (void)ask(ingest, &job);
}

/* ---- answers ---- */

struct tl_batch_receipt tl_ingest_receipt(const struct tl_job *job)
{
    const bool refused = job->refusal.kind != TL_OK;
    return (struct tl_batch_receipt){.number = job->number,
                                     .fate = !refused        ? TL_BATCH_TAKEN
                                             : job->doubtful ? TL_BATCH_UNKNOWN
                                                             : TL_BATCH_REFUSED,
                                     .entry = tl_reply_string(job->replies[0], NULL),
                                     .refusal = refused ? &job->refusal : NULL};
}

/* Replies: is the entry still there, what was applied last of this worker ("batch:applied at ms",
 * or ""), and in which event at the latest? */
struct tl_batch_check tl_ingest_checked(const struct tl_job *job)
{
    bool refused = job->refusal.kind != TL_OK;
    uint64_t last = strtoull(tl_reply_string(job->replies[1], NULL), NULL, 10);
    bool applied = !refused && last >= job->number;
    return (struct tl_batch_check){
        .waits = refused || (tl_reply_count(job->replies[0]) > 0 && !applied),
        .event = applied ? strtoull(tl_reply_string(job->replies[2], NULL), NULL, 10) : 0};
}

/* Replies: of the line, of a session, of an end: in the order in which a visitor changes state, so
 * that one who moves between two of them is found. */
enum tl_lookup_found tl_ingest_found(const struct tl_job *job, enum tl_reason *reason)
{
    tl_place held = 0;
    struct tl_session_record session;
    struct tl_end_record end;
    *reason = (enum tl_reason)0;
    if (job->refusal.kind != TL_OK)
        return TL_LOOKUP_FAILED;
    if (tl_record_session(tl_reply_string(job->replies[1], NULL), &session))
        held = session.place;
    else
        (void)tl_record_place(tl_reply_string(job->replies[0], NULL), &held);
    if (held == job->place && held != 0)
        return TL_LOOKUP_ALIVE;
    if (!tl_record_end(tl_reply_string(job->replies[2], NULL), &end) ||
        end.ended_ms < job->since_ms || (job->since_ms != 0 && held != 0))
        return TL_LOOKUP_NOWHERE;
    *reason = end.reason;
    return TL_LOOKUP_ENDED;
}

const void *tl_ingest_ids(const struct tl_job *job, size_t *length)
{
    const void *ids = tl_reply_string(job->replies[0], length);
    return job->refusal.kind == TL_OK ? ids : NULL;
}
