/* SPDX-License-Identifier: Apache-2.0 */
/* Ingest batches: valid ones survive encoding and decoding, and invalid ones are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/wire/batch.h"
#include "common/wire/fields.h"
#include "tests/unit/random.h"
#include "tests/unit/wire/pack.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define VISITOR64    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* Commands with one number. */
static int add(struct tl_batch_writer *writer, enum tl_command_kind kind, const char *visitor,
               size_t length, uint64_t number)
{
    return tl_batch_add(writer, &(struct tl_command){.kind = kind,
                                                     .visitor = visitor,
                                                     .visitor_length = length,
                                                     .numbers = {number}});
}

static int add_seen(struct tl_batch_writer *writer, uint64_t first, uint64_t count)
{
    return tl_batch_add(writer,
                        &(struct tl_command){.kind = TL_COMMAND_SEEN, .numbers = {first, count}});
}

static bool decodes(const char *text, struct tl_error *err)
{
    struct packed buffer;
    struct tl_batch batch;
    pack_text(&buffer, text);
    bool ok = tl_batch_decode(buffer.data, buffer.size, &batch, err);
    tl_batch_free(&batch);
    pack_free(&buffer);
    return ok;
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    struct tl_batch_writer writer = {0};
    struct tl_batch batch;
    struct tl_error err = {0};
    size_t length;
    tl_place place = tl_place_make(15, TL_PLACE_SEQ_MAX);
    assert_int_equal(add(&writer, TL_COMMAND_JOIN, "anna", 4, 15), 0);
    assert_int_equal(add(&writer, TL_COMMAND_LEAVE, VISITOR64, 64, place), 1);
    assert_int_equal(add(&writer, TL_COMMAND_COMPLETE, "!", 1, 0), 2);
    assert_int_equal(add(&writer, TL_COMMAND_RENEW, "~", 1, 7), 3);
    assert_int_equal(add_seen(&writer, TL_PLACE_SEQ_MAX, 0), 4);
    assert_int_equal(add(&writer, TL_COMMAND_CLAIM, "~", 1, 7), 5);
    assert_int_equal(add(&writer, TL_COMMAND_EXTEND, "~", 1, 7), 6);
    const struct tl_command moves = {.kind = TL_COMMAND_HAND_OVER,
                                     .visitor = VISITOR64,
                                     .visitor_length = 64,
                                     .numbers = {place, TL_BATCH_SERIAL_MAX, TL_BATCH_NUMBER_MAX}};
    assert_int_equal(tl_batch_add(&writer, &moves), 7);
    assert_int_equal(writer.n, 8);
    writer.generation = 1795322332699277;
    writer.made_ms = 1795322332699;
    const void *bytes = tl_batch_finish(&writer, "worker-1", TL_BATCH_NUMBER_MAX, &length);
    if (!tl_batch_decode(bytes, length, &batch, &err))
        fail_msg("%s", err.text);
    assert_string_equal(batch.worker, "worker-1");
    assert_int_equal(batch.number, TL_BATCH_NUMBER_MAX);
    assert_int_equal(batch.generation, 1795322332699277);
    assert_int_equal(batch.made_ms, 1795322332699);
    assert_int_equal(batch.n_commands, 8);
    assert_int_equal(batch.commands[7].kind, TL_COMMAND_HAND_OVER);
    assert_int_equal(batch.commands[7].numbers[0], place);
    assert_int_equal(batch.commands[7].numbers[1], TL_BATCH_SERIAL_MAX);
    assert_int_equal(batch.commands[7].numbers[2], TL_BATCH_NUMBER_MAX);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(batch.commands[i].kind, i + 1);
    assert_int_equal(batch.commands[5].kind, TL_COMMAND_CLAIM);
    assert_int_equal(batch.commands[5].numbers[0], 7);
    assert_int_equal(batch.commands[6].kind, TL_COMMAND_EXTEND);
    assert_int_equal(batch.commands[0].visitor_length, 4);
    assert_memory_equal(batch.commands[0].visitor, "anna", 4);
    assert_int_equal(batch.commands[0].numbers[0], 15);
    assert_memory_equal(batch.commands[1].visitor, VISITOR64, 64);
    assert_int_equal(batch.commands[1].numbers[0], place);
    assert_int_equal(batch.commands[4].numbers[0], TL_PLACE_SEQ_MAX);
    assert_int_equal(batch.commands[4].numbers[1], 0);
    tl_batch_free(&batch);
    free(writer.bytes);
}

