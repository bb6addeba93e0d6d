/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/page/view.h"

#define STATE(name, page, title, status, reason) {#page, #title, status, reason},
const struct tl_page_state_names tl_page_states[TL_PAGE_STATES] = {
#include "worker/page/page_states.def"
};
#undef STATE

static enum tl_page_state end_of(enum tl_reason reason)
{
    static const enum tl_page_state ends[] = {
        [TL_REASON_COMPLETED] = TL_PAGE_COMPLETED, [TL_REASON_LEFT] = TL_PAGE_LEFT,
        [TL_REASON_EXPIRED] = TL_PAGE_EXPIRED,     [TL_REASON_UNCLAIMED] = TL_PAGE_UNCLAIMED,
        [TL_REASON_ABSENT] = TL_PAGE_ABSENT,       [TL_REASON_REMOVED] = TL_PAGE_REMOVED,
        [TL_REASON_MOVED] = TL_PAGE_ENDED}; /* no end */
    bool known = reason < sizeof(ends) / sizeof(ends[0]) && ends[reason] != TL_PAGE_WAITING;
    return known ? ends[reason] : TL_PAGE_ENDED;
}

enum tl_page_state tl_view_state(const struct tl_view *view)
{
    if (view->through)
        return TL_PAGE_PASSTHROUGH;
    if (view->moved)
        return TL_PAGE_MOVED;
    if (tl_place_seq(view->place) == 0 && view->state.status != TL_LINE_ENDED)
        return TL_PAGE_PENDING;
    switch (view->state.status) {
    case TL_LINE_WAITING:
        return TL_PAGE_WAITING;
    case TL_LINE_ACTIVE:
        return TL_PAGE_ACTIVE;
    case TL_LINE_ENDED:
        return end_of(view->state.reason);
    case TL_LINE_UNKNOWN:
        break;
    }
    return view->lost ? TL_PAGE_LOST : TL_PAGE_ENDED;
}

enum tl_queue_mode tl_view_told_mode(const struct tl_view *view)
{
    bool moves = !tl_mode_holds(view->mode);
    if (view->phase != TL_PHASE_OVER || view->mode > TL_MODE_DRAINING)
        return view->mode;
    if (view->settings->after_close == TL_AFTER_CLOSE_STOP)
        return TL_MODE_CLOSED;
    return moves ? TL_MODE_DRAINING : view->mode;
}

uint64_t tl_view_position(const struct tl_view *view)
{
    bool known = view->page == TL_PAGE_WAITING && view->state.status == TL_LINE_WAITING;
    return known && !view->drawing && !view->unplaced ? view->state.ahead + 1 : 0;
}

uint64_t tl_view_first_position(const struct tl_view *view)
{
    uint64_t position = tl_view_position(view);
    return view->from > position ? view->from : position;
}
