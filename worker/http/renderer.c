/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/http/renderer.h"

void tl_render_view(struct tl_request *request, const struct tl_view *view, const char *cookie)
{
    tl_request_renderer(request)->view(tl_request_context(request), request, view, cookie);
}

void tl_render_refusal(struct tl_request *request, const struct tl_refusal *refusal)
{
    tl_request_renderer(request)->refusal(tl_request_context(request), request, refusal);
}

void tl_render_refused(struct tl_request *request, enum tl_refusal_kind kind, const char *detail)
{
    struct tl_refusal refusal;
    tl_refuse(&refusal, kind, "%s", detail);
    tl_render_refusal(request, &refusal);
}
