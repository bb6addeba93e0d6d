/* SPDX-License-Identifier: Apache-2.0 */
/* The line as a trail tells it: what is right passes, and each kind of wrong is found at its leaf.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/trail/replay.h"
#include "ctl/trail/rows.h"

#define A "AAAAAAAAAAAAAAAAAAAAAA"
#define B "BBBBBBBBBBBBBBBBBBBBBA"
#define RULES                                                                                      \
    "rules - - - "                                                                                 \
    "policy=counter;order=%s;mode=%s;opens=%d;weights=%s;rate=0/0+0;overbook=0;capacity=%d"

/* The beginning of a trail: everybody is told. */
static const char *const told[] = {"1 100 begins - - - opened:0:100", "1 100 all - - - -"};

struct story {
    struct tl_replay *replay;
    uint64_t n;
};

static void take(struct story *story, const char *line)
{
    struct tl_leaf leaf;
    struct tl_error err = {0};
    if (!tl_leaf_read(line, strlen(line), &leaf, &err))
        fail_msg("%s: %s", line, err.text);
    tl_replay_take(story->replay, story->n++, &leaf);
}

static struct story begin(const char *rules)
{
    struct story story = {.replay = tl_replay_new()};
    char line[TL_LEAF_MAX];
    take(&story, told[0]);
    snprintf(line, sizeof(line), "1 100 %s", rules);
    take(&story, line);
    take(&story, told[1]);
    return story;
}

/* Takes the lines, which end with NULL, and expects one finding, at the last of them; "": none. */
static void expect(const char *rules, const char *words, const char *const *lines)
{
    struct story story = begin(rules);
    for (; *lines != NULL; lines++)
        take(&story, *lines);
    struct tl_replay_result result = tl_replay_result(story.replay);
    if (words[0] == '\0') {
        assert_int_equal(result.n_findings, 0);
    } else {
        assert_int_equal(result.n_findings, 1);
        assert_int_equal(result.findings[0].leaf, story.n - 1);
        if (strstr(result.findings[0].text, words) == NULL)
            fail_msg("%s", result.findings[0].text);
    }
    tl_replay_free(story.replay);
}
#define EXPECT(rules, words, ...) expect(rules, words, (const char *const[]){__VA_ARGS__, NULL})

/* The same without a finding; of so many leaves nobody can know whether they are right. */
static void expect_doubts(const char *rules, uint64_t n, const char *const *lines)
{
    struct story story = begin(rules);
    for (; *lines != NULL; lines++)
        take(&story, *lines);
    struct tl_replay_result result = tl_replay_result(story.replay);
    if (result.n_findings > 0)
        fail_msg("leaf %d: %s", (int)result.findings[0].leaf, result.findings[0].text);
    assert_int_equal(result.unprovable, n);
    tl_replay_free(story.replay);
}
#define DOUBTS(rules, n, ...) expect_doubts(rules, n, (const char *const[]){__VA_ARGS__, NULL})

static void a_line_that_is_right_passes(void **state)
{
    (void)state;
    char rules[256];
    snprintf(rules, sizeof(rules), RULES, "arrival", "open", 0, "", 1);
    EXPECT(rules, "", "2 101 entered 1 5 " A " -", "2 101 entered 1 6 " B " -",
           "3 102 lane 1 6 " B " 0:6", "4 103 admitted 0 6 " B " -", "5 104 ended 0 6 " B " left",
           "6 105 admitted 1 5 " A " -", "7 106 deleted - - - -");
    snprintf(rules, sizeof(rules), RULES, "draw", "open", 1, "", 1);
    EXPECT(rules, "", "2 101 entered 0 5 " A " -", "3 102 drawn 0 5 " A " 0:9:" A,
           "4 103 admitted 0 9 " A " -", "5 104 ended 0 9 " A " completed");
    EXPECT(rules, "belongs to another visitor, by leaf 4", "2 101 entered 0 5 " A " -",
           "3 102 drawn 0 5 " A " 0:9:" A, "4 103 admitted 0 9 " B " -");
    EXPECT(rules, "to no place", "2 101 entered 0 5 " A " -", "3 102 drawn 0 5 " A " 0:9");
}

