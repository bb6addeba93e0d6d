/* SPDX-License-Identifier: Apache-2.0 */
/* The admitter: admits the next visitors while there is capacity. */
#ifndef TL_ADMITTER_H
#define TL_ADMITTER_H

#include "common/role/role.h"

extern const struct tl_role tl_admitter;

#endif
