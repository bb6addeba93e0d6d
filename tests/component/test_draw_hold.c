/* SPDX-License-Identifier: Apache-2.0 */
/* Holding a draw: the draw function, and the admitter's way through its steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/auth/draw.h"
#include "common/base/clock.h"
#include "common/base/units.h"
#include "common/store/queue.h"
#include "common/store/records.h"
#include "common/store/reply.h"
#include "ingest.h"

enum { TURN_MS = 1000, FAR_MS = 3600000, MANY = 4000 };

static char key_path[64];
static char other_path[64];

static int open_all(void **state)
{
    snprintf(key_path, sizeof(key_path), "/tmp/test_draw_hold.%d", (int)getpid());
    snprintf(other_path, sizeof(other_path), "/tmp/test_draw_hold.other.%d", (int)getpid());
    return test_store_open(state);
}

static int close_all(void **state)
{
    (void)unlink(key_path);
    (void)unlink(other_path);
    return test_store_close(state);
}

/* A queue that opens in so many ms (or opened so many ago), and its opening. */
static int64_t queue_opening_in(struct test_store *store, int64_t ms)
{
    char settings[160], opens_at[TL_UNITS_TEXT_MAX];
    int64_t opens_at_ms = test_redis_ms(store->redis) + ms;
    tl_time_format(opens_at_ms, opens_at, sizeof(opens_at));
    snprintf(settings, sizeof(settings), "lanes=vip,normal capacity=5 order=draw opens_at=%s",
             opens_at);
    test_store_queue(store, settings);
    return opens_at_ms;
}

/* The same opening for several queues: moves it, after the joins. */
static void open_at(struct test_store *store, int64_t opens_at_ms)
{
    test_redis_ask(store->redis, "HSET %s opens_at %lld", store->keys.names[TL_KEY_CONFIG],
                   (long long)opens_at_ms);
}

/* Opens the queue next: what has joined by now has joined before, however long that took. */
static int64_t open_next(struct test_store *store)
{
    int64_t opens_at_ms = test_redis_ms(store->redis) + 1;
    open_at(store, opens_at_ms);
    return opens_at_ms;
}

static struct tl_drawer *drawer_of(const char *path)
{
    struct tl_drawer *drawer = tl_drawer_new(path, 1000, &test_actor);
    assert_non_null(drawer);
    return drawer;
}

static void announce(struct test_store *store, struct tl_drawer *drawer, int64_t opens_at_ms)
{
    struct tl_error err = {0};
    if (!tl_drawer_announce(drawer, test_held(store, 0), opens_at_ms, &err))
        fail_msg("%s", err.text);
}

static void wait_until(struct test_store *store, int64_t ms)
{
    long long now_ms = test_redis_ms(store->redis);
    if (now_ms < ms)
        test_redis_pass_time(store->redis, ms - now_ms);
}

/* Announces the draw, waits for the opening and holds it. */
static void draw_all(struct test_store *store, int64_t opens_at_ms)
{
    struct tl_drawer *drawer = drawer_of(key_path);
    struct tl_draw *draw = NULL;
    announce(store, drawer, opens_at_ms);
    wait_until(store, opens_at_ms);
    while (test_hold_draw(store, drawer, opens_at_ms, TURN_MS, &draw) != TL_DRAW_OVER)
        continue;
    assert_null(draw);
    tl_drawer_free(&drawer);
}

static struct tl_draw_opening opening_of(int64_t opens_at_ms)
{
    struct tl_draw_secret secret;
    struct tl_draw_opening opening;
    struct tl_error err = {0};
    assert_true(tl_draw_secret_load(key_path, &secret, &err));
    tl_draw_opening(&secret, "q", opens_at_ms, &opening);
    return opening;
}

/* Number of the field of state.draw, 0 if there is none:
 * "opens_at:phase:cut:next:last:first:base_seq:drawn:event". */
static long long draw_field(struct test_store *store, unsigned field)
{
    char words[TL_KEY_MAX + 32];
    snprintf(words, sizeof(words), "HGET %s draw", store->keys.names[TL_KEY_STATE]);
    struct tl_reply *reply = test_redis_call(store->redis, words);
    const char *text = tl_reply_string(reply, NULL);
    for (; *text != '\0' && field > 0; field--)
        text = strchr(text, ':') + 1;
    long long value = strtoll(text, NULL, 10);
    tl_reply_free(reply);
    return value;
}

