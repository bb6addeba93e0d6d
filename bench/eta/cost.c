/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/line/line.h"
#include "worker/queue/eta.h"

#include "bench/eta/cost.h"

enum { ENTRIES = 200000, ESTIMATES = 1000000, OUTLOOKS = 2000, WAITING = 1000000 };

/* An entry: one session ended, the next one began. */
static void turn(struct tl_line *line, struct tl_eta *eta, uint64_t ended, uint64_t admitted,
                 uint64_t number, int64_t now_ms)
{
    struct tl_run gone = {.first = tl_place_make(0, ended), .count = 1};
    struct tl_run next = {.first = tl_place_make(0, admitted), .count = 1};
    struct tl_event events[2] = {
        {.kind = TL_EVENT_FREED, .places = {1, &gone}, .reason = TL_REASON_COMPLETED},
        {.kind = TL_EVENT_ADMITTED, .places = {1, &next}, .deadline_ms = 1}};
    struct tl_event_entry entry = {.number = number, .n_events = 2, .events = events};
    if (tl_line_apply(line, &entry, now_ms) != TL_LINE_APPLIED)
        abort();
    entry.waiting = tl_line_waiting(line);
    entry.active = tl_line_active(line);
    if (eta != NULL)
        tl_eta_apply(eta, &entry, now_ms);
}

static struct tl_line *line_new(unsigned capacity)
{
    struct tl_line *line = tl_line_new();
    if (line == NULL || !tl_line_add_waiting(line, tl_place_make(0, capacity + 1), WAITING))
        abort();
    for (unsigned i = 1; i <= capacity; i++)
        if (!tl_line_add_active(line, tl_place_make(0, i), 1))
            abort();
    tl_line_start(line, 0, 0);
    return line;
}

void cost_print(unsigned capacity)
{
    double entry_ns[2];
    struct tl_eta eta = {0};
    const struct tl_eta_rule rule = {.counted = true, .capacity = capacity};
    struct tl_eta_range range;
    enum tl_eta_reason reason;
    double sum = 0;
    tl_eta_set_rule(&eta, &rule, 0);
    tl_eta_set_open(&eta, true, 0);
    for (int with = 0; with < 2; with++) {
        struct tl_line *line = line_new(capacity);
        if (with)
            tl_eta_set_line(&eta, line, 0);
        int64_t from_us = tl_clock_us();
        for (uint64_t i = 1; i <= ENTRIES; i++)
            turn(line, with ? &eta : NULL, i, capacity + i, i, (int64_t)i);
        entry_ns[with] = (double)(tl_clock_us() - from_us) * 1000 / ENTRIES;
        tl_line_free(&line);
    }
    int64_t from_us = tl_clock_us();
    for (int i = 0; i < OUTLOOKS; i++) /* out of date each time */
        sum += tl_eta_estimate(&eta, 1, ENTRIES + (int64_t)i * 1000, &range, &reason);
    double outlook_us = (double)(tl_clock_us() - from_us) / OUTLOOKS;
    from_us = tl_clock_us();
    for (uint64_t i = 0; i < ESTIMATES; i++)
        sum += tl_eta_estimate(&eta, 1 + i % (WAITING - ENTRIES),
                               ENTRIES + (int64_t)OUTLOOKS * 1000, &range, &reason);
    printf("capacity %u: an entry %.0f ns, %.0f ns with the estimate; an estimate %.2f us; a new "
           "outlook %.1f us; %zu bytes%s\n",
           capacity, entry_ns[0], entry_ns[1], (double)(tl_clock_us() - from_us) / ESTIMATES,
           outlook_us, sizeof(&eta) + tl_placemap_bytes(&eta.sessions.running),
           sum > 0 ? "" : " (nothing known)");
    tl_placemap_clear(&eta.sessions.running);
}