static void who_stood_before_goes_before(void **state)
{
    (void)state;
    char rules[256], weights[256];
    snprintf(rules, sizeof(rules), RULES, "arrival", "open", 0, "", 9);
    snprintf(weights, sizeof(weights), RULES, "arrival", "open", 0, "3,1", 9);
    EXPECT(rules, "went before place 0:5, which waited since leaf 3", "2 101 entered 0 5 " A " -",
           "3 101 entered 0 6 " B " -", "4 102 admitted 0 6 " B " -");
    EXPECT(rules, "went before place 0:5", "2 101 entered 0 5 " A " -", "3 101 entered 1 6 " B " -",
           "4 102 admitted 1 6 " B " -");
    EXPECT(weights, "", "2 101 entered 0 5 " A " -", "3 101 entered 1 6 " B " -",
           "4 102 admitted 0 5 " A " -", "5 102 admitted 1 6 " B " -");
}

/* With 3 and 1 the turns are those of lanes 0, 1, 0, 0, 0, 1. */
static void lanes_get_their_shares(void **state)
{
    (void)state;
    char rules[256], turns[256];
    snprintf(rules, sizeof(rules), RULES, "arrival", "open", 0, "3,1", 9);
    snprintf(turns, sizeof(turns), RULES ";turns=3,1:3:1,0", "arrival", "open", 0, "3,1", 9);
#define FOUR                                                                                       \
    "2 101 entered 0 5 " A " -", "2 101 entered 0 6 " A " -", "2 101 entered 1 7 " A " -",         \
        "2 101 entered 1 8 " A " -"
    EXPECT(rules, "", FOUR, "3 102 admitted 0 5 " A " -", "3 102 admitted 1 7 " A " -",
           "4 103 admitted 0 6 " A " -", "5 104 admitted 1 8 " A " -");
    EXPECT(rules,
           "place 1:7, as number 1 of its lane at once, which had 0 of 1 turns by the "
           "weights of leaf 1",
           FOUR, "3 102 admitted 1 7 " A " -");
    EXPECT(rules, "place 1:8, as number 2 of its lane at once, which had 1 of 3 turns", FOUR,
           "3 102 admitted 0 5 " A " -", "3 102 admitted 1 7 " A " -",
           "3 102 admitted 1 8 " A " -");
    EXPECT(rules, "place 0:6, as number 1 of its lane", FOUR, "3 102 admitted 0 5 " A " -",
           "4 103 admitted 0 6 " A " -");
    /* The turns that were told; an empty lane has none. */
    EXPECT(turns, "", FOUR, "3 102 admitted 1 7 " A " -");
    EXPECT(turns, "place 0:5, as number 1 of its lane", FOUR, "3 102 admitted 0 5 " A " -");
    EXPECT(turns, "", "2 101 entered 0 5 " A " -", "3 102 admitted 0 5 " A " -");
    /* Other weights make all turns due, and turns that are told later change nothing. */
    EXPECT(turns, "place 1:7", FOUR,
           "3 102 rules - - - policy=counter;order=arrival;mode=open;opens=0;weights=1,1;"
           "rate=0/0+0;overbook=0;capacity=9;turns=1,1:1:1,0",
           "4 103 admitted 1 7 " A " -");
#undef FOUR
}

static void rules_are_kept(void **state)
{
    (void)state;
    char one[256], paused[256], later[256];
    snprintf(one, sizeof(one), RULES, "arrival", "open", 0, "", 1);
    snprintf(paused, sizeof(paused), RULES, "arrival", "paused", 0, "", 1);
    snprintf(later, sizeof(later), RULES, "arrival", "open", 900, "", 1);
    EXPECT(one, "as number 2 of at most 1 by leaf 1", "2 101 entered 0 5 " A " -",
           "3 101 entered 0 6 " B " -", "4 102 admitted 0 5 " A " -", "4 102 admitted 0 6 " B " -");
    EXPECT(paused, "while the queue was paused", "2 101 entered 0 5 " A " -",
           "4 102 admitted 0 5 " A " -");
    EXPECT(later, "before the opening", "2 101 entered 0 5 " A " -", "4 102 admitted 0 5 " A " -");
}

