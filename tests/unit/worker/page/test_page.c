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
#include "worker/page/page_fields.h"
#include "worker/page/page_text.h"

#define PAGE_BUDGET 51200 /* bytes of HTML, style and script together, uncompressed */
#define NOW_MS      INT64_C(1796122800000)

static const struct tl_page_view waiting = {
    .state = TL_PAGE_WAITING,
    .queue = "concert",
    .position = 1234,
    .ahead = 1233,
    .has_eta = true,
    .eta_low_s = 250,
    .eta_high_s = 400,
    .now_ms = NOW_MS,
    .waiting_ttl_ms = 600000,
    .poll_after_ms = 8000,
    .target_url = "https://shop.example/checkout",
};

static struct tl_brand *brand;

static int load_brand(void **state)
{
    (void)state;
    brand = tl_brand_load(
        &(struct tl_brand_settings){.name = "Hall & <Co>", .text = {"Own words", "우리 말"}}, NULL);
    return brand == NULL ? -1 : 0;
}

static int free_brand(void **state)
{
    (void)state;
    tl_brand_free(&brand);
    return 0;
}

static struct tl_text render(const struct tl_page_view *view, enum tl_language language)
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

static void page_holds(const struct tl_page_view *view, enum tl_language language, const char *text)
{
    struct tl_text page = render(view, language);
    holds(&page, text);
    tl_text_free(&page);
}

static void page_lacks(const struct tl_page_view *view, enum tl_language language, const char *text)
{
    struct tl_text page = render(view, language);
    lacks(&page, text);
    tl_text_free(&page);
}

struct state_case {
    const char *name;
    enum tl_page_state state;
    bool refreshes, offers_to_join, offers_to_leave;
};

