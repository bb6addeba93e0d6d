/* SPDX-License-Identifier: Apache-2.0 */
/* Does a worker show visitors the sizes that the store has? */
#ifndef TL_CTL_AUDIT_WORKER_H
#define TL_CTL_AUDIT_WORKER_H

#include <stdbool.h>

#include "common/store/keys.h"
#include "common/store/redis.h"

#include "ctl/audit/audit.h"

/* Asks the workers at `addresses` ("host:port", the visitors' port, several with commas) for the
 * public numbers of the queue, many times, because several processes may share a port, and compares
 * them with those that the state has had since a second before. What is different is looked at a
 * second time; a difference then is a violation of rule 11. False when an address cannot be read, a
 * worker does not answer, or the store fails. */
bool tl_audit_workers(struct tl_redis *redis, const struct tl_keys *keys, const char *addresses,
                      struct tl_audit_report *report, struct tl_error *err);

#endif
