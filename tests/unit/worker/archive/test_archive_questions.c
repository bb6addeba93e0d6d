/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to an archive that cannot be reached: bounded, each with its answer, and none lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "worker/archive/archive.h"
#include "worker/report/worker_metrics.h"

enum { RATE = 200, WAITING = 1000, SECOND = 1000 };

static _Alignas(64) unsigned char metrics_memory[16384];

struct world {
    uv_loop_t loop;
    struct tl_archive *archive;
    struct tl_metrics *metrics;
    int64_t now_ms;
    uint64_t last;
    unsigned answers;
};

static void answered(void *context, const struct tl_archive_job *job)
{
    struct world *world = context;
    assert_int_equal(job->found, TL_ARCHIVE_FAILED);
    assert_int_equal(job->number, world->last + 1); /* in order */
    assert_string_equal(job->queue, "sale");
    world->last = job->number;
    world->answers++;
}

static int setup(void **state)
{
    static struct world world;
    struct tl_error err = {0};
    world = (struct world){.now_ms = tl_clock_ms() / SECOND * SECOND};
    assert_int_equal(uv_loop_init(&world.loop), 0);
    memset(metrics_memory, 0, sizeof(metrics_memory));
    world.metrics = tl_metrics_init(metrics_memory, tl_worker_metrics, TL_WORKER_METRICS);
    const struct tl_archive_settings settings = {.url = "host=/nowhere dbname=archive",
                                                 .metrics = world.metrics,
                                                 .context = &world,
                                                 .answered = answered};
    world.archive = tl_archive_new(&world.loop, &settings, &err);
    *state = &world;
    return world.archive != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    struct world *world = *state;
    tl_archive_free(&world->archive);
    uv_run(&world->loop, UV_RUN_DEFAULT);
    return uv_loop_close(&world->loop);
}

static bool ask(struct world *world, uint64_t number)
{
    const struct tl_archive_job question = {
        .kind = TL_ARCHIVE_PLACE, .number = number, .queue = "sale", .seq = 5};
    return tl_archive_ask(world->archive, &question, world->now_ms);
}

static void take_all(struct world *world, unsigned answers)
{
    while (world->answers < answers)
        uv_run(&world->loop, UV_RUN_ONCE);
}

static void test_so_many_in_a_second(void **state)
{
    struct world *world = *state;
    for (unsigned i = 1; i <= RATE; i++)
        assert_true(ask(world, i));
    assert_false(ask(world, RATE + 1));
    assert_int_equal(tl_metrics_get(world->metrics, TL_WORKER_ARCHIVE_REFUSED), 1);
    world->now_ms += SECOND;
    assert_true(ask(world, RATE + 1));
    take_all(world, RATE + 1);
    assert_int_equal(tl_metrics_get(world->metrics, TL_WORKER_ARCHIVE_FAILED), RATE + 1);
    assert_int_equal(tl_metrics_get(world->metrics, TL_WORKER_ARCHIVE_READS), 0);
}

/* Nobody takes the answers. */
static void test_so_many_at_a_time(void **state)
{
    struct world *world = *state;
    for (unsigned i = 1; i <= WAITING; i++) {
        assert_true(ask(world, i));
        world->now_ms += i % RATE == 0 ? SECOND : 0;
    }
    assert_false(ask(world, WAITING + 1));
    take_all(world, WAITING);
    assert_true(ask(world, WAITING + 1));
    take_all(world, WAITING + 1);
}

/* What is under way when the process ends is freed. */
static void test_the_end(void **state)
{
    struct world *world = *state;
    for (unsigned i = 1; i <= RATE; i++)
        assert_true(ask(world, i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_so_many_in_a_second, setup, teardown),
        cmocka_unit_test_setup_teardown(test_so_many_at_a_time, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_end, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
