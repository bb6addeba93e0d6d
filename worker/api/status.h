/* SPDX-License-Identifier: Apache-2.0 */
/* What visitors ask with their ticket: status, leave, complete, renew, extend. */
#ifndef TL_STATUS_H
#define TL_STATUS_H

#include "worker/http/router.h"

tl_handler tl_handle_status, tl_handle_leave, tl_handle_complete, tl_handle_renew, tl_handle_extend;

#endif
