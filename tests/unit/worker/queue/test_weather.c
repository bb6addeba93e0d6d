/* SPDX-License-Identifier: Apache-2.0 */
/* The weather that is kept never differs from that of the moment, whatever changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/random.h"
#include "tests/unit/worker/queue/world.h"

static uint64_t chance; /* the generator's state */

static uint64_t below(uint64_t n)
{
    return random_below(&chance, n);
}

static void change_settings(struct world *world, int64_t now_ms)
{
    struct tl_queue_settings settings = world_settings();
    settings.mode = (enum tl_queue_mode)below(TL_MODES);
    settings.capacity = below(3);
    settings.max_waiting = below(3);
    settings.order = below(2) == 0 ? TL_ORDER_DRAW : settings.order;
    settings.opens_at_ms = (int64_t)below(2) * (WORLD_STORE_MS + now_ms + 5);
    settings.closes_at_ms = (int64_t)below(2) * (WORLD_STORE_MS + now_ms + 5);
    tl_queue_set_settings(world->queue, &settings, now_ms);
}

static void change_recovery(struct world *world)
{
    const struct tl_recovery recovery = {
        .present = 7,
        .lost_generation = below(2) * 5,
        .until_ms = (int64_t)below(2) * WORLD_STORE_MS,
        .full_since_ms = (int64_t)below(2) * WORLD_STORE_MS,
        .draw = {.phase = below(2) == 0 ? TL_DRAW_DONE : TL_DRAW_NONE, .event = below(40)}};
    tl_queue_set_recovery(world->queue, &recovery);
}

/* A place of the generation 5 came back, which begins a recovery that was not known of here. */
static void settle_restored(struct world *world)
{
    const struct tl_pending_command command = {
        .kind = TL_COMMAND_RESTORE, .place = 9, .numbers = {5}};
    const struct tl_pending_result result = {.outcome = TL_OUTCOME_DONE, .place = 9};
    tl_queue_settled(world->queue, &command, &result);
}

static void change(struct world *world, int64_t now_ms)
{
    switch (below(8)) {
    case 0:
        change_settings(world, now_ms);
        break;
    case 1:
        change_recovery(world);
        break;
    case 2:
        settle_restored(world);
        break;
    case 3:
        world->env.heard_ms = now_ms - (int64_t)below(2) * 6000;
        world->env.changes++;
        break;
    case 4:
        world->env.store_offset_ms += (int64_t)below(3) - 1;
        world->env.changes++;
        break;
    case 5:
        world->event = 10;
        (void)tl_queue_set_line(world->queue, world_line(below(4)), now_ms);
        break;
    case 6:
        tl_queue_set_notice(world->queue, "Soon", below(2) * 4);
        break;
    default: /* the line may refuse it */
        world_apply(world, 3, 3, "[2,[8,1]]", now_ms);
        break;
    }
}

static void what_is_kept_is_so(void **state)
{
    struct world world;
    int64_t now_ms = 100000;
    uint64_t changes = 0;
    (void)state;
    chance = random_seed("weather");
    world_start(&world, 5);
    tl_log_init(&(struct tl_log_settings){.level = TL_LOG_FATAL});
    for (int i = 0; i < 20000; i++) {
        const struct tl_weather before = *tl_queue_weather(world.queue, now_ms);
        now_ms += (int64_t)(below(2) * below(10));
        if (below(3) > 0)
            change(&world, now_ms);
        const struct tl_weather kept = *tl_queue_weather(world.queue, now_ms);
        world.queue->weather.known = false;
        const struct tl_weather now = *tl_queue_weather(world.queue, now_ms);
        assert_int_equal(kept.version, now.version); /* nothing differed */
        assert_int_equal(kept.waiting, tl_line_waiting(world.queue->line));
        assert_int_equal(kept.active, tl_line_active(world.queue->line));
        assert_int_equal(kept.recovering, tl_lost_recovering(&world.queue->lost));
        assert_true(kept.version >= before.version);
        if (kept.mode != before.mode || kept.phase != before.phase || kept.open != before.open ||
            kept.waiting != before.waiting || kept.as_of_ms != before.as_of_ms ||
            kept.scheduled != before.scheduled)
            assert_true(kept.version > before.version);
        changes += kept.version > before.version;
    }
    assert_in_range(changes, 2000, 19000);
    world_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_kept_is_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
