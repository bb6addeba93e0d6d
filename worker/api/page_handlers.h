/* SPDX-License-Identifier: Apache-2.0 */
/* The waiting page: GET /q/{q} and its forms. */
#ifndef TL_PAGE_HANDLERS_H
#define TL_PAGE_HANDLERS_H

#include "worker/http/router.h"

tl_handler tl_handle_page, tl_handle_page_join, tl_handle_page_leave;

#endif
