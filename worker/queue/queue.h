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
#include "common/base/error.h"
#include "common/base/metrics.h"
#include "common/config/config.h"
#include "common/config/mode.h"
#include "common/config/settings.h"
#include "common/line/line.h"
#include "common/line/order.h"
#include "common/line/placemap.h"
#include "common/store/state.h"
#include "common/wire/events.h"
#include "common/wire/place.h"
#include "worker/feed/outbox.h"
#include "worker/queue/eta.h"
#include "worker/queue/lost.h"

/* ---- what all queues share ---- */

struct tl_archive;
struct tl_follower;
struct tl_ingest;
struct tl_queue_counts;
struct tl_verifier;
struct tl_worker;

/* The id of the worker process, its metrics, the state of the store, and the threads to and from
 * it. The process owns it and keeps it up to date; the queues only read it. */
struct tl_queue_env {
    const char *worker_id; /* this process among all workers, as the function apply knows it */
    struct tl_metrics *metrics;
    struct tl_queue_counts *queue_counts; /* of all processes; NULL: nothing is counted */
    /* The names of the queues that the file lets everyone into past the line (`mode: passthrough`),
     * for the day on which the waiting room itself must get out of the way. */
    char (*passthrough)[TL_QUEUE_NAME_MAX + 1];
    size_t n_passthrough;

    bool ingest_up, follower_up; /* is the store connected? */
    enum tl_error_kind refuses;  /* TL_ERR_MISCONF, TL_ERR_OOM: the store takes no batch; TL_OK */
    bool listed;                 /* every queue is known here, also of the file */
    bool draining;
    bool memory_full;        /* the store's memory is nearly full: no joins */
    unsigned memory_percent; /* of the store's memory that is used; 0 without a limit */
    uint64_t in_flight;      /* commands in progress, as of the last turn */
    bool full;               /* too many commands are in progress, as of the last turn */
    int64_t heard_ms;        /* when the store was last heard of, local monotonic; 0: never */
    int64_t store_offset_ms; /* the store's Unix time minus local monotonic time */
    uint64_t changes;        /* counts those of the clock and of passthrough (struct tl_weather) */

    /* The threads beside the loop; no verifier without a challenge service, and no archive without
     * archive.url. */
    struct tl_ingest *ingest;
    struct tl_follower *follower;
    struct tl_verifier *verifier;
    struct tl_archive *archive;

    /* The listeners to the outcome of each pending command: `settle` for its queue, once for each,
     * begins with tl_queue_settled. */
    struct tl_worker *worker;
    tl_outbox_settle *settle;
};

/* Reads those names from this configuration: at the start and at every SIGHUP, because the store
 * may be what is away. Logs each. False without memory: then all is as before. */
bool tl_queue_env_read(struct tl_queue_env *env, const struct tl_config *config,
                       struct tl_error *err);
/* Does the file let everyone into this queue? */
bool tl_queue_env_lets_in(const struct tl_queue_env *env, const char *queue);

static inline bool tl_queue_env_store_up(const struct tl_queue_env *env)
{
    return env->ingest_up && env->follower_up;
}

/* Does the store take notes that are not of the line? At its memory limit it keeps its room. */
static inline bool tl_queue_env_takes_notes(const struct tl_queue_env *env)
{
    return tl_queue_env_store_up(env) && env->refuses == TL_OK && !env->memory_full;
}

/* Unix time in ms by the store's clock, for local monotonic time now_ms. */
static inline int64_t tl_queue_env_store_ms(const struct tl_queue_env *env, int64_t now_ms)
{
    return now_ms + env->store_offset_ms;
}

/* ---- how joins share a worker when more come than the store takes ---- */

/* What waits, and the bounds at which all joins are refused. */
struct tl_press {
    uint64_t pending, pending_max; /* commands */
    int64_t lag_ms, lag_max_ms;    /* for how long they have waited in the store */
    unsigned memory_percent;       /* of the store */
};

/*
 * How many joins a second one address may have now; 0: nothing presses, as many as it wants.
 * The share falls with the room that is left, long before the bounds: what comes in is then what
 * the store takes, in equal shares of those who want more, and who wants less notices nothing.
 */
uint64_t tl_press_share(const struct tl_press *press);

/* ---- claims ---- */

