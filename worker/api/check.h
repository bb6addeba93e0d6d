/* GET /v1/queues/{q}/check: what gateways ask before they let a request through (nginx
 * auth_request, forward_auth). */
#ifndef TL_CHECK_H
#define TL_CHECK_H

#include "worker/http/router.h"

tl_handler tl_handle_check;

#endif
