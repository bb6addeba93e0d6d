/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/line/placemap.h"

#include "ctl/trail/line.h"
#include "ctl/trail/replay.h"
#include "lab/memory.h"

enum {
    EXCUSED_MS = 60000, /* a gap is told so soon after it is found */
    /* No queue has as many events between two leaves; where the store begins again after a loss,
     * the numbers go on far beyond (docs/contributors/wire-format.md, incarnations). */
    EVENTS = 1000,
    EVENTS_PER_MS = 100
};

static const uint64_t NEVER = UINT64_MAX;

struct tl_replay {
    struct tl_trail_line line;
    struct tl_trail_rules rules;
    bool telling;  /* from `begins` to `all`: those who were not told yet may have ended */
    bool has_line; /* everybody was told once */
    bool deleted;
    int64_t *times;                         /* of admissions */
    size_t n_times, times_capacity, steady; /* steady: the first under this rate and clock */
    uint64_t event;
    int64_t ms;     /* of the leaf before */
    uint64_t began; /* the first leaf since the last gap where the store began again, or NEVER */
    uint64_t highest, highest_before; /* seq since the last `begins`; before this event */
    int64_t drawn_ms;                 /* the first opening with a draw that has come, or 0 */
    uint64_t highest_told;            /* before the last `begins` */
    struct tl_turns turns;            /* of the lanes, under the weights of the last step */
    uint64_t told_event;              /* of the last `begins` */
    struct {
        uint64_t n, of[TL_LANES_MAX];
        tl_place last[TL_LANES_MAX];
        uint64_t leaves[TL_LANES_MAX]; /* of these */
    } step;                            /* the admissions of this event */
    struct tl_finding *findings;
    size_t n_findings, capacity;
    struct tl_replay_result counts;
    uint64_t number; /* of this leaf */
    bool in_doubt;   /* because of a gap nobody can know whether it is right */
};

struct tl_replay *tl_replay_new(void)
{
    struct tl_replay *replay = tl_xalloc(1, sizeof(*replay));
    replay->telling = true; /* who was there before is told first */
    replay->began = NEVER;
    return replay;
}

void tl_replay_free(struct tl_replay *replay)
{
    if (replay == NULL)
        return;
    tl_trail_line_free(&replay->line);
    free(replay->findings);
    free(replay->times);
    free(replay);
}

/* ---- findings ---- */

/* against: the leaf that it contradicts, 0: not known which, NEVER: nothing excuses it. */
__attribute__((format(printf, 3, 4))) static void
complain(struct tl_replay *replay, uint64_t against, const char *format, ...)
{
    va_list arguments;
    replay->findings = tl_xgrow(replay->findings, &replay->capacity, replay->n_findings + 1,
                                sizeof(*replay->findings));
    struct tl_finding *finding = &replay->findings[replay->n_findings++];
    *finding = (struct tl_finding){.leaf = replay->number, .against = against, .ms = replay->ms};
    va_start(arguments, format);
    vsnprintf(finding->text, sizeof(finding->text), format, arguments);
    va_end(arguments);
}

void tl_replay_note(struct tl_replay *replay, uint64_t number, const char *text)
{
    replay->number = number;
    complain(replay, NEVER, "%s", text);
}

/* Something was lost, or changed by hand, at this time: what was found since is about that. Not
 * what was found before the store began again after its loss, or contradicts what it said since;
 * nor long before another gap was told: whatever `since` says, that was not because of it. */
static void excuse(struct tl_replay *replay, const struct tl_leaf *leaf, int64_t since_ms)
{
    bool is_loss = strncmp(leaf->detail, "store:", strlen("store:")) == 0;
    uint64_t first = is_loss ? replay->began : 0, again = is_loss ? replay->began : NEVER;
    if (!is_loss && since_ms < leaf->ms - EXCUSED_MS)
        since_ms = leaf->ms - EXCUSED_MS;
    struct tl_finding *findings = replay->findings;
    size_t n = replay->n_findings, from = n;
    while (from > 0 && findings[from - 1].ms >= since_ms && findings[from - 1].leaf >= first)
        from--;
    replay->n_findings = from;
    for (size_t i = from; i < n; i++) {
        if (findings[i].against < again)
            replay->counts.unprovable++;
        else
            findings[replay->n_findings++] = findings[i];
    }
}

struct place_text {
    char text[32];
};

static struct place_text show(tl_place place)
{
    struct place_text shown;
    snprintf(shown.text, sizeof(shown.text), "%u:%" PRIu64, tl_place_lane(place),
             tl_place_seq(place));
    return shown;
}

