/* SPDX-License-Identifier: Apache-2.0 */
/* Names of queues, visitors and lanes: their limits, and which are valid. */
#ifndef TL_NAMES_H
#define TL_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#define TL_QUEUE_NAME_MAX   63 /* bytes of a queue name, without the terminating zero */
#define TL_REHEARSAL_PREFIX "rehearsal-"
#define TL_REHEARSAL_DIGITS 6
#define TL_VISITOR_MAX      64 /* bytes of a visitor id, without the terminating zero */
#define TL_WORKER_ID_MAX    32 /* bytes of a worker's name, without the terminating zero */
#define TL_LANE_NAME_MAX    31 /* bytes of a lane's name, without the terminating zero */

/* A name that needs no escape in an address, a key or a label: [a-z0-9][a-z0-9._-]*, at most `most`
 * bytes. */
bool tl_name_valid(const char *name, size_t length, size_t most);
/* 1 to `most` printable ASCII characters, no space. */
bool tl_printable(const char *text, size_t length, size_t most);

/* tl_name_valid with TL_QUEUE_NAME_MAX. */
bool tl_queue_name_valid(const char *name, size_t length);
/* Is it the name of a rehearsal's scratch queue (`tellerline rehearse`): "rehearsal-QUEUE-RANDOM",
 * which ends with six hexadecimal digits? */
bool tl_queue_is_rehearsal(const char *name);
/* tl_printable with TL_VISITOR_MAX. */
bool tl_visitor_valid(const char *visitor, size_t length);

#endif
