/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of challenge services: who passes, who is refused, and what is no answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker/verify/verdict.h"

struct sample {
    unsigned status;
    enum tl_verdict_kind kind;
    const char *text;
    const char *why; /* part of it */
};

static void check(const struct sample *samples, size_t n, const struct tl_verdict_rules *rules)
{
    for (size_t i = 0; i < n; i++) {
        struct tl_verdict verdict;
        /* Not terminated: the decoder must not read past the length. */
        size_t length = strlen(samples[i].text);
        char *text = malloc(length > 0 ? length : 1);
        assert_non_null(text);
        memcpy(text, samples[i].text, length);
        tl_verdict_decode(samples[i].status, text, length, rules, &verdict);
        free(text);
        if (verdict.kind != samples[i].kind || strstr(verdict.why, samples[i].why) == NULL)
            fail_msg("%s: %d, %s", samples[i].text, (int)verdict.kind, verdict.why);
        assert_int_equal(verdict.why[0] == '\0', verdict.kind == TL_VERDICT_PASSED);
    }
}

#define COUNT(samples) (sizeof(samples) / sizeof((samples)[0]))

static void the_service_decides(void **state)
{
    (void)state;
    static const struct tl_verdict_rules none = {.hostname = ""};
    static const struct sample samples[] = {
        {200, TL_VERDICT_PASSED, "{\"success\":true}", ""},
        {200, TL_VERDICT_PASSED, " {\"success\": true, \"error-codes\": [], \"hostname\": \"a\"}\n",
         ""},
        {200, TL_VERDICT_REFUSED, "{\"success\":false}", "does not accept"},
        {200, TL_VERDICT_REFUSED, "{\"success\":false,\"error-codes\":[\"timeout-or-duplicate\"]}",
         "(timeout-or-duplicate)"},
        {200, TL_VERDICT_REFUSED, "{\"success\":false,\"error-codes\":[\"a\\u0007b\\u00e9\"]}",
         "(a?b?"},
        {200, TL_VERDICT_REFUSED, "{\"success\":false,\"error-codes\":\"none\"}", "not accept"},
        {200, TL_VERDICT_REFUSED, "{\"success\":false,\"error-codes\":[1,null,{}]}", "not accept"},
        {200, TL_VERDICT_REFUSED, "{\"success\":false,\"error-codes\":[\"bad-request\"]}", "bad"},
        {200, TL_VERDICT_REFUSED,
         "{\"success\":false,\"error-codes\":[\"sitekey-secret-mismatch\"]}", "mismatch"},
        {200, TL_VERDICT_REFUSED, "{\"success\":false,\"error-codes\":[\"invalid-keys\"]}",
         "invalid-keys"},
        {200, TL_VERDICT_NO_SECRET,
         "{\"success\":false,\"error-codes\":[\"x\",\"invalid-input-secret\"]}",
         "invalid-input-secret"},
        {200, TL_VERDICT_NO_SECRET,
         "{\"success\":false,\"error-codes\":[\"missing-input-secret\"]}", "missing"},
        {400, TL_VERDICT_NO_SECRET,
         "{\"success\":false,\"error-codes\":[\"invalid-input-secret\"]}", "invalid"},
        {200, TL_VERDICT_UNREACHABLE, "{\"success\":false,\"error-codes\":[\"internal-error\"]}",
         "internal"},
    };
    check(samples, COUNT(samples), &none);
}

/* A strange token must not look like a service that is away, which may open another way in. */
static void what_blames_the_request_is_a_refusal(void **state)
{
    (void)state;
    static const struct tl_verdict_rules none = {.hostname = ""};
    static const struct sample samples[] = {
        {400, TL_VERDICT_REFUSED, "", "not accept"},
        {413, TL_VERDICT_REFUSED, "<h1>Too large</h1>", "not accept"},
        {414, TL_VERDICT_REFUSED, "{\"success\":true}", "not accept"},
        {422, TL_VERDICT_REFUSED, "{}", "not accept"},
    };
    check(samples, COUNT(samples), &none);
}