/* ---- who is there ---- */

/* A seq is given to one visitor, whatever was lost. */
static void check_who(struct tl_replay *replay, const struct tl_leaf *leaf,
                      const struct tl_trail_place *at)
{
    if (at != NULL && strcmp(at->who, leaf->who) != 0)
        complain(replay, NEVER, "%s: place %s belongs to another visitor, by leaf %" PRIu64,
                 tl_leaf_kind_name(leaf->kind), show(leaf->place).text, at->leaf);
}

/* The place of this leaf, which has to be there, as the trail told it last: while all are told
 * again, that of who was not told yet may be out of date. NULL, with a finding or in doubt, when it
 * is not there. */
static struct tl_trail_place *known(struct tl_replay *replay, const struct tl_leaf *leaf)
{
    struct tl_trail_place *at = tl_trail_line_find(&replay->line, leaf->place);
    bool is_there = at != NULL && at->state != TL_TRAIL_GONE;
    check_who(replay, leaf, at);
    if (replay->telling && !(is_there && at->told))
        replay->in_doubt = true;
    else if (!is_there)
        complain(replay, 0, "%s: place %s is not in the line, and not active",
                 tl_leaf_kind_name(leaf->kind), show(leaf->place).text);
    else if (tl_trail_place_of(at) != leaf->place)
        complain(replay, at->leaf, "%s: place %s was %s since leaf %" PRIu64,
                 tl_leaf_kind_name(leaf->kind), show(leaf->place).text,
                 show(tl_trail_place_of(at)).text, at->leaf);
    return is_there ? at : NULL;
}

static struct tl_trail_place *give(struct tl_replay *replay, const struct tl_leaf *leaf,
                                   tl_place place, enum tl_trail_state state)
{
    if (tl_place_seq(place) > replay->highest)
        replay->highest = tl_place_seq(place);
    struct tl_trail_place *at =
        tl_trail_line_put(&replay->line, place, leaf->who, state, replay->number);
    at->since_ms = at->since_ms > 0 ? at->since_ms : leaf->ms;
    return at;
}

static void enter(struct tl_replay *replay, const struct tl_leaf *leaf)
{
    replay->counts.entered++;
    if (tl_trail_line_find(&replay->line, leaf->place) != NULL)
        complain(replay, NEVER, "entered: place %s was given before", show(leaf->place).text);
    else if (tl_place_seq(leaf->place) <= replay->highest_before)
        complain(replay, 0,
                 "entered: place %s comes after place %" PRIu64 ", which was given before",
                 show(leaf->place).text, replay->highest_before);
    else if (replay->telling && tl_place_seq(leaf->place) <= replay->highest_told)
        replay->in_doubt = true; /* perhaps before a visitor who is not told yet */
    give(replay, leaf, leaf->place, TL_TRAIL_WAITS);
}

/* Told by the store: the visitor came back, or is there. */
static void tell(struct tl_replay *replay, const struct tl_leaf *leaf, enum tl_trail_state state)
{
    const struct tl_trail_place *at = tl_trail_line_find(&replay->line, leaf->place);
    const char *kind = tl_leaf_kind_name(leaf->kind);
    bool is_back = leaf->kind == TL_NOTE_RESTORED;
    bool is_same = at != NULL && at->state == state && tl_trail_place_of(at) == leaf->place;
    bool is_new = at == NULL && state == TL_TRAIL_WAITS &&
                  tl_place_seq(leaf->place) > replay->highest_told; /* came in the gap */
    check_who(replay, leaf, at);
    if (is_back)
        replay->counts.restored++;
    else if (!replay->telling)
        complain(replay, 0, "%s: nobody is told at this time", kind);
    else if (!is_same && at != NULL && at->told && at->state != TL_TRAIL_GONE)
        complain(replay, at->leaf, "%s: place %s was told otherwise by leaf %" PRIu64, kind,
                 show(leaf->place).text, at->leaf);
    else if (!is_same && !is_new && replay->has_line)
        replay->in_doubt = true; /* an admission or an end that was not told, or did not last */
    give(replay, leaf, leaf->place, state);
}

/* A lane is changed with the same seq; a draw gives a seq behind all before it, in the same lane,
 * once and not before the opening. */
