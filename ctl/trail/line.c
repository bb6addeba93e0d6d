/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/units.h"

#include "ctl/trail/line.h"
#include "lab/memory.h"

#define NUMBER_MAX (UINT64_C(1) << 53)

void tl_trail_line_free(struct tl_trail_line *line)
{
    for (unsigned lane = 0; lane < TL_LANES_MAX; lane++)
        for (unsigned told = 0; told < 2; told++)
            free(line->lanes[lane].heaps[told].of);
    tl_placemap_clear(&line->by_seq);
    free(line->places);
    *line = (struct tl_trail_line){0};
}

tl_place tl_trail_place_of(const struct tl_trail_place *at)
{
    return tl_place_make(at->lane, at->seq);
}

struct tl_trail_place *tl_trail_line_find(const struct tl_trail_line *line, tl_place place)
{
    uint64_t index;
    return tl_placemap_get(&line->by_seq, tl_place_seq(place), &index) ? &line->places[index - 1]
                                                                       : NULL;
}

/* ---- the order of a lane ---- */

static void swap(size_t *a, size_t *b)
{
    size_t kept = *a;
    *a = *b;
    *b = kept;
}

static void push(struct tl_trail_line *line, size_t index)
{
    const struct tl_trail_place *places = line->places;
    struct tl_trail_heap *heap = &line->lanes[places[index].lane].heaps[places[index].told];
    size_t at = heap->n++;
    heap->of = tl_xgrow(heap->of, &heap->capacity, heap->n, sizeof(*heap->of));
    heap->of[at] = index;
    for (; at > 0 && places[heap->of[(at - 1) / 2]].seq > places[heap->of[at]].seq;
         at = (at - 1) / 2)
        swap(&heap->of[(at - 1) / 2], &heap->of[at]);
}

static void pop(const struct tl_trail_line *line, struct tl_trail_heap *heap)
{
    size_t *of = heap->of, n = --heap->n, at = 0;
    of[0] = of[n];
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < n; child++)
            if (line->places[of[child]].seq < line->places[of[least]].seq)
                least = child;
        if (least == at)
            return;
        swap(&of[at], &of[least]);
        at = least;
    }
}

const struct tl_trail_place *tl_trail_line_first(struct tl_trail_line *line, unsigned lane,
                                                 bool told)
{
    struct tl_trail_heap *heap = &line->lanes[lane].heaps[told];
    for (; heap->n > 0; pop(line, heap)) {
        const struct tl_trail_place *first = &line->places[heap->of[0]];
        if (first->state == TL_TRAIL_WAITS && first->lane == lane && first->told == told)
            return first;
    }
    return NULL;
}

/* ---- coming and going ---- */

static void count(struct tl_trail_line *line, const struct tl_trail_place *at, uint64_t n)
{
    if (at->told && at->state == TL_TRAIL_ACTIVE)
        line->active += n;
    if (at->state == TL_TRAIL_WAITS)
        line->lanes[at->lane].waiting += n;
}

struct tl_trail_place *tl_trail_line_put(struct tl_trail_line *line, tl_place place,
                                         const char *who, enum tl_trail_state state, uint64_t leaf)
{
    struct tl_trail_place *at = tl_trail_line_find(line, place);
    bool is_new =
        at == NULL || at->state != TL_TRAIL_WAITS || !at->told || at->lane != tl_place_lane(place);
    if (at != NULL) {
        count(line, at, UINT64_MAX); /* one less */
    } else {
        line->places = tl_xgrow(line->places, &line->capacity, line->n + 1, sizeof(*at));
        at = &line->places[line->n++];
        *at = (struct tl_trail_place){0};
        if (!tl_placemap_put(&line->by_seq, tl_place_seq(place), line->n))
            tl_no_memory();
    }
    at->seq = tl_place_seq(place);
    at->leaf = leaf;
    at->lane = (unsigned char)tl_place_lane(place);
    at->state = (unsigned char)state;
    at->told = true;
    snprintf(at->who, sizeof(at->who), "%s", who);
    count(line, at, 1);
    if (state == TL_TRAIL_WAITS && is_new)
        push(line, (size_t)(at - line->places));
    return at;
}

void tl_trail_line_remove(struct tl_trail_line *line, struct tl_trail_place *at)
{
    count(line, at, UINT64_MAX);
    at->state = TL_TRAIL_GONE;
}

