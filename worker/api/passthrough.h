/* SPDX-License-Identifier: Apache-2.0 */
/* Queues that everyone gets into past the line: the mode passthrough, for the day on which the
 * waiting room itself must get out of the way. */
#ifndef TL_API_PASSTHROUGH_H
#define TL_API_PASSTHROUGH_H

#include <stdbool.h>

#include "common/config/config.h"
#include "worker/api/context.h"

/* The names of the queues that the file lets everyone into (`mode: passthrough`): read at the start
 * and at every SIGHUP, because the store may be what is away. */
struct tl_passthrough;

/* Those of this configuration; NULL when out of memory. Logs each. */
struct tl_passthrough *tl_passthrough_new(const struct tl_config *config);
void tl_passthrough_free(struct tl_passthrough **passthrough); /* NULL allowed */
/* Does the file name this queue? passthrough NULL: it names none. */
bool tl_passthrough_names(const struct tl_passthrough *passthrough, const char *queue);

/* Does everyone get into this queue now, by the file or by its mode in the store? */
bool tl_passthrough_applies(const struct tl_api *api, const char *queue);
/* Counts one who got in that way. */
void tl_passthrough_count(const struct tl_api *api, const char *queue);
#endif
