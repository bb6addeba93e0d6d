/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/page/page.h"
#include "worker/page/page_assets.h"
#include "worker/page/page_text.h"

#define PAGE_BUDGET 65536 /* bytes of HTML, style and script together, uncompressed */
#define NOW_MS      INT64_C(1796122800000)

static const struct tl_queue_settings settings = {
    .capacity = 300,
    .waiting_ttl_ms = 600000,
    .closed_text = "en\0Own end\0ko\0Own end\0",
    .target_url = "https://shop.example/checkout",
};
static const struct tl_view waiting = {
    .page = TL_PAGE_WAITING,
    .queue = "concert",
    .visitor = "ann",
    .state = {.status = TL_LINE_WAITING, .ahead = 1233},
    .settings = &settings,
    .has_eta = true,
    .eta_low_s = 250.6,
    .eta_high_s = 399.4,
    .store_ms = NOW_MS,
    .poll_after_ms = 8000,
};

static struct tl_languages *languages;
static struct tl_brand *brand;

#define EN tl_languages_find(languages, "en")
#define KO tl_languages_find(languages, "ko")

static int load_brand(void **state)
{
    (void)state;
    static const struct tl_brand_settings own = {.name = "Hall & <Co>",
                                                 .text = "en\0Own words\0ko\0우리 말\0"};
    languages = tl_languages_new(NULL, NULL);
    if (languages != NULL)
        brand = tl_brand_load(&own, languages, NULL);
    return brand == NULL ? -1 : 0;
}

static int free_brand(void **state)
{
    (void)state;
    tl_brand_free(&brand);
    tl_languages_free(&languages);
    return 0;
}

static struct tl_text render(const struct tl_view *view, const struct tl_catalogue *language)
{
    struct tl_text out = {0};
    tl_page_render(view, brand, language, &out);
    assert_false(out.failed);
    return out;
}

static void holds(const struct tl_text *page, const char *text)
{
    if (strstr(page->data, text) == NULL)
        fail_msg("missing: %s\n%s", text, page->data);
}

static void lacks(const struct tl_text *page, const char *text)
{
    if (strstr(page->data, text) != NULL)
        fail_msg("should not be there: %s\n%s", text, page->data);
}

static void page_holds(const struct tl_view *view, const struct tl_catalogue *language,
                       const char *text)
{
    struct tl_text page = render(view, language);
    holds(&page, text);
    tl_text_free(&page);
}

static void page_lacks(const struct tl_view *view, const struct tl_catalogue *language,
                       const char *text)
{
    struct tl_text page = render(view, language);
    lacks(&page, text);
    tl_text_free(&page);
}

static const struct {
    const char *name;
    enum tl_page_state state;
    bool refreshes, offers_to_join, offers_to_leave;
} states[TL_PAGE_STATES] = {
    {"waiting", TL_PAGE_WAITING, true, false, true},
    {"pending", TL_PAGE_PENDING, true, false, true},
    {"active", TL_PAGE_ACTIVE, true, false, false},
    {"completed", TL_PAGE_COMPLETED, false, true, false},
    {"left", TL_PAGE_LEFT, false, true, false},
    {"expired", TL_PAGE_EXPIRED, false, true, false},
    {"unclaimed", TL_PAGE_UNCLAIMED, false, true, false},
    {"absent", TL_PAGE_ABSENT, false, true, false},
    {"ended", TL_PAGE_ENDED, false, true, false},
    {"lost", TL_PAGE_LOST, false, true, false},
    {"removed", TL_PAGE_REMOVED, false, false, false},
    {"moved", TL_PAGE_MOVED, false, false, false},
    {"code_over", TL_PAGE_CODE_OVER, false, false, false},
    {"move_here", TL_PAGE_MOVE, false, false, false},
    {"transfer", TL_PAGE_CODE, false, false, false},
    {"blocked", TL_PAGE_BLOCKED, false, false, false},
    {"closed", TL_PAGE_CLOSED, false, false, false},
    {"invited", TL_PAGE_INVITED, false, false, false},
    {"full", TL_PAGE_FULL, true, false, false},
    {"outside", TL_PAGE_OUTSIDE, false, true, false},
    {"challenge", TL_PAGE_CHALLENGE, false, false, false},
    {"shut", TL_PAGE_SHUT, false, false, false},
    {"sold_out", TL_PAGE_SOLD_OUT, false, false, false},
    {"passthrough", TL_PAGE_PASSTHROUGH, false, false, false},
    {"down", TL_PAGE_DOWN, true, false, false},
};

