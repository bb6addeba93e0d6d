/* SPDX-License-Identifier: Apache-2.0 */
/* Joins of a queue with a challenge. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/auth/invite.h"
#include "common/base/clock.h"
#include "tests/unit/auth/jwt_forge.h"
#include "tests/unit/auth/puzzle_solve.h"
#include "tests/unit/worker/api/world.h"
#include "worker/api/handlers.h"
#include "worker/report/worker_metrics.h"

#define PATH "/v1/queues/concert/join"
#define PEER "203.0.113.7"

static int set_up(void **state)
{
    int result = world_setup(state);
    struct world *world = *state;
    world->settings.challenge = TL_CHALLENGE_WORK;
    world_load(world);
    return result;
}

/* The puzzle of a refusal. */
static void puzzle_of(const struct tl_request *request, char puzzle[TL_PUZZLE_MAX])
{
    const char *text = strstr(request->text, "\"puzzle\":\"");
    if (text == NULL) {
        fail_msg("no puzzle in %s", request->text);
        return; /* never reached, which clang-tidy does not know */
    }
    assert_non_null(strstr(request->text, "\"parts\":16,\"bits\":12}"));
    snprintf(puzzle, TL_PUZZLE_MAX, "%.46s", text + strlen("\"puzzle\":\""));
}

/* A join with a solution ("": without), and its body. */
struct solved_join {
    char body[TL_PUZZLE_SOLUTION_MAX + 32];
    struct tl_request request;
};

static void join(struct world *world, struct solved_join *join, const char *solution,
                 const char *peer)
{
    snprintf(join->body, sizeof(join->body), "{\"solution\":\"%s\"}", solution);
    join->request = (struct tl_request){.method = "POST",
                                        .path = PATH,
                                        .peer = peer,
                                        .headers = {{"Content-Type", "application/json"}},
                                        .body = solution[0] != '\0' ? join->body : NULL};
    world_handle(world, &join->request);
}

/* Asks for a puzzle and solves it. */
static void solve(struct world *world, char solution[TL_PUZZLE_SOLUTION_MAX])
{
    struct solved_join asked;
    char puzzle[TL_PUZZLE_MAX];
    join(world, &asked, "", PEER);
    assert_problem(&asked.request, 403, "challenge-required");
    puzzle_of(&asked.request, puzzle);
    puzzle_solve(puzzle, 12, solution);
}

static void a_solution_gets_a_place_and_names_the_visitor(void **state)
{
    struct world *world = *state;
    char solution[TL_PUZZLE_SOLUTION_MAX];
    struct solved_join first, again;
    solve(world, solution);
    join(world, &first, solution, PEER);
    assert_waits(&first.request);
    world_applied(world, world_batch(world, true), 5);
    assert_answer(&first.request, 200, "\"status\":\"waiting\"");
    assert_int_equal(strlen(world_given(world, &first.request).visitor), 22);
    /* Repeated, as after a broken connection: the same visitor. The store decides. */
    join(world, &again, solution, PEER);
    world_excepted(world, world_batch(world, true), TL_OUTCOME_WAITING, tl_place_make(0, 5));
    assert_answer(&again.request, 200, "\"status\":\"waiting\"");
    assert_string_equal(world_given(world, &first.request).visitor,
                        world_given(world, &again.request).visitor);
    assert_int_equal(tl_metrics_get(world->env.metrics, TL_WORKER_SOLUTIONS), 2);
}

/* A pending ticket repeats the join with what opened it, so that it is good once however often the
 * ticket is sent. */
static void a_pending_ticket_says_which_solution_it_had(void **state)
{
    struct world *world = *state;
    char solution[TL_PUZZLE_SOLUTION_MAX];
    struct solved_join first;
    solve(world, solution);
    join(world, &first, solution, PEER);
    (void)world_batch(world, true);
    tl_waits_tick(world->worker, tl_clock_ms() + 60000);
    assert_answer(&first.request, 202, "\"status\":\"pending\"");
    const struct tl_ticket ticket = world_given(world, &first.request);
    char id[TL_VISITOR_MAX + 2];
    snprintf(id, sizeof(id), "~%s", ticket.visitor);
    assert_int_equal(ticket.invite, tl_invite_digest(id));
}

static void a_spent_solution_gets_another_puzzle(void **state)
{
    struct world *world = *state;
    char solution[TL_PUZZLE_SOLUTION_MAX], puzzle[TL_PUZZLE_MAX];
    struct solved_join spent;
    solve(world, solution);
    join(world, &spent, solution, PEER);
    world_excepted(world, world_batch(world, true), TL_OUTCOME_SPENT, 0);
    assert_problem(&spent.request, 403, "challenge-failed");
    puzzle_of(&spent.request, puzzle);
    assert_memory_not_equal(puzzle, solution, 46);
}

