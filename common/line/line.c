/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/line/line.h"

/* Ends are remembered for as long as the store keeps them at least. */
#define END_KEPT_MS 3600000
/* An end in the map: local monotonic ms * 8 + reason, as in the store. */
#define END_REASON_BITS 3

struct tl_line *tl_line_new(void)
{
    struct tl_line *line = calloc(1, sizeof(*line));
    if (line != NULL)
        line->compare_from = UINT64_MAX;
    return line;
}

void tl_line_free(struct tl_line **line)
{
    if (*line == NULL)
        return;
    for (size_t i = 0; i < TL_LANES_MAX; i++)
        tl_order_clear(&(*line)->lanes[i]);
    tl_placemap_clear(&(*line)->active);
    tl_placemap_clear(&(*line)->ended);
    tl_placemap_clear(&(*line)->serials);
    free((*line)->end_order);
    free(*line);
    *line = NULL;
}

uint64_t tl_line_waiting(const struct tl_line *line)
{
    uint64_t waiting = 0;
    for (size_t i = 0; i < TL_LANES_MAX; i++)
        waiting += line->lanes[i].count;
    return waiting;
}

uint64_t tl_line_active(const struct tl_line *line)
{
    return line->active.count;
}

const struct tl_order *tl_line_order(const struct tl_line *line, unsigned lane)
{
    return lane < TL_LANES_MAX && (line->lanes_used >> lane & 1) != 0 ? &line->lanes[lane] : NULL;
}

uint64_t tl_line_front(const struct tl_line *line, unsigned lane)
{
    const struct tl_order *order = tl_line_order(line, lane);
    uint64_t first;
    return order != NULL && tl_order_next(order, 1, &first) ? first - 1 : line->last_seq;
}

bool tl_line_lost(const struct tl_line *line, tl_place place)
{
    uint64_t seq = tl_place_seq(place);
    return seq > line->found_seq && seq <= line->base_seq;
}

size_t tl_line_bytes(const struct tl_line *line)
{
    size_t bytes = sizeof(*line) + tl_placemap_bytes(&line->active) +
                   tl_placemap_bytes(&line->ended) + tl_placemap_bytes(&line->serials) +
                   line->end_capacity * sizeof(*line->end_order);
    for (size_t i = 0; i < TL_LANES_MAX; i++)
        bytes += tl_order_bytes(&line->lanes[i]) - sizeof(line->lanes[i]);
    return bytes;
}

static void sizes_of(const struct tl_line *line, uint64_t sizes[TL_LANES_MAX])
{
    for (size_t i = 0; i < TL_LANES_MAX; i++)
        sizes[i] = line->lanes[i].count;
}

size_t tl_line_first(const struct tl_line *line, tl_place *places, size_t most)
{
    struct tl_turns turns = line->turns;
    uint64_t sizes[TL_LANES_MAX], last[TL_LANES_MAX] = {0};
    int lane;
    size_t n = 0;
    sizes_of(line, sizes);
    while (n < most && (lane = tl_turns_take(&turns, sizes)) >= 0) {
        if (!tl_order_next(&line->lanes[lane], last[lane] + 1, &last[lane]))
            break; /* impossible */
        places[n++] = tl_place_make((unsigned)lane, last[lane]);
        sizes[lane]--;
    }
    return n;
}

static bool knows(const struct tl_line *line, tl_place place)
{
    const struct tl_order *order = tl_line_order(line, tl_place_lane(place));
    uint64_t value;
    return (order != NULL && tl_order_contains(order, tl_place_seq(place))) ||
           tl_placemap_get(&line->active, place, &value) ||
           tl_placemap_get(&line->ended, place, &value);
}

tl_place tl_line_find(const struct tl_line *line, tl_place place)
{
    if (knows(line, place))
        return place;
    for (unsigned lane = 0; lane < TL_LANES_MAX; lane++) {
        tl_place other = tl_place_make(lane, tl_place_seq(place));
        if (knows(line, other))
            return other;
    }
    return place;
}

uint32_t tl_line_serial(const struct tl_line *line, tl_place place)
{
    uint64_t serial;
    uint64_t seq = tl_place_seq(place);
    return seq != 0 && tl_placemap_get(&line->serials, seq, &serial) ? (uint32_t)serial : 0;
}