/* Exactly this state's section is shown, with its words. */
static void check_sections(const struct tl_text *page, const char *name,
                           const struct tl_catalogue *language)
{
    char text[256];
    for (size_t i = 0; i < TL_PAGE_STATES; i++) {
        bool own = strcmp(states[i].name, name) == 0;
        snprintf(text, sizeof(text), " data-state=\"%s\"%s>\n<h1>", states[i].name,
                 own ? "" : " hidden");
        holds(page, text);
    }
    snprintf(text, sizeof(text), "%s_head", name);
    const char *head = tl_page_message(text, language);
    assert_true(head[0] != '\0');
    snprintf(text, sizeof(text), " data-state=\"%s\">\n<h1>%s</h1>", name, head);
    holds(page, text);
}

static void test_every_state_in_every_language(void **state)
{
    (void)state;
    for (size_t i = 0; i < TL_PAGE_STATES; i++) {
        for (size_t j = 0; j < languages->n; j++) {
            const struct tl_catalogue *language = languages->all[j];
            bool korean = language == KO;
            char tag[64];
            snprintf(tag, sizeof(tag), "<html lang=\"%s\" dir=", language->code);
            struct tl_view view = waiting;
            view.page = states[i].state;
            struct tl_text page = render(&view, language);
            check_sections(&page, states[i].name, language);
            holds(&page, tag);
            holds(&page, korean           ? "<p class=\"own\">우리 말"
                         : language == EN ? "<p class=\"own\">Own words"
                                          : "<p class=\"own\" lang=\"en\">Own words");
            holds(&page,
                  korean || language == EN ? "<p>Own end</p>" : "<p lang=\"en\">Own end</p>");
            holds(&page, "Hall &amp; &lt;Co&gt;</title>");
            lacks(&page, "{{");
            lacks(&page, "<Co>");
            (states[i].refreshes ? holds : lacks)(&page, "http-equiv=\"refresh\"");
            (states[i].offers_to_join ? holds : lacks)(&page, "action=\"/q/concert/join\">");
            (states[i].offers_to_leave ? holds : lacks)(&page, "data-state=\"waiting pending\">");
            tl_text_free(&page);
        }
    }
}

static void test_waiting(void **state)
{
    (void)state;
    struct tl_text page = render(&waiting, EN);
    holds(&page, "<title>No. 1,234 in line – Hall");
    holds(&page, "data-position=\"1234\"");
    holds(&page, "<dd data-tl=\"ahead\">1,233</dd>");
    holds(&page, "<p class=\"wait\" data-tl=\"eta\">about 4 to 7 minutes</p>");
    holds(&page, "data-tl=\"admitted-row\" hidden");
    holds(&page, "data-tl=\"almost\" hidden");
    holds(&page, "content=\"8;url=/q/concert?from=1234\"");
    holds(&page, "refreshes itself every 8 seconds");
    holds(&page, "Come back within 10 minutes, in the same browser.</li>");
    holds(&page, "Updated at 11:00:00 UTC");
    holds(&page, "data-tl=\"before\" hidden");
    holds(&page, "data-tl=\"paused\" hidden");
    holds(&page, "aria-labelledby=\"notice-label\" hidden");
    holds(&page, "<form method=\"post\" action=\"/q/concert/leave?from=1234\"");
    holds(&page, "data-tl=\"has-reference\" hidden");
    lacks(&page, "shop.example"); /* where it goes on to is told when it is time */
    tl_text_free(&page);
    page_holds(&waiting, KO, "<dd data-tl=\"ahead\">1,233명</dd>");
    page_holds(&waiting, KO, "약 4~7분");
}