static void a_rate_is_kept(void **state)
{
    static const char rules[] = "rules - - - policy=both;order=arrival;mode=open;opens=0;weights=;"
                                "rate=1/100+1;overbook=0;capacity=9";
    (void)state;
    EXPECT(rules, "", "2 100 entered 0 5 " A " -", "2 100 entered 0 6 " A " -",
           "2 100 entered 0 7 " A " -", "3 101 admitted 0 5 " A " -", "4 150 admitted 0 6 " A " -",
           "5 201 admitted 0 7 " A " -");
    EXPECT(rules, "as number 3 in 99 ms", "2 100 entered 0 5 " A " -", "2 100 entered 0 6 " A " -",
           "2 100 entered 0 7 " A " -", "3 101 admitted 0 5 " A " -", "4 150 admitted 0 6 " A " -",
           "5 200 admitted 0 7 " A " -");
    /* Without a window that has one rate and one clock, nobody can know. */
#define OTHER(n)                                                                                   \
    " rules - - - policy=both;order=arrival;mode=open;opens=0;weights=;rate=1/100+" #n             \
    ";overbook=0;capacity=9"
#define THREE "2 100 entered 0 5 " A " -", "2 100 entered 0 6 " A " -", "2 100 entered 0 7 " A " -"
    DOUBTS(rules, 1, THREE, "3 150 admitted 0 5 " A " -", "4 151 admitted 0 6 " A " -",
           "5 149 admitted 0 7 " A " -");
    DOUBTS(rules, 2, THREE, "3 150 admitted 0 5 " A " -", "4 151" OTHER(0),
           "5 152 admitted 0 6 " A " -", "6 153" OTHER(1), "7 154 admitted 0 7 " A " -");
    DOUBTS(rules, 0, THREE, "3 150 admitted 0 5 " A " -", "4 151" OTHER(1),
           "5 152 admitted 0 6 " A " -", "6 250 admitted 0 7 " A " -");
    EXPECT(rules, "as number 2 in 99 ms", THREE, "3 151" OTHER(0), "4 152 admitted 0 5 " A " -",
           "5 251 admitted 0 6 " A " -");
#undef OTHER
#undef THREE
}

/* Rules that cannot be read, and a capacity while it is not known who is active. */
static void what_nothing_tells_is_in_doubt(void **state)
{
    static const char *const damaged[] = {
        "rules - - - damaged",
        "rules - - - -",
        "rules - - - policy=rate;order=arrival;mode=open;opens=0;weights=;rate=/+0;overbook=0;"
        "capacity=9",
        "rules - - - policy=both;order=arrival;mode=open;opens=0;weights=;rate=0/100+0;overbook=0;"
        "capacity=9",
        "rules - - - policy=counter;mode=open;opens=0;weights=;rate=0/0+0;overbook=0;capacity=9",
        "rules - - - policy=counter;order=arrival;mode=open;opens=0;weights=0,1;rate=0/0+0;"
        "overbook=0;capacity=9",
        "rules - - - policy=counter;order=arrival;mode=open;opens=99999999999999999;weights=;"
        "rate=0/0+0;overbook=0;capacity=9"};
    (void)state;
    char rules[256];
    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++)
        DOUBTS(damaged[i], 1, "2 101 entered 0 5 " A " -", "3 102 admitted 0 5 " A " -");
    snprintf(rules, sizeof(rules), RULES, "arrival", "open", 0, "", 1);
    DOUBTS(rules, 1, "2 101 entered 0 5 " A " -", "3 102 entered 0 6 " B " -",
           "4 103 admitted 0 5 " A " -", "5 104 begins - - - corrected:0:104",
           "6 105 waits 0 6 " B " -", "7 106 admitted 0 6 " B " -");
    EXPECT(rules, "as number 2 of at most 1", "2 101 entered 0 5 " A " -",
           "3 102 entered 0 6 " B " -", "4 103 begins - - - corrected:0:104",
           "6 105 waits 0 6 " B " -", "6 105 stays 0 5 " A " -", "7 106 admitted 0 6 " B " -");
}