/*
 * What a worker process knows of the claims of one queue: which sessions are claimed, and who came
 * to an overbooked queue when the capacity was claimed. Those keep their sessions, unclaimed, and
 * have the next turn (common/store/line/overbook.lua): to them, that is the front of the line. A
 * process learns of them as the outcome of its own RENEW.
 *
 * Both maps: active place -> local ms + 1 of the last RENEW known; 0: none is. A zeroed one knows
 * nothing.
 */
struct tl_claims {
    struct tl_placemap claimed; /* or with a mark: the store has not said yet that it is claimed */
    struct tl_placemap turns;   /* not claimed: another session must end first */
};

void tl_claims_clear(struct tl_claims *claims); /* frees its memory, too */

/* A RENEW is on its way. Without memory it is not noted, and the next touch claims again, which is
 * harmless. */
void tl_claims_note(struct tl_claims *claims, tl_place place, int64_t now_ms);
/* A CLAIM is on its way: when the session was last extended is not known, so the next use does. */
void tl_claims_note_claim(struct tl_claims *claims, tl_place place);
/* Keeps what is known of places that are still active in this line. */
void tl_claims_keep(struct tl_claims *claims, const struct tl_line *line);
/* Is the session claimed, or a RENEW or CLAIM on its way? */
bool tl_claims_has(const struct tl_claims *claims, tl_place place);
/* Did an event or an outcome say that it is claimed? */
bool tl_claims_made(const struct tl_claims *claims, tl_place place);
/* Must the session at this place be claimed now? */
bool tl_claims_due(const struct tl_claims *claims, const struct tl_queue_settings *settings,
                   tl_place place, int64_t now_ms);
/* Must the session that is claimed be extended, now that the visitor uses it? */
bool tl_claims_extends(const struct tl_claims *claims, const struct tl_queue_settings *settings,
                       tl_place place, int64_t now_ms);
/* Notes the outcome of a RENEW or CLAIM. */
void tl_claims_settled(struct tl_claims *claims, const struct tl_line *line,
                       const struct tl_pending_command *pending,
                       const struct tl_pending_result *result, int64_t now_ms);
/* Notes an event that this line has taken. */
void tl_claims_event(struct tl_claims *claims, const struct tl_line *line,
                     const struct tl_event *event, int64_t now_ms);
/* The view of a visitor whose place is in this state: one with the next turn is first. */
struct tl_line_view tl_claims_view(const struct tl_claims *claims, tl_place place,
                                   struct tl_line_view state);

/* ---- presence ---- */

/*
 * Which waiting visitors of a queue were seen since the last flush, sent as SEEN commands. Flushes
 * happen at a fixed interval. A flush hands over each seq at most once, as runs, a bounded number
 * at a time. When no visitor was seen it hands over one run of count 0: the expirer must know that
 * presence was observed at all.
 *
 * Written in presence.c only. Zeroed, with an outbox: nobody was seen.
 */
struct tl_presence {
    struct tl_outbox *outbox; /* borrowed */
    struct tl_order seen;     /* since the current flush began */
    struct tl_order flushing; /* what the current flush hands over */
    uint64_t cursor;          /* seqs below it have been handed over */
    bool in_progress;
    int64_t next_ms;
    uint64_t batch; /* the last one with presence in it; 0: none was sent */
    bool farewell;  /* no presence is sent from now on */
};

/* Marks a visitor as seen. Without memory the mark is lost; the next poll marks again. */
void tl_presence_mark(struct tl_presence *presence, uint64_t seq);
/* Forgets who was seen, after the queue was created again; frees its memory. */
void tl_presence_forget(struct tl_presence *presence);
/* Call every tick while the store is up: sends what is due. waiting: does anyone wait? */
void tl_presence_tick(struct tl_presence *presence, int64_t waiting_ttl_ms, bool waiting,
                      int64_t now_ms);
/* Sends the rest, and a farewell if anything was ever sent; nothing from then on. False when there
 * was no memory for the farewell. */
bool tl_presence_farewell(struct tl_presence *presence);

/* ---- the notice ---- */

/* The operator's notice of a queue, in each of its languages as text and as the JSON that event
 * streams send. Zeroed: there was none yet. */
struct tl_notice {
    char *bytes; /* as the store has it; owned */
    size_t length;
    struct tl_notice_told *told; /* for each language; owned */
    size_t n;
    uint64_t version; /* counts the changes */
};

