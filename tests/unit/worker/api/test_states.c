/* SPDX-License-Identifier: Apache-2.0 */
/* The modes and phases of a queue in the API: who may join, what everyone is told, and who gets in
 * past the line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/config/texts.h"
#include "tests/unit/auth/jwt_forge.h"
#include "tests/unit/worker/api/world.h"
#include "worker/report/worker_metrics.h"

#define JOIN   "/v1/queues/concert/join"
#define CHECK  "/v1/queues/concert/check"
#define STATUS "/v1/queues/concert/status"

static void set_mode(struct world *world, enum tl_queue_mode mode)
{
    world->settings.mode = mode;
    world_load(world);
}

static int64_t counted(const struct world *world, enum tl_worker_metric metric)
{
    return tl_metrics_get(world->env.metrics, metric);
}

static void a_newcomer_is_told_why_not(void **state)
{
    static const struct {
        enum tl_queue_mode mode;
        unsigned status;
        const char *problem, *section, *text;
    } cases[] = {{TL_MODE_DRAINING, 403, "/problems/draining", "shut", "Until tomorrow."},
                 {TL_MODE_CLOSED, 403, "/problems/closed", "shut", "Until tomorrow."},
                 {TL_MODE_SOLD_OUT, 410, "/problems/sold-out", "sold_out", "All gone."}};
    struct world *world = *state;
    static const char closed[] = "\x1e[en] Until tomorrow.",
                      sold_out[] = "\x1e[en] All gone.\x1e[ko] 모두 팔렸습니다.";
    assert_true(
        tl_texts_read(closed, world->settings.closed_text, sizeof(world->settings.closed_text)));
    assert_true(tl_texts_read(sold_out, world->settings.sold_out_text,
                              sizeof(world->settings.sold_out_text)));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char part[128];
        set_mode(world, cases[i].mode);
        struct tl_request request = world_send(world, "POST", JOIN, NULL);
        assert_answer(&request, cases[i].status, cases[i].problem);
        snprintf(part, sizeof(part), "\"detail\":\"%s\"", cases[i].text);
        assert_non_null(strstr(request.text, part));
        struct tl_request page = world_send(world, "GET", "/q/concert", NULL);
        snprintf(part, sizeof(part), "<section data-state=\"%s\">", cases[i].section);
        assert_answer(&page, cases[i].status, part);
        assert_non_null(strstr(page.text, cases[i].text));
        struct tl_request numbers = world_send(world, "GET", "/v1/queues/concert", NULL);
        assert_answer(&numbers, 200, "\"joins\":false");
        assert_non_null(strstr(numbers.text, cases[i].text));
    }
    struct tl_request korean = {
        .method = "POST", .path = JOIN, .headers = {{"Accept-Language", "ko-KR"}}};
    world_handle(world, &korean);
    assert_problem(&korean, 410, "sold-out");
    assert_non_null(strstr(korean.text, "모두 팔렸습니다."));
}

static void paused_takes_joins(void **state)
{
    struct world *world = *state;
    set_mode(world, TL_MODE_PAUSED);
    struct tl_request request = {.method = "POST", .path = JOIN};
    world_handle(world, &request);
    assert_waits(&request);
    world_applied(world, world_batch(world, true), 5);
    assert_answer(&request, 200, "\"mode\":\"paused\",\"paused\":true");
}

static void after_closes_at_the_time_is_over(void **state)
{
    struct world *world = *state;
    world->settings.closes_at_ms = WORLD_STORE_MS - 1;
    world_load(world);
    struct tl_request request = world_send(world, "POST", JOIN, NULL);
    assert_problem(&request, 410, "join-closed");
    struct world_ticket ticket = world_ticket(world, WORLD_GENERATION, tl_place_make(0, 3));
    struct tl_request status = world_send(world, "GET", STATUS, ticket.text);
    assert_answer(&status, 200, "\"phase\":\"over\"");
    assert_null(strstr(status.text, "\"paused\""));
    struct tl_request page = {
        .method = "GET", .path = "/q/concert", .headers = {{"Authorization", ticket.text}}};
    world_handle(world, &page);
    assert_answer(&page, 200, "data-tl=\"mode-draining\">");
    world->settings.after_close = TL_AFTER_CLOSE_STOP;
    world_load(world);
    status = world_send(world, "GET", STATUS, ticket.text);
    assert_answer(&status, 200, "\"phase\":\"over\",\"paused\":true");
    page.answers = 0;
    world_handle(world, &page);
    assert_answer(&page, 200, "data-tl=\"mode-closed\">");
    assert_non_null(strstr(page.text, "data-tl=\"mode-draining\" hidden>"));
}

/* The worker learns of a full line from the store, and that it stays full for a while. */
static void a_line_that_was_full_stays_so(void **state)
{
    struct world *world = *state;
    const struct tl_recovery known = {.present = WORLD_GENERATION,
                                      .full_since_ms = WORLD_STORE_MS - 1000};
    world->settings.max_waiting = 12; /* 11 wait */
    world->settings.reopen.after_ms = 600000;
    world_load(world);
    struct tl_request request = world_send(world, "GET", "/v1/queues/concert", NULL);
    assert_answer(&request, 200, "\"phase\":\"open\"");
    world_take(world, (struct tl_change){.kind = TL_CHANGE_RECOVERY, .recovery = known});
    request = world_send(world, "GET", "/v1/queues/concert", NULL);
    assert_answer(&request, 200, "\"phase\":\"full\",\"joins\":false");
    request = world_send(world, "POST", JOIN, NULL);
    assert_problem(&request, 503, "full");
    world->settings.reopen.after_ms = 500;
    world_load(world);
    request = world_send(world, "GET", "/v1/queues/concert", NULL);
    assert_answer(&request, 200, "\"phase\":\"open\",\"joins\":true");
}

