/* SPDX-License-Identifier: Apache-2.0 */
/* The expirer: ends sessions at their deadline and drops waiting visitors who went away. */
#ifndef TL_EXPIRER_H
#define TL_EXPIRER_H

#include "common/role/role.h"

extern const struct tl_role tl_expirer;

#endif