struct tl_line_view tl_line_look(const struct tl_line *line, tl_place place)
{
    struct tl_line_view view = {.status = TL_LINE_UNKNOWN};
    unsigned lane = tl_place_lane(place);
    uint64_t seq = tl_place_seq(place);
    uint64_t value;
    if (lane >= TL_LANES_MAX)
        return view;
    if (tl_order_contains(&line->lanes[lane], seq)) {
        view.status = TL_LINE_WAITING;
        uint64_t sizes[TL_LANES_MAX];
        sizes_of(line, sizes);
        view.ahead =
            tl_turns_ahead(&line->turns, sizes, lane, tl_order_rank(&line->lanes[lane], seq));
    } else if (tl_placemap_get(&line->active, place, &value)) {
        view.status = TL_LINE_ACTIVE;
        view.deadline_ms = (int64_t)value;
    } else if (tl_placemap_get(&line->ended, place, &value)) {
        view.status = TL_LINE_ENDED;
        view.reason = (enum tl_reason)(value & ((1 << END_REASON_BITS) - 1));
    }
    return view;
}

/* ---- changes ---- */

bool tl_line_add_waiting(struct tl_line *line, tl_place first, uint64_t count)
{
    unsigned lane = tl_place_lane(first);
    if (lane >= TL_LANES_MAX)
        return false;
    line->lanes_used |= UINT32_C(1) << lane;
    return tl_order_insert(&line->lanes[lane], tl_place_seq(first), count) >= 0;
}

static void forget_oldest(struct tl_line *line)
{
    tl_place place = line->end_order[line->end_first];
    if (tl_placemap_remove(&line->ended, place, NULL))
        tl_placemap_remove(&line->serials, tl_place_seq(place), NULL);
    line->end_first = (line->end_first + 1) % line->end_capacity;
    line->end_count--;
}

static bool remember_end(struct tl_line *line, tl_place place, enum tl_reason reason,
                         int64_t now_ms)
{
    if (line->end_count >= TL_LINE_ENDS_MAX)
        forget_oldest(line);
    if (line->end_count == line->end_capacity) {
        size_t capacity = line->end_capacity == 0 ? 64 : line->end_capacity * 2;
        tl_place *ring = calloc(capacity, sizeof(*ring));
        if (ring == NULL)
            return false;
        for (size_t i = 0; i < line->end_count; i++)
            ring[i] = line->end_order[(line->end_first + i) % line->end_capacity];
        free(line->end_order);
        line->end_order = ring;
        line->end_first = 0;
        line->end_capacity = capacity;
    }
    uint64_t end = ((uint64_t)now_ms << END_REASON_BITS) | (uint64_t)reason;
    if (!tl_placemap_put(&line->ended, place, end))
        return false;
    line->end_order[(line->end_first + line->end_count++) % line->end_capacity] = place;
    return true;
}

size_t tl_line_forget(struct tl_line *line, int64_t now_ms, size_t limit)
{
    size_t forgotten = 0;
    while (forgotten < limit && line->end_count > 0) {
        uint64_t end;
        if (tl_placemap_get(&line->ended, line->end_order[line->end_first], &end) &&
            (int64_t)(end >> END_REASON_BITS) + END_KEPT_MS > now_ms)
            break;
        forget_oldest(line);
        forgotten++;
    }
    return forgotten;
}

static bool apply_runs(struct tl_line *line, const struct tl_event *event, int64_t now_ms)
{
    for (size_t i = 0; i < event->places.n; i++) {
        const struct tl_run *run = &event->places.runs[i];
        if (event->kind == TL_EVENT_JOINED) {
            uint64_t last = tl_place_seq(run->first) + run->count - 1;
            if (!tl_line_add_waiting(line, run->first, run->count))
                return false;
            if (last > line->last_seq)
                line->last_seq = last;
            continue;
        }
        struct tl_order *order = &line->lanes[tl_place_lane(run->first) % TL_LANES_MAX];
        if (event->kind != TL_EVENT_FREED)
            tl_order_remove(order, tl_place_seq(run->first), run->count);
        if (event->reason == TL_REASON_MOVED)
            continue; /* the JOINED of the same entry tells where they are now */
        for (uint64_t k = 0; k < run->count; k++) {
            tl_place place = run->first + k;
            if (event->kind == TL_EVENT_ADMITTED) {
                if (!tl_placemap_put(&line->active, place, (uint64_t)event->deadline_ms))
                    return false;
                continue;
            }
            tl_placemap_remove(&line->active, place, NULL);
            if (!remember_end(line, place, event->reason, now_ms))
                return false;
        }
    }
    return true;
}