static void a_solution_that_is_not_good_is_refused(void **state)
{
    struct world *world = *state;
    char solution[TL_PUZZLE_SOLUTION_MAX], wrong[TL_PUZZLE_SOLUTION_MAX];
    struct solved_join foreign, failed, expired;
    solve(world, solution);
    join(world, &foreign, solution, "203.0.113.8");
    assert_problem(&foreign.request, 403, "challenge-failed");
    memcpy(wrong, solution, sizeof(wrong));
    memset(wrong + 47, 'A', 40);
    join(world, &failed, wrong, PEER);
    assert_problem(&failed.request, 403, "challenge-failed");
    assert_non_null(strstr(failed.request.text, "The solution is wrong"));
    world->env.store_offset_ms += (TL_PUZZLE_LIFETIME_S + 2) * 1000;
    join(world, &expired, solution, PEER);
    assert_problem(&expired.request, 403, "challenge-failed");
    assert_non_null(strstr(expired.request.text, "expired"));
    assert_int_equal(tl_metrics_get(world->env.metrics, TL_WORKER_SOLUTIONS_REFUSED), 3);
    assert_int_equal(tl_metrics_get(world->env.metrics, TL_WORKER_PUZZLES), 4);
}

static void refused_joins_do_not_count_against_the_address(void **state)
{
    struct world *world = *state;
    char solution[TL_PUZZLE_SOLUTION_MAX];
    struct solved_join asked, good;
    solve(world, solution);
    for (int i = 0; i < 10; i++) /* the world allows three joins at once */
        join(world, &asked, "", PEER);
    join(world, &good, solution, PEER);
    assert_waits(&good.request);
    world_applied(world, world_batch(world, true), 5);
}

static void a_solved_puzzle_is_the_limit(void **state)
{
    enum { JOINS = 20 };
    struct world *world = *state;
    for (int i = 0; i < JOINS; i++) {
        char solution[TL_PUZZLE_SOLUTION_MAX];
        struct solved_join good;
        solve(world, solution);
        join(world, &good, solution, PEER);
        assert_waits(&good.request);
        world_applied(world, world_batch(world, true), 5);
    }
}

static void a_trusted_caller_and_an_invite_skip_it(void **state)
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
    char invite[FORGE_TEXT], body[FORGE_TEXT + 32];
    forge("{\"alg\":\"HS256\",\"kid\":\"shop\"}",
          "{\"aud\":\"concert\",\"sub\":\"user-7\",\"jti\":\"a1\",\"exp\":1795000600}", invite);
    snprintf(body, sizeof(body), "{\"invite\":\"%s\"}", invite);
    struct tl_request invited = {.method = "POST",
                                 .path = PATH,
                                 .headers = {{"Content-Type", "application/json"}},
                                 .body = body};
    world_handle(world, &invited);
    world_applied(world, world_batch(world, true), 6);
    assert_answer(&invited, 200, "\"visitor\":\"user-7\"");
}

static struct tl_request again(const struct world_ticket *ticket)
{
    return (struct tl_request){
        .method = "POST", .path = PATH, .peer = PEER, .headers = {{"Authorization", ticket->text}}};
}

static void who_holds_a_place_needs_no_solution(void **state)
{
    struct world *world = *state;
    struct world_ticket held = world_ticket(world, WORLD_GENERATION, tl_place_make(0, 3));
    struct tl_request request = again(&held);
    world_handle(world, &request);
    world_excepted(world, world_batch(world, true), TL_OUTCOME_WAITING, tl_place_make(0, 3));
    assert_answer(&request, 200, "\"position\":2,");
    struct world_ticket pending = world_ticket(world, 0, tl_place_make(0, 0));
    request = again(&pending);
    world_handle(world, &request);
    world_applied(world, world_batch(world, true), 5);
    assert_answer(&request, 200, "\"visitor\":\"alice\"");
}

static void a_place_that_has_ended_needs_a_solution(void **state)
{
    struct world *world = *state;
    char solution[TL_PUZZLE_SOLUTION_MAX];
    struct solved_join good;
    struct world_ticket ended = world_ticket(world, WORLD_GENERATION, tl_place_make(0, 99));
    struct tl_request request = again(&ended);
    world_handle(world, &request);
    assert_problem(&request, 403, "challenge-required");
    solve(world, solution);
    snprintf(good.body, sizeof(good.body), "{\"solution\":\"%s\"}", solution);
    good.request = again(&ended);
    good.request.headers[1] = (struct fake_value){"Content-Type", "application/json"};
    good.request.body = good.body;
    world_handle(world, &good.request);
    world_applied(world, world_batch(world, true), 5);
    assert_answer(&good.request, 200, "\"visitor\":\"alice\"");
}

/* A place that this process believes to be held, while the store knows of its end: the request is
 * asked for a solution, too. */
