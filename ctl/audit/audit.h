/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit of one queue on the live system. It checks what holds after every step of every
 * function:
 *   1. the counters of the state are the sizes of the sets, and every active visitor has a session
 *   2. with a capacity no admission takes `active` above it; by rate, the budget is within its
 *      bounds and not ahead of the clock, and the last events hold no window with too many
 *   3. no visitor is both waiting and active
 *   4. no visitor is active while another one with a smaller place in the same lane still waits
 *   5. joined = waiting + active + completed + expired + left, and the other totals fit
 *   6. every place is a number that was given out, in a lane of the queue, to one visitor; one that
 *      was handed over to another device is held, by the visitor whom its serial names
 *   7. `seq` and `event` do not go back, and the last event says what the state says
 *   8. the streams and the consumer group exist, and what workers send is applied
 *   9. every lease, session and recovery ends
 *  10. the queue is listed, its keys have the right types, its state and settings are complete
 *  11. a worker shows the sizes that the state has (worker.c)
 *  12. since the settings last changed, no one joined or was admitted whom the mode or the time of
 *      closing keeps out
 *  13. those who were drawn stand in the order of the draw (draw.c), and its list is whole
 *  14. the archive has who waits and is active as Redis has (archive.c)
 *
 * One function makes each comparison at one moment of the data, and what programs mend by
 * themselves is looked at twice, so that every reported violation is real, however busy the queue
 * is. Big sets are read page by page.
 */
#ifndef TL_CTL_AUDIT_AUDIT_H
#define TL_CTL_AUDIT_AUDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/archive/postgres.h"
#include "common/base/error.h"
#include "common/store/keys.h"
#include "common/store/redis.h"

#include "ctl/shell/shell.h"

enum { TL_AUDIT_LISTED_MAX = 50 }; /* further violations of a queue are only counted */

struct tl_audit_violation {
    int rule; /* 1 to 14, as above */
    char text[400];
    char advice[400]; /* what to do */
};

struct tl_audit_report {
    uint64_t waiting, active; /* sizes of the sets */
    uint64_t n_violations;
    size_t n_listed;
    struct tl_audit_violation listed[TL_AUDIT_LISTED_MAX];
    char note[160]; /* unusual, but no violation; or "" */
};

/* Adds a violation to a report. */
void tl_audit_add(struct tl_audit_report *report, int rule, const char *text, const char *advice);

/* Fills the report. False when the queue cannot be read; TL_ERR_NOQUEUE when nothing of it exists.
 */
bool tl_audit_queue(struct tl_redis *redis, const struct tl_keys *keys,
                    struct tl_audit_report *report, struct tl_error *err);

/* Rule 13, but for the list: the seed has the published hash, and those who were drawn stand by
 * their draw keys. A queue without a draw that is done has nothing to check. False when the queue
 * cannot be read. */
bool tl_audit_draw(struct tl_redis *redis, const struct tl_keys *keys,
                   struct tl_audit_report *report, struct tl_error *err);

/* Rule 11: asks the workers at `addresses` ("host:port", the visitors' port, several with commas)
 * for the public numbers of the queue, many times, because several processes may share a port, and
 * compares them with those that the state has had since a second before. What is different is
 * looked at a second time; a difference then is a violation. False when an address cannot be read,
 * a worker does not answer, or the store fails. */
bool tl_audit_workers(struct tl_redis *redis, const struct tl_keys *keys, const char *addresses,
                      struct tl_audit_report *report, struct tl_error *err);

/* Rule 14: what archivers have found, in PostgreSQL. at_once: lets one compare all of the queue
 * before, and waits for it. False when PostgreSQL fails, or no archiver does so. */
bool tl_audit_archive(struct tl_postgres *postgres, const char *queue, bool at_once,
                      struct tl_audit_report *report, struct tl_error *err);

tl_ctl_verb tl_command_audit;

#endif
