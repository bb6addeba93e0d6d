/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "worker/page/preview.h"

#define SECOND (INT64_C(1000))
#define MINUTE (60 * SECOND)

#define WAITING(n) .page = TL_PAGE_WAITING, .state = {.status = TL_LINE_WAITING, .ahead = (n)}
#define ACTIVE(left_ms)                                                                            \
    .page = TL_PAGE_ACTIVE, .state = {.status = TL_LINE_ACTIVE, .deadline_ms = (left_ms)}
#define ETA(low, high) .has_eta = true, .eta_low_s = (low), .eta_high_s = (high)

/* A visitor in the middle of a long line. */
#define IN_LINE WAITING(1284), .from = 3590
#define MOVING  .has_admitted = true, .admitted = 240
#define SOON    ETA(250, 419)

/* What the page says about its connection, which the script finds out. */
#define OFFLINE "offline" /* the device has no network */
#define TROUBLE "server"  /* nothing answers */
#define GONE    "gone"    /* the same for longer than a place is kept */
#define LIVE    "live"

/* Times of these views count from the time of the preview. */
static const struct preview {
    const char *name;
    struct tl_view view;
} previews[] = {
    {"before", {WAITING(1284), .from = 1285, .phase = TL_PHASE_SCHEDULED}},
    {"draw", {WAITING(0), .drawing = true, .phase = TL_PHASE_SCHEDULED}},
    {"waiting", {IN_LINE, MOVING, SOON}},
    {"almost", {WAITING(8), .from = 3590, MOVING, ETA(0, 49)}},
    {"next",
     {.page = TL_PAGE_WAITING, .state = {.status = TL_LINE_WAITING, .called = true}, .from = 3590}},
    {"turn", {ACTIVE(2 * MINUTE)}},
    {"session", {ACTIVE(9 * MINUTE), .claimed = true}},
    {"paused", {IN_LINE, .mode = TL_MODE_PAUSED, .eta_reason = "paused"}},
    {"slowed", {IN_LINE, MOVING, ETA(700, 1299), .eta_reason = "capacity_lowered"}},
    {"no_capacity", {IN_LINE, .eta_reason = "no_capacity"}},
    {"draining", {IN_LINE, MOVING, SOON, .mode = TL_MODE_DRAINING}},
    {"offline", {IN_LINE, MOVING, SOON, .preview = OFFLINE}},
    {"trouble", {IN_LINE, MOVING, SOON, .preview = TROUBLE}},
    {"gone", {IN_LINE, MOVING, SOON, .preview = GONE}},
    {"stale", {IN_LINE, SOON, .as_of_ms = -40 * SECOND}},
    {"recovering", {IN_LINE, .recovering = true}},
    {"pending", {.page = TL_PAGE_PENDING}},
    {"full", {.page = TL_PAGE_FULL}},
    {"outside", {.page = TL_PAGE_OUTSIDE}},
    {"challenge", {.page = TL_PAGE_CHALLENGE}},
    {"invited", {.page = TL_PAGE_INVITED}},
    {"passthrough", {.page = TL_PAGE_PASSTHROUGH}},
    {"no_show", {.page = TL_PAGE_UNCLAIMED}},
    {"expired", {.page = TL_PAGE_EXPIRED}},
    {"absent", {.page = TL_PAGE_ABSENT}},
    {"completed", {.page = TL_PAGE_COMPLETED}},
    {"left", {.page = TL_PAGE_LEFT}},
    {"ended", {.page = TL_PAGE_ENDED}},
    {"lost", {.page = TL_PAGE_LOST}},
    {"removed", {.page = TL_PAGE_REMOVED}},
    {"transfer",
     {.page = TL_PAGE_CODE, .code_address = "https://tickets.example/q/preview/move#PREVIEW"}},
    {"moved", {.page = TL_PAGE_MOVED}},
    {"move_here", {.page = TL_PAGE_MOVE}},
    {"code_over", {.page = TL_PAGE_CODE_OVER}},
    {"blocked", {.page = TL_PAGE_BLOCKED}},
    {"closed", {.page = TL_PAGE_SHUT}},
    {"sold_out", {.page = TL_PAGE_SOLD_OUT}},
    {"down", {.page = TL_PAGE_DOWN}},
    {"unknown", {.page = TL_PAGE_CLOSED}},
};

const char *tl_page_preview_name(size_t i)
{
    return i < sizeof(previews) / sizeof(previews[0]) ? previews[i].name : NULL;
}

static void from_now(int64_t *time_ms, int64_t now_ms)
{
    if (*time_ms != 0)
        *time_ms += now_ms;
}

bool tl_page_preview(const char *name, int64_t now_ms, struct tl_queue_settings *settings,
                     struct tl_view *view)
{
    size_t i = 0;
    while (tl_page_preview_name(i) != NULL && strcmp(previews[i].name, name) != 0)
        i++;
    if (tl_page_preview_name(i) == NULL)
        return false;
    *view = previews[i].view;
    if (view->preview == NULL)
        view->preview = LIVE;
    view->preview_name = previews[i].name;
    view->visitor = "preview";
    view->settings = settings;
    view->store_ms = now_ms;
    from_now(&view->state.deadline_ms, now_ms);
    from_now(&view->as_of_ms, now_ms);
    if (view->page == TL_PAGE_WAITING || view->page == TL_PAGE_ACTIVE)
        view->reference = "Q5T9-4XDR";
    bool no_capacity = view->eta_reason != NULL && strcmp(view->eta_reason, "no_capacity") == 0;
    settings->policy = TL_POLICY_COUNTER;
    settings->capacity = no_capacity ? 0 : 1;
    settings->opens_at_ms = view->phase == TL_PHASE_SCHEDULED ? now_ms + 12 * MINUTE : 0;
    if (settings->target_url[0] == '\0')
        snprintf(settings->target_url, sizeof(settings->target_url), "https://shop.example/");
    return true;
}