static void a_place_given_up_elsewhere_needs_a_solution(void **state)
{
    struct world *world = *state;
    struct world_ticket held = world_ticket(world, WORLD_GENERATION, tl_place_make(0, 3));
    struct tl_request request = again(&held);
    world_handle(world, &request);
    world_excepted(world, world_batch(world, true), TL_OUTCOME_GONE, tl_place_make(0, 3));
    assert_problem(&request, 403, "challenge-required");
}

static struct tl_request page(const char *method, const char *path, const char *solution)
{
    return (struct tl_request){.method = method,
                               .path = path,
                               .peer = PEER,
                               .queries = {{solution != NULL ? "solution" : NULL, solution}}};
}

/* The signed wait that the page offers. */
static void wait_of(const struct tl_request *request, char wait[TL_PUZZLE_MAX])
{
    const char *text = strstr(request->text, "action=\"/q/concert/join?solution=");
    if (text == NULL) {
        fail_msg("no signed wait in %s", request->text);
        return; /* never reached, which clang-tidy does not know */
    }
    snprintf(wait, TL_PUZZLE_MAX, "%.46s", text + strlen("action=\"/q/concert/join?solution="));
}

static void a_page_offers_the_puzzle_and_a_signed_wait(void **state)
{
    struct world *world = *state;
    char wait[TL_PUZZLE_MAX];
    struct tl_request first = page("GET", "/q/concert", NULL);
    world_handle(world, &first);
    assert_answer(&first, 200, "<body data-queue=\"concert\" data-state=\"challenge\"");
    assert_non_null(strstr(first.text, "data-parts=\"16\" data-bits=\"12\""));
    wait_of(&first, wait);
    struct tl_request early = page("POST", "/q/concert/join", wait);
    world_handle(world, &early);
    assert_answer(&early, 200, "data-state=\"challenge\"");
    world->env.store_offset_ms += TL_CHALLENGE_WAIT_S * 1000;
    for (int i = 0; i < 2; i++) { /* by the button, and by itself */
        struct tl_request late =
            i == 0 ? page("POST", "/q/concert/join", wait) : page("GET", "/q/concert", wait);
        world_handle(world, &late);
        assert_waits(&late);
        world_applied(world, world_batch(world, true), 5);
        assert_answer(&late, i == 0 ? 303 : 200, "");
        assert_non_null(fake_answer_header(&late, "Set-Cookie"));
    }
}

static void signed_waits_of_an_address_are_limited(void **state)
{
    struct world *world = *state;
    char wait[TL_PUZZLE_MAX];
    struct tl_puzzle_solved solved;
    struct tl_request request = page("GET", "/q/concert", NULL);
    world_handle(world, &request);
    wait_of(&request, wait);
    world->env.store_offset_ms += TL_CHALLENGE_WAIT_S * 1000;
    struct tl_visit *visit = tl_visit_begin(world->worker, &request, "concert");
    visit->queue = world_queue(world);
    unsigned passed = 0;
    while (passed <= 2 * TL_CHALLENGE_WAITS_A_MINUTE && /* a minute may end meanwhile */
           tl_challenge_passed(visit, &(struct tl_proof){.solution = wait}, &solved))
        passed++;
    assert_in_range(passed, TL_CHALLENGE_WAITS_A_MINUTE, 2 * TL_CHALLENGE_WAITS_A_MINUTE);
    assert_int_equal(visit->refusal.kind, TL_REFUSAL_TOO_MANY);
}

static void without_a_challenge_nothing_is_asked(void **state)
{
    struct world *world = *state;
    struct solved_join plain;
    world->settings.challenge = TL_CHALLENGE_NONE;
    world_load(world);
    join(world, &plain, "nonsense", PEER);
    assert_waits(&plain.request);
    world_applied(world, world_batch(world, true), 5);
    assert_answer(&plain.request, 200, "\"status\":\"waiting\"");
}

#define each(test) cmocka_unit_test_setup_teardown(test, set_up, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        each(a_solution_gets_a_place_and_names_the_visitor),
        each(a_pending_ticket_says_which_solution_it_had),
        each(a_spent_solution_gets_another_puzzle),
        each(a_solution_that_is_not_good_is_refused),
        each(refused_joins_do_not_count_against_the_address),
        each(a_solved_puzzle_is_the_limit),
        each(a_trusted_caller_and_an_invite_skip_it),
        each(who_holds_a_place_needs_no_solution),
        each(a_place_that_has_ended_needs_a_solution),
        each(a_place_given_up_elsewhere_needs_a_solution),
        each(a_page_offers_the_puzzle_and_a_signed_wait),
        each(signed_waits_of_an_address_are_limited),
        each(without_a_challenge_nothing_is_asked),
        each(a_pending_ticket_says_which_solution_it_had),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
