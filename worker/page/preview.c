/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "worker/page/preview.h"

#define SECOND (INT64_C(1000))
#define MINUTE (60 * SECOND)

/* A visitor in the middle of a long line. */
#define IN_LINE .state = TL_PAGE_WAITING, .position = 1285, .ahead = 1284, .from = 3590
#define MOVING  .has_admitted = true, .admitted = 240
#define SOON    .has_eta = true, .eta_low_s = 250, .eta_high_s = 420

/* What the page says about its connection, which the script finds out. */
#define OFFLINE "offline" /* the device has no network */
#define TROUBLE "server"  /* nothing answers */
#define GONE    "gone"    /* the same for longer than a place is kept */
#define LIVE    "live"

/* Times of these views count from the time of the preview. */
static const struct preview {
    const char *name;
    struct tl_page_view view;
} previews[] = {
    {"before",
     {.state = TL_PAGE_WAITING,
      .position = 1285,
      .ahead = 1284,
      .from = 1285,
      .opens_at_ms = 12 * MINUTE}},
    {"draw", {.state = TL_PAGE_WAITING, .drawing = true, .opens_at_ms = 12 * MINUTE}},
    {"waiting", {IN_LINE, MOVING, SOON}},
    {"almost",
     {.state = TL_PAGE_WAITING,
      .position = 9,
      .ahead = 8,
      .from = 3590,
      MOVING,
      .has_eta = true,
      .eta_low_s = 0,
      .eta_high_s = 50}},
    {"next", {.state = TL_PAGE_WAITING, .position = 1, .from = 3590, .called = true}},
    {"turn", {.state = TL_PAGE_ACTIVE, .expires_at_ms = 2 * MINUTE}},
    {"session", {.state = TL_PAGE_ACTIVE, .claimed = true, .expires_at_ms = 9 * MINUTE}},
    {"paused", {IN_LINE, .paused = true, .eta_reason = "paused"}},
    {"slowed",
     {IN_LINE, MOVING, .has_eta = true, .eta_low_s = 700, .eta_high_s = 1300,
      .eta_reason = "capacity_lowered"}},
    {"no_capacity", {IN_LINE, .no_capacity = true, .eta_reason = "no_capacity"}},
    {"draining", {IN_LINE, MOVING, SOON, .draining = true}},
    {"offline", {IN_LINE, MOVING, SOON, .preview = OFFLINE}},
    {"trouble", {IN_LINE, MOVING, SOON, .preview = TROUBLE}},
    {"gone", {IN_LINE, MOVING, SOON, .preview = GONE}},
    {"stale", {IN_LINE, SOON, .as_of_ms = -40 * SECOND}},
    {"recovering", {IN_LINE, .recovering = true}},
    {"pending", {.state = TL_PAGE_PENDING}},
    {"full", {.state = TL_PAGE_FULL}},
    {"outside", {.state = TL_PAGE_OUTSIDE}},
    {"challenge", {.state = TL_PAGE_CHALLENGE}},
    {"invited", {.state = TL_PAGE_INVITED}},
    {"passthrough", {.state = TL_PAGE_PASSTHROUGH}},
    {"no_show", {.state = TL_PAGE_UNCLAIMED}},
    {"expired", {.state = TL_PAGE_EXPIRED}},
    {"absent", {.state = TL_PAGE_ABSENT}},
    {"completed", {.state = TL_PAGE_COMPLETED}},
    {"left", {.state = TL_PAGE_LEFT}},
    {"ended", {.state = TL_PAGE_ENDED}},
    {"lost", {.state = TL_PAGE_LOST}},
    {"removed", {.state = TL_PAGE_REMOVED}},
    {"transfer",
     {.state = TL_PAGE_CODE, .code_address = "https://tickets.example/q/preview/move#PREVIEW"}},
    {"moved", {.state = TL_PAGE_MOVED}},
    {"move_here", {.state = TL_PAGE_MOVE}},
    {"code_over", {.state = TL_PAGE_CODE_OVER}},
    {"blocked", {.state = TL_PAGE_BLOCKED}},
    {"closed", {.state = TL_PAGE_SHUT}},
    {"sold_out", {.state = TL_PAGE_SOLD_OUT}},
    {"down", {.state = TL_PAGE_DOWN}},
    {"unknown", {.state = TL_PAGE_CLOSED}},
};

size_t tl_page_previews(void)
{
    return sizeof(previews) / sizeof(previews[0]);
}

const char *tl_page_preview_name(size_t i)
{
    return previews[i].name;
}

static void from_now(int64_t *time_ms, int64_t now_ms)
{
    if (*time_ms != 0)
        *time_ms += now_ms;
}

bool tl_page_preview(const char *name, int64_t now_ms, struct tl_page_view *view)
{
    size_t i = 0;
    while (i < tl_page_previews() && strcmp(previews[i].name, name) != 0)
        i++;
    if (i == tl_page_previews())
        return false;
    *view = previews[i].view;
    if (view->preview == NULL)
        view->preview = LIVE;
    view->preview_name = previews[i].name;
    view->visitor = "preview";
    view->now_ms = now_ms;
    from_now(&view->opens_at_ms, now_ms);
    from_now(&view->expires_at_ms, now_ms);
    from_now(&view->as_of_ms, now_ms);
    if (view->state == TL_PAGE_WAITING || view->state == TL_PAGE_ACTIVE)
        view->reference = "Q5T9-4XDR";
    return true;
}
