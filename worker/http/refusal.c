/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "worker/http/json_text.h"
#include "worker/http/refusal.h"
#include "worker/http/request.h"

struct kind {
    unsigned status;
    unsigned retry_after_s; /* at least, and at most twice that; 0: none */
    const char *type;
    const char *title;
};

static const struct kind kinds[TL_REFUSAL_COUNT] = {
    [TL_REFUSAL_NOT_FOUND] = {404, 0, "/problems/not-found", "Not found"},
    [TL_REFUSAL_MALFORMED] = {400, 0, "/problems/malformed", "The request is malformed"},
    [TL_REFUSAL_METHOD] = {405, 0, "/problems/method-not-allowed", "Method not allowed"},
    [TL_REFUSAL_NO_QUEUE] = {404, 0, "/problems/no-such-queue", "There is no such queue"},
    [TL_REFUSAL_BAD_BODY] = {400, 0, "/problems/bad-body", "The request body is not valid"},
    [TL_REFUSAL_BAD_QUERY] = {400, 0, "/problems/bad-query", "A query parameter is not valid"},
    [TL_REFUSAL_NOT_JSON] = {415, 0, "/problems/not-json", "The body must be application/json"},
    [TL_REFUSAL_TOO_LARGE] = {413, 0, "/problems/too-large", "The request body is too large"},
    [TL_REFUSAL_NOT_TRUSTED] = {403, 0, "/problems/not-trusted",
                                "Only a trusted caller may do this"},
    [TL_REFUSAL_FOREIGN_ORIGIN] = {403, 0, "/problems/foreign-origin",
                                   "A page of another web site sent this"},
    [TL_REFUSAL_BAD_TICKET] = {401, 0, "/problems/bad-ticket",
                               "A valid ticket of this queue is required"},
    [TL_REFUSAL_BY_INVITATION] = {403, 0, "/problems/by-invitation",
                                  "This queue is joined by invitation only"},
    [TL_REFUSAL_BAD_INVITE] = {403, 0, "/problems/bad-invite", "The invite is not valid"},
    [TL_REFUSAL_INVITE_SPENT] = {403, 0, "/problems/invite-spent",
                                 "This invite has been used already"},
    [TL_REFUSAL_REMOVED] = {403, 0, "/problems/removed", "This place was removed by the operator"},
    [TL_REFUSAL_BLOCKED] = {403, 0, "/problems/blocked", "This address is blocked"},
    [TL_REFUSAL_SHARED] = {403, 0, "/problems/shared-session",
                           "This session is used by another client"},
    [TL_REFUSAL_FORGERIES] = {429, 30, "/problems/too-many-forgeries",
                              "Too many tokens from this address were not genuine"},
    [TL_REFUSAL_CHALLENGE] = {403, 0, "/problems/challenge-required",
                              "This queue asks for a check first"},
    [TL_REFUSAL_CHALLENGE_FAILED] = {403, 0, "/problems/challenge-failed",
                                     "The check did not succeed"},
    [TL_REFUSAL_UNVERIFIED] = {503, 3, "/problems/challenge-unavailable",
                               "The check cannot be verified at the moment"},
    [TL_REFUSAL_TOO_MANY] = {429, 30, "/problems/too-many-joins",
                             "Too many joins from this address"},
    [TL_REFUSAL_TOO_OFTEN] = {429, 1, "/problems/too-often", "Too many calls in a short time"},
    [TL_REFUSAL_FULL] = {503, 15, "/problems/full", "The line is full"},
    [TL_REFUSAL_DRAINING] = {403, 30, "/problems/draining", "The queue takes no new visitors"},
    [TL_REFUSAL_CLOSED] = {403, 30, "/problems/closed", "The queue is closed"},
    [TL_REFUSAL_SOLD_OUT] = {410, 0, "/problems/sold-out", "Sold out"},
    [TL_REFUSAL_OVER] = {410, 0, "/problems/over", "The time to join is over"},
    [TL_REFUSAL_OLD_GENERATION] = {409, 0, "/problems/made-anew",
                                   "The queue was recreated; join again"},
    [TL_REFUSAL_NOT_NUMBERED] = {409, 1, "/problems/not-numbered", "The place has no number yet"},
    [TL_REFUSAL_NOT_ADMITTED] = {409, 0, "/problems/not-admitted", "Not admitted yet"},
    [TL_REFUSAL_MOVED] = {409, 0, "/problems/moved", "The place is on another device now"},
    [TL_REFUSAL_NOT_WAITING] = {409, 0, "/problems/not-waiting",
                                "Only a place that waits can be moved"},
    [TL_REFUSAL_NO_TRANSFER] = {403, 0, "/problems/no-transfer",
                                "Places stay on their devices here"},
    [TL_REFUSAL_BAD_CODE] = {403, 0, "/problems/bad-code", "The code is not valid"},
    [TL_REFUSAL_CODE_USED] = {409, 0, "/problems/code-used", "The code has been used already"},
    [TL_REFUSAL_CODE_OVER] = {410, 0, "/problems/code-over", "The code is no longer valid"},
    [TL_REFUSAL_BUSY] = {503, 2, "/problems/busy", "Too many requests are in progress"},
    [TL_REFUSAL_STORE] = {503, 2, "/problems/store-unavailable", "The store is not available"},
    [TL_REFUSAL_LOADING] = {503, 1, "/problems/loading", "The line is being loaded"},
    [TL_REFUSAL_UNKNOWN_OUTCOME] = {503, 1, "/problems/unknown-outcome",
                                    "The outcome is not known yet"},
    [TL_REFUSAL_STOPPING] = {503, 1, "/problems/stopping", "This process is shutting down"},
};