enum { PHASE = 1, CUT = 2, LAST = 4, FIRST = 5, DRAWN = 7 };
enum { IS_DONE = 3 };

/* The line of this lane, as text: visitors separated by spaces. Freed by the caller. */
static char *line(struct test_store *store, unsigned lane)
{
    char words[TL_KEY_MAX + 64];
    snprintf(words, sizeof(words), "ZRANGE %s %llu %llu BYSCORE", store->keys.names[TL_KEY_WAITING],
             (unsigned long long)tl_place_make(lane, 1),
             (unsigned long long)tl_place_make(lane, TL_PLACE_SEQ_MAX));
    struct tl_reply *reply = test_redis_call(store->redis, words);
    size_t n = tl_reply_count(reply), at = 0;
    char *text = calloc(n * 65 + 1, 1);
    assert_non_null(text);
    for (size_t i = 0; i < n; i++)
        at += (size_t)sprintf(text + at, "%s ", tl_reply_string(tl_reply_at(reply, i), NULL));
    tl_reply_free(reply);
    return text;
}

/* Fails unless the line's first n visitors of all lanes, by seq, stand by their draw keys, and the
 * list names exactly them. */
static void assert_drawn(struct test_store *store, int64_t opens_at_ms, size_t n)
{
    const struct tl_draw_opening opening = opening_of(opens_at_ms);
    unsigned char before[TL_DRAW_KEY_BYTES] = {0}, key[TL_DRAW_KEY_BYTES];
    size_t length, found = 0;
    struct tl_reply *reply = test_redis_call(store->redis, "GET tl:{q}:drawn");
    const char *list = tl_reply_string(reply, &length);
    assert_int_equal(length, (n + 1) * TL_DRAW_ID_BYTES);
    for (size_t i = 1; i <= n; i++) {
        tl_draw_key(opening.seed, (const unsigned char *)list + i * TL_DRAW_ID_BYTES, key);
        assert_true(memcmp(before, key, sizeof(key)) < 0);
        memcpy(before, key, sizeof(key));
    }
    for (unsigned lane = 0; lane < 2; lane++) {
        char *visitors = line(store, lane), *rest = NULL;
        size_t at = 1;
        for (char *visitor = strtok_r(visitors, " ", &rest); visitor != NULL && found < n;
             visitor = strtok_r(NULL, " ", &rest)) {
            unsigned char id[TL_DRAW_ID_BYTES];
            tl_draw_id(opening.salt, visitor, strlen(visitor), id);
            while (at <= n && memcmp(list + at * TL_DRAW_ID_BYTES, id, sizeof(id)) != 0)
                at++;
            if (at > n)
                break; /* the first who was not drawn */
            found++;
        }
        free(visitors);
    }
    assert_int_equal(found, n);
    tl_reply_free(reply);
}

/* ---- the order ---- */

/* Joins visitors v1 to vN, in an order that depends on the step. */
static void join_permuted(struct test_store *store, size_t n, size_t step)
{
    for (size_t i = 0; i < n; i++) {
        char visitor[32];
        size_t k = i * step % n + 1;
        snprintf(visitor, sizeof(visitor), "v%zu", k);
        test_join(store, visitor, k % 3 == 0 ? 0 : 1);
        if (i % 500 == 499 || i + 1 == n)
            test_batch(store);
    }
}

static void arrival_does_not_matter(void **state)
{
    struct test_store *store = *state;
    static const size_t steps[] = {1, 7, 96};
    char *first[2] = {NULL, NULL};
    int64_t opens_at_ms = test_redis_ms(store->redis);
    for (size_t i = 0; i < 3; i++) {
        test_store_clean(state);
        (void)queue_opening_in(store, 600000);
        join_permuted(store, 97, steps[i]);
        open_at(store, opens_at_ms);
        draw_all(store, opens_at_ms);
        assert_int_equal(draw_field(store, PHASE), IS_DONE);
        assert_drawn(store, opens_at_ms, 97);
        test_invariants(store->redis, &store->keys);
        for (unsigned lane = 0; lane < 2; lane++) {
            char *now = line(store, lane);
            if (first[lane] == NULL)
                first[lane] = strdup(now);
            assert_string_equal(now, first[lane]);
            free(now);
        }
    }
    assert_null(strstr(first[1], "v1 v2 v4 v5 ")); /* not as they came */
    free(first[0]);
    free(first[1]);
}

