/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "worker/queue/presence.h"
#include "worker/queue/presence_sender.h"

enum { RUNS_MAX = 500 }; /* most runs added to the outbox in one tick */

struct tl_presence_sender {
    struct tl_outbox *outbox;
    struct tl_presence *presence;
    uint64_t batch; /* the last one with presence in it; 0: none was sent */
    bool farewell;  /* no presence is sent any more */
};

struct tl_presence_sender *tl_presence_sender_new(struct tl_outbox *outbox)
{
    struct tl_presence_sender *sender = calloc(1, sizeof(*sender));
    if (sender == NULL)
        return NULL;
    sender->outbox = outbox;
    sender->presence = tl_presence_new();
    if (sender->presence == NULL)
        tl_presence_sender_free(&sender);
    return sender;
}

void tl_presence_sender_free(struct tl_presence_sender **sender)
{
    if (*sender == NULL)
        return;
    tl_presence_free(&(*sender)->presence);
    free(*sender);
    *sender = NULL;
}

void tl_presence_sender_mark(struct tl_presence_sender *sender, uint64_t seq)
{
    tl_presence_mark(sender->presence, seq);
}

void tl_presence_sender_forget(struct tl_presence_sender *sender)
{
    struct tl_presence *presence = tl_presence_new();
    if (presence == NULL)
        return;
    tl_presence_free(&sender->presence);
    sender->presence = presence;
}

static void send_presence(struct tl_presence_sender *sender, size_t most)
{
    struct tl_run run;
    for (size_t i = 0; i < most && tl_presence_take(sender->presence, &run); i++) {
        if (!tl_outbox_seen(sender->outbox, run.first, run.count))
            break;
        sender->batch = tl_outbox_gathering(sender->outbox);
    }
}

void tl_presence_sender_tick(struct tl_presence_sender *sender, int64_t waiting_ttl_ms,
                             bool waiting, int64_t now_ms)
{
    /* A flush waits until the last one was applied, so as not to flood a slow dispatcher. */
    if (sender->farewell || !tl_outbox_settled(sender->outbox, sender->batch) ||
        !tl_presence_due(sender->presence, now_ms, tl_presence_interval(waiting_ttl_ms), waiting))
        return;
    send_presence(sender, RUNS_MAX);
}

bool tl_presence_sender_farewell(struct tl_presence_sender *sender)
{
    if (sender->farewell)
        return true;
    sender->farewell = true;
    send_presence(sender, SIZE_MAX); /* the rest of a flush in progress */
    if (tl_presence_due(sender->presence, INT64_MAX / 2, 0, false))
        send_presence(sender, SIZE_MAX);
    return sender->batch == 0 ||
           tl_outbox_seen(sender->outbox, TL_SEEN_FAREWELL_SEQ, TL_SEEN_FAREWELL_COUNT);
}
