/* SPDX-License-Identifier: Apache-2.0 */
/* Blocked prefixes: the block function, and the table that workers read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/store/blocks.h"
#include "common/store/library.h"
#include "common/store/reply.h"
#include "ingest.h"

static long long change(struct test_store *store, const char *what, const char *entry,
                        int64_t for_ms)
{
    struct tl_error err = {0};
    struct tl_args args = {0};
    tl_call_begin_on(&args, TL_FN_BLOCK, 2);
    tl_args_strs(&args, "tl:blocks{tl:queues}", "tl:changes{tl:queues}", what, entry, NULL);
    tl_args_int(&args, for_ms);
    tl_actor_append(&test_actor, &args);
    struct tl_reply *reply = tl_call(store->redis, &args, &err);
    tl_args_free(&args);
    long long result = reply != NULL ? (long long)tl_reply_integer(reply) : -1;
    tl_reply_free(reply);
    return result;
}

static uint64_t version(struct test_store *store)
{
    struct tl_error err = {0};
    uint64_t number = 0;
    assert_true(tl_blocks_version(store->redis, "tl:", &number, &err));
    return number;
}

static struct tl_blocks *table(struct test_store *store)
{
    struct tl_error err = {0};
    struct tl_blocks *blocks = tl_blocks_read(store->redis, "tl:", &err);
    if (blocks == NULL)
        fail_msg("%s", err.text);
    return blocks;
}

/* The entry that blocks this address from the queue, "" if none does. */
static const char *found(const struct tl_blocks *blocks, const char *address, const char *queue,
                         int64_t now_ms)
{
    static char text[TL_BLOCK_TEXT_MAX];
    struct tl_address parsed;
    assert_true(tl_address_parse(address, &parsed));
    const struct tl_block *block = tl_blocks_find(blocks, &parsed, queue, now_ms);
    text[0] = '\0';
    if (block != NULL)
        tl_block_format(block, text);
    return text;
}

static void the_longest_prefix_is_found(void **state)
{
    struct test_store *store = *state;
    static const char *const entries[] = {"192.0.2.0/24", "192.0.2.7", "10.0.0.0/8 sale",
                                          "2001:db8::/32", "2001:db8:1::/48 sale"};
    static const struct {
        const char *address, *queue, *entry;
    } cases[] = {
        {"192.0.2.7", "sale", "192.0.2.7"},
        {"192.0.2.8", "sale", "192.0.2.0/24"},
        {"192.0.3.8", "sale", ""},
        {"10.1.2.3", "sale", "10.0.0.0/8 sale"},
        {"10.1.2.3", "door", ""},
        {"2001:db8:1:2::3", "sale", "2001:db8:1::/48 sale"},
        {"2001:db8:1:2::3", "door", "2001:db8::/32"},
        {"2001:db9::1", "sale", ""},
        {"::1", "sale", ""},
    };
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
        assert_int_equal(change(store, "block", entries[i], 0), 1);
    struct tl_blocks *blocks = table(store);
    assert_int_equal(blocks->n, 5);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(found(blocks, cases[i].address, cases[i].queue, 1), cases[i].entry);
    assert_string_equal(found(NULL, "192.0.2.7", "sale", 1), "");
    free(blocks);
}

static void a_block_ends_by_the_store_s_clock(void **state)
{
    struct test_store *store = *state;
    assert_int_equal(change(store, "block", "192.0.2.7", 60000), 1);
    struct tl_blocks *blocks = table(store);
    int64_t until_ms = blocks->list[0].until_ms;
    assert_in_range(until_ms, test_redis_ms(store->redis), test_redis_ms(store->redis) + 60000);
    assert_string_equal(found(blocks, "192.0.2.7", "q", until_ms - 1), "192.0.2.7");
    assert_string_equal(found(blocks, "192.0.2.7", "q", until_ms), "");
    free(blocks);
}

/* Each change has another version; one that changes nothing keeps it. The last entry goes, the
 * version stays. What is over is forgotten. */
static void the_version_tells_of_changes(void **state)
{
    struct test_store *store = *state;
    assert_int_equal(version(store), 0);
    assert_int_equal(change(store, "clean", "", 0), 1);
    assert_int_equal(version(store), 0);
    assert_int_equal(change(store, "block", "192.0.2.7", 1), 1);
    uint64_t first = version(store);
    assert_int_not_equal(first, 0);
    assert_int_equal(change(store, "unblock", "192.0.2.8", 0), 0);
    test_redis_pass_time(store->redis, 2);
    assert_int_equal(change(store, "clean", "", 0), 1);
    struct tl_blocks *blocks = table(store);
    assert_int_equal(blocks->n, 0);
    free(blocks);
    assert_true(version(store) > first);
}

static void entries_that_make_no_sense_are_left_out(void **state)
{
    struct test_store *store = *state;
    tl_reply_free(test_redis_call(
        store->redis, "HSET tl:blocks{tl:queues} version 7 192.0.2.7 0 nonsense 0 10.0.0.0/99 0 "
                      "192.0.2.9 soon 192.0.2.8 -5"));
    struct tl_blocks *blocks = table(store);
    assert_int_equal(blocks->n, 1);
    free(blocks);
}

static void the_table_is_bounded(void **state)
{
    struct test_store *store = *state;
    char entry[64];
    for (int i = 0; i < TL_BLOCKS_MAX; i++) {
        snprintf(entry, sizeof(entry), "HSET tl:blocks{tl:queues} 10.1.%d.%d 0", i / 250, i % 250);
        tl_reply_free(test_redis_call(store->redis, entry));
    }
    assert_int_equal(change(store, "block", "192.0.2.7", 0), -1);
    assert_int_equal(change(store, "block", "10.1.0.0", 0), 1); /* it is there already */
    assert_int_equal(change(store, "unblock", "10.1.0.0", 0), 1);
    assert_int_equal(change(store, "block", "192.0.2.7", 0), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_longest_prefix_is_found, test_store_clean),
        cmocka_unit_test_setup(a_block_ends_by_the_store_s_clock, test_store_clean),
        cmocka_unit_test_setup(the_version_tells_of_changes, test_store_clean),
        cmocka_unit_test_setup(entries_that_make_no_sense_are_left_out, test_store_clean),
        cmocka_unit_test_setup(the_table_is_bounded, test_store_clean),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close);
}