static void nobody_comes_from_nowhere(void **state)
{
    (void)state;
    char rules[256];
    snprintf(rules, sizeof(rules), RULES, "arrival", "open", 0, "", 9);
    EXPECT(rules, "is not in the line", "4 102 admitted 0 5 " A " -");
    EXPECT(rules, "is not in the line", "4 102 ended 0 5 " A " left");
    EXPECT(rules, "is active since leaf 4", "2 101 entered 0 5 " A " -",
           "3 102 admitted 0 5 " A " -", "4 102 admitted 0 5 " A " -");
    EXPECT(rules, "belongs to another visitor", "2 101 entered 0 5 " A " -",
           "3 102 admitted 0 5 " B " -");
    EXPECT(rules, "was 0:5 since", "2 101 entered 0 5 " A " -", "3 102 ended 1 5 " A " left");
    EXPECT(rules, "was given before", "2 101 entered 0 5 " A " -", "3 102 entered 0 5 " A " -");
    EXPECT(rules, "which was given before", "2 101 entered 0 5 " A " -",
           "3 102 entered 0 4 " B " -");
    EXPECT(rules, "does not wait", "2 101 entered 0 5 " A " -", "3 102 admitted 0 5 " A " -",
           "4 103 lane 0 5 " A " 1:5");
    EXPECT(rules, "comes after step 3", "3 101 entered 0 5 " A " -", "2 102 entered 0 6 " B " -");
    EXPECT(rules, "nobody is told", "3 101 waits 0 5 " A " -");
}

static void nobody_jumps_the_queue(void **state)
{
    (void)state;
    char rules[256], draw[256];
    snprintf(rules, sizeof(rules), RULES, "arrival", "open", 0, "", 9);
    snprintf(draw, sizeof(draw), RULES, "draw", "open", 1, "", 9);
    EXPECT(rules, "place 0:101 cannot become place 0:1", "2 101 entered 0 101 " A " -",
           "3 102 lane 0 101 " A " 0:1");
    EXPECT(rules, "place 0:101 cannot become place 1:102", "2 101 entered 0 101 " A " -",
           "3 102 lane 0 101 " A " 1:102");
    EXPECT(draw, "place 0:101 cannot become place 0:1", "2 101 entered 0 101 " A " -",
           "3 102 drawn 0 101 " A " 0:1:" A);
    EXPECT(draw, "place 1:101 cannot become place 0:201", "2 101 entered 1 101 " A " -",
           "3 102 drawn 1 101 " A " 0:201:" A);
    EXPECT(draw, "place 0:201 was given before", "2 101 entered 0 101 " A " -",
           "3 101 entered 0 201 " B " -", "4 102 drawn 0 101 " A " 0:201:" A);
    EXPECT(rules, "without a draw by leaf 1", "2 101 entered 0 101 " A " -",
           "3 102 drawn 0 101 " A " 0:201:" A);
    struct story story = begin(rules);
    take(&story, "2 101 entered 0 101 " A " -");
    take(&story, "3 102 restored 0 1 " B " 0");
    assert_int_equal(tl_replay_result(story.replay).restored, 1);
    tl_replay_free(story.replay);
}

