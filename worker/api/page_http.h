/* The waiting page over HTTP. Requests under /q/ are answered by people's pages instead of JSON:
 * answer.c and problem.c ask here first. */
#ifndef TL_PAGE_HTTP_H
#define TL_PAGE_HTTP_H

#include <stdbool.h>

#include "worker/api/view.h"
#include "worker/http/problem.h"
#include "worker/page/brand.h"
#include "worker/queue/room.h"

/* Is this a request of the waiting page? */
bool tl_page_wanted(const struct tl_request *request);

/* The page for this view (or, after a form was sent, the way back to it). cookie: the Set-Cookie
 * value, NULL for none. */
void tl_page_answer_view(struct tl_room *room, struct tl_request *request,
                         const struct tl_view *view, const char *cookie);
/* The page for a refusal with this status. */
void tl_page_answer_problem(struct tl_request *request, enum tl_problem problem, unsigned status,
                            unsigned retry_after_s);

/* The look from the configuration. NULL on failure. */
struct tl_brand *tl_page_load_brand(const struct tl_config *config, struct tl_error *err);

#endif
