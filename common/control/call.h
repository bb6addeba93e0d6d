/* SPDX-License-Identifier: Apache-2.0 */
/* A call under way: what every handler works with. */
#ifndef TL_CONTROL_CALL_H
#define TL_CONTROL_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "common/config/settings.h"
#include "common/control/answer.h"
#include "common/control/target.h"
#include "common/store/durable.h"
#include "common/store/keys.h"
#include "common/store/library.h"
#include "common/store/store.h"

struct tl_control {
    const struct tl_config *config; /* borrowed */
    struct tl_store *store;
    char writer[TL_WORKER_ID_MAX + 1]; /* names the batches of bulk joins */
    uint64_t batches;                  /* the number of the last one */
    struct tl_durable durable;
};

struct tl_control_call {
    struct tl_control *control;
    const struct tl_control_request *request;
    struct tl_control_answer *answer;
    struct tl_target target;
    const char *name;       /* {visitor} or {name} of the path; else NULL */
    struct tl_keys keys;    /* of {queue}; else without a name */
    struct tl_redis *redis; /* the connection of the queue, or that of no queue: open */
};

/* Opens the connections that are not open. queue: NULL for the one of no queue. */
struct tl_redis *tl_call_connect(struct tl_control *control, const char *queue,
                                 struct tl_error *err);
/* The keys of a queue; TL_ERR_INVALID when that is no valid name. */
bool tl_call_keys(const struct tl_control *control, const char *queue, struct tl_keys *keys,
                  struct tl_error *err);

/* Sets status and body, which the answer then owns. A NULL body: out of memory, a problem. */
void tl_call_answer(struct tl_control_call *call, int status, json_t *body);
/* A problem, for short. Always returns false. */
bool tl_call_fail(struct tl_control_call *call, const struct tl_error *err);
bool tl_call_refuse(struct tl_control_call *call, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Checks that the body has no other members than these, ended by NULL; no body is an empty one.
 * False: the answer has the problem. */
bool tl_call_members(struct tl_control_call *call, const char *first, ...)
    __attribute__((sentinel));
/* A text of the body, borrowed. *text stays as it is where there is no such member and it is not
 * needed. */
bool tl_call_text(struct tl_control_call *call, const char *name, bool needed, const char **text);
/* A whole number of the query. *number stays as it is where there is no such parameter. */
bool tl_call_number(struct tl_control_call *call, const char *name, uint64_t least, uint64_t most,
                    uint64_t *number);

/* RFC 3339 in UTC; JSON null for 0. NULL: out of memory. */
json_t *tl_call_time(int64_t unix_ms);

#endif