static void test_the_code_of_the_place(void **state)
{
    (void)state;
    struct tl_view view = waiting;
    view.reference = "Q5T9-4XDR";
    static const enum tl_page_state shown[] = {TL_PAGE_WAITING, TL_PAGE_ACTIVE, TL_PAGE_EXPIRED};
    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
        view.page = shown[i];
        page_holds(&view, EN,
                   "data-tl=\"has-reference\">Reference for support: "
                   "<code data-tl=\"reference\">Q5T9-4XDR</code>");
    }
}

/* A visitor finds their language by its own name, without the script. */
static void test_every_language_can_be_chosen(void **state)
{
    (void)state;
    page_holds(&waiting, KO, "<summary>한국어</summary>");
    page_holds(&waiting, KO, "lang=\"ko\" hreflang=\"ko\" aria-current=\"true\">한국어</a>");
    for (size_t i = 1; i < languages->n; i++) {
        const char *code = languages->all[i]->code;
        char link[256];
        snprintf(link, sizeof(link), "<a href=\"/q/concert?lang=%s&amp;from=1234\" lang=\"%s\" ",
                 code, code);
        page_holds(&waiting, EN, link);
    }
}

static void test_no_estimate(void **state)
{
    (void)state;
    struct tl_view view = waiting;
    view.has_eta = false;
    page_holds(&view, EN, "<p class=\"why\" data-tl=\"eta-why\" hidden></p>");
    view.eta_reason = "stalled";
    page_holds(&view, EN,
               "<p class=\"why\" data-tl=\"eta-why\">The line has not moved for a while.");
    page_holds(&view, KO, "<p class=\"why\" data-tl=\"eta-why\">줄이 잠시");
    view.eta_reason = "of a later version";
    page_holds(&view, EN, "<p class=\"why\" data-tl=\"eta-why\" hidden></p>");
    view.eta_reason = NULL;
    page_holds(&view, EN, "data-tl=\"eta\">Calculating…</p>");
    page_holds(&view, KO, "data-tl=\"eta\">계산 중입니다</p>");
    page_holds(&view, EN, "<div data-tl=\"eta-row\">");
    view.state.called = true;
    page_holds(&view, EN, "<div data-tl=\"eta-row\" hidden>");
    view.state.called = false;
    struct tl_queue_settings own = settings;
    own.opens_at_ms = NOW_MS + 60000;
    view.settings = &own;
    page_holds(&view, EN, "<div data-tl=\"eta-row\" hidden>");
}

static void test_pace_and_nearness(void **state)
{
    (void)state;
    struct tl_queue_settings own = settings;
    struct tl_view view = waiting;
    view.settings = &own;
    view.has_admitted = true;
    view.admitted = 1240;
    own.claim_ttl_ms = 120000;
    own.session_ttl_ms = 600000;
    struct tl_text page = render(&view, EN);
    holds(&page, "<dd data-tl=\"admitted\">1,240</dd>");
    holds(&page, "There is no need to reload it.</li>\n<li>You then have 10 minutes");
    holds(&page, "while you are away, you have 2 minutes to come in.</li>");
    tl_text_free(&page);
    own.session_sliding = true;
    own.session_max_ms = 600000;
    own.session_ttl_ms = 60000;
    page_holds(&view, EN, "up to 10 minutes. Your visit ends sooner after 1 minute without");
    own.target_url[0] = '\0';
    page_holds(&view, EN, "<li>This page tells you when it is your turn.");
    view.state.ahead = 19;
    page_holds(&view, EN, "data-tl=\"almost\">");
    view.mode = TL_MODE_PAUSED;
    view.eta_reason = "paused"; /* the note says it */
    page_holds(&view, EN, "data-tl=\"almost\" hidden");
    page_holds(&view, EN, "data-tl=\"eta-why\" hidden");
}

static void test_refresh_is_never_hasty(void **state)
{
    (void)state;
    struct tl_view view = waiting;
    view.poll_after_ms = 1000;
    page_holds(&view, EN, "content=\"5;url=");
    view.poll_after_ms = 8001;
    page_holds(&view, EN, "content=\"9;url=");
}

