/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/auth/draw.h"
#include "common/auth/hex.h"
#include "common/base/json_text.h"
#include "common/base/units.h"
#include "common/config/queue_settings.h"
#include "common/store/state.h"
#include "worker/visit/view.h"

enum {
    POLL_NEAR_MS = 1000,
    POLL_FAR_MS = 10000,
    POLL_ACTIVE_MS = 5000,
    POLL_ARCHIVED_MS = 20000,
    NEAR = 100
};

unsigned tl_view_poll_after_ms(const struct tl_view *view)
{
    unsigned ms = POLL_NEAR_MS;
    if (tl_place_seq(view->place) != 0 && view->state.status == TL_LINE_ACTIVE)
        ms = POLL_ACTIVE_MS;
    if (view->state.status == TL_LINE_WAITING) {
        for (uint64_t ahead = view->state.ahead / NEAR; ahead > 0 && ms < POLL_FAR_MS; ahead >>= 1)
            ms += 1000;
    }
    if (view->settings == NULL)
        ms = POLL_ARCHIVED_MS;
    /* Up to a tenth more, different for each place and the same each time. */
    uint64_t spread = (view->place * UINT64_C(0x9E3779B97F4A7C15)) >> 32;
    return ms + (unsigned)(spread % (ms / 10));
}

static void write_waiting(struct tl_json *json, const struct tl_view *view)
{
    tl_json_uint(json, "position", view->state.ahead + 1);
    tl_json_uint(json, "ahead", view->state.ahead);
    if (view->state.called) {
        tl_json_bool(json, "called", true);
        return;
    }
    if (view->has_admitted)
        tl_json_uint(json, "admitted_last_minute", view->admitted);
    if (view->eta_reason != NULL)
        tl_json_string(json, "eta_reason", view->eta_reason);
    if (!view->has_eta)
        return;
    tl_json_uint(json, "eta_seconds", (uint64_t)llround(view->eta_median_s));
    tl_json_uint(json, "eta_low", (uint64_t)floor(view->eta_low_s));
    tl_json_uint(json, "eta_high", (uint64_t)ceil(view->eta_high_s));
}

void tl_view_time(struct tl_json *json, const char *name, int64_t ms)
{
    char text[TL_UNITS_TEXT_MAX];
    tl_time_format(ms, text, sizeof(text));
    tl_json_plain(json, name, text);
}

static void write_target(struct tl_json *json, const struct tl_view *view)
{
    if (view->settings != NULL && view->settings->target_url[0] != '\0')
        tl_json_string(json, "target_url", view->settings->target_url);
}

/* The rule of the opening, and by which id the list of the draw names the visitor. */
static void write_draw(struct tl_json *json, const struct tl_view *view)
{
    const struct tl_draw_record *draw = view->draw;
    unsigned char id[TL_DRAW_ID_BYTES];
    char digits[TL_DRAW_ID_DIGITS + 1];
    if (view->settings == NULL || view->settings->order != TL_ORDER_DRAW)
        return;
    tl_json_string(json, "order", "draw");
    bool late = draw->phase != TL_DRAW_NONE && tl_place_seq(view->place) > draw->last;
    if (draw->announced_for_ms != view->settings->opens_at_ms || late)
        return;
    tl_draw_id(draw->salt, view->visitor, strlen(view->visitor), id);
    tl_hex_format(id, sizeof(id), digits);
    tl_json_string(json, "draw_id", digits);
}

static void write_sizes(struct tl_json *json, const struct tl_view *view)
{
    if (view->settings == NULL)
        return;
    tl_json_uint(json, "waiting", view->waiting);
    tl_json_uint(json, "active", view->active);
    if (view->settings->policy != TL_POLICY_RATE)
        tl_json_uint(json, "capacity", tl_queue_capacity(view->settings));
}

/* Why the line may stand still, and what the operator says. */
static void write_queue(struct tl_json *json, const struct tl_view *view)
{
    if (view->as_of_ms != 0)
        tl_view_time(json, "as_of", view->as_of_ms);
    if (view->settings != NULL && view->settings->opens_at_ms > view->store_ms)
        tl_view_time(json, "opens_at", view->settings->opens_at_ms);
    if (view->mode != TL_MODE_OPEN)
        tl_json_string(json, "mode", tl_mode_name(view->mode));
    if (view->phase != TL_PHASE_OPEN)
        tl_json_string(json, "phase", tl_phase_name(view->phase));
    if (tl_mode_holds(tl_view_told_mode(view)) && view->mode != TL_MODE_PASSTHROUGH)
        tl_json_bool(json, "paused", true);
    if (view->mode == TL_MODE_PASSTHROUGH)
        write_target(json, view);
    if (view->recovering)
        tl_json_bool(json, "recovering", true);
    if (view->notice != NULL)
        tl_json_string(json, "notice", view->notice);
}