static const struct state_case states[TL_PAGE_STATES] = {
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
static void check_sections(const struct tl_text *page, const char *name, enum tl_language language)
{
    char text[256];
    for (size_t i = 0; i < TL_PAGE_STATES; i++) {
        bool own = strcmp(states[i].name, name) == 0;
        snprintf(text, sizeof(text), "<section data-state=\"%s\"%s>", states[i].name,
                 own ? "" : " hidden");
        holds(page, text);
    }
    snprintf(text, sizeof(text), "%s_head", name);
    const char *head = tl_page_message(text, language);
    assert_true(head[0] != '\0');
    snprintf(text, sizeof(text), "<section data-state=\"%s\">\n<h1>%s</h1>", name, head);
    holds(page, text);
}

static void test_every_state_in_every_language(void **state)
{
    (void)state;
    for (size_t i = 0; i < TL_PAGE_STATES; i++) {
        for (int language = 0; language < TL_LANGUAGES; language++) {
            struct tl_page_view view = waiting;
            view.state = states[i].state;
            struct tl_text page = render(&view, (enum tl_language)language);
            check_sections(&page, states[i].name, (enum tl_language)language);
            holds(&page, language == TL_LANGUAGE_KO ? "<html lang=\"ko\">" : "<html lang=\"en\">");
            holds(&page, language == TL_LANGUAGE_KO ? "우리 말" : "Own words");
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
    struct tl_text page = render(&waiting, TL_LANGUAGE_EN);
    holds(&page, "<title>No. 1,234 in line – Hall");
    holds(&page, "<span data-tl=\"position\">1,234</span>");
    holds(&page, "<dd data-tl=\"ahead\">1,233</dd>");
    holds(&page, "<dd data-tl=\"eta\">about 4 to 7 minutes</dd>");
    holds(&page, "content=\"8;url=/q/concert?from=1234\"");
    holds(&page, "refreshes itself every 8 seconds");
    holds(&page, "your place is kept for 10 minutes");
    holds(&page, "Updated at 11:00:00 UTC");
    holds(&page, "data-tl=\"before\" hidden");
    holds(&page, "data-tl=\"paused\" hidden");
    holds(&page, "aria-labelledby=\"notice-label\" hidden");
    holds(&page, "<form method=\"post\" action=\"/q/concert/leave?from=1234\">");
    lacks(&page, "shop.example"); /* where it goes on to is told when it is time */
    tl_text_free(&page);
    page_holds(&waiting, TL_LANGUAGE_KO, "<dd data-tl=\"ahead\">1,233명</dd>");
    page_holds(&waiting, TL_LANGUAGE_KO, "약 4~7분");
}

static void test_no_estimate(void **state)
{
    (void)state;
    struct tl_page_view view = waiting;
    view.has_eta = false;
    page_holds(&view, TL_LANGUAGE_EN, "<p data-tl=\"eta-why\" hidden></p>");
    view.eta_reason = "stalled";
    page_holds(&view, TL_LANGUAGE_EN, "<p data-tl=\"eta-why\">The line has not moved for a while.");
    page_holds(&view, TL_LANGUAGE_KO, "<p data-tl=\"eta-why\">줄이 잠시");
    view.eta_reason = "of a later version";
    page_holds(&view, TL_LANGUAGE_EN, "<p data-tl=\"eta-why\" hidden></p>");
    view.eta_reason = NULL;
    page_holds(&view, TL_LANGUAGE_EN, "<dd data-tl=\"eta\">Calculating…</dd>");
    page_holds(&view, TL_LANGUAGE_KO, "<dd data-tl=\"eta\">계산 중입니다</dd>");
    page_holds(&view, TL_LANGUAGE_EN, "<div data-tl=\"eta-row\"><dt>");
    view.opens_at_ms = view.now_ms + 60000;
    page_holds(&view, TL_LANGUAGE_EN, "<div data-tl=\"eta-row\" hidden><dt>");
}

static void test_refresh_is_never_hasty(void **state)
{
    (void)state;
    struct tl_page_view view = waiting;
    view.poll_after_ms = 1000;
    page_holds(&view, TL_LANGUAGE_EN, "content=\"5;url=");
    view.poll_after_ms = 8001;
    page_holds(&view, TL_LANGUAGE_EN, "content=\"9;url=");
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
        struct tl_page_view view = waiting;
        view.position = cases[i].position;
        view.from = cases[i].from;
        page_holds(&view, TL_LANGUAGE_EN, cases[i].value);
    }
}

static void test_opening_and_pause(void **state)
{
    (void)state;
    struct tl_page_view view = waiting;
    view.opens_at_ms = NOW_MS + 5400000;
    struct tl_text page = render(&view, TL_LANGUAGE_EN);
    holds(&page, "<div class=\"note\" data-tl=\"before\">");
    holds(&page, "datetime=\"2026-12-01T12:30:00Z\">1 Dec 2026, 12:30 UTC</time>");
    holds(&page, "data-tl=\"countdown\">1 hour 30 minutes</span>");
    tl_text_free(&page);
    view.opens_at_ms = NOW_MS;
    page_holds(&view, TL_LANGUAGE_EN, "data-tl=\"before\" hidden");
    view.paused = true;
    page_holds(&view, TL_LANGUAGE_EN, "<div class=\"note\" data-tl=\"paused\">");
    page_holds(&view, TL_LANGUAGE_EN, "data-tl=\"recovering\" hidden");
    view.recovering = true;
    page_holds(&view, TL_LANGUAGE_EN, "<div class=\"note\" data-tl=\"recovering\">");
}

static void test_going_on(void **state)
{
    (void)state;
    struct tl_page_view view = waiting;
    view.state = TL_PAGE_ACTIVE;
    view.expires_at_ms = NOW_MS + 600000;
    struct tl_text page = render(&view, TL_LANGUAGE_EN);
    holds(&page, "content=\"3;url=https://shop.example/checkout\"");
    holds(&page, "data-tl=\"go\" href=\"https://shop.example/checkout\"");
    holds(&page, "reserved until 1 Dec 2026, 11:10 UTC");
    holds(&page, "data-tl=\"nowhere\" hidden");
    tl_text_free(&page);

    view.return_url = "https://shop.example/seats?a=1&b=\"2";
    page_lacks(&view, TL_LANGUAGE_EN, "seats"); /* a quote may stand in no address */
    view.return_url = "https://shop.example/seats?a=1&b=2";
    page_holds(&view, TL_LANGUAGE_EN, "content=\"3;url=https://shop.example/seats?a=1&amp;b=2\"");

    view.return_url = NULL;
    view.target_url = "javascript:alert(1)";
    page_lacks(&view, TL_LANGUAGE_EN, "javascript:");
    page_lacks(&view, TL_LANGUAGE_EN, "http-equiv");
    page_holds(&view, TL_LANGUAGE_EN, "<p data-tl=\"nowhere\">");
}

/* The script solves the puzzle; without it the signed wait is in the addresses. Other pages have
 * neither. */
static void test_puzzle(void **state)
{
    (void)state;
    struct tl_page_view view = waiting;
    view.state = TL_PAGE_CHALLENGE;
    view.position = 0;
    view.puzzle = "the-puzzle";
    view.puzzle_parts = 16;
    view.puzzle_bits = 12;
    view.wait = "the-wait";
    view.wait_s = 10;
    struct tl_text page = render(&view, TL_LANGUAGE_EN);
    holds(&page, tl_page_challenge.path);
    holds(&page, "data-puzzle=\"the-puzzle\" data-parts=\"16\" data-bits=\"12\" "
                 "data-self=\"/q/concert\"");
    holds(&page, "<noscript><meta http-equiv=\"refresh\" "
                 "content=\"11;url=/q/concert?solution=the-wait\"></noscript>");
    holds(&page, "action=\"/q/concert/join?solution=the-wait\"");
    holds(&page, "Please wait 10 seconds");
    tl_text_free(&page);
    page_lacks(&waiting, TL_LANGUAGE_EN, tl_page_challenge.path);
    page_lacks(&waiting, TL_LANGUAGE_EN, "solution=");
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
    char policy[TL_PAGE_POLICY_MAX];
    struct tl_page_view view = waiting;
    view.state = TL_PAGE_CHALLENGE;
    view.position = 0;
    view.service = &service;
    struct tl_text page = render(&view, TL_LANGUAGE_EN);
    holds(&page, tl_page_challenge.path);
    holds(&page, "data-service=\"turnstile\" data-key=\"key-1\" "
                 "data-script=\"https://a.example/api.js?a=1&amp;b=2\" data-scored=\"\"");
    holds(&page, "The check is done by Cloudflare Turnstile.");
    holds(&page, "its check needs JavaScript");
    tl_text_free(&page);
    page_lacks(&view, TL_LANGUAGE_EN, "http-equiv");
    page_lacks(&view, TL_LANGUAGE_EN, "solution=");
    page_holds(&view, TL_LANGUAGE_KO, "Cloudflare Turnstile");
    page_holds(&view, TL_LANGUAGE_KO, "자바스크립트");
    tl_page_policy(&view, policy);
    assert_string_equal(policy,
                        "default-src 'none'; script-src 'self' https://a.example; frame-src "
                        "https://a.example; style-src 'self' https://a.example; img-src 'self'; "
                        "connect-src 'self' https://a.example; form-action 'self'; "
                        "frame-ancestors 'none'; base-uri 'none'");
    tl_page_policy(&waiting, policy);
    assert_string_equal(policy, TL_PAGE_POLICY);
    page_lacks(&waiting, TL_LANGUAGE_EN, "a.example");
}

static void test_what_comes_from_outside_is_escaped(void **state)
{
    (void)state;
    struct tl_page_view view = waiting;
    view.notice = "</p><script>alert(\"1\")</script>";
    view.visitor = "\"onload=\"'";
    view.return_url = "https://shop.example/?a='b'&c=d";
    view.ticket = "\"><b>";
    struct tl_text page = render(&view, TL_LANGUAGE_EN);
    holds(&page, "&lt;/p&gt;&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;");
    holds(&page, "data-visitor=\"&quot;onload=&quot;&#39;\"");
    holds(&page, "ticket=%22%3E%3Cb%3E&amp;");
    holds(&page, "return=https%3A%2F%2Fshop.example%2F%3Fa%3D%27b%27%26c%3Dd");
    lacks(&page, "<b>");
    lacks(&page, "alert(\"");
    tl_text_free(&page);
}

static void test_nothing_inline(void **state)
{
    (void)state;
    struct tl_text page = render(&waiting, TL_LANGUAGE_EN);
    lacks(&page, "style=");
    lacks(&page, "<style");
    lacks(&page, " onclick");
    lacks(&page, "<script>");
    lacks(&page, "http://");
    tl_text_free(&page);
}

/* Each style sheet can change what those before it say. */
static void test_order_of_style_sheets(void **state)
{
    (void)state;
    char path[] = "/tmp/tellerline-page-XXXXXX.css";
    int fd = mkstemps(path, 4);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "p {}", 4), 4);
    assert_int_equal(close(fd), 0);
    struct tl_brand *own = tl_brand_load(
        &(struct tl_brand_settings){.accent_light = "#8b1a4a", .style_file = path}, NULL);
    assert_int_equal(unlink(path), 0);
    assert_non_null(own);
    char expected[512];
    snprintf(expected, sizeof(expected),
             "<link rel=\"stylesheet\" href=\"%s\">\n<link rel=\"stylesheet\" href=\"%s\">\n"
             "<link rel=\"stylesheet\" href=\"%s\">\n",
             tl_page_style.path, tl_brand_look(own)->colours->path,
             tl_brand_look(own)->style->path);
    struct tl_text page = {0};
    tl_page_render(&waiting, own, TL_LANGUAGE_EN, &page);
    holds(&page, expected);
    tl_text_free(&page);
    tl_brand_free(&own);
}

