/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of those who wait when the threads tell of a change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/worker/api/world.h"
#include "worker/visit/subscribers.h"
#include "worker/visit/visit.h"

static struct tl_request request_of(const char *method, const char *path,
                                    const struct world_ticket *ticket)
{
    return (struct tl_request){
        .method = method, .path = path, .headers = {{"Authorization", ticket->text}}};
}

static void a_deleted_queue_leaves_no_request_behind(void **state)
{
    struct world *world = *state;
    const struct world_ticket known = world_ticket(world, WORLD_GENERATION, 4);
    const struct world_ticket unknown = world_ticket(world, WORLD_GENERATION, 99);
    struct tl_request poll = request_of("GET", "/v1/queues/concert/status", &known);
    struct tl_request lookup = request_of("GET", "/v1/queues/concert/status", &unknown);
    struct tl_request leave = request_of("POST", "/v1/queues/concert/leave", &known);
    struct tl_request stream = request_of("GET", "/v1/queues/concert/events", &known);
    poll.queries[0] = (struct fake_value){"wait", "20s"};
    world_handle(world, &poll);
    world_handle(world, &lookup);
    world_handle(world, &leave);
    world_handle(world, &stream);
    assert_true(poll.held && lookup.held && leave.held && stream.taken_over);
    world_take(world, (struct tl_change){.kind = TL_CHANGE_GONE});
    assert_null(tl_queues_find(&world->worker->queues, "concert"));
    assert_problem(&poll, 404, "no-such-queue");
    assert_int_equal(lookup.answers, 1);
    assert_problem(&leave, 404, "no-such-queue");
    assert_int_equal(world->worker->subscribers.table.n, 0);
    assert_int_equal(tl_waits_count(&world->worker->waits), 0);
    close(stream.client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_deleted_queue_leaves_no_request_behind, world_setup,
                                        world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
