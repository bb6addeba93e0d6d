/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "worker/verify/verdict.h"

static const struct tl_provider providers[] = {
    [TL_PROVIDER_TURNSTILE] = {"turnstile", "Cloudflare Turnstile",
                               "https://challenges.cloudflare.com/turnstile/v0/siteverify",
                               "https://challenges.cloudflare.com/turnstile/v0/api.js",
                               "https://challenges.cloudflare.com"},
    [TL_PROVIDER_HCAPTCHA] = {"hcaptcha", "hCaptcha", "https://api.hcaptcha.com/siteverify",
                              "https://js.hcaptcha.com/1/api.js",
                              "https://hcaptcha.com https://*.hcaptcha.com"},
    [TL_PROVIDER_RECAPTCHA] =
        {"recaptcha", "Google reCAPTCHA", "https://www.google.com/recaptcha/api/siteverify",
         "https://www.google.com/recaptcha/api.js",
         "https://www.google.com/recaptcha/ https://www.gstatic.com/recaptcha/ "
         "https://recaptcha.google.com/recaptcha/"},
};

const struct tl_provider *tl_provider_of(enum tl_challenge_provider provider)
{
    return &providers[provider];
}

void tl_verdict_set(struct tl_verdict *verdict, enum tl_verdict_kind kind, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(verdict->why, sizeof(verdict->why), format, args);
    va_end(args);
    verdict->kind = kind;
    for (char *at = verdict->why; *at != '\0'; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
}

/* Does this status say that the request itself was wrong? Then the token may be the reason. */
static bool blames_request(unsigned status)
{
    return status == 400 || status == 413 || status == 414 || status == 422;
}

/* The answer says no: because of the token, or because of us. (A token of another site key may lead
 * to "sitekey-secret-mismatch" or "invalid-keys": those are the token's.) */
static void decode_refusal(const json_t *root, struct tl_verdict *verdict)
{
    static const char *const ours[] = {"missing-input-secret", "invalid-input-secret"};
    const json_t *codes = json_object_get(root, "error-codes");
    const char *first = json_string_value(json_array_get(codes, 0));
    for (size_t i = 0; i < json_array_size(codes); i++) {
        const char *code = json_string_value(json_array_get(codes, i));
        for (size_t j = 0; code != NULL && j < sizeof(ours) / sizeof(ours[0]); j++) {
            if (strcmp(code, ours[j]) == 0) {
                tl_verdict_set(verdict, TL_VERDICT_NO_SECRET, "%s", code);
                return;
            }
        }
        if (code != NULL && strcmp(code, "internal-error") == 0) {
            tl_verdict_set(verdict, TL_VERDICT_UNREACHABLE, "it reports an internal error");
            return;
        }
    }
    tl_verdict_set(verdict, TL_VERDICT_REFUSED, "The service does not accept this token%s%.40s%s",
                   first != NULL ? " (" : "", first != NULL ? first : "", first != NULL ? ")" : "");
}

static void decode_consent(const json_t *root, const struct tl_verdict_rules *rules,
                           struct tl_verdict *verdict)
{
    const char *hostname = json_string_value(json_object_get(root, "hostname"));
    const json_t *score = json_object_get(root, "score");
    if (rules->hostname[0] != '\0' &&
        (hostname == NULL || strcasecmp(hostname, rules->hostname) != 0))
        tl_verdict_set(verdict, TL_VERDICT_REFUSED, "The check was done on another site");
    else if (rules->min_score > 0 &&
             !(json_is_number(score) && json_number_value(score) >= rules->min_score))
        tl_verdict_set(verdict, TL_VERDICT_REFUSED, "The service is not sure about this visitor");
    else
        *verdict = (struct tl_verdict){.kind = TL_VERDICT_PASSED};
}

void tl_verdict_decode(unsigned status, const char *text, size_t length,
                       const struct tl_verdict_rules *rules, struct tl_verdict *verdict)
{
    bool blamed = blames_request(status);
    if (status != 200 && !blamed) {
        tl_verdict_set(verdict, TL_VERDICT_UNREACHABLE, "it answers with HTTP status %u", status);
        return;
    }
    json_t *root = length <= TL_VERDICT_ANSWER_MAX ? json_loadb(text, length, 0, NULL) : NULL;
    const json_t *success = json_object_get(root, "success");
    if (json_is_boolean(success) && !json_is_true(success))
        decode_refusal(root, verdict);
    else if (blamed)
        tl_verdict_set(verdict, TL_VERDICT_REFUSED, "The service does not accept this token");
    else if (json_is_true(success))
        decode_consent(root, rules, verdict);
    else
        tl_verdict_set(verdict, TL_VERDICT_UNREACHABLE, "its answer is no verification of a token");
    json_decref(root);
}
