#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/feed/outbox.h"
#include "worker/feed/pending_table.h"

enum batch_state { GATHERED, SENDING, SENT };

struct batch {
    struct batch *next;
    uint64_t number;
    enum batch_state state;
    bool counted;
    size_t n;
    struct tl_pending_command **pending; /* by index in the batch; NULL for SEEN */
    void *payload;                       /* GATHERED only */
    size_t length;
};

struct tl_outbox {
    char worker_id[TL_WORKER_ID_MAX + 1];
    tl_outbox_settle *settle;
    void *context;
    struct tl_batch_writer *writer;
    struct tl_pending_command **pending; /* of the batch being gathered */
    size_t pending_capacity;
    struct tl_pending_table *joins;
    struct batch *first, *last; /* oldest first, without the one being gathered */
    uint64_t next_number;
    uint64_t sending; /* the number of the batch being sent, or 0 */
    size_t count;
};

struct tl_outbox *tl_outbox_new(const char *worker_id, tl_outbox_settle *settle, void *context)
{
    struct tl_outbox *outbox = calloc(1, sizeof(*outbox));
    if (outbox == NULL)
        return NULL;
    snprintf(outbox->worker_id, sizeof(outbox->worker_id), "%s", worker_id);
    outbox->settle = settle;
    outbox->context = context;
    outbox->next_number = 1;
    outbox->writer = tl_batch_writer_new();
    outbox->joins = tl_pending_table_new();
    if (outbox->writer == NULL || outbox->joins == NULL)
        tl_outbox_free(&outbox);
    return outbox;
}

static void end_pending(struct tl_outbox *outbox, struct tl_pending_command *pending,
                        const struct tl_pending_result *result)
{
    if (pending == NULL)
        return;
    if (pending->kind == TL_COMMAND_JOIN && !pending->invited)
        tl_pending_table_remove(outbox->joins, pending);
    outbox->settle(outbox->context, pending, result);
    free(pending);
}

static void uncount(struct tl_outbox *outbox, struct batch *batch)
{
    if (batch->counted)
        outbox->count -= batch->n;
    batch->counted = false;
}

/* Ends a batch that is no longer in the list; its remaining commands all get the same result. */
static void end_batch(struct tl_outbox *outbox, struct batch *batch, enum tl_pending_end end)
{
    struct tl_pending_result result = {.end = end};
    uncount(outbox, batch);
    for (size_t i = 0; i < batch->n; i++)
        end_pending(outbox, batch->pending[i], &result);
    free(batch->pending);
    free(batch->payload);
    free(batch);
}

static struct batch *pop(struct tl_outbox *outbox)
{
    struct batch *batch = outbox->first;
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
    struct tl_pending_result refused = {.end = TL_PENDING_REFUSED};
    while (old->first != NULL) {
        enum tl_pending_end end = old->first->state == SENT ? TL_PENDING_LOST : TL_PENDING_REFUSED;
        end_batch(old, pop(old), end);
    }
    for (size_t i = 0; old->writer != NULL && i < tl_batch_count(old->writer); i++)
        end_pending(old, old->pending[i], &refused);
    tl_batch_writer_free(&old->writer);
    tl_pending_table_free(&old->joins);
    free(old->pending);
    free(old);
    *outbox = NULL;
}

/* ---- gathering ---- */

/* Closes the batch being gathered and appends it to the list. */
static bool close_batch(struct tl_outbox *outbox)
{
    size_t n = tl_batch_count(outbox->writer);
    size_t length = 0;
    const void *bytes =
        tl_batch_finish(outbox->writer, outbox->worker_id, outbox->next_number, &length);
    struct batch *batch = calloc(1, sizeof(*batch));
    void *payload = bytes != NULL ? malloc(length) : NULL;
    if (batch == NULL || payload == NULL) {
        free(batch);
        free(payload);
        return false;
    }
    memcpy(payload, bytes, length);
    *batch = (struct batch){.number = outbox->next_number++,
                            .counted = true,
                            .n = n,
                            .pending = outbox->pending,
                            .payload = payload,
                            .length = length};
    outbox->pending = NULL;
    outbox->pending_capacity = 0;
    if (outbox->last != NULL)
        outbox->last->next = batch;
    else
        outbox->first = batch;
    outbox->last = batch;
    tl_batch_writer_reset(outbox->writer);
    return true;
}