/* The store refuses a join in a mode that this process does not know of yet. */
static void the_stores_refusal_is_told_by_the_mode(void **state)
{
    struct world *world = *state;
    struct tl_request request = {.method = "POST", .path = JOIN};
    world_handle(world, &request);
    assert_waits(&request);
    uint64_t batch = world_batch(world, true);
    set_mode(world, TL_MODE_CLOSED);
    world_excepted(world, batch, TL_OUTCOME_FULL, 0);
    assert_problem(&request, 403, "closed");
}

static void those_in_line_keep_their_place(void **state)
{
    struct world *world = *state;
    struct world_ticket ticket = world_ticket(world, WORLD_GENERATION, tl_place_make(0, 3));
    set_mode(world, TL_MODE_SOLD_OUT);
    struct tl_request status = world_send(world, "GET", STATUS, ticket.text);
    assert_answer(&status, 200, "\"status\":\"waiting\"");
    assert_non_null(strstr(status.text, "\"mode\":\"sold_out\""));
    assert_null(strstr(status.text, "\"eta_seconds"));
    struct tl_request page = {
        .method = "GET", .path = "/q/concert", .headers = {{"Authorization", ticket.text}}};
    world_handle(world, &page);
    assert_answer(&page, 200, "<div class=\"note\" data-tl=\"mode-sold_out\">");
    assert_non_null(strstr(page.text, "data-tl=\"paused\" hidden"));
    struct tl_request check = world_send(world, "GET", CHECK, ticket.text);
    assert_answer(&check, 401, "not-admitted");
    assert_string_equal(fake_answer_header(&check, "X-Tellerline-Mode"), "sold_out");
}

static void no_capacity_is_shown_as_what_it_is(void **state)
{
    struct world *world = *state;
    struct world_ticket ticket = world_ticket(world, WORLD_GENERATION, tl_place_make(0, 3));
    struct tl_request page = {
        .method = "GET", .path = "/q/concert", .headers = {{"Authorization", ticket.text}}};
    world_handle(world, &page);
    assert_answer(&page, 200, "data-tl=\"no-capacity\" hidden>");
    world->settings.capacity = 0;
    world_load(world);
    page.answers = 0;
    world_handle(world, &page);
    assert_answer(&page, 200, "data-tl=\"no-capacity\">");
}

/* ---- passthrough ---- */

static void assert_everyone_gets_in(struct world *world)
{
    int64_t before = counted(world, TL_WORKER_PASSED_THROUGH);
    struct tl_request check = world_send(world, "GET", CHECK, NULL);
    assert_answer(&check, 204, "");
    assert_string_equal(fake_answer_header(&check, "X-Tellerline-Mode"), "passthrough");
    struct tl_request join = world_send(world, "POST", JOIN, NULL);
    assert_answer(&join, 200, "\"status\":\"passthrough\"");
    struct tl_request page = {.method = "GET",
                              .path = "/q/concert",
                              .queries = {{"return", "https://shop.example/seat"}}};
    world_handle(world, &page);
    assert_answer(&page, 303, "");
    assert_string_equal(fake_answer_header(&page, "Location"), "https://shop.example/seat");
    assert_int_equal(counted(world, TL_WORKER_PASSED_THROUGH), before + 3);
}

