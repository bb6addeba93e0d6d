/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/queue/queue.h"

enum {
    SLIDE_MIN_MS = 1000, /* minimum time between two extensions of a sliding session */
    TURN_MAX_MS = 2000,  /* a visitor with the next turn claims again after this time */
};

/* In `claimed`: the store has not said yet that the session is claimed. */
#define UNDER_WAY (UINT64_C(1) << 63)

void tl_claims_clear(struct tl_claims *claims)
{
    tl_placemap_clear(&claims->claimed);
    tl_placemap_clear(&claims->turns);
}

static bool is_in(const struct tl_placemap *map, tl_place place)
{
    uint64_t last;
    return tl_placemap_get(map, place, &last);
}

bool tl_claims_has(const struct tl_claims *claims, tl_place place)
{
    return is_in(&claims->claimed, place);
}

bool tl_claims_made(const struct tl_claims *claims, tl_place place)
{
    uint64_t last;
    return tl_placemap_get(&claims->claimed, place, &last) && (last & UNDER_WAY) == 0;
}

void tl_claims_note(struct tl_claims *claims, tl_place place, int64_t now_ms)
{
    uint64_t under_way = tl_claims_made(claims, place) ? 0 : UNDER_WAY;
    (void)tl_placemap_put(&claims->claimed, place, ((uint64_t)now_ms + 1) | under_way);
}

void tl_claims_note_claim(struct tl_claims *claims, tl_place place)
{
    if (!tl_claims_has(claims, place))
        (void)tl_placemap_put(&claims->claimed, place, UNDER_WAY);
}

/* The store has renewed the session. */
static void note_renewed(struct tl_claims *claims, tl_place place, int64_t now_ms)
{
    (void)tl_placemap_put(&claims->claimed, place, (uint64_t)now_ms + 1);
}

static bool is_active(void *line, tl_place place)
{
    return tl_line_look(line, place).status == TL_LINE_ACTIVE;
}

void tl_claims_keep(struct tl_claims *claims, const struct tl_line *line)
{
    void *context = (void *)(uintptr_t)line; /* is_active does not change it */
    tl_placemap_keep(&claims->claimed, is_active, context);
    tl_placemap_keep(&claims->turns, is_active, context);
}

bool tl_claims_due(const struct tl_claims *claims, const struct tl_queue_settings *settings,
                   tl_place place, int64_t now_ms)
{
    uint64_t last = 0;
    if (!tl_placemap_get(&claims->turns, place, &last))
        return !tl_claims_has(claims, place);
    int64_t pause = settings->claim_ttl_ms / 4;
    return now_ms + 1 - (int64_t)last >= (pause < TURN_MAX_MS ? pause : TURN_MAX_MS);
}

bool tl_claims_extends(const struct tl_claims *claims, const struct tl_queue_settings *settings,
                       tl_place place, int64_t now_ms)
{
    uint64_t last = 0;
    if (!settings->session_sliding || !tl_placemap_get(&claims->claimed, place, &last))
        return false;
    int64_t pause = settings->session_ttl_ms / 10;
    return now_ms + 1 - (int64_t)(last & ~UNDER_WAY) >=
           (pause > SLIDE_MIN_MS ? pause : SLIDE_MIN_MS);
}

void tl_claims_settled(struct tl_claims *claims, const struct tl_line *line,
                       const struct tl_pending_command *pending,
                       const struct tl_pending_result *result, int64_t now_ms)
{
    bool applied = result->end == TL_PENDING_APPLIED;
    bool active = line != NULL && tl_line_look(line, pending->place).status == TL_LINE_ACTIVE;
    if (applied && result->outcome == TL_OUTCOME_WAITING && active)
        (void)tl_placemap_put(&claims->turns, pending->place, (uint64_t)now_ms + 1);
    else
        (void)tl_placemap_remove(&claims->turns, pending->place, NULL);
    if (applied && result->outcome == TL_OUTCOME_DONE && active &&
        pending->kind == TL_COMMAND_CLAIM) {
        uint64_t last = 0; /* it renews only what was not claimed, and an event tells of that */
        (void)tl_placemap_get(&claims->claimed, pending->place, &last);
        (void)tl_placemap_put(&claims->claimed, pending->place, last & ~UNDER_WAY);
    } else if (applied && result->outcome == TL_OUTCOME_DONE && active) {
        note_renewed(claims, pending->place, now_ms);
    } else if (!applied || result->outcome == TL_OUTCOME_WAITING) {
        (void)tl_placemap_remove(&claims->claimed, pending->place,
                                 NULL); /* the next touch claims */
    }
}

static void forget(struct tl_claims *claims, const struct tl_runs *runs)
{
    for (size_t i = 0; i < runs->n && claims->claimed.count + claims->turns.count > 0; i++)
        for (uint64_t k = 0; k < runs->runs[i].count; k++) {
            (void)tl_placemap_remove(&claims->claimed, runs->runs[i].first + k, NULL);
            (void)tl_placemap_remove(&claims->turns, runs->runs[i].first + k, NULL);
        }
}

void tl_claims_event(struct tl_claims *claims, const struct tl_line *line,
                     const struct tl_event *event, int64_t now_ms)
{
    if (event->kind == TL_EVENT_FREED) {
        forget(claims, &event->places);
    } else if (event->kind == TL_EVENT_RENEWED && event->places.n > 0) {
        tl_place place = event->places.runs[0].first;
        (void)tl_placemap_remove(&claims->turns, place, NULL);
        if (tl_line_look(line, place).status == TL_LINE_ACTIVE) /* not ended in this entry */
            note_renewed(claims, place, now_ms);
    }
}

struct tl_line_view tl_claims_view(const struct tl_claims *claims, tl_place place,
                                   struct tl_line_view state)
{
    if (state.status == TL_LINE_ACTIVE && is_in(&claims->turns, place))
        return (struct tl_line_view){.status = TL_LINE_WAITING, .called = true};
    return state;
}