static void joining_again_changes_nothing(void **state)
{
    struct test_store *store = *state;
    (void)queue_opening_in(store, FAR_MS);
    for (int i = 0; i < 5; i++) {
        test_join(store, "often", 1);
        test_batch(store);
    }
    join_permuted(store, 20, 1);
    int64_t opens_at_ms = open_next(store);
    draw_all(store, opens_at_ms);
    assert_int_equal(test_state(store, "waiting"), 21);
    assert_drawn(store, opens_at_ms, 21);
}

static void nobody_is_admitted_before_the_draw(void **state)
{
    struct test_store *store = *state;
    (void)queue_opening_in(store, FAR_MS);
    join_permuted(store, 20, 1);
    int64_t opens_at_ms = open_next(store);
    wait_until(store, opens_at_ms);
    assert_int_equal(test_admit(store, 10), 0);
    draw_all(store, opens_at_ms);
    assert_int_equal(test_admit(store, 10), 5);
    test_invariants(store->redis, &store->keys);
}

/* ---- who comes after the opening ---- */

static void the_late_stand_behind(void **state)
{
    struct test_store *store = *state;
    (void)queue_opening_in(store, FAR_MS);
    struct tl_drawer *drawer = drawer_of(key_path);
    struct tl_draw *draw = NULL;
    join_permuted(store, MANY, 1); /* more than two steps number */
    int64_t opens_at_ms = open_next(store);
    announce(store, drawer, opens_at_ms);
    wait_until(store, opens_at_ms);
    test_join(store, "late1", 1); /* before any step of the draw */
    test_batch(store);
    assert_int_equal(test_hold_draw(store, drawer, opens_at_ms, 1, &draw) == TL_DRAW_OVER, 0);
    test_join(store, "late2", 1); /* in the middle */
    test_batch(store);
    while (test_hold_draw(store, drawer, opens_at_ms, TURN_MS, &draw) != TL_DRAW_OVER)
        continue;
    test_join(store, "late3", 1);
    test_batch(store);
    tl_drawer_free(&drawer);
    assert_drawn(store, opens_at_ms, MANY);
    char *visitors = line(store, 1);
    assert_non_null(strstr(visitors, " late1 late2 late3 "));
    assert_string_equal(strstr(visitors, "late1"), "late1 late2 late3 ");
    free(visitors);
}

/* What the stream got before the opening takes part, however late it is applied. */
static void a_join_before_the_opening_takes_part(void **state)
{
    struct test_store *store = *state;
    (void)queue_opening_in(store, FAR_MS);
    struct tl_drawer *drawer = drawer_of(key_path);
    struct tl_draw *draw = NULL;
    struct tl_apply_counts counts = {0};
    struct tl_error err = {0};
    test_join(store, "early1", 1);
    test_join(store, "early2", 1);
    test_send(store, "w", ++store->number, NULL);
    int64_t opens_at_ms = open_next(store);
    announce(store, drawer, opens_at_ms);
    wait_until(store, opens_at_ms);
    assert_int_equal(test_hold_draw(store, drawer, opens_at_ms, TURN_MS, &draw), TL_DRAW_WAITS);
    test_join(store, "late", 1);
    test_send(store, "w", ++store->number, NULL);
    test_deliver(store);
    assert_int_equal(test_hold_draw(store, drawer, opens_at_ms, TURN_MS, &draw), TL_DRAW_WAITS);
    assert_true(test_apply_pending(store, 1, &counts, &err));
    while (test_hold_draw(store, drawer, opens_at_ms, TURN_MS, &draw) != TL_DRAW_OVER)
        continue;
    tl_drawer_free(&drawer);
    assert_drawn(store, opens_at_ms, 2);
    assert_true(test_waiting_place(store, "late") > test_waiting_place(store, "early1"));
    assert_true(test_waiting_place(store, "late") > draw_field(store, LAST));
}

/* ---- killed in the middle ---- */

/* The same visitors, with the process killed whenever it has numbered at least `least` more; 0:
 * never. */