static bool reserve(struct tl_outbox *outbox)
{
    if (tl_batch_count(outbox->writer) < outbox->pending_capacity)
        return true;
    size_t capacity = outbox->pending_capacity == 0 ? 16 : 2 * outbox->pending_capacity;
    struct tl_pending_command **pending =
        reallocarray(outbox->pending, capacity, sizeof(struct tl_pending_command *));
    if (pending == NULL)
        return false;
    outbox->pending = pending;
    outbox->pending_capacity = capacity;
    return true;
}

static int write_command(struct tl_outbox *outbox, const struct tl_command *command)
{
    switch (command->kind) {
    case TL_COMMAND_JOIN:
        if (command->invite != NULL)
            return tl_batch_join_invited(outbox->writer, command->visitor, command->visitor_length,
                                         (unsigned)command->number, command->invite,
                                         command->invite_until_ms);
        return tl_batch_join(outbox->writer, command->visitor, command->visitor_length,
                             (unsigned)command->number);
    case TL_COMMAND_SEEN:
        return tl_batch_seen(outbox->writer, command->number, command->count);
    case TL_COMMAND_LEAVE:
    case TL_COMMAND_COMPLETE:
    case TL_COMMAND_RENEW:
        return tl_batch_place(outbox->writer, command->kind, command->visitor,
                              command->visitor_length, command->number);
    }
    return -1;
}

/* Adds a command and its pending command (or NULL). Closes a full batch and starts the next one. */
static bool add(struct tl_outbox *outbox, const struct tl_command *command,
                struct tl_pending_command *pending)
{
    if (!reserve(outbox))
        return false;
    int index = write_command(outbox, command);
    if (index < 0 && tl_batch_count(outbox->writer) > 0) {
        if (!close_batch(outbox) || !reserve(outbox))
            return false;
        index = write_command(outbox, command);
    }
    if (index < 0)
        return false;
    outbox->pending[index] = pending;
    outbox->count++;
    return true;
}

/* Adds a command of this visitor. The invite of a JOIN is NUL-terminated. */
static struct tl_pending_command *add_pending(struct tl_outbox *outbox, const char *visitor,
                                              struct tl_command command)
{
    struct tl_pending_command *pending = calloc(1, sizeof(*pending));
    if (pending == NULL)
        return NULL;
    bool is_join = command.kind == TL_COMMAND_JOIN;
    pending->kind = command.kind;
    pending->invited = command.invite != NULL;
    if (is_join)
        pending->lane = (unsigned)command.number;
    else
        pending->place = command.number;
    snprintf(pending->visitor, sizeof(pending->visitor), "%s", visitor);
    command.visitor = pending->visitor;
    command.visitor_length = strlen(pending->visitor);
    if (!add(outbox, &command, pending)) {
        free(pending);
        return NULL;
    }
    if (is_join && !pending->invited)
        tl_pending_table_add(outbox->joins, pending);
    return pending;
}

struct tl_pending_command *tl_outbox_join(struct tl_outbox *outbox, const char *visitor,
                                          unsigned lane)
{
    struct tl_pending_command *pending = tl_pending_table_find(outbox->joins, visitor);
    if (pending != NULL)
        return pending;
    return add_pending(outbox, visitor,
                       (struct tl_command){.kind = TL_COMMAND_JOIN, .number = lane});
}

struct tl_pending_command *tl_outbox_join_invited(struct tl_outbox *outbox, const char *visitor,
                                                  unsigned lane, const char *invite,
                                                  uint64_t invite_until_ms)
{
    return add_pending(outbox, visitor,
                       (struct tl_command){.kind = TL_COMMAND_JOIN,
                                           .number = lane,
                                           .invite = invite,
                                           .invite_until_ms = invite_until_ms});
}

