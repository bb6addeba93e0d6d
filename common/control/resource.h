/* SPDX-License-Identifier: Apache-2.0 */
/* A queue as the calls show it: name, generation, settings, and the ETag of these. */
#ifndef TL_CONTROL_RESOURCE_H
#define TL_CONTROL_RESOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/config/settings.h"
#include "common/control/call.h"
#include "common/store/queue.h"

/* The ETag of a queue's settings: another one for any other settings, and for another generation.
 */
void tl_resource_etag(uint64_t generation, const struct tl_queue_settings *settings,
                      char etag[TL_CONTROL_ETAG_MAX]);
/* Does If-Match (a list, or "*") name this ETag? NULL: there is no condition. */
bool tl_resource_matches(const char *if_match, const char *etag);

/* Changes settings of the call's queue, all or none, unless If-Match names others than the present
 * ones. False: the answer has the problem. made: what changed; the caller frees it. */
bool tl_resource_change(struct tl_control_call *call, const struct tl_queue_changes *changes,
                        struct tl_changes_made *made);
/* Answers with the queue as it is now. made may be NULL: the member `changed` says what it was and
 * is. */
void tl_resource_answer(struct tl_control_call *call, int status,
                        const struct tl_changes_made *made);

#endif