static void check_move(struct tl_replay *replay, const struct tl_leaf *leaf,
                       const struct tl_trail_place *at, tl_place to)
{
    uint64_t before = tl_place_seq(leaf->place), after = tl_place_seq(to);
    const char *kind = tl_leaf_kind_name(leaf->kind);
    if (to == 0) {
        complain(replay, NEVER, "%s: to no place", kind);
        return;
    }
    bool is_draw = leaf->kind == TL_NOTE_DRAWN;
    if (is_draw && replay->rules.known && !replay->rules.drawn)
        complain(replay, replay->rules.leaf,
                 "drawn: place %s, in a queue without a draw by leaf %" PRIu64,
                 show(leaf->place).text, replay->rules.leaf);
    if (is_draw ? after <= before || tl_place_lane(to) != tl_place_lane(leaf->place)
                : after != before)
        complain(replay, NEVER, "%s: place %s cannot become place %s", kind, show(leaf->place).text,
                 show(to).text);
    else if (is_draw && at != NULL && at->drawn)
        complain(replay, 0, "drawn: place %s was drawn by leaf %" PRIu64, show(leaf->place).text,
                 at->leaf);
    else if (is_draw && leaf->ms < replay->rules.opens_ms)
        complain(replay, replay->rules.leaf, "drawn: place %s, before the opening",
                 show(leaf->place).text);
    else if (is_draw && tl_trail_line_find(&replay->line, to) != NULL)
        complain(replay, 0, "drawn: place %s was given before", show(to).text);
}

static void move(struct tl_replay *replay, const struct tl_leaf *leaf)
{
    char who[TL_LEAF_WHO_SIZE];
    tl_place to = tl_leaf_held(leaf, who);
    struct tl_trail_place *at = known(replay, leaf);
    check_move(replay, leaf, at, to);
    if (at != NULL && at->told && at->state != TL_TRAIL_WAITS)
        complain(replay, at->leaf, "%s: place %s does not wait", tl_leaf_kind_name(leaf->kind),
                 show(leaf->place).text);
    if (at != NULL)
        tl_trail_line_remove(&replay->line, at);
    struct tl_trail_place *moved = to != 0 ? give(replay, leaf, to, TL_TRAIL_WAITS) : NULL;
    if (moved != NULL && leaf->kind == TL_NOTE_DRAWN) {
        moved->drawn = true;
        memcpy(moved->who, who, sizeof(who)); /* with the salt of the other seq */
    }
}

/* ---- admissions ---- */

/* Does a visitor who waits go before this place? Those of its lane, and without weights those of
 * the lanes before. */
static void check_turn(struct tl_replay *replay, const struct tl_leaf *leaf)
{
    unsigned lane = tl_place_lane(leaf->place);
    unsigned from = replay->rules.known && replay->rules.weights.n == 0 ? 0 : lane;
    for (unsigned each = from; each <= lane; each++) {
        uint64_t before = each < lane ? UINT64_MAX : tl_place_seq(leaf->place);
        const struct tl_trail_place *first = tl_trail_line_first(&replay->line, each, false);
        if (first != NULL && first->seq < before)
            replay->in_doubt = true;
        first = tl_trail_line_first(&replay->line, each, true);
        if (first == NULL || first->seq >= before)
            continue;
        complain(replay, first->leaf,
                 "admitted: place %s went before place %s, which waited since leaf %" PRIu64,
                 show(leaf->place).text, show(tl_trail_place_of(first)).text, first->leaf);
        return;
    }
}

static void check_rules(struct tl_replay *replay, const struct tl_leaf *leaf)
{
    const struct tl_trail_rules *rules = &replay->rules;
    uint64_t active = replay->line.active;
    if (!rules->known || (rules->bounded && replay->telling))
        replay->in_doubt = true; /* who is active is not known */
    if (!rules->known)
        return;
    if (rules->shut)
        complain(replay, rules->leaf, "admitted: place %s, while the queue was %s by leaf %" PRIu64,
                 show(leaf->place).text, rules->mode, rules->leaf);
    if (leaf->ms < rules->opens_ms)
        complain(replay, rules->leaf, "admitted: place %s, before the opening",
                 show(leaf->place).text);
    if (rules->bounded && active > rules->most)
        complain(replay, 0,
                 "admitted: place %s, as number %" PRIu64 " of at most %" PRIu64
                 " by leaf %" PRIu64,
                 show(leaf->place).text, active, rules->most, rules->leaf);
}

/* Windows in which the rate was changed, or the clock went back, are in doubt: the store keeps no
 * rate over them that a reader could tell. */
