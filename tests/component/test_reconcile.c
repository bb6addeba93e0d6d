/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of archiver/reconcile.lua: what Redis has, a portion at a time, as of one event. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "archiver/portion.h"
#include "common/store/library.h"
#include "common/store/reply.h"
#include "ingest.h"

/* Nothing was written, and PostgreSQL was not asked which event it has. */
#define ARCHIVE "1000 1000 100000 0-0 0 0 0 - 0 0"

static struct tl_reply *line(struct test_store *store, uint64_t past, uint64_t last, unsigned most)
{
    char words[80];
    snprintf(words, sizeof(words), "%" PRIu64 " %" PRIu64 " %u", past, last, most);
    return test_function(store->redis, TL_FN_RECONCILE_LINE, &store->keys, words, NULL);
}

static void archived_queue(struct test_store *store, const char *settings)
{
    test_store_queue(store, settings);
    for (int i = 0; i < 3; i++) /* the last one has told that there is nobody */
        tl_reply_free(test_function(store->redis, TL_FN_ARCHIVE, &store->keys, ARCHIVE, NULL));
}

static void rows_are(const struct tl_reply *reply, const char *expected, uint64_t first)
{
    char text[400] = "";
    struct tl_portion portion;
    struct tl_error err;
    assert_true(
        tl_portion_read(&portion, tl_reply_at(reply, TL_RECONCILE_ROWS), false, NULL, &err));
    for (size_t i = 0; i < portion.n; i++) {
        size_t length = strlen(text);
        snprintf(text + length, sizeof(text) - length, "%s:%u:%" PRIu64 " ", portion.of[i].name,
                 tl_place_lane(portion.of[i].place), tl_place_seq(portion.of[i].place) - first);
    }
    assert_string_equal(text, expected);
    tl_portion_free(&portion);
}

static void the_line_comes_in_ranges(void **state)
{
    struct test_store *store = *state;
    archived_queue(store, "lanes=vip,normal");
    const uint64_t first = (uint64_t)test_state(store, "seq");
    test_join_many(store, "v", 4, 1);
    test_join_many(store, "p", 2, 0);
    struct tl_reply *reply = line(store, 0, TL_PLACE_SEQ_MAX, 100);
    assert_int_equal(tl_reply_number(reply, TL_RECONCILE_IS_WHOLE), 1);
    assert_int_equal(tl_reply_number(reply, TL_RECONCILE_EVENT), test_state(store, "event"));
    assert_int_equal(tl_reply_number(reply, TL_RECONCILE_NOTED), test_state(store, "event"));
    assert_int_equal(tl_reply_number(reply, TL_RECONCILE_NEXT), TL_PLACE_SEQ_MAX);
    rows_are(reply, "v1:1:1 v2:1:2 v3:1:3 v4:1:4 p1:0:5 p2:0:6 ", first);
    tl_reply_free(reply);
    /* One that is full ends the range of all lanes before its last place, where more may stand. */
    reply = line(store, 0, TL_PLACE_SEQ_MAX, 3);
    assert_int_equal(tl_reply_number(reply, TL_RECONCILE_NEXT), first + 2);
    rows_are(reply, "v1:1:1 v2:1:2 ", first);
    tl_reply_free(reply);
    reply = line(store, first + 2, first + 5, 3);
    assert_int_equal(tl_reply_number(reply, TL_RECONCILE_NEXT), first + 5);
    rows_are(reply, "v3:1:3 v4:1:4 p1:0:5 ", first);
    tl_reply_free(reply);
    /* It goes on, however many stand at one place. */
    test_redis_ask(store->redis, "ZADD tl:{q}:waiting %" PRIu64 " a %" PRIu64 " b %" PRIu64 " c",
                   first + 7, first + 7, first + 7);
    reply = line(store, first + 6, TL_PLACE_SEQ_MAX, 2);
    assert_int_equal(tl_reply_number(reply, TL_RECONCILE_NEXT), first + 7);
    rows_are(reply, "a:0:7 b:0:7 ", first);
    tl_reply_free(reply);
}

static void sessions_have_a_place_and_a_deadline(void **state)
{
    struct test_store *store = *state;
    archived_queue(store, "capacity=2");
    test_join_many(store, "v", 3, 0);
    assert_int_equal(test_admit(store, 10), 2);
    struct tl_reply *reply =
        test_function(store->redis, TL_FN_RECONCILE_SESSIONS, &store->keys, "0 500", NULL);
    struct tl_portion portion;
    struct tl_error err;
    assert_string_equal(tl_reply_text(reply, TL_RECONCILE_NEXT), "0");
    assert_true(tl_portion_read(&portion, tl_reply_at(reply, TL_RECONCILE_ROWS), true, NULL, &err));
    assert_int_equal(portion.n, 2);
    assert_string_equal(portion.of[0].name, "v1");
    assert_int_equal(portion.of[1].deadline, test_deadline(store, "v2"));
    tl_portion_free(&portion);
    tl_reply_free(reply);
}

