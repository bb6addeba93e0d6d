/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the queues that the file lets everyone into past the line (`mode: passthrough`), for
 * the day on which the waiting room itself must get out of the way: read at the start and at every
 * SIGHUP, because the store may be what is away. */
#ifndef TL_PASSTHROUGH_H
#define TL_PASSTHROUGH_H

#include <stdbool.h>

#include "common/config/config.h"

struct tl_passthrough;

/* Those of this configuration; NULL when out of memory. Logs each. */
struct tl_passthrough *tl_passthrough_new(const struct tl_config *config);
void tl_passthrough_free(struct tl_passthrough **passthrough); /* NULL allowed */
/* Does the file name this queue? passthrough NULL: it names none. */
bool tl_passthrough_names(const struct tl_passthrough *passthrough, const char *queue);

#endif