/* Who came before the opening of a queue with a draw is drawn, once, before the turn comes. */
static void who_came_early_is_drawn(void **state)
{
    (void)state;
    char rules[256];
    snprintf(rules, sizeof(rules), RULES, "draw", "open", 110, "", 9);
#define EARLY "2 101 entered 0 5 " A " -", "3 102 entered 0 6 " B " -"
#define LATER(opens)                                                                               \
    " rules - - - policy=counter;order=draw;mode=open;opens=" #opens                               \
    ";weights=;rate=0/0+0;overbook=0;capacity=9"
    EXPECT(rules, "", EARLY, "4 110 drawn 0 5 " A " 0:10:" A, "4 110 drawn 0 6 " B " 0:11:" B,
           "5 111 entered 0 12 " A " -", "6 112 admitted 0 10 " A " -",
           "6 112 admitted 0 11 " B " -", "6 112 admitted 0 12 " A " -");
    EXPECT(rules, "place 0:5 was not drawn", EARLY, "4 110 drawn 0 6 " B " 0:11:" B,
           "6 112 admitted 0 5 " A " -");
    EXPECT(rules, "place 0:5 was not drawn", EARLY, "6 112 admitted 0 5 " A " -");
    EXPECT(rules, "drawn: place 0:5, before the opening", EARLY, "4 109 drawn 0 5 " A " 0:10:" A);
    EXPECT(rules, "place 0:10 was drawn by leaf 5", EARLY, "4 110 drawn 0 5 " A " 0:10:" A,
           "5 111 drawn 0 10 " A " 0:13:" A);
    /* Nor does a gap, another lane or another opening change that. */
    EXPECT(rules, "place 0:5 was not drawn", EARLY, "4 110 begins - - - corrected:0:109",
           "4 110 waits 0 5 " A " -", "4 110 waits 0 6 " B " -", "4 110 all - - - -",
           "6 112 admitted 0 5 " A " -");
    EXPECT(rules, "place 1:5 was not drawn", EARLY, "4 110 ended 0 6 " B " left",
           "5 111 lane 0 5 " A " 1:5", "6 112 admitted 1 5 " A " -");
    EXPECT(rules, "place 0:5 was not drawn", EARLY, "4 103" LATER(120), "5 121" LATER(100),
           "6 122 admitted 0 5 " A " -");
    EXPECT(rules, "", "2 110 deleted - - - -", "3 111 begins - - - opened:0:1", "3 111" LATER(200),
           "3 111 all - - - -", "4 150 entered 0 5 " A " -", "5 201 admitted 0 5 " A " -");
#undef EARLY
#undef LATER
}

/* Whatever a gap says of its beginning, it excuses nothing that it did not cause. */
static void a_gap_excuses_what_it_caused(void **state)
{
    static const struct {
        const char *admitted, *begins;
        uint64_t findings;
    } cases[] = {
        {"4 200 admitted 0 6 " B " -", "5 300 begins - - - store:0:0", 1},
        {"4 200 admitted 0 6 " B " -", "900000 300 begins - - - store:0:0", 1},
        {"900000 200 admitted 0 6 " B " -", "900001 300 begins - - - store:0:150", 0},
        {"900000 200 admitted 0 6 " B " -", "900001 300 begins - - - store:0:201", 1},
        {"4 200 admitted 0 6 " B " -", "5 300 begins - - - corrected:0:150", 0},
        {"4 200 admitted 0 6 " B " -", "5 60201 begins - - - corrected:0:0", 1},
        /* Whom it took for another; and what it contradicts was said after the loss. */
        {"900000 200 ended 0 6 " A " left", "900001 300 begins - - - store:0:150", 1},
        {"4 200 ended 0 6 " A " left", "5 300 begins - - - corrected:0:150", 1},
    };
    char rules[256];
    (void)state;
    snprintf(rules, sizeof(rules), RULES, "arrival", "open", 0, "", 9);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct story story = begin(rules);
        take(&story, "2 101 entered 0 5 " A " -");
        take(&story, "3 102 entered 0 6 " B " -");
        take(&story, cases[i].admitted);
        take(&story, cases[i].begins);
        assert_int_equal(tl_replay_result(story.replay).n_findings, cases[i].findings);
        assert_int_equal(tl_replay_result(story.replay).unprovable, 1 - cases[i].findings);
        tl_replay_free(story.replay);
    }
}