static char *drawn_with_kills(void **state, int64_t opens_at_ms, size_t n, long long least)
{
    struct test_store *store = *state;
    struct tl_draw *draw = NULL;
    test_store_clean(state);
    (void)queue_opening_in(store, 600000);
    join_permuted(store, n, 1);
    open_at(store, opens_at_ms);
    struct tl_drawer *drawer = drawer_of(key_path);
    announce(store, drawer, opens_at_ms);
    enum tl_draw_state is = TL_DRAW_GOES_ON;
    long long killed_at = 0;
    while (is != TL_DRAW_OVER) {
        is = test_hold_draw(store, drawer, opens_at_ms, least > 0 ? 1 : TURN_MS, &draw);
        if (least > 0 && draw_field(store, DRAWN) >= killed_at + least) {
            killed_at = draw_field(store, DRAWN);
            tl_draw_free(&draw);
        }
    }
    tl_drawer_free(&drawer);
    assert_drawn(store, opens_at_ms, n);
    test_invariants(store->redis, &store->keys);
    return line(store, 1);
}

static void a_kill_in_the_middle_keeps_the_order(void **state)
{
    struct test_store *store = *state;
    int64_t opens_at_ms = test_redis_ms(store->redis);
    char *whole = drawn_with_kills(state, opens_at_ms, 6600, 0);
    for (long long least = 1; least < 6600; least += 1500) {
        char *cut = drawn_with_kills(state, opens_at_ms, 6600, least);
        assert_string_equal(cut, whole);
        free(cut);
    }
    free(whole);
}

/* Two admitters, of which one lost its lease and does not know it yet. */
static void two_at_once_do_no_harm(void **state)
{
    struct test_store *store = *state;
    (void)queue_opening_in(store, 3600000);
    struct tl_drawer *drawers[2] = {drawer_of(key_path), drawer_of(key_path)};
    struct tl_draw *draws[2] = {NULL, NULL};
    join_permuted(store, 2600, 1); /* however long that takes, it is before the opening */
    int64_t opens_at_ms = test_redis_ms(store->redis) + 300;
    open_at(store, opens_at_ms);
    announce(store, drawers[0], opens_at_ms);
    announce(store, drawers[1], opens_at_ms);
    wait_until(store, opens_at_ms);
    bool over = false;
    for (int turn = 0; !over; turn++)
        over = test_hold_draw(store, drawers[turn % 2], opens_at_ms, turn % 5 == 0 ? 20 : 1,
                              &draws[turn % 2]) == TL_DRAW_OVER;
    for (int i = 0; i < 2; i++) {
        tl_draw_free(&draws[i]);
        tl_drawer_free(&drawers[i]);
    }
    assert_drawn(store, opens_at_ms, 2600);
    test_invariants(store->redis, &store->keys);
}

/* The store comes back as another one, perhaps without steps: what is numbered then gets other
 * numbers than any that a lost step gave out, and the order is the same. */
static void another_incarnation_uses_other_numbers(void **state)
{
    struct test_store *store = *state;
    (void)queue_opening_in(store, 3600000);
    struct tl_drawer *drawer = drawer_of(key_path);
    struct tl_draw *draw = NULL;
    join_permuted(store, 9000, 1); /* however long that takes, it is before the opening */
    int64_t opens_at_ms = test_redis_ms(store->redis) + 300;
    open_at(store, opens_at_ms);
    announce(store, drawer, opens_at_ms);
    wait_until(store, opens_at_ms);
    for (int turn = 0; draw_field(store, DRAWN) == 0 && turn < 100; turn++)
        (void)test_hold_draw(store, drawer, opens_at_ms, 1, &draw);
    long long cut = draw_field(store, CUT), drawn = draw_field(store, DRAWN);
    assert_in_range(drawn, 1, 8999);
    uint64_t lost = (uint64_t)(draw_field(store, FIRST) + drawn);
    uint64_t now = (uint64_t)((double)(test_redis_ms(store->redis) - (int64_t)TL_SEQ_EPOCH_MS) *
                              TL_SEQ_PER_MS);
    test_redis_ask(store->redis, "HSET %s store another", store->keys.names[TL_KEY_STATE]);
    while (test_hold_draw(store, drawer, opens_at_ms, TURN_MS, &draw) != TL_DRAW_OVER)
        continue;
    tl_drawer_free(&drawer);
    assert_drawn(store, opens_at_ms, 9000);
    assert_int_equal(draw_field(store, CUT), cut);
    assert_int_equal(test_redis_ask(store->redis, "ZCOUNT %s %llu %llu",
                                    store->keys.names[TL_KEY_WAITING],
                                    (unsigned long long)tl_place_make(1, lost),
                                    (unsigned long long)tl_place_make(1, now - 1)),
                     0);
}