static void set_target(struct world *world)
{
    snprintf(world->settings.target_url, sizeof(world->settings.target_url), "%s",
             "https://shop.example/");
    world_load(world);
}

static void passthrough_lets_everyone_in(void **state)
{
    struct world *world = *state;
    struct world_ticket active = world_ticket(world, WORLD_GENERATION, tl_place_make(0, 1));
    struct world_ticket waits = world_ticket(world, WORLD_GENERATION, tl_place_make(0, 3));
    set_target(world);
    struct tl_request before = world_send(world, "GET", CHECK, NULL);
    assert_answer(&before, 401, "");
    set_mode(world, TL_MODE_PASSTHROUGH);
    assert_everyone_gets_in(world);
    struct tl_request check = world_send(world, "GET", CHECK, active.text);
    assert_answer(&check, 204, "");
    assert_string_equal(fake_answer_header(&check, "X-Tellerline-Visitor"), "alice");
    struct tl_request status = world_send(world, "GET", STATUS, waits.text);
    assert_answer(&status, 200,
                  "\"mode\":\"passthrough\",\"target_url\":\"https://shop.example/\"");
    struct tl_request page = world_send(world, "GET", "/q/concert", NULL);
    assert_answer(&page, 303, "");
    world->settings.target_url[0] = '\0';
    world_load(world);
    page = world_send(world, "GET", "/q/concert", NULL);
    assert_answer(&page, 200, "<section data-state=\"passthrough\">");
}

/* The file, as SIGHUP reads it: also while the store is away. */
static void reload(struct world *world, const char *queues)
{
    struct tl_error err = {0};
    char text[1024];
    int n =
        snprintf(text, sizeof(text),
                 "secrets: {ticket_keys: %s/ticket, api_keys: %s/api, pass_keys: %s/pass, "
                 "invite_keys: %s/invite, challenge_secret: %s/service}\n"
                 "pass: {algorithm: ES256}\n%s",
                 world->folder, world->folder, world->folder, world->folder, world->folder, queues);
    const struct tl_config *config = tl_config_parse("test", text, (size_t)n, &err);
    assert_non_null(config);
    assert_true(tl_worker_reload(world->worker, config, &err));
    tl_config_free(&config);
}

static void the_file_says_so_while_the_store_is_away(void **state)
{
    struct world *world = *state;
    set_target(world);
    world->env.ingest_up = world->env.follower_up = false;
    struct tl_request before = world_send(world, "GET", CHECK, NULL);
    assert_answer(&before, 401, "");
    reload(world, "queues: {concert: {mode: passthrough}, other: {mode: passthrough}}\n");
    assert_everyone_gets_in(world);
    struct tl_request other = world_send(world, "GET", "/v1/queues/other/check", NULL);
    assert_answer(&other, 204, ""); /* never loaded */
    struct tl_request third = world_send(world, "GET", "/v1/queues/third/check", NULL);
    assert_answer(&third, 401, "");
    reload(world, "queues: {concert: {}}\n");
    struct tl_request after = world_send(world, "GET", CHECK, NULL);
    assert_answer(&after, 401, "");
}

/* ---- bypass ---- */

static void assert_bypass(struct tl_request *request, struct world *world, const char *by)
{
    int64_t before = counted(world, TL_WORKER_BYPASSED);
    world_handle(world, request);
    if (by == NULL) {
        assert_answer(request, 401, "not-admitted");
        assert_int_equal(counted(world, TL_WORKER_BYPASSED), before);
        return;
    }
    assert_answer(request, 204, "");
    assert_string_equal(fake_answer_header(request, "X-Tellerline-Bypass"), by);
    assert_int_equal(counted(world, TL_WORKER_BYPASSED), before + 1);
}