struct tl_pending_command *tl_outbox_command(struct tl_outbox *outbox, enum tl_command_kind kind,
                                             const char *visitor, tl_place place)
{
    return add_pending(outbox, visitor, (struct tl_command){.kind = kind, .number = place});
}

bool tl_outbox_seen(struct tl_outbox *outbox, uint64_t first_seq, uint64_t count)
{
    const struct tl_command command = {
        .kind = TL_COMMAND_SEEN, .number = first_seq, .count = count};
    return add(outbox, &command, NULL);
}

/* ---- sending ---- */

static struct batch *find(struct tl_outbox *outbox, enum batch_state state)
{
    struct batch *batch = outbox->first;
    while (batch != NULL && batch->state != state)
        batch = batch->next;
    return batch;
}

bool tl_outbox_next(struct tl_outbox *outbox, struct tl_outbox_payload *payload)
{
    if (outbox->sending != 0)
        return false;
    struct batch *batch = find(outbox, GATHERED);
    if (batch == NULL) {
        if (tl_batch_count(outbox->writer) == 0 || !close_batch(outbox))
            return false; /* out of memory: the next call tries again */
        batch = outbox->last;
    }
    batch->state = SENDING;
    outbox->sending = batch->number;
    *payload = (struct tl_outbox_payload){.number = batch->number,
                                          .bytes = batch->payload,
                                          .length = batch->length,
                                          .n_commands = batch->n};
    batch->payload = NULL;
    return true;
}

static void unlink_batch(struct tl_outbox *outbox, struct batch *batch)
{
    struct batch *before = NULL;
    for (struct batch *b = outbox->first; b != batch; b = b->next)
        before = b;
    if (before == NULL) {
        (void)pop(outbox);
        return;
    }
    before->next = batch->next;
    if (outbox->last == batch)
        outbox->last = before;
}

void tl_outbox_sent(struct tl_outbox *outbox, uint64_t number, bool taken)
{
    if (outbox->sending != number)
        return;
    outbox->sending = 0;
    struct batch *batch = find(outbox, SENDING);
    if (batch == NULL)
        return; /* the APPLIED event came before the reply to XADD */
    if (!taken) {
        unlink_batch(outbox, batch);
        end_batch(outbox, batch, TL_PENDING_REFUSED);
        return;
    }
    batch->state = SENT;
    for (size_t i = 0; i < batch->n; i++) {
        if (batch->pending[i] != NULL)
            batch->pending[i]->sent = true;
    }
}

/* ---- applied ---- */

void tl_outbox_applied(struct tl_outbox *outbox, const struct tl_event *event)
{
    while (outbox->first != NULL && outbox->first->number < event->batch &&
           outbox->first->state == SENT)
        end_batch(outbox, pop(outbox), TL_PENDING_LOST);
    struct batch *batch = outbox->first;
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
        end_pending(outbox, pending, &result);
    }
    end_batch(outbox, batch, TL_PENDING_APPLIED);
}

void tl_outbox_missed(struct tl_outbox *outbox)
{
    for (struct batch *batch = outbox->first; batch != NULL; batch = batch->next) {
        if (batch->state == SENT)
            uncount(outbox, batch);
    }
}

size_t tl_outbox_count(const struct tl_outbox *outbox)
{
    return outbox->count;
}

bool tl_outbox_flushed(const struct tl_outbox *outbox)
{
    return outbox->sending == 0 && tl_batch_count(outbox->writer) == 0 &&
           (outbox->last == NULL || outbox->last->state != GATHERED);
}

uint64_t tl_outbox_gathering(const struct tl_outbox *outbox)
{
    return outbox->next_number;
}

bool tl_outbox_settled(const struct tl_outbox *outbox, uint64_t number)
{
    if (number >= outbox->next_number)
        return tl_batch_count(outbox->writer) == 0 && outbox->first == NULL;
    return outbox->first == NULL || outbox->first->number > number;
}