static void a_gap_is_no_violation(void **state)
{
    (void)state;
    char rules[256];
    snprintf(rules, sizeof(rules), RULES, "arrival", "open", 0, "", 9);
    struct story story = begin(rules);
    take(&story, "2 101 entered 0 5 " A " -");
    take(&story, "3 102 entered 0 6 " B " -");
    take(&story, "900000 200 admitted 0 6 " B " -"); /* wrong, but the store had lost 5 at 150 */
    take(&story, "900009 300 begins - - - store:0:150");
    take(&story, "900009 300 stays 0 6 " B " -");
    take(&story, "900009 300 all - - - -");
    struct tl_replay_result result = tl_replay_result(story.replay);
    assert_int_equal(result.n_findings, 0);
    assert_int_equal(result.gaps, 1);
    assert_int_equal(result.unprovable, 2); /* that admission, and how 5 ended */
    take(&story, "900010 301 ended 0 5 " A " left");
    assert_int_equal(tl_replay_result(story.replay).n_findings, 1);
    tl_replay_free(story.replay);
}

#define LOSS "900000 200 begins - - - store:0:150"
#define ALL  "900009 209 all - - - -"

/* Until everybody was told again, what the trail said before the loss may be out of date. */
static void who_is_not_told_yet_is_in_doubt(void **state)
{
    (void)state;
    char rules[256];
    snprintf(rules, sizeof(rules), RULES, "arrival", "open", 0, "", 9);
    /* The store lost an admission, a move and an end. */
    DOUBTS(rules, 1, "2 101 entered 0 5 " A " -", "3 160 admitted 0 5 " A " -", LOSS,
           "900001 201 admitted 0 5 " A " -", "900002 202 stays 0 5 " A " -", ALL);
    DOUBTS(rules, 1, "2 101 entered 1 5 " A " -", "3 160 lane 1 5 " A " 0:5", LOSS,
           "900001 201 ended 1 5 " A " left", ALL);
    DOUBTS(rules, 1, "2 101 entered 1 5 " A " -", "3 160 ended 1 5 " A " left", LOSS,
           "900001 201 waits 1 5 " A " -", ALL, "900010 210 admitted 1 5 " A " -");
    /* Who was told is not in doubt, nor what does not depend on it. */
    EXPECT(rules, "is active since leaf 6", "2 101 entered 0 5 " A " -",
           "3 102 entered 0 6 " B " -", LOSS, "900001 201 stays 0 5 " A " -",
           "900002 202 admitted 0 5 " A " -");
    EXPECT(rules, "went before place 0:6, which waited since leaf 7", "2 101 entered 0 5 " A " -",
           "3 101 entered 0 6 " B " -", "3 101 entered 0 7 " A " -", LOSS,
           "900001 201 waits 0 6 " B " -", "900001 201 waits 0 7 " A " -",
           "900002 202 admitted 0 7 " A " -");
    EXPECT(rules, "belongs to another visitor", "2 101 entered 0 5 " A " -", LOSS,
           "900001 201 admitted 0 5 " B " -");
    EXPECT(rules, "was told otherwise by leaf 5", "2 101 entered 0 5 " A " -", LOSS,
           "900001 201 waits 0 5 " A " -", "900002 202 stays 0 5 " A " -");
}

