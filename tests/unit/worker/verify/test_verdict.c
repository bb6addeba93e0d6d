/* Answers of challenge services: who passes, who is refused, and what is no answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "worker/verify/provider.h"
#include "worker/verify/verdict.h"

struct sample {
    unsigned status;
    const char *text;
    enum tl_verdict_kind kind;
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
        {200, "{\"success\":true}", TL_VERDICT_PASSED, ""},
        {200, " {\"success\": true, \"error-codes\": [], \"hostname\": \"a\"}\n", TL_VERDICT_PASSED,
         ""},
        {200, "{\"success\":false}", TL_VERDICT_REFUSED, "does not accept"},
        {200, "{\"success\":false,\"error-codes\":[\"timeout-or-duplicate\"]}", TL_VERDICT_REFUSED,
         "(timeout-or-duplicate)"},
        {200, "{\"success\":false,\"error-codes\":[\"a\\u0007b\\u00e9\"]}", TL_VERDICT_REFUSED,
         "(a?b?"},
        {200, "{\"success\":false,\"error-codes\":\"none\"}", TL_VERDICT_REFUSED, "not accept"},
        {200, "{\"success\":false,\"error-codes\":[1,null,{}]}", TL_VERDICT_REFUSED, "not accept"},
        {200, "{\"success\":false,\"error-codes\":[\"bad-request\"]}", TL_VERDICT_REFUSED, "bad"},
        {200, "{\"success\":false,\"error-codes\":[\"x\",\"invalid-input-secret\"]}",
         TL_VERDICT_NO_SECRET, "invalid-input-secret"},
        {200, "{\"success\":false,\"error-codes\":[\"missing-input-secret\"]}",
         TL_VERDICT_NO_SECRET, "missing"},
        {400, "{\"success\":false,\"error-codes\":[\"invalid-input-secret\"]}",
         TL_VERDICT_NO_SECRET, "invalid"},
        {200, "{\"success\":false,\"error-codes\":[\"internal-error\"]}", TL_VERDICT_UNREACHABLE,
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
        {400, "", TL_VERDICT_REFUSED, "not accept"},
        {413, "<h1>Too large</h1>", TL_VERDICT_REFUSED, "not accept"},
        {414, "{\"success\":true}", TL_VERDICT_REFUSED, "not accept"},
        {422, "{}", TL_VERDICT_REFUSED, "not accept"},
    };
    check(samples, COUNT(samples), &none);
}

static void what_is_no_answer(void **state)
{
    (void)state;
    static const struct tl_verdict_rules none = {.hostname = ""};
    static const struct sample samples[] = {
        {200, "", TL_VERDICT_UNREACHABLE, "no verification"},
        {200, "{\"success\": tru", TL_VERDICT_UNREACHABLE, "no verification"},
        {200, "{\"success\":\"true\"}", TL_VERDICT_UNREACHABLE, "no verification"},
        {200, "{\"success\":1}", TL_VERDICT_UNREACHABLE, "no verification"},
        {200, "{}", TL_VERDICT_UNREACHABLE, "no verification"},
        {200, "[true]", TL_VERDICT_UNREACHABLE, "no verification"},
        {200, "{\"success\":true}}", TL_VERDICT_UNREACHABLE, "no verification"},
        {200, "{\"success\":true,\"x\":\"\xff\"}", TL_VERDICT_UNREACHABLE, "no verification"},
        {500, "{\"success\":true}", TL_VERDICT_UNREACHABLE, "status 500"},
        {302, "", TL_VERDICT_UNREACHABLE, "status 302"},
        {404, "{\"success\":true}", TL_VERDICT_UNREACHABLE, "status 404"},
        {429, "", TL_VERDICT_UNREACHABLE, "status 429"},
    };
    check(samples, COUNT(samples), &none);
    struct tl_verdict verdict;
    char *large = malloc(TL_VERDICT_ANSWER_MAX + 1);
    assert_non_null(large);
    memset(large, ' ', TL_VERDICT_ANSWER_MAX + 1);
    memcpy(large, "{\"success\":true}", 16);
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
        {200, "{\"success\":true,\"hostname\":\"Shop.Example\"}", TL_VERDICT_PASSED, ""},
        {200, "{\"success\":true,\"hostname\":\"shop.example.net\"}", TL_VERDICT_REFUSED, "site"},
        {200, "{\"success\":true,\"hostname\":\"\"}", TL_VERDICT_REFUSED, "site"},
        {200, "{\"success\":true,\"hostname\":7}", TL_VERDICT_REFUSED, "site"},
        {200, "{\"success\":true}", TL_VERDICT_REFUSED, "site"},
    };
    check(of_host, COUNT(of_host), &host);
    static const struct tl_verdict_rules score = {.hostname = "", .min_score = 50};
    static const struct sample of_score[] = {
        {200, "{\"success\":true,\"score\":0.5}", TL_VERDICT_PASSED, ""},
        {200, "{\"success\":true,\"score\":1}", TL_VERDICT_PASSED, ""},
        {200, "{\"success\":true,\"score\":0.4}", TL_VERDICT_REFUSED, "not sure"},
        {200, "{\"success\":true,\"score\":\"1\"}", TL_VERDICT_REFUSED, "not sure"},
        {200, "{\"success\":true,\"score\":-1e300}", TL_VERDICT_REFUSED, "not sure"},
        {200, "{\"success\":true}", TL_VERDICT_REFUSED, "not sure"},
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