static void is_whole(struct test_store *store, uint64_t expected)
{
    struct tl_reply *reply = line(store, 0, TL_PLACE_SEQ_MAX, 100);
    assert_int_equal(tl_reply_number(reply, TL_RECONCILE_IS_WHOLE), expected);
    assert_int_equal(tl_reply_count(tl_reply_at(reply, TL_RECONCILE_ROWS)),
                     expected == 1 ? TL_LANES_MAX : 0);
    tl_reply_free(reply);
}

static void ended_are(struct test_store *store, const char *expected)
{
    char text[200] = "";
    struct tl_reply *reply =
        test_function(store->redis, TL_FN_RECONCILE_SESSIONS, &store->keys, "0 500", NULL);
    const struct tl_reply *ended = tl_reply_at(reply, TL_RECONCILE_ENDED);
    for (size_t i = 2; i < tl_reply_count(ended); i++) {
        size_t length = strlen(text);
        snprintf(text + length, sizeof(text) - length, "%s ", tl_reply_text(ended, i));
    }
    assert_string_equal(text, expected);
    tl_reply_free(reply);
}

/* By their reasons, since all were told. */
static void ends_are_counted_since_the_last_gap(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "capacity=2");
    test_join_many(store, "v", 4, 0);
    test_redis_ask(store->redis, "HINCRBY tl:{q}:state expired 7");
    ended_are(store, "");
    for (int i = 0; i < 3; i++)
        tl_reply_free(test_function(store->redis, TL_FN_ARCHIVE, &store->keys, ARCHIVE, NULL));
    ended_are(store, "0 0 0 0 0 0 ");
    test_redis_ask(store->redis, "HINCRBY tl:{q}:state expired 5");
    test_redis_ask(store->redis, "HINCRBY tl:{q}:state unclaimed 2");
    test_redis_ask(store->redis, "HINCRBY tl:{q}:state left 1");
    ended_are(store, "0 1 3 2 0 0 ");
    /* One that is written again begins another count. */
    test_redis_ask(store->redis, "HSET tl:{q}:state absent many");
    ended_are(store, "");
    tl_reply_free(test_function(store->redis, TL_FN_MEND, &store->keys, "memory 1000", NULL));
    for (int i = 0; i < 3; i++)
        tl_reply_free(test_function(store->redis, TL_FN_ARCHIVE, &store->keys, ARCHIVE, NULL));
    ended_are(store, "0 0 0 0 0 0 ");
}

/* While the record lacks something nothing can be compared. */
static void a_record_with_a_gap_is_not_compared(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "");
    test_join(store, "anna", 0);
    test_batch(store);
    is_whole(store, 0);
    for (int i = 0; i < 3; i++)
        tl_reply_free(test_function(store->redis, TL_FN_ARCHIVE, &store->keys, ARCHIVE, NULL));
    is_whole(store, 1);
    test_redis_ask(store->redis, "HSET tl:{q}:state standing x");
    is_whole(store, 0);
    test_redis_ask(store->redis, "HDEL tl:{q}:state standing");
    test_redis_ask(store->redis, "XADD tl:{q}:record * d other");
    is_whole(store, 0);
    test_redis_ask(store->redis, "DEL tl:{q}:record");
    is_whole(store, 1);
}

/* Names are compared as texts of PostgreSQL, whatever Redis holds. */
static void ids_that_cannot_be_are_made_readable(void **state)
{
    struct test_store *store = *state;
    struct tl_portion portion;
    struct tl_portion_texts texts;
    struct tl_error err;
    char sum[TL_PORTION_SUM_SIZE];
    archived_queue(store, "");
    test_redis_ask(store->redis, "ZADD tl:{q}:waiting 2 a\377b 1 %070d", 1);
    struct tl_reply *reply = line(store, 0, TL_PLACE_SEQ_MAX, 100);
    assert_true(
        tl_portion_read(&portion, tl_reply_at(reply, TL_RECONCILE_ROWS), false, NULL, &err));
    assert_int_equal(strlen(portion.of[0].name), TL_VISITOR_MAX);
    assert_string_equal(portion.of[1].name, "a?b");
    assert_true(tl_portion_texts(&portion, &texts, &err));
    assert_string_equal(texts.seqs.data, "{1,2}");
    assert_string_equal(texts.lanes.data, "{0,0}");
    assert_string_equal(texts.deadlines.data, "{NULL,NULL}");
    tl_portion_texts_free(&texts);
    tl_portion_free(&portion);
    tl_reply_free(reply);
    assert_true(tl_portion_sum(&(struct tl_portion){0}, sum, &err));
    assert_string_equal(sum, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_line_comes_in_ranges, test_store_clean),
        cmocka_unit_test_setup(sessions_have_a_place_and_a_deadline, test_store_clean),
        cmocka_unit_test_setup(ends_are_counted_since_the_last_gap, test_store_clean),
        cmocka_unit_test_setup(a_record_with_a_gap_is_not_compared, test_store_clean),
        cmocka_unit_test_setup(ids_that_cannot_be_are_made_readable, test_store_clean),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close);
}