static void test_address(void **state)
{
    (void)state;
    struct tl_text out = {0};
    struct tl_page_view view = {.state = TL_PAGE_LEFT, .queue = "q", .position = 5};
    tl_page_address(&view, "", NULL, &out);
    assert_string_equal(out.data, "/q/q");
    view.state = TL_PAGE_WAITING;
    view.ticket = "a b";
    view.return_url = "https://x.example/?a=b";
    view.invite = "i.j";
    tl_page_address(&view, "/leave", "ko", &out);
    assert_string_equal(out.data, "/q/q/q/q/leave?lang=ko&ticket=a%20b&invite=i.j&from=5&return="
                                  "https%3A%2F%2Fx.example%2F%3Fa%3Db");
    tl_text_free(&out);
}

static void test_assets_and_budget(void **state)
{
    (void)state;
    const struct tl_asset *const all[] = {&tl_page_style, &tl_page_script, &tl_page_icon};
    struct tl_text page = render(&waiting, TL_LANGUAGE_EN);
    size_t total = page.length;
    for (size_t i = 0; i < 3; i++) {
        static const unsigned char gzip_magic[] = {0x1f, 0x8b};
        assert_ptr_equal(tl_page_asset(all[i]->path), all[i]);
        holds(&page, all[i]->path);
        assert_int_equal(strncmp(all[i]->path, TL_ASSET_PREFIX, strlen(TL_ASSET_PREFIX)), 0);
        assert_memory_equal(all[i]->gzip, gzip_magic, 2);
        assert_true(all[i]->etag[0] == '"' && strlen(all[i]->etag) == 14);
        total += all[i]->length;
    }
    assert_true(all[1]->gzip_length < all[1]->length / 2);
    assert_null(tl_page_asset("/q/assets/page.js"));
    assert_null(tl_page_asset(""));
    if (total >= PAGE_BUDGET)
        fail_msg("the page has grown to %zu bytes", total);
    tl_text_free(&page);
}