/* ---- places and tickets of before ---- */

static void a_place_of_before_finds_its_visitor(void **state)
{
    struct test_store *store = *state;
    (void)queue_opening_in(store, FAR_MS);
    join_permuted(store, 20, 1);
    long long before = test_waiting_place(store, "v4"), gone = test_waiting_place(store, "v5");
    test_command(store, TL_COMMAND_LEAVE, "v5", (tl_place)gone);
    test_batch(store);
    int64_t opens_at_ms = open_next(store);
    draw_all(store, opens_at_ms);
    long long after = test_waiting_place(store, "v4");
    assert_true(after > before);
    /* A RESTORE asks where the visitor stands now. */
    struct tl_command restore = {
        .kind = TL_COMMAND_RESTORE,
        .visitor = "v4",
        .visitor_length = 2,
        .numbers = {(uint64_t)before, (uint64_t)test_state(store, "generation")}};
    char expected[64];
    assert_int_equal(tl_batch_add(&store->writer, &restore), 0);
    restore.visitor = "v5";
    restore.numbers[0] = (uint64_t)gone;
    assert_int_equal(tl_batch_add(&store->writer, &restore), 1);
    test_batch(store);
    snprintf(expected, sizeof(expected), "0:1:%lld 1:3:%lld", after, gone);
    test_exceptions_are(store, expected);
    /* The place of another visitor of before is not this one's. */
    test_command(store, TL_COMMAND_LEAVE, "v4", (tl_place)after + 1);
    test_batch(store);
    assert_int_equal(test_waiting_place(store, "v4"), after);
    test_command(store, TL_COMMAND_LEAVE, "v4", (tl_place)before);
    test_batch(store);
    assert_int_equal(test_waiting_place(store, "v4"), -1);
    /* Who left and joins again does not stand where the old ticket says. */
    test_join(store, "v4", 1);
    test_batch(store);
    long long again = test_waiting_place(store, "v4");
    assert_true(again > draw_field(store, LAST));
    test_command(store, TL_COMMAND_LEAVE, "v4", (tl_place)before);
    test_batch(store);
    assert_int_equal(test_waiting_place(store, "v4"), again);
    test_invariants(store->redis, &store->keys);
}

/* ---- the hash ---- */

static void the_first_hash_stands(void **state)
{
    struct test_store *store = *state;
    int64_t opens_at_ms = queue_opening_in(store, 200);
    struct tl_drawer *first = drawer_of(key_path), *other = drawer_of(other_path);
    struct tl_draw *draw = NULL;
    enum tl_draw_state is;
    struct tl_error err = {0};
    (void)unlink(other_path);
    announce(store, first, opens_at_ms);
    announce(store, first, opens_at_ms);
    assert_int_equal(
        test_redis_ask(store->redis, "HEXISTS %s draw_seed", store->keys.names[TL_KEY_STATE]), 0);
    assert_false(tl_drawer_announce(other, test_held(store, 0), opens_at_ms, &err));
    assert_int_equal(err.kind, TL_ERR_INVALID);
    assert_non_null(strstr(err.text, "another secret"));
    wait_until(store, opens_at_ms);
    assert_false(
        tl_drawer_hold(other, test_held(store, 0), opens_at_ms, TURN_MS, &draw, &is, &err));
    assert_null(draw);
    while (test_hold_draw(store, first, opens_at_ms, TURN_MS, &draw) != TL_DRAW_OVER)
        continue;
    assert_int_equal(
        test_redis_ask(store->redis, "HEXISTS %s draw_seed", store->keys.names[TL_KEY_STATE]), 1);
    tl_drawer_free(&first);
    tl_drawer_free(&other);
}