static void what_a_recovery_needs_is_read(void **state)
{
    (void)state;
    struct tl_batch_writer writer = {0};
    struct tl_batch batch;
    struct tl_error err = {0};
    size_t length;
    const struct tl_command commands[] = {
        {.kind = TL_COMMAND_RESTORE,
         .visitor = VISITOR64,
         .visitor_length = 64,
         .numbers = {TL_PLACE_MAX, TL_BATCH_NUMBER_MAX, 2, 3, 4}},
        {.kind = TL_COMMAND_LOST, .numbers = {1, 2, 3, TL_BATCH_NUMBER_MAX}},
        {.kind = TL_COMMAND_CALLED, .numbers = {0, 0, 0, 0}},
    };
    for (int i = 0; i < 3; i++)
        assert_int_equal(tl_batch_add(&writer, &commands[i]), i);
    const struct tl_command nameless = {.kind = TL_COMMAND_RESTORE, .visitor = ""};
    assert_int_equal(tl_batch_add(&writer, &nameless), -1);
    const void *bytes = tl_batch_finish(&writer, "w", 1, &length);
    if (!tl_batch_decode(bytes, length, &batch, &err))
        fail_msg("%s", err.text);
    assert_int_equal(batch.n_commands, 3);
    assert_memory_equal(batch.commands[0].visitor, VISITOR64, 64);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(batch.commands[i].kind, commands[i].kind);
        assert_memory_equal(batch.commands[i].numbers, commands[i].numbers,
                            sizeof(commands[i].numbers));
    }
    tl_batch_free(&batch);
    free(writer.bytes);
}

static void a_batch_can_be_finished_again_and_reset(void **state)
{
    (void)state;
    struct tl_batch_writer writer = {0};
    struct tl_batch batch;
    size_t length, again;
    add(&writer, TL_COMMAND_JOIN, "anna", 4, 0);
    tl_batch_finish(&writer, "w", 1, &length);
    const void *bytes = tl_batch_finish(&writer, "w", 1, &again); /* a batch sent twice */
    assert_int_equal(length, again);
    assert_true(tl_batch_decode(bytes, again, &batch, NULL));
    assert_int_equal(batch.n_commands, 1);
    tl_batch_free(&batch);
    tl_batch_writer_reset(&writer);
    bytes = tl_batch_finish(&writer, "w", 2, &length);
    assert_true(tl_batch_decode(bytes, length, &batch, NULL));
    assert_int_equal(batch.n_commands, 0);
    assert_int_equal(batch.number, 2);
    tl_batch_free(&batch);
    free(writer.bytes);
}

static void a_full_batch_takes_no_more(void **state)
{
    (void)state;
    struct tl_batch_writer writer = {0};
    struct tl_batch batch;
    size_t length;
    for (int i = 0; i < TL_BATCH_COMMANDS_MAX; i++)
        assert_int_equal(add(&writer, TL_COMMAND_JOIN, VISITOR64, 64, 1), i);
    assert_int_equal(add(&writer, TL_COMMAND_JOIN, "anna", 4, 1), -1);
    assert_int_equal(add_seen(&writer, 1, 1), -1);
    assert_int_equal(writer.n, TL_BATCH_COMMANDS_MAX);
    const void *bytes =
        tl_batch_finish(&writer, "0123456789abcdef0123456789abcdef", TL_BATCH_NUMBER_MAX, &length);
    assert_true(length <= TL_WIRE_BYTES_MAX);
    assert_true(tl_batch_decode(bytes, length, &batch, NULL));
    assert_int_equal(batch.n_commands, TL_BATCH_COMMANDS_MAX);
    tl_batch_free(&batch);
    free(writer.bytes);
}

