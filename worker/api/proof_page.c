/* SPDX-License-Identifier: Apache-2.0 */
/* GET /q/{queue}/proof: the page on which visitors verify that their places are in the trail. */
#include <string.h>

#include "worker/api/handlers.h"
#include "worker/archive/archive.h"
#include "worker/page/page.h"
#include "worker/page/proof_page.h"
#include "worker/visit/browser.h"

static bool send_page(const struct tl_visit *visit, struct tl_proof_page *what, unsigned status)
{
    struct tl_text page = {0}, policy = {0};
    what->queue = visit->name;
    what->ticket = tl_cookie_works(visit) ? NULL : tl_request_query(visit->request, "ticket");
    tl_proof_page_render(what, visit->worker->brand, tl_language_of(visit), &page, &policy);
    struct tl_answer answer = {.status = status, .type = "text/html; charset=utf-8"};
    if (!page.failed && !policy.failed) {
        answer.body = page.data;
        answer.length = page.length;
    } else {
        answer = (struct tl_answer){.status = 503};
    }
    tl_answer_header(&answer, "Content-Security-Policy",
                     policy.failed ? "default-src 'none'" : policy.data);
    tl_answer_header(&answer, "Referrer-Policy", TL_PAGE_REFERRER_POLICY);
    tl_answer_header(&answer, "X-Content-Type-Options", "nosniff");
    tl_answer_header(&answer, "Vary", "Accept-Language, Cookie");
    tl_request_answer(visit->request, &answer);
    tl_text_free(&page);
    tl_text_free(&policy);
    return true;
}

/* Says why there is no proof. */
static bool send_refusal(const struct tl_visit *visit)
{
    const enum tl_refusal_kind kind = visit->refusal.kind;
    struct tl_proof_page what = {.missing = TL_PROOF_AWAY};
    if (!tl_proof_exists(visit->worker))
        what.missing = TL_PROOF_NONE;
    else if (kind == TL_REFUSAL_NOT_FOUND || kind == TL_REFUSAL_NO_QUEUE ||
             kind == TL_REFUSAL_NOT_NUMBERED)
        what.missing = TL_PROOF_NOT_YET;
    else if (kind == TL_REFUSAL_BAD_TICKET)
        what.missing = TL_PROOF_NO_TICKET;
    return send_page(visit, &what, tl_refusal_row(kind)->status);
}

static bool told(struct tl_visit *visit)
{
    const struct tl_archive_job *job = tl_proof_told(visit);
    char json[TL_PROOF_TEXT_MAX], who[TL_LEAF_WHO_SIZE];
    struct tl_leaf leaf;
    struct tl_error err = {0};
    if (job == NULL || !tl_leaf_read(job->proof->leaf, strlen(job->proof->leaf), &leaf, &err))
        return send_refusal(visit);
    tl_place place = tl_leaf_held(&leaf, who);
    json[tl_proof_write(visit, job, json)] = '\0';
    struct tl_proof_page what = {.json = json,
                                 .leaf = job->proof->leaf,
                                 .checkpoint = (const char *)job->bytes,
                                 .lane = tl_place_lane(place),
                                 .seq = tl_place_seq(place),
                                 .index = job->proof->index,
                                 .size = job->proof->size,
                                 .ms = leaf.ms};
    return send_page(visit, &what, 200);
}

bool tl_handle_page_proof(struct tl_visit *visit)
{
    return tl_proof_ask(visit, told) || send_refusal(visit);
}