static void what_is_no_answer(void **state)
{
    (void)state;
    static const struct tl_verdict_rules none = {.hostname = ""};
    static const struct sample samples[] = {
        {200, TL_VERDICT_UNREACHABLE, "", "no verification"},
        {200, TL_VERDICT_UNREACHABLE, "{\"success\": tru", "no verification"},
        {200, TL_VERDICT_UNREACHABLE, "{\"success\":\"true\"}", "no verification"},
        {200, TL_VERDICT_UNREACHABLE, "{\"success\":1}", "no verification"},
        {200, TL_VERDICT_UNREACHABLE, "{}", "no verification"},
        {200, TL_VERDICT_UNREACHABLE, "[true]", "no verification"},
        {200, TL_VERDICT_UNREACHABLE, "{\"success\":true}}", "no verification"},
        {200, TL_VERDICT_UNREACHABLE, "{\"success\":true,\"x\":\"\xff\"}", "no verification"},
        {500, TL_VERDICT_UNREACHABLE, "{\"success\":true}", "status 500"},
        {302, TL_VERDICT_UNREACHABLE, "", "status 302"},
        {404, TL_VERDICT_UNREACHABLE, "{\"success\":true}", "status 404"},
        {429, TL_VERDICT_UNREACHABLE, "", "status 429"},
    };
    check(samples, COUNT(samples), &none);
    struct tl_verdict verdict;
    char *large = malloc(TL_VERDICT_ANSWER_MAX + 1);
    assert_non_null(large);
    memset(large, ' ', TL_VERDICT_ANSWER_MAX + 1);
    static const char good[] = "{\"success\":true}";
    memcpy(large, good, sizeof(good) - 1);
    tl_verdict_decode(200, large, TL_VERDICT_ANSWER_MAX, &none, &verdict);
    assert_int_equal(verdict.kind, TL_VERDICT_PASSED);
    tl_verdict_decode(200, large, TL_VERDICT_ANSWER_MAX + 1, &none, &verdict);
    assert_int_equal(verdict.kind, TL_VERDICT_UNREACHABLE);
    memset(large, '[', TL_VERDICT_ANSWER_MAX);
    tl_verdict_decode(200, large, TL_VERDICT_ANSWER_MAX, &none, &verdict);
    assert_int_equal(verdict.kind, TL_VERDICT_UNREACHABLE);
    free(large);
}

static void our_rules_decide_too(void **state)
{
    (void)state;
    static const struct tl_verdict_rules host = {.hostname = "shop.example"};
    static const struct sample of_host[] = {
        {200, TL_VERDICT_PASSED, "{\"success\":true,\"hostname\":\"Shop.Example\"}", ""},
        {200, TL_VERDICT_REFUSED, "{\"success\":true,\"hostname\":\"shop.example.net\"}", "site"},
        {200, TL_VERDICT_REFUSED, "{\"success\":true,\"hostname\":\"\"}", "site"},
        {200, TL_VERDICT_REFUSED, "{\"success\":true,\"hostname\":7}", "site"},
        {200, TL_VERDICT_REFUSED, "{\"success\":true}", "site"},
    };
    check(of_host, COUNT(of_host), &host);
    static const struct tl_verdict_rules score = {.hostname = "", .min_score = 0.5};
    static const struct sample of_score[] = {
        {200, TL_VERDICT_PASSED, "{\"success\":true,\"score\":0.5}", ""},
        {200, TL_VERDICT_PASSED, "{\"success\":true,\"score\":1}", ""},
        {200, TL_VERDICT_REFUSED, "{\"success\":true,\"score\":0.4}", "not sure"},
        {200, TL_VERDICT_REFUSED, "{\"success\":true,\"score\":\"1\"}", "not sure"},
        {200, TL_VERDICT_REFUSED, "{\"success\":true,\"score\":-1e300}", "not sure"},
        {200, TL_VERDICT_REFUSED, "{\"success\":true}", "not sure"},
    };
    check(of_score, COUNT(of_score), &score);
}

static void every_provider_is_complete(void **state)
{
    (void)state;
    for (unsigned i = TL_PROVIDER_TURNSTILE; i <= TL_PROVIDER_RECAPTCHA; i++) {
        const struct tl_provider *provider = tl_provider_of((enum tl_challenge_provider)i);
        assert_true(provider->name[0] != '\0' && provider->title[0] != '\0');
        assert_int_equal(strncmp(provider->verify_url, "https://", 8), 0);
        assert_int_equal(strncmp(provider->script_url, "https://", 8), 0);
        /* Nothing in it may end the directive of a policy. */
        assert_null(strpbrk(provider->sources, ";,'\""));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_service_decides),
        cmocka_unit_test(what_blames_the_request_is_a_refusal),
        cmocka_unit_test(what_is_no_answer),
        cmocka_unit_test(our_rules_decide_too),
        cmocka_unit_test(every_provider_is_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
