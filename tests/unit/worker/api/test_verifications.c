/* SPDX-License-Identifier: Apache-2.0 */
/* Joins of a queue with `challenge: external`; the test is the challenge service. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "tests/unit/worker/api/world.h"
#include "worker/api/handlers.h"
#include "worker/report/worker_metrics.h"

#define PATH "/v1/queues/concert/join"

static int set_up(void **state)
{
    int result = world_setup(state);
    struct world *world = *state;
    world->settings.challenge = TL_CHALLENGE_EXTERNAL;
    world_load(world);
    return result;
}

/* Published as const; the memory is the test's. */
static struct tl_config *config_of(const struct world *world)
{
    return (struct tl_config *)(uintptr_t)world->config;
}

struct token_join {
    char body[128];
    struct tl_request request;
};

static void join(struct world *world, struct token_join *join, const char *token, const char *peer)
{
    snprintf(join->body, sizeof(join->body), "{\"token\":\"%s\"}", token);
    join->request = (struct tl_request){.method = "POST",
                                        .path = PATH,
                                        .peer = peer,
                                        .headers = {{"Content-Type", "application/json"}},
                                        .body = token[0] != '\0' ? join->body : NULL};
    world_handle(world, &join->request);
}

/* The service's verdict on the last question, if that has not ended. */
static void say(struct world *world, enum tl_verdict_kind kind, const char *why)
{
    if (world->service.fetch != NULL) {
        tl_verdict_set(&world->service.fetch->verdict, kind, "%s", why);
        world->service.fetch->judged = true;
    }
    tl_verifications_ended(world->worker);
}

static int64_t metric(const struct world *world, enum tl_worker_metric metric)
{
    return tl_metrics_get(world->env.metrics, metric);
}

static void without_a_token_the_service_is_named(void **state)
{
    struct world *world = *state;
    struct token_join none;
    join(world, &none, "", NULL);
    assert_problem(&none.request, 403, "challenge-required");
    assert_non_null(
        strstr(none.request.text, "\"provider\":\"hcaptcha\",\"site_key\":\"site-1\"}"));
    assert_null(strstr(none.request.text, "puzzle"));
    assert_int_equal(world->service.asked, 0);
}

static void a_good_token_gets_a_place_and_names_the_visitor(void **state)
{
    struct world *world = *state;
    struct token_join first, again;
    join(world, &first, "t-1", "203.0.113.7");
    assert_waits(&first.request);
    assert_true(first.request.held);
    assert_string_equal(world->service.token, "t-1");
    assert_string_equal(world->service.secret, WORLD_SECRET);
    assert_string_equal(world->service.address, "");
    assert_int_equal(world->worker->waits.lists[TL_WAIT_VERDICT].count, 1);
    say(world, TL_VERDICT_PASSED, "");
    assert_waits(&first.request);
    assert_int_equal(world->worker->waits.lists[TL_WAIT_VERDICT].count, 0);
    world_applied(world, world_batch(world, true), 5);
    assert_answer(&first.request, 200, "\"status\":\"waiting\"");
    assert_int_equal(strlen(world_given(world, &first.request).visitor), 22);
    join(world, &again, "t-1", "203.0.113.7");
    assert_problem(&again.request, 403, "challenge-failed");
    assert_int_equal(world->service.asked, 1);
    assert_int_equal(metric(world, TL_WORKER_TOKENS_PASSED), 1);
    assert_int_equal(metric(world, TL_WORKER_TOKENS_REFUSED), 1);
}

static void a_token_spent_elsewhere_is_refused(void **state)
{
    struct world *world = *state;
    struct token_join spent;
    join(world, &spent, "t-1", NULL);
    say(world, TL_VERDICT_PASSED, "");
    world_excepted(world, world_batch(world, true), TL_OUTCOME_SPENT, 0);
    assert_problem(&spent.request, 403, "challenge-failed");
    assert_non_null(strstr(spent.request.text, "\"site_key\":\"site-1\""));
}

