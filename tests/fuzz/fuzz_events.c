/* SPDX-License-Identifier: Apache-2.0 */
/* Events entries: any bytes are either refused, or can be applied to a line. Applying them a second
 * time changes nothing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/line/line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Entries with more places are skipped: a line would need much time and memory for them. */
#define PLACES_MAX 10000

static void require(bool condition)
{
    if (!condition)
        abort();
}

static uint64_t check_runs(const struct tl_runs *runs)
{
    uint64_t places = 0, past = 0;
    for (size_t i = 0; i < runs->n; i++) {
        require(runs->runs[i].first > past || (i == 0 && runs->runs[i].first > 0));
        require(runs->runs[i].count > 0);
        past = runs->runs[i].first + runs->runs[i].count;
        require(tl_place_lane(past) < TL_LANES_MAX);
        places += runs->runs[i].count;
    }
    return places;
}

static void apply(const struct tl_event_entry *entry)
{
    struct tl_line *line = tl_line_new();
    require(line != NULL);
    tl_line_start(line, entry->generation, entry->number - 1);
    enum tl_line_result first = tl_line_apply(line, entry, 1);
    if (first == TL_LINE_APPLIED) {
        uint64_t waiting = tl_line_waiting(line);
        uint64_t active = tl_line_active(line);
        require(tl_line_apply(line, entry, 2) == TL_LINE_OLD);
        require(tl_line_waiting(line) == waiting && tl_line_active(line) == active);
    } else {
        require(first == TL_LINE_NOMEM ||
                entry->number == 0); /* places too far apart for one line */
    }
    tl_line_free(&line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tl_event_entry entry;
    struct tl_error err = {0};
    if (!tl_events_decode(data, size, &entry, &err)) {
        require(err.kind == TL_ERR_INVALID && err.text[0] != '\0');
        return 0;
    }
    uint64_t places = 0;
    for (size_t i = 0; i < entry.n_events; i++) {
        const struct tl_event *event = &entry.events[i];
        require(event->kind >= TL_EVENT_APPLIED && event->kind <= TL_EVENT_HANDED);
        require(event->kind != TL_EVENT_HANDED || event->serial > 0);
        require(event->deadline_ms >= 0);
        places += check_runs(&event->places);
    }
    if (places <= PLACES_MAX)
        apply(&entry);
    tl_events_free(&entry);
    return 0;
}
