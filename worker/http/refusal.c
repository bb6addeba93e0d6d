/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "common/base/json_text.h"
#include "worker/http/refusal.h"
#include "worker/http/request.h"

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
    unsigned least = tl_refusal_row(kind)->retry_after_s;
    return least > 0 ? least + spread(least + 1) : 0;
}

void tl_problem_answer(struct tl_request *request, const struct tl_refusal *refusal)
{
    const struct tl_refusal_row *kind = tl_refusal_row(refusal->kind);
    char text[2048];
    char type[64];
    char retry_after[16];
    struct tl_json json;
    tl_json_begin(&json, text, sizeof(text));
    snprintf(type, sizeof(type), TL_REFUSAL_PATH "%s", kind->name);
    tl_json_string(&json, "type", type);
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
