/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/grow.h"
#include "common/base/text.h"
#include "worker/feed/outbox.h"

enum {
    AGAIN_MAX = 4,          /* a command is gathered again this often at most */
    OVERDUE_MS = 3000,      /* an outcome normally comes within a few ms */
    OVERDUE_MAX_MS = 30000, /* while the store has the batch, it is asked ever less often */
    SPREAD_MS = 1000,       /* joins in one batch were made within this time */
};

enum batch_state { GATHERED, SENDING, SENT };

struct tl_outbox_batch {
    struct tl_outbox_batch *next;
    uint64_t number;
    uint64_t generation; /* of its places */
    enum batch_state state;
    size_t n;
    struct tl_pending_command **pending; /* by index in the batch; NULL: nobody waits for it */
    void *payload;                       /* GATHERED only */
    size_t length;
    bool joins;                  /* one of the commands is a JOIN */
    bool missed;                 /* SENDING: events were missed meanwhile */
    char entry[TL_ENTRY_ID_MAX]; /* SENT: its id in the ingest stream */
    int64_t sent_ms;             /* SENT: since when */
    int64_t overdue_ms;          /* SENT: when to ask the store about it */
    int64_t pause_ms;            /* SENT: from one question to the next */
    bool over;                   /* SENT: the store says that it no longer waits */
    uint64_t event;              /* over: its outcome is in an event up to this; 0: it is gone */
};

/* ---- life ---- */

struct tl_outbox *tl_outbox_new(const char *worker_id, const int64_t *store_offset_ms,
                                tl_outbox_settle *settle, void *context)
{
    struct tl_outbox *outbox = calloc(1, sizeof(*outbox));
    if (outbox == NULL)
        return NULL;
    snprintf(outbox->worker_id, sizeof(outbox->worker_id), "%s", worker_id);
    outbox->store_offset_ms = store_offset_ms;
    outbox->settle = settle;
    outbox->context = context;
    outbox->next_number = 1;
    crypto_shorthash_keygen(outbox->key);
    return outbox;
}

static void free_pending(struct tl_pending_command *pending)
{
    free(pending->invite);
    free(pending);
}

static uint64_t key_of(const struct tl_outbox *outbox, const char *visitor)
{
    unsigned char hash[crypto_shorthash_BYTES];
    uint64_t key;
    crypto_shorthash(hash, (const unsigned char *)visitor, strlen(visitor), outbox->key);
    memcpy(&key, hash, sizeof(key));
    return key | 1; /* never 0 */
}

struct tl_pending_command *tl_outbox_joining(const struct tl_outbox *outbox, const char *visitor)
{
    uint64_t value;
    if (!tl_placemap_get(&outbox->joins, key_of(outbox, visitor), &value))
        return NULL;
    struct tl_pending_command *pending = (struct tl_pending_command *)(uintptr_t)value;
    return strcmp(pending->visitor, visitor) == 0 ? pending : NULL;
}

/* A command that was gathered again is not refused: the store may have got the first one. */
static void end_pending(struct tl_outbox *outbox, struct tl_pending_command *pending,
                        struct tl_pending_result result)
{
    if (pending == NULL)
        return;
    if (result.end == TL_PENDING_REFUSED && pending->again > 0)
        result.end = TL_PENDING_LOST;
    if (pending->kind == TL_COMMAND_JOIN && tl_outbox_joining(outbox, pending->visitor) == pending)
        (void)tl_placemap_remove(&outbox->joins, key_of(outbox, pending->visitor), NULL);
    outbox->settle(outbox->context, pending, &result);
    free_pending(pending);
}

static void free_batch(struct tl_outbox_batch *batch)
{
    free(batch->pending);
    free(batch->payload);
    free(batch);
}

/* Ends a batch that is no longer in the list; its remaining commands all end in the same way. */
static void end_batch(struct tl_outbox *outbox, struct tl_outbox_batch *batch,
                      enum tl_pending_end end)
{
    outbox->count -= batch->n;
    for (size_t i = 0; i < batch->n; i++)
        end_pending(outbox, batch->pending[i], (struct tl_pending_result){.end = end});
    free_batch(batch);
}

static struct tl_outbox_batch *pop(struct tl_outbox *outbox)
{
    struct tl_outbox_batch *batch = outbox->first;
    outbox->first = batch->next;
    if (outbox->first == NULL)
        outbox->last = NULL;
    return batch;
}

void tl_outbox_free(struct tl_outbox **outbox)
{
    struct tl_outbox *old = *outbox;
    if (old == NULL)
        return;
    while (old->first != NULL) {
        bool unsent = old->first->state == GATHERED;
        end_batch(old, pop(old), unsent ? TL_PENDING_REFUSED : TL_PENDING_LOST);
    }
    for (size_t i = 0; i < old->writer.n; i++)
        end_pending(old, old->pending[i], (struct tl_pending_result){.end = TL_PENDING_REFUSED});
    free(old->writer.bytes);
    tl_placemap_clear(&old->joins);
    free(old->pending);
    free(old);
    *outbox = NULL;
}