static void a_visitor_out_of_bounds_is_not_written(void **state)
{
    (void)state;
    struct tl_batch_writer writer = {0};
    assert_int_equal(add(&writer, TL_COMMAND_JOIN, "", 0, 1), -1);
    assert_int_equal(add(&writer, TL_COMMAND_JOIN, VISITOR64 "x", 65, 1), -1);
    assert_int_equal(writer.n, 0);
    free(writer.bytes);
}

static void the_limits_themselves_are_taken(void **state)
{
    static const char *const good[] = {
        "[1,\"w\",0,0,0,[]]",
        "[1,\"w\",0,9007199254740991,9007199254740991,[[2,\"v\",1]]]",
        "[1,\"0123456789abcdef0123456789abcdef\",9007199254740991,0,0,[]]",
        ("[1,\"w\",1,0,0,[[1,\"" VISITOR64 "\",15]]]"),
        "[1,\"w\",1,0,0,[[2,\"v\",4503599627370495],[3,\"v\",0],[4,\"v\",1]]]",
        "[1,\"w\",1,0,0,[[5,281474976710655,281474976710655]]]",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        struct tl_error err = {0};
        if (!decodes(good[i], &err))
            fail_msg("%s: %s", good[i], err.text);
    }
}

static const struct {
    const char *text, *says;
} refused[] = {
    {"1", "array"},
    {"\"w\"", "array"},
    {"[]", "bytes end"},
    {"[1,\"w\",1]", "3 fields"},
    {"[1,\"w\",1,0,0,[],1]", "7 fields"},
    {"[1,\"w\",1,[]]", "4 fields"},
    {"[1,\"w\",1,7,[],8]", "whole number"},
    {"[1,\"w\",1,7,8,9]", "array"},
    {"[1,\"w\",1,9007199254740992,8,[]]", "above its limit"},
    {"[1,\"w\",1,7,9007199254740992,[]]", "above its limit"},
    {"[3,\"w\",1,7,[]]", "version 3"},
    {"[0,\"w\",1,[]]", "version 0"},
    {"[\"1\",\"w\",1,0,0,[]]", "whole number"},
    {"[1,7,1,0,0,[]]", "string"},
    {"[1,\"\",1,0,0,[]]", "name that is not"},
    {"[1,\"0123456789abcdef0123456789abcdef0\",1,0,0,[]]", "name that is not"},
    {"[1,\"a b\",1,0,0,[]]", "name that is not"},
    {"[1,\"w\",\"1\",0,0,[]]", "whole number"},
    {"[1,\"w\",9007199254740992,0,0,[]]", "above its limit"},
    {"[1,\"w\",1,0,0,[1]]", "command 0"},
    {"[1,\"w\",1,0,0,[[]]]", "command 0"},
    {"[1,\"w\",1,0,0,[[1,\"v\"]]]", "2 fields"},
    {"[1,\"w\",1,0,0,[[1,\"v\",0,0]]]", "4 fields"},
    {"[1,\"w\",1,0,0,[[1,\"v\",0,0,0]]]", "expected a string"},
    {"[1,\"w\",1,0,0,[[1,\"v\",0,\"i\",\"i\"]]]", "expected a whole number"},
    {"[1,\"w\",1,0,0,[[1,\"v\",0,\"\",1]]]", "an invite's id of 0 bytes"},
    {"[1,\"w\",1,0,0,[[1,\"v\",0,\"i\",9007199254740992]]]", "above its limit"},
    {"[1,\"w\",1,0,0,[[2,\"v\",1,\"i\",1]]]", "5 fields"},
    {"[1,\"w\",1,0,0,[[0,\"v\",0]]]", "command 0 is not one"},
    {"[1,\"w\",1,0,0,[[6,\"v\",0]]]", "command 6 is not one"},
    {"[1,\"w\",1,0,0,[[7,\"v\",0,1,2,3]]]", "command 0"},
    {"[1,\"w\",1,0,0,[[8,1,2,3]]]", "command 0"},
    {"[1,\"w\",1,0,0,[[9,1,2,3,9007199254740992]]]", "command 0"},
    {"[1,\"w\",1,0,0,[[1,\"v\",16]]]", "above its limit 15"},
    {"[1,\"w\",1,0,0,[[1,\"\",0]]]", "visitor"},
    {"[1,\"w\",1,0,0,[[1,\"" VISITOR64 "x\",0]]]", "visitor"},
    {"[1,\"w\",1,0,0,[[1,\"a b\",0]]]", "visitor"},
    {"[1,\"w\",1,0,0,[[1,\"\x7f\",0]]]", "visitor"},
    {"[1,\"w\",1,0,0,[[1,\"\xc3\xa4\",0]]]", "visitor"},
    {"[1,\"w\",1,0,0,[[1,5,0]]]", "string"},
    {"[1,\"w\",1,0,0,[[2,\"v\",4503599627370496]]]", "above its limit"},
    {"[1,\"w\",1,0,0,[[1,\"v\",0],[4,\"v\",\"1\"]]]", "command 1"},
    {"[1,\"w\",1,0,0,[[5,\"1\",1]]]", "whole number"},
    {"[1,\"w\",1,0,0,[[5,281474976710656,1]]]", "above its limit"},
    {"[1,\"w\",1,0,0,[[5,1,281474976710656]]]", "above its limit"},
    {"[1,\"w\",-1,0,0,[]]", "not the type"},
    {"[1,n,1,0,0,[]]", "not the type"},
    {"[1,\"w\",f,0,0,[]]", "not the type"},
    {"[1,\"w\",t,0,0,[]]", "not the type"},
    {"[1,\"w\",1,0,0,m]", "not the type"},
    {"[1,b,1,0,0,[]]", "not the type"},
    {"[1,\"w\",1,0,0,[]] 1", "left over"},
    {"[1,\"w\",1,0,0,[[1,\"v\",[[[[[[1]]]]]]]]]", "expected a whole number"},
};