/* Members that many views have in common: the sizes, and then how the queue is. */
struct tl_view_shared {
    uint64_t weather;   /* its version */
    const char *notice; /* which is in it; of that version, too */
    size_t sizes, length;
    char members[];
};

/* The shared members of this view, kept, or written now; NULL: they are not kept. */
static const struct tl_view_shared *share(const struct tl_view *view)
{
    char text[TL_VIEW_MAX];
    struct tl_json json;
    struct tl_view_shared *kept = view->shared != NULL ? *view->shared : NULL;
    if (view->shared == NULL ||
        (kept != NULL && kept->weather == view->weather && kept->notice == view->notice))
        return kept;
    tl_json_begin(&json, text, sizeof(text));
    write_sizes(&json, view);
    const size_t sizes = json.length - 1; /* without the brace */
    write_queue(&json, view);
    const size_t length = json.length - 1;
    kept = json.failed ? NULL : realloc(kept, sizeof(*kept) + length);
    if (kept == NULL)
        return NULL; /* what was kept before stays */
    *kept = (struct tl_view_shared){
        .weather = view->weather, .notice = view->notice, .sizes = sizes, .length = length};
    memcpy(kept->members, text + 1, length);
    *view->shared = kept;
    return kept;
}

/* Writes the shared members, those of the queue only for a view of a place in the line. */
static bool write_shared(struct tl_json *json, const struct tl_view *view, bool in_line)
{
    const struct tl_view_shared *shared = share(view);
    if (shared != NULL)
        tl_json_members(json, shared->members, in_line ? shared->length : shared->sizes);
    return shared != NULL;
}

size_t tl_view_write(const struct tl_view *view, char text[TL_VIEW_MAX])
{
    struct tl_json json;
    enum tl_page_state state = tl_view_state(view);
    const struct tl_page_state_names *names = &tl_page_states[state];
    bool in_line = state == TL_PAGE_WAITING || state == TL_PAGE_PENDING;
    tl_json_begin(&json, text, TL_VIEW_MAX);
    tl_json_string(&json, "queue", view->queue);
    if (!view->through)
        tl_json_string(&json, "visitor", view->visitor);
    tl_json_string(&json, "status", names->status);
    if (view->through) {
        write_target(&json, view);
        return tl_json_end(&json);
    }
    if (view->ticket != NULL)
        tl_json_plain(&json, "ticket", view->ticket);
    if (view->reference != NULL)
        tl_json_string(&json, "reference", view->reference);
    if (state == TL_PAGE_WAITING && !view->drawing && !view->unplaced)
        write_waiting(&json, view);
    if (names->reason != NULL)
        tl_json_string(&json, "end_reason", names->reason);
    if (!write_shared(&json, view, in_line)) {
        write_sizes(&json, view);
        if (in_line)
            write_queue(&json, view);
        else if (view->settings == NULL)
            tl_view_time(&json, "as_of", view->as_of_ms);
    }
    if (state == TL_PAGE_ACTIVE) {
        tl_view_time(&json, "expires_at", view->state.deadline_ms);
        if (view->claimed)
            tl_json_bool(&json, "claimed", true);
        if (view->pass != NULL)
            tl_json_plain(&json, "pass", view->pass);
        write_target(&json, view);
    }
    if (in_line || state == TL_PAGE_ACTIVE) {
        write_draw(&json, view);
        tl_json_uint(&json, "poll_after_ms", tl_view_poll_after_ms(view));
    }
    return tl_json_end(&json);
}

const char *tl_view_event_name(tl_place place, enum tl_line_status status)
{
    if (tl_place_seq(place) == 0 && status != TL_LINE_ENDED)
        return "pending";
    if (status == TL_LINE_WAITING)
        return "position";
    return status == TL_LINE_ACTIVE ? "admitted" : "ended";
}