static void nothing_is_drawn_too_early(void **state)
{
    struct test_store *store = *state;
    int64_t opens_at_ms = queue_opening_in(store, 600000);
    struct tl_drawer *drawer = drawer_of(key_path);
    struct tl_draw *draw = NULL;
    announce(store, drawer, opens_at_ms);
    assert_int_equal(test_hold_draw(store, drawer, opens_at_ms, TURN_MS, &draw), TL_DRAW_WAITS);
    assert_int_equal(test_hold_draw(store, drawer, opens_at_ms + 1, TURN_MS, &draw), TL_DRAW_OVER);
    tl_drawer_free(&drawer);
}

/* ---- many ---- */

/* Processor time of the server so far, in ms. */
static long long server_ms(struct test_store *store)
{
    long long ms = 0;
    struct tl_reply *reply = test_redis_call(store->redis, "INFO cpu");
    static const char *const names[] = {"used_cpu_sys:", "used_cpu_user:"};
    for (size_t i = 0; i < 2; i++) {
        const char *at = strstr(tl_reply_string(reply, NULL), names[i]);
        assert_non_null(at);
        ms += (long long)(strtod(at + strlen(names[i]), NULL) * 1000);
    }
    tl_reply_free(reply);
    return ms;
}

/* `DRAW_VISITORS=1000000 test_draw_hold` measures as many. */
static void many_are_drawn_in_bounded_steps(void **state)
{
    struct test_store *store = *state;
    const char *wanted = getenv("DRAW_VISITORS");
    size_t n = wanted != NULL ? (size_t)strtoull(wanted, NULL, 10) : 100000;
    int64_t longest_ms = 0;
    struct tl_drawer *drawer = drawer_of(key_path);
    struct tl_draw *draw = NULL;
    bool killed = false;
    (void)queue_opening_in(store, 3600000);
    test_join_many(store, "some-visitor-", n, 1);
    int64_t opens_at_ms = test_redis_ms(store->redis);
    open_at(store, opens_at_ms);
    announce(store, drawer, opens_at_ms);
    int64_t began_ms = tl_clock_ms();
    long long began_cpu_ms = server_ms(store);
    clock_t began = clock();
    for (enum tl_draw_state is = TL_DRAW_GOES_ON; is != TL_DRAW_OVER;) {
        int64_t turn_ms = tl_clock_ms();
        is = test_hold_draw(store, drawer, opens_at_ms, n > 100000 ? 100 : 1, &draw);
        turn_ms = tl_clock_ms() - turn_ms;
        longest_ms = turn_ms > longest_ms ? turn_ms : longest_ms;
        if (is == TL_DRAW_GOES_ON && !killed && draw_field(store, DRAWN) > (long long)n / 2) {
            tl_draw_free(&draw); /* in the middle */
            killed = true;
        }
    }
    print_message("%zu visitors were drawn in %lld ms with a kill in the middle, the longest turn "
                  "%lld ms; processor time: admitter %lld ms, Redis %lld ms\n",
                  n, (long long)(tl_clock_ms() - began_ms), (long long)longest_ms,
                  (long long)(clock() - began) * 1000 / CLOCKS_PER_SEC,
                  server_ms(store) - began_cpu_ms);
    assert_int_equal(draw_field(store, DRAWN), n);
    assert_int_equal(test_state(store, "waiting"), n);
    tl_drawer_free(&drawer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(arrival_does_not_matter, test_store_clean),
        cmocka_unit_test_setup(joining_again_changes_nothing, test_store_clean),
        cmocka_unit_test_setup(nobody_is_admitted_before_the_draw, test_store_clean),
        cmocka_unit_test_setup(the_late_stand_behind, test_store_clean),
        cmocka_unit_test_setup(a_join_before_the_opening_takes_part, test_store_clean),
        cmocka_unit_test_setup(a_kill_in_the_middle_keeps_the_order, test_store_clean),
        cmocka_unit_test_setup(two_at_once_do_no_harm, test_store_clean),
        cmocka_unit_test_setup(another_incarnation_uses_other_numbers, test_store_clean),
        cmocka_unit_test_setup(a_place_of_before_finds_its_visitor, test_store_clean),
        cmocka_unit_test_setup(the_first_hash_stands, test_store_clean),
        cmocka_unit_test_setup(nothing_is_drawn_too_early, test_store_clean),
        cmocka_unit_test_setup(many_are_drawn_in_bounded_steps, test_store_clean),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
