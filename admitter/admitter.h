/* SPDX-License-Identifier: Apache-2.0 */
/* The admitter: admits the next visitors while there is capacity. */
#ifndef TL_ADMITTER_H
#define TL_ADMITTER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/role/daemon.h"

void *tl_admitter_start(struct tl_daemon *daemon, struct tl_error *err);
bool tl_admitter_turn(void *state, int64_t now_ms, struct tl_error *err);
void tl_admitter_stop(void *state);

#endif