static void check_rate(struct tl_replay *replay, const struct tl_leaf *leaf)
{
    const struct tl_trail_rules *rules = &replay->rules;
    size_t n = replay->n_times++;
    replay->times = tl_xgrow(replay->times, &replay->times_capacity, n + 1, sizeof(*replay->times));
    replay->times[n] = leaf->ms;
    if (n > 0 && leaf->ms < replay->times[n - 1])
        replay->steady = n;
    if (rules->per_window == 0 || n < rules->per_window)
        return;
    int64_t passed_ms = leaf->ms - replay->times[n - rules->per_window];
    if (passed_ms >= rules->window_ms)
        return;
    if (n - rules->per_window < replay->steady)
        replay->in_doubt = true;
    else
        complain(replay, 0,
                 "admitted: place %s, as number %" PRIu64 " in %" PRId64 " ms, by leaf %" PRIu64,
                 show(leaf->place).text, rules->per_window + 1, passed_ms, rules->leaf);
}

/* Of how many admitted together each lane has its share depends on who waited before: on those who
 * still do, and on them. */
static void check_shares(struct tl_replay *replay)
{
    uint64_t sizes[TL_LANES_MAX], fair[TL_LANES_MAX] = {0};
    if (replay->step.n > 0 && replay->rules.weights.n > 0) {
        tl_turns_weigh(&replay->turns, &replay->rules.weights);
        struct tl_turns turns = replay->turns;
        for (unsigned lane = 0; lane < TL_LANES_MAX; lane++)
            sizes[lane] = replay->line.lanes[lane].waiting + replay->step.of[lane];
        for (uint64_t i = 0; i < replay->step.n; i++) {
            int lane = tl_turns_take(&turns, sizes);
            sizes[lane]--;
            fair[lane]++;
        }
        for (unsigned lane = 0; lane < TL_LANES_MAX && !replay->telling; lane++) {
            if (replay->step.of[lane] <= fair[lane])
                continue;
            replay->number = replay->step.leaves[lane];
            complain(replay, 0,
                     "admitted: place %s, as number %" PRIu64 " of its lane at once, which had "
                     "%" PRIu64 " of %" PRIu64 " turns by the weights of leaf %" PRIu64,
                     show(replay->step.last[lane]).text, replay->step.of[lane], fair[lane],
                     replay->step.n, replay->rules.leaf);
        }
        tl_turns_admitted(&replay->turns, replay->step.of);
    }
    memset(&replay->step, 0, sizeof(replay->step));
}

static void note_share(struct tl_replay *replay, const struct tl_leaf *leaf)
{
    unsigned lane = tl_place_lane(leaf->place);
    replay->in_doubt = replay->in_doubt || (replay->telling && replay->rules.weights.n > 0);
    replay->step.n++;
    replay->step.of[lane]++;
    replay->step.last[lane] = leaf->place;
    replay->step.leaves[lane] = replay->number;
}

static void change_rules(struct tl_replay *replay, const char *detail)
{
    const struct tl_trail_rules before = replay->rules;
    tl_trail_rules_read(&replay->rules, detail, replay->number);
    if (replay->event == replay->told_event)
        replay->turns = replay->rules.turns; /* else they follow from what was told */
    if (before.per_window != replay->rules.per_window ||
        before.window_ms != replay->rules.window_ms)
        replay->steady = replay->n_times;
}

static void admit(struct tl_replay *replay, const struct tl_leaf *leaf)
{
    struct tl_trail_place *at = known(replay, leaf);
    replay->counts.admitted++;
    if (at != NULL && at->told && at->state == TL_TRAIL_ACTIVE)
        complain(replay, at->leaf, "admitted: place %s is active since leaf %" PRIu64,
                 show(leaf->place).text, at->leaf);
    if (at != NULL && replay->rules.drawn && !at->drawn && at->since_ms < replay->drawn_ms)
        complain(replay, at->leaf, "admitted: place %s was not drawn", show(leaf->place).text);
    give(replay, leaf, leaf->place, TL_TRAIL_ACTIVE);
    check_turn(replay, leaf);
    check_rules(replay, leaf);
    check_rate(replay, leaf);
    note_share(replay, leaf);
}

static void end(struct tl_replay *replay, const struct tl_leaf *leaf)
{
    struct tl_trail_place *at = known(replay, leaf);
    replay->counts.ended++;
    if (at != NULL)
        tl_trail_line_remove(&replay->line, at);
}

/* ---- gaps ---- */

/* `WHY:MISSING:SINCE` */
static void begin(struct tl_replay *replay, const struct tl_leaf *leaf)
{
    const char *since = strrchr(leaf->detail, ':');
    if (since != NULL)
        excuse(replay, leaf, strtoll(since + 1, NULL, 10));
    replay->began = NEVER;
    replay->counts.gaps += replay->has_line;
    replay->telling = true;
    replay->deleted = false;
    replay->told_event = leaf->event;
    if (replay->highest > replay->highest_told)
        replay->highest_told = replay->highest;
    replay->highest = replay->highest_before = 0; /* a store that lost them may go on below */
    tl_trail_line_doubt(&replay->line);
}