/* Nor does a gap make room for somebody who was not there. */
static void a_gap_brings_in_nobody(void **state)
{
    (void)state;
    char rules[256];
    snprintf(rules, sizeof(rules), RULES, "arrival", "open", 0, "", 9);
    EXPECT(rules, "belongs to another visitor, by leaf 3", "2 101 entered 0 5 " A " -",
           "3 102 ended 0 5 " A " left", LOSS, "900001 201 waits 0 5 " B " -");
    EXPECT(rules, "belongs to another visitor", "2 101 entered 0 5 " A " -",
           "3 102 ended 0 5 " A " left", "4 103 restored 0 5 " B " 0");
    DOUBTS(rules, 1, "2 101 entered 0 5 " A " -", LOSS, "900001 201 waits 0 4 " B " -",
           "900001 201 waits 0 5 " A " -", ALL, "900010 210 admitted 0 4 " B " -");
    /* An admission that was not told; and who came when nothing was told. */
    DOUBTS(rules, 1, "2 101 entered 0 5 " A " -", LOSS, "900001 201 stays 0 5 " A " -", ALL);
    DOUBTS(rules, 1, "2 101 entered 0 5 " A " -", LOSS, "900001 201 waits 0 5 " A " -",
           "900001 201 waits 0 6 " B " -", "900001 201 stays 0 7 " A " -", ALL);
}

/* What the trail says after the store began again is not because of the loss, however late that is
 * told; and of many findings, each is excused. */
static void a_loss_explains_what_it_contradicts(void **state)
{
    (void)state;
    char rules[256], line[TL_LEAF_MAX];
    snprintf(rules, sizeof(rules), RULES, "arrival", "open", 0, "", 9000);
    struct story story = begin(rules);
    take(&story, "900000 200 entered 0 5 " A " -");
    take(&story, "900001 201 entered 0 6 " B " -");
    take(&story, "900002 90000000 admitted 0 6 " B " -");
    take(&story, "900003 90000001 begins - - - store:0:150");
    assert_int_equal(tl_replay_result(story.replay).n_findings, 1);
    tl_replay_free(story.replay);

    enum { MANY = 3000 };
    story = begin(rules);
    for (int i = 1; i <= MANY; i++) {
        snprintf(line, sizeof(line), "%d 101 entered 0 %d " A " -", i + 1, i);
        take(&story, line);
    }
    for (int i = 1; i <= 2 * MANY; i++) { /* the first half was lost */
        snprintf(line, sizeof(line), "%d %d admitted 0 %d " A " -",
                 i + (i > MANY ? 900000 : MANY + 1), i > MANY ? 200 : 150, i > MANY ? i - MANY : i);
        take(&story, line);
    }
    assert_int_equal(tl_replay_result(story.replay).n_findings, MANY);
    take(&story, "990000 300 begins - - - store:0:140");
    assert_int_equal(tl_replay_result(story.replay).n_findings, 0);
    assert_int_equal(tl_replay_result(story.replay).unprovable, MANY);
    tl_replay_free(story.replay);
}

/* A store that lost the highest numbers, and whose clock went back, goes on below them, but not
 * before those who are there. */
static void numbers_go_on_below_those_that_were_lost(void **state)
{
    (void)state;
    char rules[256];
    snprintf(rules, sizeof(rules), RULES, "arrival", "open", 0, "", 9);
#define FIVE "2 101 entered 0 5 " A " -", "3 180 entered 0 50 " A " -"
    DOUBTS(rules, 1, FIVE, LOSS, "900001 161 waits 0 5 " A " -", ALL,
           "900010 162 entered 0 7 " B " -");
    DOUBTS(rules, 2, FIVE, LOSS, "900001 161 waits 0 5 " A " -", "900002 162 entered 0 7 " B " -",
           ALL);
    DOUBTS(rules, 1, FIVE, "900000 162 entered 0 7 " B " -", "900001 163 begins - - - store:0:110");
    EXPECT(rules, "comes after place 5", FIVE, LOSS, "900001 161 waits 0 5 " A " -", ALL,
           "900010 162 entered 0 4 " B " -");
#undef FIVE
}

static void a_step_has_one_time(void **state)
{
    (void)state;
    char rules[256];
    snprintf(rules, sizeof(rules), RULES, "arrival", "open", 0, "", 9);
    EXPECT(rules, "step 2 was at another time", "2 101 entered 0 5 " A " -",
           "2 102 admitted 0 5 " A " -");
}