static void whatever_is_unexpected_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(refused); i++) {
        struct tl_error err = {0};
        if (decodes(refused[i].text, &err) || err.kind != TL_ERR_INVALID ||
            strstr(err.text, refused[i].says) == NULL)
            fail_msg("%s: %s", refused[i].text, err.text);
    }
}

static void too_many_commands_are_refused(void **state)
{
    (void)state;
    struct packed buffer;
    struct tl_batch batch;
    struct tl_error err = {0};
    pack_text(&buffer, "");
    pack_bytes(&buffer, "\x96\x01\xa1w\x01\x00\x00", 7);
    pack_number(&buffer, 0xdc, TL_BATCH_COMMANDS_MAX + 1, 2);
    for (int i = 0; i <= TL_BATCH_COMMANDS_MAX; i++)
        pack_bytes(&buffer, "\x93\x01\xa1v\x00", 5);
    assert_false(tl_batch_decode(buffer.data, buffer.size, &batch, &err));
    assert_int_equal(err.kind, TL_ERR_INVALID);
    assert_non_null(strstr(err.text, "1001 commands"));
    pack_free(&buffer);
}

/* Lengths far beyond the bytes present. */
static void bombs_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t length;
    } bombs[] = {
        {"\xdd\xff\xff\xff\xff", 5}, /* an array of 4 thousand million */
        {"\x96\x01\xa1w\x01\x00\x00\xdd\xff\xff\xff\xff", 12},
        {"\xdc\xff\xff\x01", 4},     /* an array of 65,535, one is there */
        {"\xdb\xff\xff\xff\xff", 5}, /* a string of 4 GB */
        {"\x96\x01\xda\xff\xffw", 6},
        {"\xdf\xff\xff\xff\xff", 5},     /* a map */
        {"\xc9\xff\xff\xff\xff\x01", 6}, /* an extension */
        {"\xc1", 1},                     /* never used in msgpack */
    };
    (void)state;
    for (size_t i = 0; i < COUNT(bombs); i++) {
        struct tl_batch batch;
        struct tl_error err = {0};
        assert_false(tl_batch_decode(bombs[i].bytes, bombs[i].length, &batch, &err));
        assert_int_equal(err.kind, TL_ERR_INVALID);
    }
    char nested[4096];
    memset(nested, '\x91', sizeof(nested)); /* arrays in arrays, without an end */
    struct tl_batch batch;
    struct tl_error err = {0};
    assert_false(tl_batch_decode(nested, sizeof(nested), &batch, &err));
    assert_int_equal(err.kind, TL_ERR_INVALID);
    char *big = calloc(1, TL_WIRE_BYTES_MAX + 1);
    assert_false(tl_batch_decode(big, TL_WIRE_BYTES_MAX + 1, &batch, &err));
    assert_non_null(strstr(err.text, "the limit is 262144"));
    free(big);
}

