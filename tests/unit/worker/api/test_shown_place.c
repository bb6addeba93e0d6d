/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of a page act on the place that the page shows, or on none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/worker/api/world.h"
#include "worker/visit/browser.h"
#include "worker/visit/visit.h"

struct name {
    char text[TL_REFERENCE_MAX];
};

static struct name name_of(struct world *world, const char *visitor, uint64_t seq)
{
    struct name name = {.text = ""};
    struct tl_visit visit = {
        .worker = world->worker, .name = "concert", .ticket.place = tl_place_make(0, seq)};
    snprintf(visit.ticket.visitor, sizeof(visit.ticket.visitor), "%s", visitor);
    tl_shown_place_write(&visit, name.text);
    return name;
}

/* A form of a page that shows `shown` (NULL: it does not say), sent with alice's cookie for seq. */
static struct tl_request post(struct world *world, const char *path, const char *shown,
                              uint64_t seq)
{
    const struct world_ticket ticket =
        world_ticket(world, seq != 0 ? WORLD_GENERATION : 0, tl_place_make(0, seq));
    struct tl_request request = {.method = "POST",
                                 .path = path,
                                 .cookies = {{"tellerline_concert", ticket.text + 7}},
                                 .queries = {{shown != NULL ? "place" : NULL, shown},
                                             {"from", "12"},
                                             {"ticket", "of-the-page"}}};
    world_handle(world, &request);
    return request;
}

static void assert_sent_to_the_page(struct world *world, struct tl_request request)
{
    assert_answer(&request, 303, "");
    assert_string_equal(fake_answer_header(&request, "Location"), "/q/concert");
    assert_null(fake_answer_header(&request, "Set-Cookie"));
    assert_int_equal(tl_queues_in_flight(&world->worker->queues), 0);
}

static void only_the_place_that_the_page_shows_is_left(void **state)
{
    struct world *world = *state;
    const struct name others[] = {
        name_of(world, "alice", 5), name_of(world, "bob", 0), {"ABCD-EFGH"}, {"x"}, {""}};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_sent_to_the_page(world, post(world, "/q/concert/leave", others[i].text, 4));
    const struct name pending = name_of(world, "alice", 0), own = name_of(world, "alice", 4);
    const char *const right[] = {own.text, pending.text, NULL};
    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
        const struct tl_request request = post(world, "/q/concert/leave", right[i], 4);
        assert_waits(&request);
        assert_int_equal(tl_queues_in_flight(&world->worker->queues), 1);
        world_lose(world);
    }
}

static void a_place_without_a_number_is_named_by_its_visitor(void **state)
{
    struct world *world = *state;
    const struct name own = name_of(world, "alice", 0), other = name_of(world, "bob", 0),
                      numbered = name_of(world, "alice", 4);
    assert_sent_to_the_page(world, post(world, "/q/concert/leave", other.text, 0));
    assert_sent_to_the_page(world, post(world, "/q/concert/leave", numbered.text, 0));
    const struct tl_request request = post(world, "/q/concert/leave", own.text, 0);
    assert_waits(&request);
    world_lose(world);
}

static void no_code_is_made_for_another_place(void **state)
{
    struct world *world = *state;
    const struct name own = name_of(world, "alice", 4), other = name_of(world, "alice", 5);
    assert_sent_to_the_page(world, post(world, "/q/concert/transfer", other.text, 4));
    const struct tl_request request = post(world, "/q/concert/transfer", own.text, 4);
    assert_answer(&request, 200, "data-state=\"transfer\"");
}

/* The invite of a place that is over must not take the cookie from one that waits. */
static void to_join_again_replaces_no_other_place(void **state)
{
    struct world *world = *state;
    const struct name over = name_of(world, "alice", 99), own = name_of(world, "alice", 4);
    const struct world_ticket ticket = world_ticket(world, WORLD_GENERATION, tl_place_make(0, 4));
    struct tl_request request = {.method = "POST",
                                 .path = "/q/concert/join",
                                 .cookies = {{"tellerline_concert", ticket.text + 7}},
                                 .queries = {{"place", over.text}, {"invite", "i.n.v"}}};
    world_handle(world, &request);
    assert_sent_to_the_page(world, request);
    struct tl_request same = request; /* with its own invite as before: this one is forged */
    same.answers = 0;
    same.queries[0].value = own.text;
    world_handle(world, &same);
    assert_answer(&same, 403, "data-state=\"invited\"");
}

/* Without a cookie the address has the ticket of the page's own place. */
static void the_ticket_of_the_page_is_of_its_place(void **state)
{
    struct world *world = *state;
    const struct world_ticket ticket = world_ticket(world, WORLD_GENERATION, tl_place_make(0, 4));
    const struct name other = name_of(world, "alice", 5);
    struct tl_request request = {.method = "POST",
                                 .path = "/q/concert/leave",
                                 .queries = {{"place", other.text}, {"ticket", ticket.text + 7}}};
    world_handle(world, &request);
    assert_waits(&request);
    world_lose(world);
}

static void the_page_names_its_place(void **state)
{
    struct world *world = *state;
    char action[64];
    const struct name own = name_of(world, "alice", 4);
    const struct world_ticket ticket = world_ticket(world, WORLD_GENERATION, tl_place_make(0, 4));
    struct tl_request request = {.method = "GET",
                                 .path = "/q/concert",
                                 .cookies = {{"tellerline_concert", ticket.text + 7}}};
    world_handle(world, &request);
    static const char *const forms[] = {"leave", "transfer", "join"};
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        snprintf(action, sizeof(action), "action=\"/q/concert/%s?from=3&amp;place=%s\"", forms[i],
                 own.text);
        assert_answer(&request, 200, action);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_the_place_that_the_page_shows_is_left),
        TEST(a_place_without_a_number_is_named_by_its_visitor),
        TEST(no_code_is_made_for_another_place),
        TEST(to_join_again_replaces_no_other_place),
        TEST(the_ticket_of_the_page_is_of_its_place),
        TEST(the_page_names_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