/* Moves the turns on by what this entry admitted, if it is a step of the function admit. In an
 * entry with APPLIED, ADMITTED tells of sessions that came back. */
static void count_turns(struct tl_line *line, const struct tl_event_entry *entry)
{
    uint64_t admitted[TL_LANES_MAX] = {0};
    bool is_step = false;
    if (entry->number <= line->turns_counted)
        return;
    line->turns_counted = entry->number;
    for (size_t i = 0; i < entry->n_events; i++) {
        const struct tl_event *event = &entry->events[i];
        if (event->kind == TL_EVENT_APPLIED)
            return;
        for (size_t r = 0; event->kind == TL_EVENT_ADMITTED && r < event->places.n; r++) {
            unsigned lane = tl_place_lane(event->places.runs[r].first);
            admitted[lane % TL_LANES_MAX] += event->places.runs[r].count;
            is_step = true;
        }
    }
    if (is_step)
        tl_turns_admitted(&line->turns, admitted);
}

static bool apply_event(struct tl_line *line, const struct tl_event *event, int64_t now_ms)
{
    switch (event->kind) {
    case TL_EVENT_JOINED:
    case TL_EVENT_ADMITTED:
    case TL_EVENT_REMOVED:
    case TL_EVENT_FREED:
        return apply_runs(line, event, now_ms);
    case TL_EVENT_RENEWED:
    case TL_EVENT_EXTENDED: {
        tl_place place = event->places.runs[0].first;
        uint64_t known;
        /* Only if it is still active here: the session may have ended before the snapshot was
         * taken. */
        if (!tl_placemap_get(&line->active, place, &known))
            return true;
        return tl_placemap_put(&line->active, place, (uint64_t)event->deadline_ms);
    }
    case TL_EVENT_HANDED:
        return tl_line_add_serial(line, event->places.runs[0].first, event->serial);
    case TL_EVENT_APPLIED:
    case TL_EVENT_CONFIG:
    case TL_EVENT_NOTICE:
        return true;
    }
    return true;
}

enum tl_line_result tl_line_apply(struct tl_line *line, const struct tl_event_entry *entry,
                                  int64_t now_ms)
{
    if (entry->generation != line->generation)
        return TL_LINE_GAP;
    if (entry->number <= line->event)
        return TL_LINE_OLD;
    if (entry->number != line->event + 1)
        return TL_LINE_GAP;
    for (size_t i = 0; i < entry->n_events; i++)
        if (!apply_event(line, &entry->events[i], now_ms))
            return TL_LINE_NOMEM;
    line->event = entry->number;
    count_turns(line, entry);
    bool same = entry->number < line->compare_from ||
                (entry->waiting == tl_line_waiting(line) && entry->active == tl_line_active(line));
    return same ? TL_LINE_APPLIED : TL_LINE_DIFFERS;
}

void tl_line_weigh(struct tl_line *line, const struct tl_weights *weights)
{
    tl_turns_weigh(&line->turns, weights);
}

void tl_line_set_turns(struct tl_line *line, const char *field, uint64_t event)
{
    tl_turns_continue(&line->turns, field);
    line->turns_counted = event;
}

void tl_line_start(struct tl_line *line, uint64_t generation, uint64_t event)
{
    line->generation = generation;
    line->event = event;
}

void tl_line_set_lost(struct tl_line *line, uint64_t found_seq, uint64_t base_seq)
{
    line->found_seq = found_seq;
    line->base_seq = base_seq;
}

bool tl_line_add_serial(struct tl_line *line, tl_place place, uint32_t serial)
{
    uint64_t seq = tl_place_seq(place);
    return seq == 0 || serial <= tl_line_serial(line, place) ||
           tl_placemap_put(&line->serials, seq, serial);
}

bool tl_line_add_active(struct tl_line *line, tl_place place, int64_t deadline_ms)
{
    return tl_placemap_put(&line->active, place, (uint64_t)deadline_ms);
}