unsigned tl_problem_status(enum tl_refusal_kind kind)
{
    return kinds[kind].status;
}

/* A number below `bound` that spreads clients over time and keeps no secret. Nanoseconds of the
 * clock, mixed (Fibonacci hashing: Knuth, volume 3, 6.4): a flood of refusals must not cost a
 * system call for random bytes each. */
static unsigned spread(unsigned bound)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t mixed = (uint64_t)now.tv_nsec * UINT64_C(0x9E3779B97F4A7C15);
    return (unsigned)((mixed >> 32) % bound);
}

unsigned tl_problem_retry_after_s(enum tl_refusal_kind kind)
{
    unsigned least = kinds[kind].retry_after_s;
    return least > 0 ? least + spread(least + 1) : 0;
}

void tl_problem_answer(struct tl_request *request, const struct tl_refusal *refusal)
{
    const struct kind *kind = &kinds[refusal->kind];
    char text[2048];
    char retry_after[16];
    struct tl_json json;
    tl_json_begin(&json, text, sizeof(text));
    tl_json_string(&json, "type", kind->type);
    tl_json_string(&json, "title", kind->title);
    tl_json_uint(&json, "status", kind->status);
    if (refusal->detail[0] != '\0')
        tl_json_string(&json, "detail", refusal->detail);
    tl_json_string(&json, "instance", tl_request_id(request));
    if (refusal->puzzle.text[0] != '\0') {
        tl_json_string(&json, "puzzle", refusal->puzzle.text);
        tl_json_uint(&json, "parts", refusal->puzzle.parts);
        tl_json_uint(&json, "bits", refusal->puzzle.bits);
    }
    if (refusal->service.provider != NULL) {
        tl_json_string(&json, "provider", refusal->service.provider);
        tl_json_string(&json, "site_key", refusal->service.site_key);
    }
    struct tl_answer answer = {.status = kind->status,
                               .type = "application/problem+json",
                               .body = text,
                               .length = tl_json_end(&json)};
    if (kind->retry_after_s > 0) {
        snprintf(retry_after, sizeof(retry_after), "%u", tl_problem_retry_after_s(refusal->kind));
        tl_answer_header(&answer, "Retry-After", retry_after);
    }
    if (kind->status == 401)
        tl_answer_header(&answer, "WWW-Authenticate", "Bearer");
    tl_answer_header(&answer, "Allow", refusal->allowed);
    tl_request_answer(request, &answer);
}

bool tl_refuse(struct tl_refusal *refusal, enum tl_refusal_kind kind, const char *detail, ...)
{
    va_list args;
    refusal->kind = kind;
    refusal->allowed = NULL;
    refusal->puzzle.text[0] = '\0';
    refusal->service.provider = NULL;
    va_start(args, detail);
    if (vsnprintf(refusal->detail, sizeof(refusal->detail), detail, args) < 0)
        refusal->detail[0] = '\0';
    va_end(args);
    return false;
}