static void test_progress(void **state)
{
    (void)state;
    static const struct {
        uint64_t position, from;
        const char *value;
    } cases[] = {
        {1234, 0, "value=\"0\""},          {1234, 1234, "value=\"0\""}, {1234, 10, "value=\"0\""},
        {500, 1000, "value=\"500\""},      {1, 1000, "value=\"999\""},  {1, 1, "value=\"0\""},
        {1, UINT64_MAX, "value=\"1000\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tl_view view = waiting;
        view.state.ahead = cases[i].position - 1;
        view.from = cases[i].from;
        page_holds(&view, EN, cases[i].value);
    }
}

static void test_opening_and_pause(void **state)
{
    (void)state;
    struct tl_queue_settings own = settings;
    struct tl_view view = waiting;
    view.settings = &own;
    own.opens_at_ms = NOW_MS + 5400000;
    struct tl_text page = render(&view, EN);
    holds(&page, "<div class=\"opening\" data-tl=\"before\">");
    holds(&page, "datetime=\"2026-12-01T12:30:00Z\">1 Dec 2026, 12:30 UTC</time>");
    holds(&page, "data-tl=\"countdown\">1 hour 30 minutes</span>");
    tl_text_free(&page);
    own.opens_at_ms = NOW_MS;
    page_holds(&view, EN, "data-tl=\"before\" hidden");
    view.mode = TL_MODE_PAUSED;
    page_holds(&view, EN, "<div class=\"note\" data-tl=\"paused\">");
    page_holds(&view, EN, "data-tl=\"recovering\" hidden");
    view.recovering = true;
    page_holds(&view, EN, "<div class=\"note\" data-tl=\"recovering\">");
}

static void test_going_on(void **state)
{
    (void)state;
    struct tl_queue_settings own = settings;
    struct tl_view view = waiting;
    view.page = TL_PAGE_ACTIVE;
    view.settings = &own;
    view.state = (struct tl_line_view){.status = TL_LINE_ACTIVE, .deadline_ms = NOW_MS + 600000};
    own.session_ttl_ms = 900000;
    struct tl_text page = render(&view, EN);
    holds(&page, "content=\"3;url=https://shop.example/checkout\"");
    holds(&page, "data-tl=\"go\" href=\"https://shop.example/checkout\"");
    holds(&page, "After 1 Dec 2026, 11:10 UTC your turn passes to the next person.");
    holds(&page, "You then have 15 minutes in the shop.");
    holds(&page, "data-tl=\"nowhere\" hidden");
    tl_text_free(&page);

    view.claimed = true;
    page = render(&view, EN);
    holds(&page, "Your time in the shop ends at 1 Dec 2026, 11:10 UTC.");
    holds(&page, "<p data-tl=\"then\" hidden>");
    tl_text_free(&page);

    view.return_url = "https://shop.example/seats?a=1&b=\"2";
    page_lacks(&view, EN, "seats"); /* a quote may stand in no address */
    view.return_url = "https://shop.example/seats?a=1&b=2";
    page_holds(&view, EN, "content=\"3;url=https://shop.example/seats?a=1&amp;b=2\"");

    view.return_url = NULL;
    strcpy(own.target_url, "javascript:alert(1)");
    page_lacks(&view, EN, "javascript:");
    page_lacks(&view, EN, "http-equiv");
    page_holds(&view, EN, "<p data-tl=\"nowhere\">");
}

/* The script solves the puzzle; without it the signed wait is in the addresses. Other pages have
 * neither. */
static void test_puzzle(void **state)
{
    (void)state;
    struct tl_view view = waiting;
    view.page = TL_PAGE_CHALLENGE;
    view.puzzle = "the-puzzle";
    view.puzzle_parts = 16;
    view.puzzle_bits = 12;
    view.wait = "the-wait";
    view.wait_s = 10;
    struct tl_text page = render(&view, EN);
    holds(&page, "new Int32Array(64)");
    holds(&page, "data-worker=\"/q/assets/challenge-");
    holds(&page, "data-puzzle=\"the-puzzle\" data-parts=\"16\" data-bits=\"12\" "
                 "data-self=\"/q/concert\"");
    holds(&page, "<meta http-equiv=\"refresh\" "
                 "content=\"11;url=/q/concert?solution=the-wait\"></noscript>");
    holds(&page, "action=\"/q/concert/join?solution=the-wait\"");
    holds(&page, "Please wait 10 seconds");
    tl_text_free(&page);
    page_lacks(&waiting, EN, "SHA-256");
    page_lacks(&waiting, EN, "solution=");
}

/* The provider's widget, its name, and words for browsers without scripts, in both languages; the
 * policy is open for its script on this page only. */
static void test_service(void **state)
{
    (void)state;
    static const struct tl_page_service service = {.name = "turnstile",
                                                   .title = "Cloudflare Turnstile",
                                                   .site_key = "key-1",
                                                   .script = "https://a.example/api.js?a=1&b=2",
                                                   .sources = "https://a.example",
                                                   .scored = false};
    struct tl_text policy = {0};
    struct tl_view view = waiting;
    view.page = TL_PAGE_CHALLENGE;
    view.service = &service;
    struct tl_text page = render(&view, EN);
    holds(&page, "new Int32Array(64)");
    holds(&page, "data-service=\"turnstile\" data-key=\"key-1\" "
                 "data-script=\"https://a.example/api.js?a=1&amp;b=2\" data-scored=\"\"");
    holds(&page, "The check is done by Cloudflare Turnstile.");
    holds(&page, "its check needs JavaScript");
    tl_text_free(&page);
    page_lacks(&view, EN, "http-equiv");
    page_lacks(&view, EN, "solution=");
    page_holds(&view, KO, "Cloudflare Turnstile");
    page_holds(&view, KO, "자바스크립트");
    tl_page_policy(&view, brand, &policy);
    holds(&policy, "default-src 'none'; script-src 'sha256-");
    holds(&policy, "' https://a.example; style-src 'sha256-");
    holds(&policy, "' https://a.example; frame-src https://a.example; img-src 'self'; connect-src "
                   "'self' https://a.example; form-action 'self'; frame-ancestors 'none'; "
                   "base-uri 'none'");
    tl_text_free(&policy);
    tl_page_policy(&waiting, brand, &policy);
    lacks(&policy, "a.example");
    tl_text_free(&policy);
    page_lacks(&waiting, EN, "a.example");
}

static void test_what_comes_from_outside_is_escaped(void **state)
{
    (void)state;
    struct tl_view view = waiting;
    view.notice = "</p><script>alert(\"1\")</script>";
    view.visitor = "\"onload=\"'";
    view.return_url = "https://shop.example/?a='b'&c=d";
    view.ticket = "\"><b>";
    struct tl_text page = render(&view, EN);
    holds(&page, "&lt;/p&gt;&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;");
    holds(&page, "data-visitor=\"&quot;onload=&quot;&#39;\"");
    holds(&page, "ticket=%22%3E%3Cb%3E&amp;");
    holds(&page, "return=https%3A%2F%2Fshop.example%2F%3Fa%3D%27b%27%26c%3Dd");
    lacks(&page, "<b>");
    lacks(&page, "alert(\"");
    tl_text_free(&page);
}

/* The content of the i-th element of this name. */
static struct tl_text element(const struct tl_text *page, const char *name, size_t i)
{
    char open[16];
    char close[16];
    snprintf(open, sizeof(open), "<%s>", name);
    snprintf(close, sizeof(close), "</%s>", name);
    const char *start = page->data;
    for (size_t n = 0; n <= i; n++) {
        const char *found = strstr(start, open);
        if (found == NULL)
            fail_msg("no %s %zu", open, n);
        else
            start = found + strlen(open);
    }
    const char *end = strstr(start, close);
    assert_non_null(end);
    struct tl_text content = {0};
    tl_text_append(&content, "%.*s", (int)(end - start), start);
    return content;
}

/* The policy of the page, which allows what stands in its i-th element of this name. */
static void policy_allows(const struct tl_view *view, const struct tl_brand *of, const char *name,
                          size_t i)
{
    struct tl_text page = {0};
    struct tl_text policy = {0};
    struct tl_page_source source = {0};
    tl_page_render(view, of, EN, &page);
    tl_page_policy(view, of, &policy);
    struct tl_text content = element(&page, name, i);
    assert_true(
        tl_page_source_init(&source, TL_SOURCE_SCRIPT, "test", content.data, content.length, NULL));
    holds(&policy, source.hash);
    tl_page_source_deinit(&source);
    tl_text_free(&content);
    tl_text_free(&policy);
    tl_text_free(&page);
}

/* A browser runs and shows exactly what the program wrote. */
static void test_policy_has_the_hash_of_each_source(void **state)
{
    (void)state;
    struct tl_view puzzle = waiting;
    puzzle.page = TL_PAGE_CHALLENGE;
    puzzle.puzzle = "the-puzzle";
    policy_allows(&waiting, brand, "script", 0);
    policy_allows(&waiting, brand, "script", 1);
    policy_allows(&waiting, brand, "style", 0);
    policy_allows(&puzzle, brand, "script", 2);
    struct tl_text policy = {0};
    tl_page_policy(&waiting, brand, &policy);
    lacks(&policy, "unsafe");
    lacks(&policy, "script-src 'self'");
    lacks(&policy, "worker-src");
    tl_text_free(&policy);
    tl_page_policy(&puzzle, brand, &policy);
    holds(&policy, "; worker-src 'self';");
    tl_text_free(&policy);
}

/* The refresh is in force until refresh.js, which runs before the browser reads it. */
static void test_refresh_stands_behind_its_script(void **state)
{
    (void)state;
    struct tl_text page = render(&waiting, EN);
    const char *script = strstr(page.data, "document.write('<noscript>')");
    const char *refresh =
        strstr(page.data, "</script>\n<meta http-equiv=\"refresh\" content=\"8;url="
                          "/q/concert?from=1234\"></noscript>");
    assert_non_null(script);
    assert_non_null(refresh);
    assert_true(script < refresh && refresh < strstr(page.data, "<style>"));
    holds(&page, "data-refresh=\"8;url=/q/concert?from=1234\"");
    tl_text_free(&page);
}

/* Each style sheet can change what those before it say. */
static void test_order_of_style_sheets(void **state)
{
    (void)state;
    char path[] = "/tmp/tellerline-page-XXXXXX.css";
    int fd = mkstemps(path, 4);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "p {}\r\n", 6), 6);
    assert_int_equal(close(fd), 0);
    struct tl_brand_settings looks = {.accent_light = "#8b1a4a"};
    snprintf(looks.style, sizeof(looks.style), "%s", path);
    struct tl_brand *own = tl_brand_load(&looks, languages, NULL);
    assert_int_equal(unlink(path), 0);
    assert_non_null(own);
    static const char *const contents[] = {":root {", "#8b1a4a", "p {}\n"};
    struct tl_text page = {0};
    tl_page_render(&waiting, own, EN, &page);
    for (size_t i = 0; i < 3; i++) {
        struct tl_text style = element(&page, "style", i);
        holds(&style, contents[i]);
        lacks(&style, "\r");
        tl_text_free(&style);
        policy_allows(&waiting, own, "style", i);
    }
    tl_text_free(&page);
    tl_brand_free(&own);
}

