/* SPDX-License-Identifier: Apache-2.0 */
/* Events and runs: every kind is decoded, and invalid ones are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/wire/events.h"
#include "tests/unit/wire/pack.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool decode(const char *text, struct tl_event_entry *entry, struct packed *buffer,
                   struct tl_error *err)
{
    pack_text(buffer, text);
    return tl_events_decode(buffer->data, buffer->size, entry, err);
}

static void every_kind_is_read(void **state)
{
    (void)state;
    struct tl_event_entry entry;
    struct tl_error err = {0};
    struct packed buffer;
    if (!decode("[1,12,1700000000000000,30,4,["
                "[1,\"worker.1\",99,41,[[0,1,17,0],[3,2,5,1700000001000],[999,3,0,0]]],"
                "[2,[41,2,1,1]],[3,[7,1],1700000002000],[4,[9,3],2],[5,[1,1,281474976710656,2],1],"
                "[6,5,1700000003000],[7],[8,\"Hello\"],[9,6,1700000004000],[10,6,7]]]",
                &entry, &buffer, &err))
        fail_msg("%s", err.text);
    assert_int_equal(entry.number, 12);
    assert_int_equal(entry.generation, 1700000000000000);
    assert_int_equal(entry.waiting, 30);
    assert_int_equal(entry.active, 4);
    assert_int_equal(entry.n_events, 10);
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(entry.events[i].kind, i + 1);
    const struct tl_event *event = entry.events;
    assert_string_equal(event[0].worker, "worker.1");
    assert_int_equal(event[0].batch, 99);
    assert_int_equal(event[0].first_seq, 41);
    assert_int_equal(event[0].n_exceptions, 3);
    assert_int_equal(event[0].exceptions[1].index, 3);
    assert_int_equal(event[0].exceptions[1].outcome, TL_OUTCOME_ACTIVE);
    assert_int_equal(event[0].exceptions[1].place, 5);
    assert_int_equal(event[0].exceptions[1].deadline_ms, 1700000001000);
    assert_int_equal(event[1].places.n, 2);
    assert_int_equal(event[1].places.runs[0].first, 41);
    assert_int_equal(event[1].places.runs[0].count, 2);
    assert_int_equal(event[1].places.runs[1].first, 44); /* one is left out after 42 */
    assert_int_equal(event[1].places.runs[1].count, 1);
    assert_int_equal(event[2].deadline_ms, 1700000002000);
    assert_int_equal(event[3].reason, TL_REASON_LEFT);
    assert_int_equal(event[4].reason, TL_REASON_COMPLETED);
    assert_int_equal(event[4].places.runs[1].first, tl_place_make(1, 2));
    assert_int_equal(event[5].places.n, 1);
    assert_int_equal(event[5].places.runs[0].first, 5);
    assert_int_equal(event[5].places.runs[0].count, 1);
    assert_int_equal(event[5].deadline_ms, 1700000003000);
    assert_int_equal(event[7].text_length, 5);
    assert_memory_equal(event[7].text, "Hello", 5);
    assert_int_equal(event[8].kind, TL_EVENT_EXTENDED);
    assert_int_equal(event[8].places.runs[0].first, 6);
    assert_int_equal(event[8].deadline_ms, 1700000004000);
    assert_int_equal(event[9].places.runs[0].first, 6);
    assert_int_equal(event[9].serial, 7);
    tl_events_free(&entry);
    tl_events_free(&entry); /* once is enough, twice does no harm */
    pack_free(&buffer);
}

static void the_limits_themselves_are_taken(void **state)
{
    static const char *const good[] = {
        "[1,0,0,0,0,[]]",
        "[1,1,1,1,1,[[4,[1,1],7],[2,[281474976710657,1]]]]", /* a move */
        "[1,18446744073709551615,18446744073709551615,1,1,[]]",
        "[1,1,1,1,1,[[8,\"\"],[2,[]],[1,\"w\",9007199254740991,281474976710655,[]]]]",
        "[1,1,1,1,1,[[1,\"w\",1,1,[[999,3,4503599627370495,9007199254740992]]]]]",
        "[1,1,1,1,1,[[3,[4503599627370494,1],9007199254740992]]]",
        "[1,1,1,1,1,[[4,[1,1],1],[4,[2,1],5],[5,[3,1],6]]]",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        struct tl_event_entry entry;
        struct tl_error err = {0};
        struct packed buffer;
        if (!decode(good[i], &entry, &buffer, &err))
            fail_msg("%s: %s", good[i], err.text);
        tl_events_free(&entry);
        pack_free(&buffer);
    }
}