void tl_trail_line_doubt(struct tl_trail_line *line)
{
    for (unsigned lane = 0; lane < TL_LANES_MAX; lane++)
        line->lanes[lane].heaps[false].n = line->lanes[lane].heaps[true].n = 0;
    for (size_t i = 0; i < line->n; i++) {
        line->places[i].told = false;
        if (line->places[i].state == TL_TRAIL_WAITS)
            push(line, i);
    }
    line->active = 0;
}

uint64_t tl_trail_line_settle(struct tl_trail_line *line)
{
    uint64_t n = 0;
    for (size_t i = 0; i < line->n; i++) {
        if (line->places[i].state == TL_TRAIL_GONE || line->places[i].told)
            continue;
        tl_trail_line_remove(line, &line->places[i]);
        n++;
    }
    return n;
}

/* ---- rules ---- */

/* The value of NAME=VALUE in a list with semicolons. False: there is none, or it is longer. */
static bool value_of(const char *detail, const char *name, char *value, size_t size)
{
    size_t length = strlen(name);
    for (const char *at = detail; at != NULL; at = strchr(at, ';')) {
        at += *at == ';';
        if (strncmp(at, name, length) != 0 || at[length] != '=')
            continue;
        size_t n = strcspn(at + length + 1, ";");
        if (n >= size)
            return false;
        memcpy(value, at + length + 1, n);
        value[n] = '\0';
        return true;
    }
    return false;
}

static bool read_number(const char *text, uint64_t *number)
{
    return tl_number_parse(text, number, &(struct tl_error){0}) && *number <= NUMBER_MAX;
}

/* "": 0. */
static bool number_of(const char *detail, const char *name, uint64_t *number)
{
    char text[24];
    *number = 0;
    return value_of(detail, name, text, sizeof(text)) &&
           (text[0] == '\0' || read_number(text, number));
}

/* ADMIT/EVERY+BURST */
static bool read_rate(struct tl_trail_rules *rules, const char *detail)
{
    char text[64], *every, *burst;
    uint64_t admit, ms, more = 0;
    if (!value_of(detail, "rate", text, sizeof(text)) || (every = strchr(text, '/')) == NULL ||
        (burst = strchr(every, '+')) == NULL)
        return false;
    *every++ = *burst++ = '\0';
    if (!read_number(text, &admit) || !read_number(every, &ms) ||
        (*burst != '\0' && !read_number(burst, &more)) || admit == 0 || ms == 0)
        return false;
    rules->per_window = admit + more;
    rules->window_ms = (int64_t)ms;
    return true;
}

static bool read_weights(struct tl_trail_rules *rules, const char *detail)
{
    char text[TL_LEAF_DETAIL_MAX];
    return value_of(detail, "weights", text, sizeof(text)) &&
           tl_weights_parse(text, strlen(text), &rules->weights) == TL_WEIGHTS_GOOD;
}

void tl_trail_rules_read(struct tl_trail_rules *rules, const char *detail, uint64_t leaf)
{
    char policy[24] = "", order[24] = "", turns[TL_LEAF_DETAIL_MAX];
    uint64_t opens, capacity, overbook;
    *rules = (struct tl_trail_rules){.leaf = leaf};
    rules->known = value_of(detail, "policy", policy, sizeof(policy)) &&
                   value_of(detail, "order", order, sizeof(order)) &&
                   value_of(detail, "mode", rules->mode, sizeof(rules->mode)) &&
                   number_of(detail, "opens", &opens) && number_of(detail, "capacity", &capacity) &&
                   number_of(detail, "overbook", &overbook) && read_weights(rules, detail) &&
                   (strcmp(policy, "counter") == 0 || read_rate(rules, detail));
    if (!rules->known) {
        *rules = (struct tl_trail_rules){.leaf = leaf};
        return;
    }
    rules->drawn = strcmp(order, "draw") == 0 && opens > 0;
    if (value_of(detail, "turns", turns, sizeof(turns)))
        tl_turns_continue(&rules->turns, turns);
    rules->shut = strcmp(rules->mode, "open") != 0 && strcmp(rules->mode, "draining") != 0;
    rules->bounded = strcmp(policy, "rate") != 0;
    rules->most = capacity + overbook;
    rules->opens_ms = (int64_t)opens;
}