static void staff_get_in_by_network_or_header(void **state)
{
    struct world *world = *state;
    set_mode(world, TL_MODE_CLOSED);
    struct tl_request direct = {.method = "GET", .path = CHECK, .peer = "203.0.113.9"};
    assert_bypass(&direct, world, "network");
    struct tl_request proxied = {.method = "GET",
                                 .path = CHECK,
                                 .peer = "10.1.2.3",
                                 .headers = {{"X-Forwarded-For", "203.0.113.9"}}};
    assert_bypass(&proxied, world, "network");
    struct tl_request claimed = {.method = "GET",
                                 .path = CHECK,
                                 .peer = "198.51.100.1",
                                 .headers = {{"X-Forwarded-For", "203.0.113.9"}}};
    assert_bypass(&claimed, world, NULL);
    struct tl_request header = {
        .method = "GET", .path = CHECK, .peer = "10.1.2.3", .headers = {{"X-Staff", "anna"}}};
    assert_bypass(&header, world, "header");
    struct tl_request forged = {
        .method = "GET", .path = CHECK, .peer = "198.51.100.1", .headers = {{"X-Staff", "anna"}}};
    assert_bypass(&forged, world, NULL);
    struct tl_request empty = {
        .method = "GET", .path = CHECK, .peer = "10.1.2.3", .headers = {{"X-Staff", ""}}};
    assert_bypass(&empty, world, NULL);
}

#define CLAIMS "{\"aud\":\"concert\",\"sub\":\"anna\",\"jti\":\"a\",\"exp\":1795000600"

static void staff_get_in_by_an_invite(void **state)
{
    struct world *world = *state;
    char invite[FORGE_TEXT], plain[FORGE_TEXT], path[64] = "/q/concert";
    forge("{\"alg\":\"HS256\",\"kid\":\"shop\"}", CLAIMS ",\"bypass\":true}", invite);
    forge("{\"alg\":\"HS256\",\"kid\":\"shop\"}", CLAIMS "}", plain);
    set_target(world);
    struct tl_request page = {.method = "GET", .path = path, .queries = {{"invite", invite}}};
    world_handle(world, &page);
    assert_answer(&page, 303, "");
    assert_string_equal(fake_answer_header(&page, "Location"), "https://shop.example/");
    const char *cookie = fake_answer_header(&page, "Set-Cookie");
    assert_memory_equal(cookie, "tellerline_BYPASS_concert=", 26);
    const char *age = strstr(cookie, "; Max-Age=");
    char *end;
    assert_non_null(age);
    /* The clock goes on: as long as the invite, less what the test took. */
    assert_in_range(strtol(age + strlen("; Max-Age="), &end, 10), 1, 600);
    assert_string_equal(end, "; HttpOnly; SameSite=Lax; Secure");
    struct tl_request check = {
        .method = "GET", .path = CHECK, .cookies = {{"tellerline_BYPASS_concert", invite}}};
    assert_bypass(&check, world, "invite");
    struct tl_request header = {
        .method = "GET", .path = CHECK, .headers = {{"X-Tellerline-Invite", invite}}};
    assert_bypass(&header, world, "invite");
    struct tl_request ordinary = {
        .method = "GET", .path = CHECK, .headers = {{"X-Tellerline-Invite", plain}}};
    assert_bypass(&ordinary, world, NULL);
    forge("{\"alg\":\"HS256\",\"kid\":\"shop\"}",
          "{\"aud\":\"other\",\"sub\":\"anna\",\"jti\":\"a\",\"exp\":1795000600,\"bypass\":true}",
          plain);
    struct tl_request elsewhere = {
        .method = "GET", .path = CHECK, .headers = {{"X-Tellerline-Invite", plain}}};
    assert_bypass(&elsewhere, world, NULL);
    world->env.store_offset_ms += 700000;
    struct tl_request late = {
        .method = "GET", .path = CHECK, .headers = {{"X-Tellerline-Invite", invite}}};
    assert_bypass(&late, world, NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_newcomer_is_told_why_not),
        TEST(paused_takes_joins),
        TEST(after_closes_at_the_time_is_over),
        TEST(a_line_that_was_full_stays_so),
        TEST(the_stores_refusal_is_told_by_the_mode),
        TEST(those_in_line_keep_their_place),
        TEST(no_capacity_is_shown_as_what_it_is),
        TEST(passthrough_lets_everyone_in),
        TEST(the_file_says_so_while_the_store_is_away),
        TEST(staff_get_in_by_network_or_header),
        TEST(staff_get_in_by_an_invite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