static void test_budget(void **state)
{
    (void)state;
    static const char *const foreign[] = {" style=\"", " onclick", "src=", "stylesheet", "http://"};
    struct tl_text page = render(&waiting, EN);
    holds(&page, tl_page_icon.path);
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
        lacks(&page, foreign[i]);
    if (page.length >= PAGE_BUDGET)
        fail_msg("the page has grown to %zu bytes", page.length);
    tl_text_free(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_code_of_the_place),
        cmocka_unit_test(test_every_state_in_every_language),
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_every_language_can_be_chosen),
        cmocka_unit_test(test_no_estimate),
        cmocka_unit_test(test_pace_and_nearness),
        cmocka_unit_test(test_refresh_is_never_hasty),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_opening_and_pause),
        cmocka_unit_test(test_going_on),
        cmocka_unit_test(test_puzzle),
        cmocka_unit_test(test_service),
        cmocka_unit_test(test_what_comes_from_outside_is_escaped),
        cmocka_unit_test(test_policy_has_the_hash_of_each_source),
        cmocka_unit_test(test_refresh_stands_behind_its_script),
        cmocka_unit_test(test_order_of_style_sheets),
        cmocka_unit_test(test_budget),
    };
    return cmocka_run_group_tests(tests, load_brand, free_brand);
}