static const struct {
    const char *text, *says;
} refused[] = {
    {"7", "array"},
    {"[1,1,1,1,1]", "5 fields"},
    {"[1,1,1,1,1,[],1]", "7 fields"},
    {"[2,1,1,1,1,[]]", "version 2"},
    {"[1,\"1\",1,1,1,[]]", "whole number"},
    {"[1,1,1,1,-1,[]]", "not the type"},
    {"[1,1,1,1,1,1]", "array"},
    {"[1,1,1,1,1,[1]]", "event 0"},
    {"[1,1,1,1,1,[[]]]", "event 0"},
    {"[1,1,1,1,1,[[7],[0]]]", "event 1: event 0 is not one"},
    {"[1,1,1,1,1,[[11]]]", "event 11 is not one"},
    {"[1,1,1,1,1,[[7,1]]]", "fields; expected"},
    {"[1,1,1,1,1,[[8,\"x\",1]]]", "fields; expected"},
    {"[1,1,1,1,1,[[2,[1,1],1]]]", "fields; expected"},
    {"[1,1,1,1,1,[[3,[1,1],1,1]]]", "fields; expected"},
    {"[1,1,1,1,1,[[6,1,1,1]]]", "fields; expected"},
    {"[1,1,1,1,1,[[1,\"w\",1,1,[],1]]]", "6 fields"},
    {"[1,1,1,1,1,[[1,\"w\",1,1]]]", "4 fields"},
    {"[1,1,1,1,1,[[1,\"\",1,1,[]]]]", "name"},
    {"[1,1,1,1,1,[[1,\"w\",1,281474976710656,[]]]]", "above its limit"},
    {"[1,1,1,1,1,[[1,\"w\",1,1,[[0,1,1]]]]]", "3 fields"},
    {"[1,1,1,1,1,[[1,\"w\",1,1,[1]]]]", "array"},
    {"[1,1,1,1,1,[[1,\"w\",1,1,[[1000,1,1,1]]]]]", "above its limit"},
    {"[1,1,1,1,1,[[1,\"w\",1,1,[[0,6,1,1]]]]]", "above its limit"},
    {"[1,1,1,1,1,[[1,\"w\",1,1,[[0,1,4503599627370496,1]]]]]", "above its limit"},
    {"[1,1,1,1,1,[[1,\"w\",1,1,[[0,1,1,9007199254740993]]]]]", "above its limit"},
    {"[1,1,1,1,1,[[2]]]", "1 fields"},
    {"[1,1,1,1,1,[[2,5]]]", "array"},
    {"[1,1,1,1,1,[[2,[1]]]]", "pairs"},
    {"[1,1,1,1,1,[[2,[0,1]]]]", "out of bounds"},
    {"[1,1,1,1,1,[[2,[1,0]]]]", "out of bounds"},
    {"[1,1,1,1,1,[[2,[1,1,0,1]]]]", "out of bounds"},
    {"[1,1,1,1,1,[[2,[1,4503599627370496]]]]", "out of bounds"},
    {"[1,1,1,1,1,[[2,[4503599627370495,1]]]]", "out of bounds"},
    {"[1,1,1,1,1,[[2,[1,4503599627370400,200,1]]]]", "out of bounds"},
    {"[1,1,1,1,1,[[2,[18446744073709551615,1]]]]", "out of bounds"},
    {"[1,1,1,1,1,[[2,[1,18446744073709551615]]]]", "out of bounds"},
    {"[1,1,1,1,1,[[2,[1,\"1\"]]]]", "whole number"},
    {"[1,1,1,1,1,[[2,[\"1\",1]]]]", "whole number"},
    {"[1,1,1,1,1,[[3,[1,1]]]]", "2 fields"},
    {"[1,1,1,1,1,[[3,[1,1],9007199254740993]]]", "above its limit"},
    {"[1,1,1,1,1,[[4,[1,1]]]]", "2 fields"},
    {"[1,1,1,1,1,[[4,[1,1],0]]]", "reason 0"},
    {"[1,1,1,1,1,[[5,[1,1],7]]]", "above its limit"}, /* a session is not moved */
    {"[1,1,1,1,1,[[4,[1,1],8]]]", "above its limit"},
    {"[1,1,1,1,1,[[6,0,1]]]", "place 0"},
    {"[1,1,1,1,1,[[6,4503599627370496,1]]]", "above its limit"},
    {"[1,1,1,1,1,[[6,1]]]", "2 fields"},
    {"[1,1,1,1,1,[[8]]]", "1 fields"},
    {"[1,1,1,1,1,[[9,0,1]]]", "place 0"},
    {"[1,1,1,1,1,[[9,1]]]", "2 fields"},
    {"[1,1,1,1,1,[[10,0,1]]]", "place 0"},
    {"[1,1,1,1,1,[[10,1,0]]]", "serial 0"},
    {"[1,1,1,1,1,[[10,1,4294967296]]]", "above its limit"},
    {"[1,1,1,1,1,[[8,1]]]", "string"},
    {"[1,1,1,1,1,[[8,b]]]", "not the type"},
    {"[1,1,1,1,1,[[1,\"w\",1,1,[[[[[[[1]]]]]]]]]]", "fields; expected 4"},
};

