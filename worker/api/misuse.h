/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signs of misuse, for the operator: networks that send very many joins or credentials that open
 * nothing, sessions that several clients use in turn, sessions checked faster than by a person.
 * Each is counted (worker/report), logged at most once in ten seconds, and sent to the store for
 * `tellerline top` (common/store/signs.h): with the network.
 */
#ifndef TL_MISUSE_H
#define TL_MISUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/report/queue_counts.h"
#include "worker/visit/visit.h"

struct tl_misuse;

struct tl_misuse *tl_misuse_new(void); /* NULL when out of memory */
void tl_misuse_free(struct tl_misuse **misuse);

/* Counts one for this queue, in the metrics with the label `queue`. */
void tl_misuse_count(const struct tl_worker *worker, const char *queue, enum tl_queue_count kind);

/* Notes that a visitor without a ticket wants to join the queue. */
void tl_misuse_join(const struct tl_visit *visit);
/* Notes a ticket or pass that did not open the gate. */
void tl_misuse_failed(const struct tl_visit *visit);
/* May this client use the session of the visit's ticket, by the queue's setting session_sharing? */
bool tl_misuse_session(struct tl_visit *visit);

/* Call every tick: sends what was seen at each queue to the store, every ten seconds. */
void tl_misuse_tick(const struct tl_worker *worker, int64_t now_ms);

#endif
