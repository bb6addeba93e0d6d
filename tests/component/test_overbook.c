/* SPDX-License-Identifier: Apache-2.0 */
/* Overbooking: who is called above the capacity, who may claim, and who is held in front. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/store/queue.h"
#include "common/store/reply.h"
#include "ingest.h"
#include "tests/unit/random.h"

/* What the state counts, as in line/overbook.lua; n -1: nothing is counted. */
struct called {
    long long since, n, claims, noshows;
};

/* Reads `n` numbers with ':' between them. */
static void numbers_of(const char *text, size_t n, long long *numbers)
{
    char *end = NULL;
    for (size_t i = 0; i < n; i++, text = end + 1) {
        numbers[i] = strtoll(text, &end, 10);
        assert_true(end != text && *end == (i + 1 < n ? ':' : '\0'));
    }
}

static struct called called_of(struct test_store *store)
{
    struct called called = {.n = -1};
    long long numbers[4];
    struct tl_reply *reply = test_redis_call(store->redis, "HGET tl:{q}:state called");
    const char *text = tl_reply_type(reply) == TL_REPLY_STRING ? tl_reply_string(reply, NULL) : "";
    if (*text != '\0') {
        numbers_of(text, 4, numbers);
        called = (struct called){numbers[0], numbers[1], numbers[2], numbers[3]};
    }
    tl_reply_free(reply);
    return called;
}

/* Sessions that are claimed, counting those from before `since` as the functions do; *unclaimed:
 * the others. */
static long long claimed_sessions(struct test_store *store, long long since, long long *unclaimed)
{
    long long claimed = 0;
    struct tl_reply *reply = test_redis_call(store->redis, "HVALS tl:{q}:sessions");
    *unclaimed = 0;
    for (size_t i = 0; i < tl_reply_count(reply); i++) {
        const char *text = tl_reply_string(tl_reply_at(reply, i), NULL);
        long long session[3]; /* place, when it was admitted, claimed */
        numbers_of(text, 3, session);
        if (session[2] == 1 || session[1] < since)
            claimed++;
        else
            ++*unclaimed;
    }
    tl_reply_free(reply);
    return claimed;
}

static void check(struct test_store *store, long long capacity, long long overbook)
{
    struct called called = called_of(store);
    long long unclaimed, claimed = claimed_sessions(store, called.since, &unclaimed);
    test_invariants(store->redis, &store->keys);
    if (called.n >= 0)
        assert_int_equal(called.n, unclaimed);
    if (claimed > capacity)
        fail_msg("%lld have claimed, the capacity is %lld", claimed, capacity);
    if (claimed + unclaimed > capacity + overbook)
        fail_msg("%lld are active, at most %lld may be", claimed + unclaimed, capacity + overbook);
}

static void claim(struct test_store *store, long long seq)
{
    char visitor[24];
    snprintf(visitor, sizeof(visitor), "v%lld", seq);
    test_command(store, TL_COMMAND_RENEW, visitor, (uint64_t)seq);
    test_batch(store);
}

static void command(struct test_store *store, enum tl_command_kind kind, long long seq)
{
    char visitor[24];
    snprintf(visitor, sizeof(visitor), "v%lld", seq);
    test_command(store, kind, visitor, (uint64_t)seq);
    test_batch(store);
}

/* "1": claimed; "0": not; "": no session. */
static void assert_claim(struct test_store *store, long long seq, const char *expected)
{
    char words[64];
    snprintf(words, sizeof(words), "HGET tl:{q}:sessions v%lld", seq);
    struct tl_reply *reply = test_redis_call(store->redis, words);
    const char *text = tl_reply_type(reply) == TL_REPLY_STRING ? tl_reply_string(reply, NULL) : "";
    const char *last = strrchr(text, ':');
    assert_string_equal(last != NULL ? last + 1 : "", expected);
    tl_reply_free(reply);
}

/* n of those called never came: their time is over. */
static void expire(struct test_store *store, long long from, long long to)
{
    for (long long seq = from; seq <= to; seq++)
        test_redis_ask(store->redis, "ZADD tl:{q}:active XX 1 v%lld", seq);
    tl_reply_free(test_function(store->redis, TL_FN_EXPIRE, &store->keys, "1000 1000", NULL));
}

/* A queue that has learned: of those called before, so many came and so many did not. */
static void learned(struct test_store *store, const char *settings, int claims, int noshows)
{
    test_store_queue(store, settings);
    assert_int_equal(test_admit(store, 100), 0); /* begins to count */
    struct called called = called_of(store);
    assert_int_equal(called.n, 0);
    test_redis_ask(store->redis, "HSET tl:{q}:state called %lld:0:%d:%d", called.since - 1, claims,
                   noshows);
}

