/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queues that a program cannot serve at the moment, and why. The trouble of one queue must not
 * stop the others: the program sets the queue aside, logs what is wrong once, and tries it again
 * after a pause that grows from one second to ten.
 *
 * Belongs to one thread. All times are local monotonic ms.
 */
#ifndef TL_TROUBLES_H
#define TL_TROUBLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/store/redis.h"

#define TL_TROUBLE_PAUSE_MS     1000
#define TL_TROUBLE_PAUSE_MAX_MS 10000

struct tl_troubles;

struct tl_troubles *tl_troubles_new(void); /* NULL when out of memory */
void tl_troubles_free(struct tl_troubles **troubles);

/* Does this error concern the data of one queue? Others, such as a broken connection, a store that
 * is loading or full, or memory that ran out, concern all queues. redis is the connection that
 * reported it. */
bool tl_error_is_of_queue(const struct tl_error *err, const struct tl_redis *redis);

/* The queue was tried in vain: sets it aside and logs why, with what the operator should do. Logs
 * again when the reason changes, at most once a minute, and every ten minutes. */
void tl_troubles_note(struct tl_troubles *troubles, const char *queue, const struct tl_error *err,
                      int64_t now_ms);
/* Must the queue be left alone at this time? */
bool tl_troubles_resting(const struct tl_troubles *troubles, const char *queue, int64_t now_ms);
/* All may be tried at once: the store may be another one. */
void tl_troubles_retry(struct tl_troubles *troubles);
/* The queue was tried with success. Its next trouble soon after starts with a longer pause. True if
 * it was set aside. */
bool tl_troubles_end(struct tl_troubles *troubles, const char *queue, int64_t now_ms);
/* The queue is not listed any more. */
void tl_troubles_forget(struct tl_troubles *troubles, const char *queue);

/* How many queues are set aside. */
size_t tl_troubles_count(const struct tl_troubles *troubles);
/* One line about them, for /readyz: "not served: QUEUE: reason; ..."; "" for none. */
void tl_troubles_describe(const struct tl_troubles *troubles, char *text, size_t size);

#endif
