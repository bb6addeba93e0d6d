/* SPDX-License-Identifier: Apache-2.0 */
/* The static files: what the waiting page loads, and the description of the API. */
#ifndef TL_API_ASSETS_H
#define TL_API_ASSETS_H

#include "worker/http/router.h"

tl_handler tl_handle_asset, tl_handle_openapi;

#endif