static void without_overbooking_nothing_is_counted(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only capacity=3");
    test_join_many(store, "v", 5, 0);
    assert_int_equal(test_admit(store, 10), 3);
    claim(store, 1);
    command(store, TL_COMMAND_COMPLETE, 1);
    expire(store, 2, 2);
    assert_int_equal(test_admit(store, 10), 2);
    assert_int_equal(test_redis_ask(store->redis, "HEXISTS tl:{q}:state called"), 0);
    assert_int_equal(test_redis_ask(store->redis, "EXISTS tl:{q}:held"), 0);
}

static void nobody_is_called_on_top_before_the_share_is_known(void **state)
{
    struct test_store *store = *state;
    learned(store, "lanes=only capacity=10 overbook=5", 20, 20);
    test_join_many(store, "v", 30, 0);
    assert_int_equal(test_admit(store, 100), 10);
    assert_int_equal(called_of(store).n, 10);
    check(store, 10, 5);
}

static void as_many_more_are_called_as_are_expected_not_to_come(void **state)
{
    struct test_store *store = *state;
    static const struct {
        int claims, noshows;
        long long admitted;
    } cases[] = {{500, 0, 100}, {500, 500, 150}, {900, 100, 109}, {50, 50, 150}, {40, 11, 113}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        test_store_clean(state);
        learned(store, "lanes=only capacity=100 overbook=50", cases[i].claims, cases[i].noshows);
        test_join_many(store, "v", 300, 0);
        long long n = test_admit(store, 1000);
        if (n != cases[i].admitted)
            fail_msg("case %zu: %lld were called, not %lld", i, n, cases[i].admitted);
        assert_int_equal(test_state(store, "admit_capacity"), 150);
        check(store, 100, 50);
    }
}

static void a_claim_beyond_the_capacity_is_held_in_front(void **state)
{
    struct test_store *store = *state;
    learned(store, "lanes=only capacity=2 overbook=2", 400, 600);
    test_join_many(store, "v", 6, 0);
    assert_int_equal(test_admit(store, 100), 4);
    claim(store, 4);
    claim(store, 2);
    test_exceptions_are(store, "");
    claim(store, 3);
    test_exceptions_are(store, "0:1:3");
    claim(store, 1);
    test_exceptions_are(store, "0:1:1");
    claim(store, 3); /* asks again, and stays where it is */
    test_exceptions_are(store, "0:1:3");
    check(store, 2, 2);
    assert_int_equal(test_admit(store, 100), 0);
    command(store, TL_COMMAND_COMPLETE, 4);
    claim(store, 3); /* a session has ended, but 1 stands before 3 */
    test_exceptions_are(store, "0:1:3");
    long long now_ms = test_redis_ms(store->redis);
    (void)test_admit(store, 100);
    assert_claim(store, 1, "1");
    assert_claim(store, 3, "0");
    assert_true(test_deadline(store, "v1") >= now_ms + 590000); /* a whole session from now */
    check(store, 2, 2);
    command(store, TL_COMMAND_LEAVE, 2);
    (void)test_admit(store, 100);
    assert_claim(store, 3, "1");
    claim(store, 3);
    test_exceptions_are(store, "");
    check(store, 2, 2);
    assert_int_equal(test_redis_ask(store->redis, "EXISTS tl:{q}:held"), 0);
}

static void the_event_tells_of_a_session_claimed_for_somebody(void **state)
{
    struct test_store *store = *state;
    struct test_entry last;
    learned(store, "lanes=only capacity=1 overbook=1", 400, 600);
    test_join_many(store, "v", 2, 0);
    assert_int_equal(test_admit(store, 100), 2);
    claim(store, 1);
    claim(store, 2);
    command(store, TL_COMMAND_COMPLETE, 1);
    assert_int_equal(test_admit(store, 100), 0);
    test_entry_read(store, &last);
    const struct tl_event *renewed = test_event(&last, TL_EVENT_RENEWED, 0);
    assert_non_null(renewed);
    test_runs_are(renewed, "2+1");
    assert_int_equal(renewed->deadline_ms, test_deadline(store, "v2"));
    test_entry_free(&last);
}