/* Takes a notice of `length` bytes (common/wire/notice_text.h); 0 removes it. False without memory:
 * the former notice stays. */
bool tl_notice_set(struct tl_notice *notice, const char *bytes, size_t length);
void tl_notice_clear(struct tl_notice *notice);

/* What a visitor of this language (a BCP 47 code; NULL: any) is told. Text "": nothing. JSON
 * {"text":...}, or NULL until the first notice. Valid until the next set. */
const char *tl_notice_text(const struct tl_notice *notice, const char *language);
/* Does what they are told depend on the language? */
bool tl_notice_varies(const struct tl_notice *notice);
const char *tl_notice_json(const struct tl_notice *notice, const char *language);

/* ---- the queue ---- */

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
    bool troubled;        /* it is not followed, and may have no line: its data is damaged... */
    bool away;            /* ...or the node of a cluster that has it cannot be reached */
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
/* Can the store be reached, and in a cluster the node of this queue? */
static inline bool tl_queue_store_up(const struct tl_queue *queue)
{
    return tl_queue_env_store_up(queue->env) && !queue->away;
}

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
/* Call every tick: sends presence when it is due, and forgets old ends. Needs a line. */
void tl_queue_tick(struct tl_queue *queue, int64_t now_ms);

/* ---- tickets ---- */

/* What tickets are worth to a queue: their places may have been lost by the store, may have come
 * back under another name, or been handed over to another device. The queue needs a line.
 *
 * Each hand-over gives a place a higher serial; a ticket with a lower one no longer counts
 * (common/store/line/visitor.lua).
 */
/* What a ticket is worth, in the order in which it is asked. */
enum tl_worth {
    TL_WORTH_PENDING,    /* its place has no number yet */
    TL_WORTH_AHEAD,      /* of a later generation, of which this process has yet to learn */
    TL_WORTH_MAY_RETURN, /* the store has lost its place, which can come back */
    TL_WORTH_VOID,       /* of another generation, whose places do not come back */
    TL_WORTH_MOVED,      /* its place is on another device now */
    TL_WORTH_WAITS,
    TL_WORTH_ACTIVE,
    TL_WORTH_OVER,      /* its place has ended */
    TL_WORTH_FORGOTTEN, /* nobody knows of its place, nor does the store */
    TL_WORTH_ASK_STORE, /* only the store can tell */
};

/* Judges the ticket, and makes it one of the present place (tl_queue_adopt). *state: of that place;
 * UNKNOWN where it is not asked for. A ticket with a higher serial than the line knows proves a
 * hand-over that the store has lost, and so does the line from before a loss: notes it, and tells
 * the store. */
enum tl_worth tl_queue_worth(struct tl_queue *queue, struct tl_ticket *ticket, int64_t now_ms,
                             struct tl_line_view *state);

/* ---- the questions it asks ---- */

/* Is the ticket from another generation of the queue? (A pending ticket has none.) */
bool tl_queue_outdated(const struct tl_queue *queue, const struct tl_ticket *ticket);
/* Adapts a ticket to its visitor's present place, marks it as outdated and returns true, if its
 * place came back after a loss, changed in a draw, or moved to another lane. */
bool tl_queue_adopt(const struct tl_queue *queue, struct tl_ticket *ticket);
/* Is the ticket of a later generation, of which this process has yet to learn? */
bool tl_queue_behind(struct tl_queue *queue, const struct tl_ticket *ticket, int64_t now_ms);
/* Is the place of this ticket lost, and can it come back, as far as is known? It is of another
 * generation, or the store has lost the end of this one. */
bool tl_queue_may_return(const struct tl_queue *queue, const struct tl_ticket *ticket);
/* Did the store lose this place, and say that it does not come back? */
bool tl_queue_lost(const struct tl_queue *queue, tl_place place);
/* Asks the store for the place, which may return. deadline_ms, event: of the session that a pass
 * tells of, or 0. NULL when out of memory, or when the store is down. */
struct tl_pending_command *tl_queue_restore(struct tl_queue *queue, const struct tl_ticket *ticket,
                                            uint64_t deadline_ms, uint64_t event);

/* The lowest serial that is valid for this place, by the line or by the one before a loss; 0:
 * every serial is. */
uint32_t tl_queue_serial(const struct tl_queue *queue, tl_place place);

#endif