static size_t random_batch(uint64_t *random, char *copy)
{
    struct tl_batch_writer writer = {0};
    size_t length;
    for (uint64_t n = random_below(random, 12); n > 0; n--) {
        uint64_t kind = 1 + random_below(random, 5);
        uint64_t number = random_next(random) & TL_PLACE_SEQ_MAX;
        if (kind == TL_COMMAND_SEEN)
            add_seen(&writer, number, random_below(random, 300));
        else if (kind == TL_COMMAND_JOIN)
            add(&writer, TL_COMMAND_JOIN, VISITOR64, 1 + random_below(random, 64),
                number % TL_LANES_MAX);
        else
            add(&writer, (enum tl_command_kind)kind, VISITOR64, 1 + random_below(random, 64),
                number);
    }
    const void *bytes = tl_batch_finish(&writer, "w", random_below(random, 100000), &length);
    memcpy(copy, bytes, length);
    free(writer.bytes);
    return length;
}

/* Cut anywhere it is refused; with any one byte changed it is refused or read, but never harms. */
static void damage_is_survived(void **state)
{
    (void)state;
    uint64_t random = random_seed("damage_is_survived");
    for (int round = 0; round < 20; round++) {
        char bytes[4096];
        struct tl_batch batch;
        size_t length = random_batch(&random, bytes);
        assert_true(tl_batch_decode(bytes, length, &batch, NULL));
        tl_batch_free(&batch);
        for (size_t cut = 0; cut < length; cut++) {
            struct tl_error err = {0};
            char *exact = malloc(cut > 0 ? cut : 1); /* so that a sanitizer sees the end */
            memcpy(exact, bytes, cut);
            assert_false(tl_batch_decode(exact, cut, &batch, &err));
            assert_int_equal(err.kind, TL_ERR_INVALID);
            free(exact);
        }
        for (size_t i = 0; i < length; i++) {
            char before = bytes[i];
            bytes[i] = (char)random_next(&random);
            if (tl_batch_decode(bytes, length, &batch, NULL))
                assert_true(batch.n_commands <= TL_BATCH_COMMANDS_MAX);
            tl_batch_free(&batch);
            bytes[i] = before;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(what_a_recovery_needs_is_read),
        cmocka_unit_test(a_batch_can_be_finished_again_and_reset),
        cmocka_unit_test(a_full_batch_takes_no_more),
        cmocka_unit_test(a_visitor_out_of_bounds_is_not_written),
        cmocka_unit_test(the_limits_themselves_are_taken),
        cmocka_unit_test(whatever_is_unexpected_is_refused),
        cmocka_unit_test(too_many_commands_are_refused),
        cmocka_unit_test(bombs_are_refused),
        cmocka_unit_test(damage_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