static void whatever_is_unexpected_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(refused); i++) {
        struct tl_event_entry entry;
        struct tl_error err = {0};
        struct packed buffer;
        if (decode(refused[i].text, &entry, &buffer, &err) || err.kind != TL_ERR_INVALID ||
            strstr(err.text, refused[i].says) == NULL)
            fail_msg("%s: %s", refused[i].text, err.text);
        assert_int_equal(entry.n_events, 0);
        pack_free(&buffer);
    }
}

static void cut_anywhere_it_is_refused(void **state)
{
    (void)state;
    struct tl_event_entry entry;
    struct packed buffer;
    assert_true(decode("[1,12,1700000000000000,30,4,[[1,\"w\",99,41,[[0,1,17,0],[3,2,5,9]]],"
                       "[2,[41,2,1,1]],[3,[7,1],1700000002000],[6,5,1],[7],[8,\"Hello\"]]]",
                       &entry, &buffer, NULL));
    tl_events_free(&entry);
    for (size_t cut = 0; cut < buffer.size; cut++) {
        struct tl_error err = {0};
        char *exact = malloc(cut > 0 ? cut : 1);
        memcpy(exact, buffer.data, cut);
        assert_false(tl_events_decode(exact, cut, &entry, &err));
        assert_int_equal(err.kind, TL_ERR_INVALID);
        free(exact);
    }
    pack_free(&buffer);
}

/* Counts beyond the bytes, in every array there is. */
static void bombs_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t length;
    } bombs[] = {
        {"\xdd\xff\xff\xff\xff", 5},
        {"\x96\x01\x01\x01\x01\x01\xdd\xff\xff\xff\xff", 11},
        {"\x96\x01\x01\x01\x01\x01\x91\x92\x02\xdd\x7f\xff\xff\xff\x01\x01", 16},
        {"\x96\x01\x01\x01\x01\x01\x91\x95\x01\xa1w\x01\x01\xdd\x00\xff\xff\xff", 18},
        {"\x96\x01\x01\x01\x01\x01\x91\x92\x08\xdb\xff\xff\xff\xff", 14},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(bombs); i++) {
        struct tl_event_entry entry;
        struct tl_error err = {0};
        assert_false(tl_events_decode(bombs[i].bytes, bombs[i].length, &entry, &err));
        assert_int_equal(err.kind, TL_ERR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_read),
        cmocka_unit_test(the_limits_themselves_are_taken),
        cmocka_unit_test(whatever_is_unexpected_is_refused),
        cmocka_unit_test(cut_anywhere_it_is_refused),
        cmocka_unit_test(bombs_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
