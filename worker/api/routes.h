/* SPDX-License-Identifier: Apache-2.0 */
/* Which handler answers what, and how the answers look. */
#ifndef TL_ROUTES_H
#define TL_ROUTES_H

#include "worker/http/router.h"

extern const struct tl_route tl_routes[];

#endif