static void who_is_held_and_goes_away_is_forgotten(void **state)
{
    struct test_store *store = *state;
    learned(store, "lanes=only capacity=1 overbook=1", 400, 600);
    test_join_many(store, "v", 3, 0);
    assert_int_equal(test_admit(store, 100), 2);
    claim(store, 1);
    claim(store, 2);
    long long noshows = called_of(store).noshows;
    expire(store, 2, 2);
    assert_int_equal(test_redis_ask(store->redis, "EXISTS tl:{q}:held"), 0);
    assert_int_equal(called_of(store).n, 0);
    assert_int_equal(called_of(store).noshows, noshows + 1);
    check(store, 1, 1);
}

static void shares_are_learned_from_claims_and_no_shows(void **state)
{
    struct test_store *store = *state;
    learned(store, "lanes=only capacity=10 overbook=5", 0, 0);
    test_join_many(store, "v", 10, 0);
    assert_int_equal(test_admit(store, 100), 10);
    claim(store, 1);
    claim(store, 1); /* the same one */
    command(store, TL_COMMAND_COMPLETE, 2);
    command(store, TL_COMMAND_LEAVE, 3);
    expire(store, 1, 1); /* it came */
    expire(store, 4, 5);
    struct called called = called_of(store);
    assert_int_equal(called.n, 5);
    assert_int_equal(called.claims, 2);
    assert_int_equal(called.noshows, 2);
    test_redis_ask(store->redis, "HSET tl:{q}:state called %lld:5:1500:500", called.since);
    claim(store, 6);
    called = called_of(store);
    assert_int_equal(called.claims, 750);
    assert_int_equal(called.noshows, 250);
}

/* Turned on while sessions last: those are not looked at, and count as claimed. */
static void it_begins_and_ends_in_the_middle_of_a_sale(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    test_store_queue(store, "lanes=only capacity=4");
    test_join_many(store, "v", 20, 0);
    assert_int_equal(test_admit(store, 100), 4);
    claim(store, 1);
    assert_true(test_queue_set(store->redis, &store->keys, "overbook", "4", &err));
    assert_int_equal(test_admit(store, 100), 0);
    struct called called = called_of(store);
    assert_int_equal(called.n, 0);
    test_redis_ask(store->redis, "HSET tl:{q}:state called %lld:0:400:600", called.since);
    while (test_redis_ms(store->redis) < called.since)
        ;
    assert_int_equal(test_admit(store, 100), 0); /* all four count as claimed */
    claim(store, 2);
    test_exceptions_are(store, ""); /* so this one may come */
    command(store, TL_COMMAND_COMPLETE, 1);
    command(store, TL_COMMAND_LEAVE, 3);
    assert_int_equal(test_admit(store, 100), 4);
    check(store, 4, 4);
    assert_true(test_queue_set(store->redis, &store->keys, "overbook", "0", &err));
    (void)test_admit(store, 100);
    assert_true(called_of(store).n >= 0); /* six are active: claims are still looked at */
    claim(store, 5);
    claim(store, 6);
    claim(store, 7);
    test_exceptions_are(store, "0:1:7");
    command(store, TL_COMMAND_COMPLETE, 2);
    (void)test_admit(store, 100);
    assert_claim(store, 7, "1");
    command(store, TL_COMMAND_LEAVE, 8);
    (void)test_admit(store, 100);
    assert_int_equal(called_of(store).n, -1);
    check(store, 4, 0);
}

/* Counting goes on as long as a visitor is held, also when all who are active fit again. */
static void who_is_held_when_it_ends_gets_the_next_session(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    learned(store, "lanes=only capacity=1 overbook=1", 400, 600);
    test_join_many(store, "v", 2, 0);
    assert_int_equal(test_admit(store, 100), 2);
    claim(store, 1);
    claim(store, 2);
    assert_claim(store, 2, "0");
    assert_true(test_queue_set(store->redis, &store->keys, "overbook", "0", &err));
    command(store, TL_COMMAND_COMPLETE, 1);
    (void)test_admit(store, 100);
    assert_claim(store, 2, "1");
    assert_int_equal(test_redis_ask(store->redis, "EXISTS tl:{q}:held"), 0);
    (void)test_admit(store, 100);
    assert_int_equal(called_of(store).n, -1);
    check(store, 1, 0);
}