static void the_address_is_sent_if_it_may_be(void **state)
{
    struct world *world = *state;
    struct token_join four, six;
    config_of(world)->challenge_service.send_address = true;
    join(world, &four, "t-4", "203.0.113.7");
    assert_string_equal(world->service.address, "203.0.113.7");
    join(world, &six, "t-6", "2001:db8::7");
    assert_string_equal(world->service.address, "2001:db8::7");
}

static void what_the_service_refuses_is_refused(void **state)
{
    struct world *world = *state;
    struct token_join bad, again;
    join(world, &bad, "t-1", NULL);
    say(world, TL_VERDICT_REFUSED, "The reason");
    assert_problem(&bad.request, 403, "challenge-failed");
    assert_non_null(strstr(bad.request.text, "The reason"));
    join(world, &again, "t-1", NULL);
    assert_problem(&again.request, 403, "challenge-failed");
    assert_int_equal(world->service.asked, 1);
}

static void a_service_without_a_verdict(void **state)
{
    struct world *world = *state;
    static const enum tl_verdict_kind kinds[] = {TL_VERDICT_UNREACHABLE, TL_VERDICT_TIMED_OUT};
    struct token_join away, puzzled;
    for (size_t i = 0; i < 2; i++) { /* the same token: it was not judged */
        join(world, &away, "t-1", NULL);
        say(world, kinds[i], "why");
        assert_problem(&away.request, 503, "challenge-unavailable");
        assert_non_null(fake_answer_header(&away.request, "Retry-After"));
    }
    config_of(world)->challenge_service.on_unreachable = TL_UNREACHABLE_WORK;
    join(world, &puzzled, "t-1", NULL);
    say(world, TL_VERDICT_UNREACHABLE, "why");
    assert_problem(&puzzled.request, 403, "challenge-required");
    assert_non_null(strstr(puzzled.request.text, "\"puzzle\":\""));
    assert_int_equal(metric(world, TL_WORKER_TOKENS_UNREACHABLE), 2);
    assert_int_equal(metric(world, TL_WORKER_TOKENS_TIMED_OUT), 1);
}

static void a_verdict_that_comes_too_late(void **state)
{
    struct world *world = *state;
    struct token_join late;
    int64_t now_ms = tl_clock_ms();
    join(world, &late, "t-1", NULL);
    assert_in_range(world->service.until_ms, now_ms + 3000, now_ms + 60000);
    tl_worker_tick(world->worker, world->service.until_ms);
    assert_waits(&late.request);
    tl_worker_tick(world->worker, world->service.until_ms + 250);
    assert_problem(&late.request, 503, "challenge-unavailable");
    say(world, TL_VERDICT_PASSED, "");
    assert_int_equal(late.request.answers, 1);
    assert_int_equal(world_queue(world)->outbox->count, 0);
}

static void as_many_as_may_wait(void **state)
{
    struct world *world = *state;
    struct token_join first, second, more, puzzled;
    join(world, &first, "t-1", NULL);
    join(world, &second, "t-2", NULL);
    join(world, &more, "t-3", NULL);
    assert_problem(&more.request, 503, "busy");
    assert_int_equal(world->service.asked, 2);
    /* While the service is away, all that come get what it is replaced with. */
    config_of(world)->challenge_service.on_unreachable = TL_UNREACHABLE_WORK;
    say(world, TL_VERDICT_UNREACHABLE, "why");
    assert_problem(&second.request, 403, "challenge-required");
    join(world, &second, "t-4", NULL);
    join(world, &puzzled, "t-5", NULL);
    assert_problem(&puzzled.request, 403, "challenge-required");
    assert_non_null(strstr(puzzled.request.text, "\"puzzle\":\""));
    world->deaf = true;
    say(world, TL_VERDICT_PASSED, "");
    join(world, &more, "t-3", NULL);
    assert_problem(&more.request, 503, "busy"); /* no memory to ask */
}

