/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How answers look: JSON for programs, a page for people. The route of a request sets its renderer,
 * so that the code which answers it later need not ask what kind of request it was.
 */
#ifndef TL_RENDERER_H
#define TL_RENDERER_H

#include "worker/http/refusal.h"
#include "worker/http/request.h"

struct tl_view; /* what is said of a place; its definition belongs to the code that makes views */

/* context is the server's. */
struct tl_renderer {
    /* Answers with the view. cookie: a Set-Cookie value, or NULL. */
    void (*view)(void *context, struct tl_request *request, const struct tl_view *view,
                 const char *cookie);
    void (*refusal)(void *context, struct tl_request *request, const struct tl_refusal *refusal);
};

/* Answers a request through its renderer. */
void tl_render_view(struct tl_request *request, const struct tl_view *view, const char *cookie);
void tl_render_refusal(struct tl_request *request, const struct tl_refusal *refusal);
/* The same with a kind and a sentence. */
void tl_render_refused(struct tl_request *request, enum tl_refusal_kind kind, const char *detail);

#endif