static const char *template_name(size_t i)
{
    size_t n;
    const struct tl_page_message *messages = tl_page_messages(&n);
    if (i < N_FIELDS)
        return tl_page_field_name((enum tl_page_field)i);
    return i - N_FIELDS < n ? messages[i - N_FIELDS].name : NULL;
}

/* No name of the template hides another. */
static void test_names_are_unique(void **state)
{
    (void)state;
    for (size_t i = 0; template_name(i) != NULL; i++) {
        for (size_t j = 0; j < i; j++) {
            if (strcmp(template_name(i), template_name(j)) == 0)
                fail_msg("twice: %s", template_name(i));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_state_in_every_language),
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_no_estimate),
        cmocka_unit_test(test_refresh_is_never_hasty),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_opening_and_pause),
        cmocka_unit_test(test_going_on),
        cmocka_unit_test(test_puzzle),
        cmocka_unit_test(test_service),
        cmocka_unit_test(test_what_comes_from_outside_is_escaped),
        cmocka_unit_test(test_nothing_inline),
        cmocka_unit_test(test_order_of_style_sheets),
        cmocka_unit_test(test_address),
        cmocka_unit_test(test_assets_and_budget),
        cmocka_unit_test(test_names_are_unique),
    };
    return cmocka_run_group_tests(tests, load_brand, free_brand);
}