static void a_client_that_is_gone_frees_its_place(void **state)
{
    struct world *world = *state;
    struct token_join gone, again;
    join(world, &gone, "t-1", NULL);
    tl_worker_tick(world->worker, tl_clock_ms());
    assert_waits(&gone.request);
    gone.request.gone = true;
    tl_worker_tick(world->worker, tl_clock_ms() + 300);
    assert_int_equal(gone.request.answers, 1);
    assert_int_equal(world->worker->waits.lists[TL_WAIT_VERDICT].count, 0);
    assert_int_equal(world->service.cancelled, 1);
    join(world, &again, "t-1", NULL);
    assert_waits(&again.request);
}

static void the_store_may_be_away_meanwhile(void **state)
{
    struct world *world = *state;
    struct token_join before, meanwhile;
    world->env.ingest_up = false;
    join(world, &before, "t-1", NULL);
    assert_problem(&before.request, 503, "store-unavailable");
    assert_int_equal(world->service.asked, 0); /* the token is still good */
    world->env.ingest_up = true;
    join(world, &meanwhile, "t-1", NULL);
    world->env.ingest_up = false;
    say(world, TL_VERDICT_PASSED, "");
    assert_problem(&meanwhile.request, 503, "store-unavailable");
}

static void a_stop_answers_who_waits(void **state)
{
    struct world *world = *state;
    struct token_join waits;
    join(world, &waits, "t-1", NULL);
    world->env.draining = true;
    tl_worker_stop(world->worker);
    assert_problem(&waits.request, 503, "stopping");
}

static void a_trusted_caller_needs_none(void **state)
{
    struct world *world = *state;
    struct tl_request trusted = {.method = "POST",
                                 .path = PATH,
                                 .headers = {{"Content-Type", "application/json"},
                                             {"Authorization", "Bearer " WORLD_API_KEY}},
                                 .body = "{\"visitor\":\"bob\"}"};
    world_handle(world, &trusted);
    world_applied(world, world_batch(world, true), 5);
    assert_answer(&trusted, 200, "\"visitor\":\"bob\"");
    assert_int_equal(world->service.asked, 0);
}

static void a_page_shows_the_widget(void **state)
{
    struct world *world = *state;
    struct tl_request page = {.method = "GET", .path = "/q/concert"};
    world_handle(world, &page);
    assert_answer(&page, 200, "data-state=\"challenge\"");
    assert_non_null(strstr(page.text, "data-service=\"hcaptcha\" data-key=\"site-1\" "
                                      "data-script=\"https://mirror.example:8443/api.js?x=1\""));
    const char *policy = fake_answer_header(&page, "Content-Security-Policy");
    assert_non_null(policy);
    assert_non_null(strstr(policy, "' https://hcaptcha.com https://*.hcaptcha.com "
                                   "https://mirror.example:8443; "));
    assert_non_null(strstr(policy, "frame-src https://hcaptcha.com https://*.hcaptcha.com "));
    assert_null(strstr(page.text, WORLD_SECRET));
    world->settings.challenge = TL_CHALLENGE_WORK;
    world_load(world);
    struct tl_request other = {.method = "GET", .path = "/q/concert"};
    world_handle(world, &other);
    assert_answer(&other, 200, "data-state=\"challenge\"");
    assert_null(strstr(fake_answer_header(&other, "Content-Security-Policy"), "https:"));
}

#define each(test) cmocka_unit_test_setup_teardown(test, set_up, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        each(without_a_token_the_service_is_named),
        each(a_good_token_gets_a_place_and_names_the_visitor),
        each(a_token_spent_elsewhere_is_refused),
        each(the_address_is_sent_if_it_may_be),
        each(what_the_service_refuses_is_refused),
        each(a_service_without_a_verdict),
        each(a_verdict_that_comes_too_late),
        each(as_many_as_may_wait),
        each(a_client_that_is_gone_frees_its_place),
        each(the_store_may_be_away_meanwhile),
        each(a_stop_answers_who_waits),
        each(a_trusted_caller_needs_none),
        each(a_page_shows_the_widget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