static void damage_begins_the_counting_anew(void **state)
{
    struct test_store *store = *state;
    learned(store, "lanes=only capacity=4 overbook=4", 400, 600);
    test_join_many(store, "v", 20, 0);
    assert_int_equal(test_admit(store, 100), 8);
    test_redis_ask(store->redis, "HSET tl:{q}:sessions v1 rubbish");
    expire(store, 1, 1);
    assert_int_equal(called_of(store).n, -1);
    assert_int_equal(test_admit(store, 100), 0);
    assert_int_equal(called_of(store).n, 0);
    test_redis_ask(store->redis, "HSET tl:{q}:state called nonsense");
    assert_int_equal(test_admit(store, 100), 0);
    assert_int_equal(called_of(store).n, 0);
}

/* ---- whatever happens, in any order ---- */

/* One of those who are active; or 0. */
static long long random_active(struct test_store *store, uint64_t *random)
{
    long long active = test_state(store, "active");
    char words[64];
    if (active == 0)
        return 0;
    long long rank = (long long)random_below(random, (uint64_t)active);
    snprintf(words, sizeof(words), "ZRANGE tl:{q}:active %lld %lld", rank, rank);
    struct tl_reply *reply = test_redis_call(store->redis, words);
    long long seq = strtoll(tl_reply_string(tl_reply_at(reply, 0), NULL) + 1, NULL, 10);
    tl_reply_free(reply);
    return seq;
}

static void random_step(struct test_store *store, uint64_t *random, long long *joined)
{
    long long seq = 1 + (long long)random_below(random, (uint64_t)*joined);
    long long back = *joined > 40 ? *joined - 40 : 0;
    seq = seq > back ? seq : back + 1 + seq % 40;
    switch (random_below(random, 16)) {
    case 0: {
        char name[24];
        for (int i = 0; i < 3; i++) {
            snprintf(name, sizeof(name), "v%lld", ++*joined);
            test_join(store, name, 0);
        }
        test_batch(store);
        break;
    }
    case 1:
        command(store, TL_COMMAND_COMPLETE, seq);
        break;
    case 2:
        command(store, TL_COMMAND_LEAVE, seq);
        break;
    case 3:
        expire(store, seq, seq + (long long)random_below(random, 3));
        break;
    case 4: /* three admitters, of which none knows of the others */
        for (int i = 0; i < 3; i++)
            (void)test_admit(store, 1 + (unsigned)random_below(random, 5));
        break;
    default:
        seq = random_active(store, random);
        if (seq != 0)
            claim(store, seq);
        break;
    }
}

static void the_claimed_never_exceed_the_capacity(void **state)
{
    uint64_t first = random_seed("the_claimed_never_exceed_the_capacity");
    for (uint64_t seed = first; seed < first + 8; seed++) {
        struct test_store *store = *state;
        uint64_t random = seed;
        long long joined = 12;
        test_store_clean(state);
        learned(store, "lanes=only capacity=6 overbook=4", 400, 600);
        test_join_many(store, "v", 12, 0);
        /* It begins where the rules matter: more are called than there is capacity, and come. */
        assert_int_equal(test_admit(store, 100), 10);
        for (long long seq = 1; seq <= 8; seq++)
            claim(store, seq);
        assert_int_equal(test_redis_ask(store->redis, "ZCARD tl:{q}:held"), 2);
        for (int step = 0; step < 400; step++) {
            random_step(store, &random, &joined);
            struct called called = called_of(store);
            if (step % 10 == 0 && called.n >= 0) /* whatever was learned meanwhile */
                test_redis_ask(store->redis, "HSET tl:{q}:state called %lld:%lld:400:600",
                               called.since, called.n);
            check(store, 6, 4);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(without_overbooking_nothing_is_counted, test_store_clean),
        cmocka_unit_test_setup(nobody_is_called_on_top_before_the_share_is_known, test_store_clean),
        cmocka_unit_test_setup(as_many_more_are_called_as_are_expected_not_to_come,
                               test_store_clean),
        cmocka_unit_test_setup(a_claim_beyond_the_capacity_is_held_in_front, test_store_clean),
        cmocka_unit_test_setup(the_event_tells_of_a_session_claimed_for_somebody, test_store_clean),
        cmocka_unit_test_setup(who_is_held_and_goes_away_is_forgotten, test_store_clean),
        cmocka_unit_test_setup(shares_are_learned_from_claims_and_no_shows, test_store_clean),
        cmocka_unit_test_setup(it_begins_and_ends_in_the_middle_of_a_sale, test_store_clean),
        cmocka_unit_test_setup(who_is_held_when_it_ends_gets_the_next_session, test_store_clean),
        cmocka_unit_test_setup(damage_begins_the_counting_anew, test_store_clean),
        cmocka_unit_test_setup(the_claimed_never_exceed_the_capacity, test_store_clean),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close);
}