/* ---- gathering ---- */

/* Closes the batch being gathered and appends it to the list. */
static bool close_batch(struct tl_outbox *outbox)
{
    size_t n = outbox->writer.n;
    size_t length = 0;
    const void *bytes =
        tl_batch_finish(&outbox->writer, outbox->worker_id, outbox->next_number, &length);
    struct tl_outbox_batch *batch = calloc(1, sizeof(*batch));
    void *payload = bytes != NULL ? malloc(length) : NULL;
    if (batch == NULL || payload == NULL) {
        free(batch);
        free(payload);
        return false;
    }
    memcpy(payload, bytes, length);
    *batch = (struct tl_outbox_batch){.number = outbox->next_number++,
                                      .generation = outbox->writer.generation,
                                      .n = n,
                                      .pending = outbox->pending,
                                      .payload = payload,
                                      .length = length};
    for (size_t i = 0; i < n; i++)
        batch->joins |= batch->pending[i] != NULL && batch->pending[i]->kind == TL_COMMAND_JOIN;
    outbox->pending = NULL;
    outbox->pending_capacity = 0;
    if (outbox->last != NULL)
        outbox->last->next = batch;
    else
        outbox->first = batch;
    outbox->last = batch;
    tl_batch_writer_reset(&outbox->writer);
    outbox->writer.made_ms = 0;
    return true;
}

static bool reserve(struct tl_outbox *outbox)
{
    struct tl_pending_command **pending =
        tl_grow(outbox->pending, &outbox->pending_capacity, outbox->writer.n + 1,
                sizeof(struct tl_pending_command *));
    if (pending == NULL)
        return false;
    outbox->pending = pending;
    return true;
}

/* Was the join made at another time than those being gathered? It was gathered before, perhaps. */
static bool is_of_another_time(const struct tl_outbox *outbox, uint64_t made_ms)
{
    const uint64_t first_ms = outbox->writer.made_ms;
    return made_ms != 0 && first_ms != 0 &&
           (made_ms > first_ms + SPREAD_MS || made_ms + SPREAD_MS < first_ms);
}

/* Adds a command and its pending command (or NULL). Closes a full batch, or one of another
 * generation or time, and starts the next one. */
static bool add(struct tl_outbox *outbox, const struct tl_command *command,
                struct tl_pending_command *pending)
{
    const uint64_t made_ms = pending != NULL ? pending->made_ms : 0;
    if ((outbox->writer.generation != outbox->generation || is_of_another_time(outbox, made_ms)) &&
        outbox->writer.n > 0 && !close_batch(outbox))
        return false;
    outbox->writer.generation = outbox->generation;
    if (!reserve(outbox))
        return false;
    int index = tl_batch_add(&outbox->writer, command);
    if (index < 0 && outbox->writer.n > 0) {
        if (!close_batch(outbox) || !reserve(outbox))
            return false;
        index = tl_batch_add(&outbox->writer, command);
    }
    if (index < 0)
        return false;
    if (made_ms != 0 && (outbox->writer.made_ms == 0 || made_ms < outbox->writer.made_ms))
        outbox->writer.made_ms = made_ms;
    outbox->pending[index] = pending;
    outbox->count++;
    return true;
}

static bool add_pending(struct tl_outbox *outbox, struct tl_pending_command *pending)
{
    struct tl_command command = {
        .kind = pending->kind,
        .visitor = pending->visitor,
        .visitor_length = strlen(pending->visitor),
        .invite = pending->invite,
        .invite_length = pending->invite != NULL ? strlen(pending->invite) : 0,
        .invite_until_ms = pending->invite_until_ms,
    };
    uint64_t *number = command.numbers;
    if (pending->kind != TL_COMMAND_LOST && pending->kind != TL_COMMAND_CALLED)
        *number++ = pending->kind == TL_COMMAND_JOIN ? pending->lane : pending->place;
    memcpy(number, pending->numbers, sizeof(pending->numbers));
    return add(outbox, &command, pending);
}

/* Adds a copy of this command, with this visitor and invite (or NULL). */
static struct tl_pending_command *add_new(struct tl_outbox *outbox, const char *visitor,
                                          const char *invite, struct tl_pending_command command)
{
    struct tl_pending_command *pending = malloc(sizeof(*pending));
    if (pending == NULL)
        return NULL;
    *pending = command;
    if (command.kind == TL_COMMAND_JOIN && outbox->store_offset_ms != NULL)
        pending->made_ms = (uint64_t)(tl_clock_ms() + *outbox->store_offset_ms);
    (void)tl_text_copy(pending->visitor, sizeof(pending->visitor), visitor);
    pending->invite = invite != NULL ? strdup(invite) : NULL;
    if ((invite != NULL && pending->invite == NULL) || !add_pending(outbox, pending)) {
        free_pending(pending);
        return NULL;
    }
    return pending;
}

