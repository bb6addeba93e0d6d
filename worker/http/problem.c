#include <stdarg.h>
#include <stdio.h>

#include "worker/api/page_http.h"
#include "worker/http/json_text.h"
#include "worker/http/problem.h"

struct kind {
    unsigned status;
    unsigned retry_after_s; /* 0: none */
    const char *type;
    const char *title;
};

static const struct kind kinds[TL_PROBLEM_COUNT] = {
    [TL_PROBLEM_NOT_FOUND] = {404, 0, "/problems/not-found", "There is nothing at this address"},
    [TL_PROBLEM_METHOD] = {405, 0, "/problems/method-not-allowed",
                           "This address does not take that method"},
    [TL_PROBLEM_NO_QUEUE] = {404, 0, "/problems/no-such-queue", "There is no such queue"},
    [TL_PROBLEM_BAD_BODY] = {400, 0, "/problems/bad-body", "The request's body makes no sense"},
    [TL_PROBLEM_BAD_QUERY] = {400, 0, "/problems/bad-query", "A query parameter makes no sense"},
    [TL_PROBLEM_NOT_JSON] = {415, 0, "/problems/not-json", "The body must be application/json"},
    [TL_PROBLEM_TOO_LARGE] = {413, 0, "/problems/too-large", "The request's body is too large"},
    [TL_PROBLEM_NOT_TRUSTED] = {403, 0, "/problems/not-trusted",
                                "Only a trusted caller may do this"},
    [TL_PROBLEM_BAD_TICKET] = {401, 0, "/problems/bad-ticket",
                               "A genuine ticket of this queue is needed"},
    [TL_PROBLEM_BY_INVITATION] = {403, 0, "/problems/by-invitation",
                                  "This queue is joined by invitation only"},
    [TL_PROBLEM_BAD_INVITE] = {403, 0, "/problems/bad-invite", "This invite does not count"},
    [TL_PROBLEM_INVITE_SPENT] = {403, 0, "/problems/invite-spent",
                                 "This invite has been used already"},
    [TL_PROBLEM_TOO_MANY] = {429, 30, "/problems/too-many-joins",
                             "Too many joins from this address"},
    [TL_PROBLEM_OLD_GENERATION] = {409, 0, "/problems/made-anew",
                                   "The queue was made anew; join again"},
    [TL_PROBLEM_NOT_NUMBERED] = {409, 1, "/problems/not-numbered", "The place is not numbered yet"},
    [TL_PROBLEM_NOT_ADMITTED] = {409, 0, "/problems/not-admitted", "Not admitted yet"},
    [TL_PROBLEM_BUSY] = {503, 2, "/problems/busy", "Too much is under way"},
    [TL_PROBLEM_STORE] = {503, 2, "/problems/store-unavailable",
                          "The line cannot be kept safely now"},
    [TL_PROBLEM_LOADING] = {503, 1, "/problems/loading", "The line is being loaded"},
    [TL_PROBLEM_UNKNOWN_OUTCOME] = {503, 1, "/problems/unknown-outcome",
                                    "The outcome is not known yet"},
    [TL_PROBLEM_STOPPING] = {503, 1, "/problems/stopping", "This process is about to stop"},
};

static void add_header(struct tl_answer *answer, const char *name, const char *value)
{
    answer->headers[answer->n_headers++] = (struct tl_header){.name = name, .value = value};
}

static void answer_kind(struct tl_request *request, const struct kind *kind, const char *detail,
                        const char *allowed)
{
    char text[1024];
    char retry_after[16];
    struct tl_json json;
    tl_json_begin(&json, text, sizeof(text));
    tl_json_string(&json, "type", kind->type);
    tl_json_string(&json, "title", kind->title);
    tl_json_uint(&json, "status", kind->status);
    if (detail[0] != '\0')
        tl_json_string(&json, "detail", detail);
    tl_json_string(&json, "instance", tl_request_id(request));
    struct tl_answer answer = {.status = kind->status,
                               .type = "application/problem+json",
                               .body = text,
                               .length = tl_json_end(&json)};
    if (kind->retry_after_s > 0) {
        snprintf(retry_after, sizeof(retry_after), "%u", kind->retry_after_s);
        add_header(&answer, "Retry-After", retry_after);
    }
    if (kind->status == 401)
        add_header(&answer, "WWW-Authenticate", "Bearer");
    if (allowed != NULL)
        add_header(&answer, "Allow", allowed);
    tl_request_answer(request, &answer);
}

void tl_problem_answer(struct tl_request *request, enum tl_problem problem, const char *detail, ...)
{
    char text[256];
    va_list args;
    va_start(args, detail);
    if (vsnprintf(text, sizeof(text), detail, args) < 0)
        text[0] = '\0';
    va_end(args);
    if (tl_page_wanted(request)) {
        tl_page_answer_problem(request, problem, kinds[problem].status,
                               kinds[problem].retry_after_s);
        return;
    }
    answer_kind(request, &kinds[problem], text, NULL);
}

void tl_problem_method(struct tl_request *request, const char *allowed)
{
    answer_kind(request, &kinds[TL_PROBLEM_METHOD], "", allowed);
}
