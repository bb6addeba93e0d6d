/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queues that a program cannot serve at the moment, and why. The trouble of one queue must not
 * stop the others: the program mends of its data what can be mended (mend.lua), sets the queue
 * aside, logs what is wrong once, and tries it again after a pause that grows from one second to
 * ten.
 *
 * Belongs to one thread. All times are local monotonic ms.
 */
#ifndef TL_TROUBLES_H
#define TL_TROUBLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/config/config.h"
#include "common/store/actor.h"
#include "common/store/keys.h"
#include "common/store/redis.h"

#define TL_TROUBLE_PAUSE_MS     1000
#define TL_TROUBLE_PAUSE_MAX_MS 10000
#define TL_NODE_PAUSE_MS        50
#define TL_NODE_PAUSE_MAX_MS    1000

struct tl_troubles;

struct tl_troubles *tl_troubles_new(void); /* NULL when out of memory */
void tl_troubles_free(struct tl_troubles **troubles);

/* Does this error concern one queue alone, or those of one node of a cluster? Others, such as a
 * broken connection to the only store, one that is loading or full, or memory that ran out, concern
 * all queues. redis is the connection that reported it. */
bool tl_error_is_of_queue(const struct tl_error *err, const struct tl_redis *redis);

/* Does the store itself refuse, or not answer? */
bool tl_error_is_of_store(const struct tl_error *err);

/* The queue was tried in vain: sets it aside and logs why, with what the operator should do. Logs
 * again when the reason changes, at most once a minute, and every ten minutes. */
void tl_troubles_note(struct tl_troubles *troubles, const char *queue, const struct tl_error *err,
                      int64_t now_ms);
/* When the first of those that rest may be tried again; INT64_MAX: none rests. */
int64_t tl_troubles_due(const struct tl_troubles *troubles, int64_t now_ms);
/* Must the queue be left alone at this time? */
bool tl_troubles_resting(const struct tl_troubles *troubles, const char *queue, int64_t now_ms);
/* How long the queue has been set aside; 0 for one that is not. */
int64_t tl_troubles_lasted_ms(const struct tl_troubles *troubles, const char *queue,
                              int64_t now_ms);
/* The queue, or all (NULL), may be tried at once: its store may be another one. */
void tl_troubles_retry(struct tl_troubles *troubles, const char *queue);
/* The queue was tried with success. Its next trouble soon after starts with a longer pause. True if
 * it was set aside. */
bool tl_troubles_end(struct tl_troubles *troubles, const char *queue, int64_t now_ms);
/* The queue is no longer listed. */
void tl_troubles_forget(struct tl_troubles *troubles, const char *queue);

/* The settings that a program can offer for a queue whose own are missing. */
struct tl_mend_offer {
    bool from_memory; /* as read from the store earlier; else from the configuration file */
    const struct tl_queue_settings *settings; /* NULL: none */
    const struct tl_actor *actor;             /* what is mended is recorded as done by it */
};

/* Says what is wrong with the data of a queue, and changes nothing. *wrong gets a sentence for the
 * operator, "" for a sound queue. False with err when the store did not answer. */
bool tl_queue_examine(struct tl_redis *redis, const struct tl_keys *keys, char wrong[320],
                      struct tl_error *err);

/* A queue could not be served: mends what can be mended, and sets the queue aside. err, the reason,
 * becomes what was mended or what the operator should do, if that is known. False, with nothing
 * done, for a queue that is not in the store at all. */
bool tl_queue_set_aside(struct tl_troubles *troubles, struct tl_redis *redis,
                        const struct tl_keys *keys, const struct tl_mend_offer *offer,
                        struct tl_error *err, int64_t now_ms);

/* How many queues are set aside. */
size_t tl_troubles_count(const struct tl_troubles *troubles);
/* One line about them, for /readyz: "not served: QUEUE: reason; ..."; "" for none. */
void tl_troubles_describe(const struct tl_troubles *troubles, char *text, size_t size);

#endif