static void after_the_end_nothing_goes_on(void **state)
{
    (void)state;
    char rules[256];
    snprintf(rules, sizeof(rules), RULES, "arrival", "open", 0, "", 9);
    EXPECT(rules, "the queue was deleted before", "2 101 entered 0 5 " A " -",
           "3 102 deleted - - - -", "4 103 entered 0 6 " A " -");
    DOUBTS(rules, 1, "2 101 entered 0 5 " A " -", "3 102 deleted - - - -",
           "4 103 begins - - - store:0:100", "5 104 waits 0 5 " A " -");
    EXPECT(rules, "belongs to another", "2 101 entered 0 5 " A " -", "3 102 deleted - - - -",
           "4 103 begins - - - store:0:100", "5 104 waits 0 5 " B " -");
}

static void a_number_is_given_once(void **state)
{
    (void)state;
    char rules[256], draw[256];
    snprintf(rules, sizeof(rules), RULES, "arrival", "open", 0, "", 9);
    snprintf(draw, sizeof(draw), RULES, "draw", "open", 1, "", 9);
    EXPECT(rules, "was given before", "2 101 entered 0 5 " A " -", "2 101 ended 0 5 " A " left",
           "2 101 entered 0 5 " B " -");
    EXPECT(draw, "was given before", "2 101 entered 0 5 " A " -", "3 102 drawn 0 5 " A " 0:9:" A,
           "4 103 ended 0 9 " A " left", "5 104 entered 0 9 " B " -");
    EXPECT(draw, "comes after place 9", "2 101 entered 0 5 " A " -", "3 102 drawn 0 5 " A " 0:9:" A,
           "5 104 entered 0 8 " B " -");
    EXPECT(rules, "comes after place 9", "2 101 restored 0 9 " A " 0", "3 102 entered 0 8 " B " -");
}

/* And the comparison with PostgreSQL leaves it out. */
static void a_move_to_no_place_is_a_finding(void **state)
{
    static const char *const lines[] = {"2 101 drawn 0 5 " A " 0:9", "2 101 lane 0 5 " A " -",
                                        "2 101 drawn - - - 0:9:" A};
    (void)state;
    char rules[256];
    struct tl_leaf leaf;
    struct tl_error err;
    struct tl_trail_rows *rows = tl_trail_rows_new();
    snprintf(rules, sizeof(rules), RULES, "draw", "open", 1, "", 9);
    EXPECT(rules, "to no place", "2 101 entered 0 5 " A " -", "3 102 drawn 0 5 " A " 0:9");
    EXPECT(rules, "of no place", "3 102 drawn - - - 0:9:" A);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        assert_true(tl_leaf_read(lines[i], strlen(lines[i]), &leaf, &err));
        tl_trail_rows_take(rows, &leaf);
    }
    tl_trail_rows_free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_that_is_right_passes),
        cmocka_unit_test(who_stood_before_goes_before),
        cmocka_unit_test(lanes_get_their_shares),
        cmocka_unit_test(rules_are_kept),
        cmocka_unit_test(a_rate_is_kept),
        cmocka_unit_test(what_nothing_tells_is_in_doubt),
        cmocka_unit_test(nobody_comes_from_nowhere),
        cmocka_unit_test(nobody_jumps_the_queue),
        cmocka_unit_test(who_came_early_is_drawn),
        cmocka_unit_test(a_move_to_no_place_is_a_finding),
        cmocka_unit_test(a_gap_excuses_what_it_caused),
        cmocka_unit_test(a_gap_is_no_violation),
        cmocka_unit_test(who_is_not_told_yet_is_in_doubt),
        cmocka_unit_test(a_gap_brings_in_nobody),
        cmocka_unit_test(a_number_is_given_once),
        cmocka_unit_test(a_loss_explains_what_it_contradicts),
        cmocka_unit_test(numbers_go_on_below_those_that_were_lost),
        cmocka_unit_test(a_step_has_one_time),
        cmocka_unit_test(after_the_end_nothing_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