static void end_queue(struct tl_replay *replay)
{
    tl_trail_line_doubt(&replay->line);
    tl_trail_line_settle(&replay->line);
    replay->deleted = true;
}

static void finish(struct tl_replay *replay)
{
    if (!replay->telling)
        complain(replay, 0, "all: nobody was told");
    replay->counts.unprovable += tl_trail_line_settle(&replay->line);
    replay->telling = false;
    replay->has_line = true;
}

/* ---- leaf by leaf ---- */

/* Before the leaf is taken: the store may have lost something before it. */
static void look_for_restart(struct tl_replay *replay, const struct tl_leaf *leaf)
{
    uint64_t passed_ms = leaf->ms > replay->ms ? (uint64_t)(leaf->ms - replay->ms) : 0;
    bool is_jump = replay->event > 0 && leaf->event > replay->event &&
                   leaf->event - replay->event > EVENTS + EVENTS_PER_MS * passed_ms;
    if (is_jump && replay->began == NEVER)
        replay->began = replay->number;
}

/* A step has one number and one time. */
static void follow(struct tl_replay *replay, const struct tl_leaf *leaf)
{
    const char *kind = tl_leaf_kind_name(leaf->kind);
    uint64_t event = replay->event;
    int64_t ms = replay->ms;
    look_for_restart(replay, leaf);
    replay->event = leaf->event;
    replay->ms = leaf->ms;
    if (replay->drawn_ms == 0 && replay->rules.drawn && leaf->ms >= replay->rules.opens_ms)
        replay->drawn_ms = replay->rules.opens_ms;
    if (leaf->event > event)
        replay->highest_before = replay->highest;
    else if (leaf->event < event)
        complain(replay, NEVER, "%s: step %" PRIu64 " comes after step %" PRIu64, kind, leaf->event,
                 event);
    else if (leaf->ms != ms)
        complain(replay, NEVER, "%s: step %" PRIu64 " was at another time", kind, event);
    if (replay->deleted && leaf->kind != TL_NOTE_BEGINS)
        complain(replay, NEVER, "%s: the queue was deleted before", kind);
}

void tl_replay_take(struct tl_replay *replay, uint64_t number, const struct tl_leaf *leaf)
{
    if (leaf->event != replay->event || leaf->kind != TL_NOTE_ADMITTED)
        check_shares(replay);
    replay->number = number;
    replay->in_doubt = false;
    follow(replay, leaf);
    bool is_of_place = leaf->kind != TL_NOTE_BEGINS && leaf->kind != TL_NOTE_ALL &&
                       leaf->kind != TL_NOTE_DELETED && leaf->kind != TL_NOTE_RULES;
    if (is_of_place && (leaf->place == 0 || leaf->who[0] == '\0')) {
        complain(replay, NEVER, "%s: of no place", tl_leaf_kind_name(leaf->kind));
        return;
    }
    if (leaf->kind == TL_NOTE_ENTERED)
        enter(replay, leaf);
    else if (leaf->kind == TL_NOTE_RESTORED)
        tell(replay, leaf, strcmp(leaf->detail, "0") == 0 ? TL_TRAIL_WAITS : TL_TRAIL_ACTIVE);
    else if (leaf->kind == TL_NOTE_WAITS || leaf->kind == TL_NOTE_STAYS)
        tell(replay, leaf, leaf->kind == TL_NOTE_WAITS ? TL_TRAIL_WAITS : TL_TRAIL_ACTIVE);
    else if (leaf->kind == TL_NOTE_LANE || leaf->kind == TL_NOTE_DRAWN)
        move(replay, leaf);
    else if (leaf->kind == TL_NOTE_ADMITTED)
        admit(replay, leaf);
    else if (leaf->kind == TL_NOTE_ENDED)
        end(replay, leaf);
    else if (leaf->kind == TL_NOTE_BEGINS)
        begin(replay, leaf);
    else if (leaf->kind == TL_NOTE_ALL)
        finish(replay);
    else if (leaf->kind == TL_NOTE_RULES)
        change_rules(replay, leaf->detail);
    else
        end_queue(replay);
    replay->counts.unprovable += replay->in_doubt;
}

struct tl_replay_result tl_replay_result(struct tl_replay *replay)
{
    check_shares(replay);
    struct tl_replay_result result = replay->counts;
    result.findings = replay->findings;
    result.n_findings = replay->n_findings;
    return result;
}
