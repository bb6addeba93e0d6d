/* SPDX-License-Identifier: Apache-2.0 */
/* What anyone may ask: a queue's public numbers, the public keys of passes, health. */
#ifndef TL_PUBLIC_H
#define TL_PUBLIC_H

#include "worker/api/context.h"
#include "worker/http/router.h"
#include "worker/report/slot.h"

tl_handler tl_handle_queue, tl_handle_jwks, tl_handle_livez, tl_handle_readyz;

#endif
