/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One queue as a worker process knows it: its settings, its line (built from a snapshot, kept true
 * by events), the presence of its visitors, and the commands on their way to the store. Answers
 * every question about a place from memory. Knows nothing of HTTP, threads or event streams.
 *
 * now_ms is local monotonic time everywhere.
 */
#ifndef TL_WORKER_QUEUE_H
#define TL_WORKER_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/auth/ticket.h"
#include "common/config/config.h"
#include "common/config/mode.h"
#include "common/line/line.h"
#include "common/store/state.h"
#include "worker/feed/outbox.h"
#include "worker/queue/claims.h"
#include "worker/queue/env.h"
#include "worker/queue/eta.h"
#include "worker/queue/lost.h"
#include "worker/queue/notice.h"
#include "worker/queue/presence.h"

/* What is the same for all who are told of a queue: see tl_queue_weather. */
struct tl_weather {
    enum tl_queue_mode mode; /* passthrough where this worker's file says so, else the setting */
    enum tl_phase phase;
    bool open;    /* is admission possible now, by the mode, the time and the phase? */
    bool drawing; /* those who wait are yet to be drawn: nobody is admitted, nor has a position */
    bool recovering;
    bool scheduled; /* it opens later */
    uint64_t waiting, active;
    int64_t as_of_ms; /* Unix time when the line was last known to be up to date; 0: it is */
    /* Differs where those who wait must be told another state: flags, and the mode. */
    unsigned told;
    uint64_t version; /* grows with each change of the above, of the settings and of the notice */
    /* Of which moment it is. */
    bool known;
    int64_t at_ms;
    uint64_t env_changes;
};
enum { TL_TOLD_DRAWING = 1 }; /* a flag of `told` */

/* Read everywhere, written in worker/queue only. */
struct tl_queue {
    const struct tl_queue_env *env;
    char name[TL_QUEUE_NAME_MAX + 1];
    struct tl_queue_settings settings;
    struct tl_line *line; /* NULL until the first snapshot; the functions that say so need one */
    bool rebuilding;      /* after a gap: a fresh line was asked for */
    int64_t differed_ms;  /* when its sizes last made us ask for one; 0: never */
    bool deleted;         /* from the store: pending commands are answered so */
    struct tl_eta eta;
    struct tl_promises promises; /* what was told about waits, against what came true */
    struct tl_outbox *outbox;    /* commands: see worker/feed/outbox.h */
    struct tl_presence presence;
    struct tl_claims claims;
    struct tl_placemap ended; /* place the line does not know -> its reason; 0: unknown */
    struct tl_lost lost;
    struct tl_notice notice; /* what the operator says */
    struct tl_weather weather;
    struct tl_view_shared *shared; /* one block of memory of worker/visit/view.c, or NULL */
};

/* env must outlive the queue. NULL when out of memory. */
struct tl_queue *tl_queue_new(const struct tl_queue_env *env, const char *name);
/* Settles all pending commands. Clears the caller's pointer; NULL behind it is allowed. */
void tl_queue_free(struct tl_queue **queue);

/* ---- what is known ---- */

/* What the store says of a recovery from a loss. */
void tl_queue_set_recovery(struct tl_queue *queue, const struct tl_recovery *recovery);
/* How it is now, worked out once for all who ask in the same millisecond, unless something changes.
 * Valid until the next call. */
const struct tl_weather *tl_queue_weather(struct tl_queue *queue, int64_t now_ms);

/* The state of a place, from the line or from an earlier answer of the store. *known is false when
 * the store must be asked. Needs a line. */
struct tl_line_view tl_queue_look(const struct tl_queue *queue, tl_place place, bool *known);
/* Is there capacity left for this waiting place, so that the admitter will admit it in a moment?
 * False by rate: only the store knows what its budget allows. */
bool tl_queue_about_to_admit(struct tl_queue *queue, tl_place place, int64_t now_ms);
/* Does only a claim that was granted open the gate for the session at this place, and is none
 * known? Then the outcome of a RENEW has to be waited for. Needs a line. */
bool tl_queue_must_claim(const struct tl_queue *queue, tl_place place);
/* The wait until this position is admitted. False when there is nothing honest to say; *reason: why
 * not, or why it is longer than it was (worker/queue/eta.h). */
bool tl_queue_estimate(struct tl_queue *queue, uint64_t position, int64_t now_ms,
                       struct tl_eta_range *range, enum tl_eta_reason *reason);

/* ---- what changes ---- */

/* Replaces the line; takes ownership. True: it is of another generation, and what was known of
 * places of the former one is forgotten. */
bool tl_queue_set_line(struct tl_queue *queue, struct tl_line *line, int64_t now_ms);
void tl_queue_set_settings(struct tl_queue *queue, const struct tl_queue_settings *settings,
                           int64_t now_ms);
/* length 0 removes the notice. */
void tl_queue_set_notice(struct tl_queue *queue, const char *text, size_t length);
/* Applies one entry of the events stream. True: the line has it; *entry is the caller's to free. */
bool tl_queue_apply(struct tl_queue *queue, const void *payload, size_t length, int64_t now_ms,
                    struct tl_event_entry *entry);
/* Notes the outcome of a pending command: tl_queue_env.settle begins with it. */
void tl_queue_settled(struct tl_queue *queue, const struct tl_pending_command *pending,
                      const struct tl_pending_result *result);
/* The visitor at this place asks, or is told: marks a waiting one as present; claims the session of
 * an active one. It extends none, or a forgotten tab would keep its session. */
void tl_queue_touch(struct tl_queue *queue, const char *visitor, tl_place place,
                    const struct tl_line_view *view, int64_t now_ms);
/* The visitor uses the session at this place, as the site says: claims it, or extends it where
 * sessions slide. */
void tl_queue_use(struct tl_queue *queue, const char *visitor, tl_place place,
                  const struct tl_line_view *view, int64_t now_ms);
/* The store's answer about a place the line does not know; reason 0: the store does not know it
 * either. */
void tl_queue_remember_end(struct tl_queue *queue, tl_place place, unsigned reason);
/* The process ends: sends the presence not yet sent, and a farewell if it ever sent any. From then
 * on it sends none. */
void tl_queue_farewell(struct tl_queue *queue);
/* Call every tick: sends presence when it is due, and forgets old ends. */
void tl_queue_tick(struct tl_queue *queue, int64_t now_ms);

#endif
