/* SPDX-License-Identifier: Apache-2.0 */
#include "admitter/store_clock.h"
#include "common/base/clock.h"

/* How far the clocks may drift from what is expected before this looks again. Less than what
 * the function takes for a jump (CLOCK_JUMP_MS), so that clocks which run apart are no jump. */
#define SLACK_MS 50
/* Each admit step tells the clock, and an admitter takes one for a queue at least every 5 s. */
#define LOOK_MS 6000

int64_t tl_store_clock_at(const struct tl_store_clock *clock, int64_t local_ms)
{
    return clock->store_ms != 0 ? clock->store_ms + local_ms - clock->local_ms : 0;
}

void tl_store_clock_note(struct tl_store_clock *clock, int64_t store_ms, int64_t sent_ms,
                         int64_t received_ms)
{
    int64_t ahead_ms = store_ms - tl_store_clock_at(clock, received_ms);
    int64_t behind_ms = tl_store_clock_at(clock, sent_ms) - store_ms;
    bool is_known = clock->store_ms != 0;
    clock->noted_ms = received_ms;
    if (is_known && ahead_ms <= SLACK_MS && behind_ms <= SLACK_MS)
        return;
    if (is_known && ahead_ms > 2 * SLACK_MS) {
        clock->jumped_ms += ahead_ms;
        clock->jumped_to_ms = store_ms;
    }
    clock->store_ms = store_ms;
    clock->local_ms = sent_ms;
}

bool tl_store_clock_look(struct tl_store_clock *clock, struct tl_redis *redis, int64_t local_ms,
                         struct tl_error *err)
{
    if (clock->store_ms != 0 && local_ms - clock->noted_ms < LOOK_MS)
        return true;
    int64_t store_us;
    int64_t sent_ms = tl_clock_ms();
    if (!tl_redis_time(redis, &store_us, err))
        return false;
    tl_store_clock_note(clock, store_us / 1000, sent_ms, tl_clock_ms());
    return true;
}