struct tl_pending_command *tl_outbox_join(struct tl_outbox *outbox, const char *visitor,
                                          unsigned lane, const char *invite,
                                          uint64_t invite_until_ms)
{
    struct tl_pending_command *pending = invite == NULL ? tl_outbox_joining(outbox, visitor) : NULL;
    if (pending != NULL)
        return pending;
    pending =
        add_new(outbox, visitor, invite,
                (struct tl_pending_command){
                    .kind = TL_COMMAND_JOIN, .lane = lane, .invite_until_ms = invite_until_ms});
    /* Without memory, or if two visitors have the same key, requests share no command: the store
     * gives each the same place. */
    if (pending != NULL && invite == NULL)
        (void)tl_placemap_put(&outbox->joins, key_of(outbox, visitor), (uintptr_t)pending);
    return pending;
}

struct tl_pending_command *tl_outbox_command(struct tl_outbox *outbox, enum tl_command_kind kind,
                                             const char *visitor, tl_place place,
                                             const uint64_t numbers[TL_PENDING_NUMBERS])
{
    struct tl_pending_command command = {.kind = kind, .place = place};
    if (numbers != NULL)
        memcpy(command.numbers, numbers, sizeof(command.numbers));
    return add_new(outbox, visitor, NULL, command);
}

bool tl_outbox_seen(struct tl_outbox *outbox, uint64_t first_seq, uint64_t count)
{
    const struct tl_command command = {.kind = TL_COMMAND_SEEN, .numbers = {first_seq, count}};
    return add(outbox, &command, NULL);
}

/* ---- sending ---- */

static struct tl_outbox_batch *find(struct tl_outbox *outbox, enum batch_state state)
{
    struct tl_outbox_batch *batch = outbox->first;
    while (batch != NULL && batch->state != state)
        batch = batch->next;
    return batch;
}

bool tl_outbox_next(struct tl_outbox *outbox, struct tl_outbox_payload *payload)
{
    if (outbox->sending != 0)
        return false;
    struct tl_outbox_batch *batch = find(outbox, GATHERED);
    if (batch == NULL) {
        if (outbox->writer.n == 0 || !close_batch(outbox))
            return false; /* out of memory: the next call tries again */
        batch = outbox->last;
    }
    batch->state = SENDING;
    outbox->sending = batch->number;
    *payload = (struct tl_outbox_payload){.number = batch->number,
                                          .bytes = batch->payload,
                                          .length = batch->length,
                                          .n_commands = batch->n,
                                          .joins = batch->joins};
    batch->payload = NULL;
    return true;
}

static void unlink_batch(struct tl_outbox *outbox, struct tl_outbox_batch *batch)
{
    struct tl_outbox_batch **link = &outbox->first, *before = NULL;
    for (; *link != batch; link = &(*link)->next)
        before = *link;
    *link = batch->next;
    if (outbox->last == batch)
        outbox->last = before;
}

/* Gathers the commands of a batch that is no longer in the list once more, under a new number. */
static void gather_again(struct tl_outbox *outbox, struct tl_outbox_batch *batch)
{
    outbox->count -= batch->n;
    for (size_t i = 0; i < batch->n; i++) {
        struct tl_pending_command *pending = batch->pending[i];
        if (pending != NULL && (++pending->again > AGAIN_MAX || !add_pending(outbox, pending)))
            end_pending(outbox, pending, (struct tl_pending_result){.end = TL_PENDING_LOST});
    }
    free_batch(batch);
}

void tl_outbox_sent(struct tl_outbox *outbox, uint64_t number, enum tl_batch_fate fate,
                    const char *entry, int64_t now_ms)
{
    if (outbox->sending != number)
        return;
    outbox->sending = 0;
    struct tl_outbox_batch *batch = find(outbox, SENDING);
    if (batch == NULL)
        return; /* the APPLIED event came before the reply to XADD */
    if (fate == TL_BATCH_TAKEN) {
        batch->state = SENT;
        batch->sent_ms = now_ms;
        snprintf(batch->entry, sizeof(batch->entry), "%s", entry);
        batch->overdue_ms = batch->missed ? now_ms : now_ms + OVERDUE_MS;
        batch->pause_ms = 2 * OVERDUE_MS;
        return;
    }
    unlink_batch(outbox, batch);
    if (fate == TL_BATCH_UNKNOWN)
        gather_again(outbox, batch);
    else
        end_batch(outbox, batch, TL_PENDING_REFUSED);
}

/* ---- applied ---- */

void tl_outbox_applied(struct tl_outbox *outbox, const struct tl_event *event)
{
    while (outbox->first != NULL && outbox->first->number < event->batch &&
           outbox->first->state == SENT)
        gather_again(outbox, pop(outbox));
    struct tl_outbox_batch *batch = outbox->first;
    if (batch == NULL || batch->number != event->batch || batch->state == GATHERED)
        return; /* a repeat */
    (void)pop(outbox);

    /* Exceptions come in any order. */
    const struct tl_exception *exceptions[TL_BATCH_COMMANDS_MAX] = {NULL};
    for (size_t i = 0; i < event->n_exceptions; i++) {
        if (event->exceptions[i].index < batch->n)
            exceptions[event->exceptions[i].index] = &event->exceptions[i];
    }
    /* The k-th JOIN has seq first_seq + k, unless an exception says which place the visitor already
     * has. */
    uint64_t seq = event->first_seq;
    for (size_t i = 0; i < batch->n; i++) {
        struct tl_pending_command *pending = batch->pending[i];
        if (pending == NULL)
            continue;
        struct tl_pending_result result = {.end = TL_PENDING_APPLIED, .place = pending->place};
        if (pending->kind == TL_COMMAND_JOIN)
            result.place = tl_place_make(pending->lane, seq++);
        if (exceptions[i] != NULL) {
            result.outcome = exceptions[i]->outcome;
            result.place = exceptions[i]->place;
        }
        batch->pending[i] = NULL;
        end_pending(outbox, pending, result);
    }
    end_batch(outbox, batch, TL_PENDING_APPLIED);
}

/* ---- missed ---- */

bool tl_outbox_overdue(struct tl_outbox *outbox, uint64_t event, int64_t now_ms, uint64_t *number,
                       const char **entry)
{
    while (outbox->first != NULL && outbox->first->over && outbox->first->event <= event)
        gather_again(outbox, pop(outbox));
    const struct tl_outbox_batch *batch =
        outbox->first; /* those behind it wait in the store behind it */
    if (batch == NULL || batch->state != SENT || batch->over || batch->overdue_ms > now_ms ||
        outbox->checking != 0)
        return false;
    outbox->checking = batch->number;
    *number = batch->number;
    *entry = batch->entry;
    return true;
}

void tl_outbox_checked(struct tl_outbox *outbox, uint64_t number,
                       const struct tl_batch_check *check, int64_t now_ms)
{
    struct tl_outbox_batch *batch = outbox->first;
    outbox->checking = 0;
    if (batch == NULL || batch->number != number)
        return; /* its outcome has come meanwhile */
    batch->over = !check->waits;
    batch->event = check->event;
    batch->overdue_ms = now_ms + batch->pause_ms;
    if (batch->pause_ms < OVERDUE_MAX_MS)
        batch->pause_ms *= 2;
}

void tl_outbox_missed(struct tl_outbox *outbox)
{
    for (struct tl_outbox_batch *batch = outbox->first; batch != NULL; batch = batch->next) {
        batch->missed = batch->state == SENDING;
        batch->overdue_ms = 0;
    }
}

/* Ends this command unless it is a JOIN. */
static void forget_place(struct tl_outbox *outbox, struct tl_pending_command **command)
{
    struct tl_pending_command *pending = *command;
    if (pending == NULL || pending->kind == TL_COMMAND_JOIN)
        return;
    *command = NULL;
    end_pending(outbox, pending, (struct tl_pending_result){.end = TL_PENDING_LOST});
}

void tl_outbox_forget_places(struct tl_outbox *outbox)
{
    /* Without memory for another batch the store says what becomes of those that are gathered. */
    if (outbox->writer.generation != outbox->generation && outbox->writer.n > 0)
        (void)close_batch(outbox);
    /* A listener that hears of an end may send another command at once: it is of the present
     * generation. */
    for (struct tl_outbox_batch *batch = outbox->first; batch != NULL; batch = batch->next) {
        for (size_t i = 0; i < batch->n && batch->generation != outbox->generation; i++)
            forget_place(outbox, &batch->pending[i]);
    }
}

int64_t tl_outbox_lag_ms(const struct tl_outbox *outbox, int64_t now_ms)
{
    const struct tl_outbox_batch *batch = outbox->first;
    return batch != NULL && batch->state == SENT ? now_ms - batch->sent_ms : 0;
}

bool tl_outbox_flushed(const struct tl_outbox *outbox)
{
    return outbox->sending == 0 && outbox->writer.n == 0 &&
           (outbox->last == NULL || outbox->last->state != GATHERED);
}

bool tl_outbox_settled(const struct tl_outbox *outbox, uint64_t number)
{
    if (number >= outbox->next_number)
        return outbox->writer.n == 0 && outbox->first == NULL;
    return outbox->first == NULL || outbox->first->number > number;
}
