/* SPDX-License-Identifier: Apache-2.0 */
/* How full the store is, from the text of INFO (common/store/memory.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/store/memory.h"

static void the_fields_are_found_whatever_stands_around_them(void **state)
{
    (void)state;
    struct tl_store_memory memory;
    tl_store_memory_parse("# Memory\r\nused_memory:950000\r\nused_memory_human:928K\r\n"
                          "maxmemory:1000000\r\nmaxmemory_policy:allkeys-lru\r\nallocator:x\r\n",
                          &memory);
    assert_int_equal(memory.used, 950000);
    assert_int_equal(memory.limit, 1000000);
    assert_string_equal(memory.policy, "allkeys-lru");
    assert_true(tl_store_memory_evicts(&memory));
    tl_store_memory_parse("maxmemory_policy:noeviction\r\n", &memory);
    assert_false(tl_store_memory_evicts(&memory));
    assert_false(memory.appends || memory.not_written);
    tl_store_memory_parse("aof_enabled:1\r\nrdb_last_bgsave_status:ok\r\n"
                          "aof_last_bgrewrite_status:ok\r\naof_last_write_status:err\r\n",
                          &memory);
    assert_true(memory.appends && memory.not_written);
    tl_store_memory_parse("rdb_last_bgsave_status:err\r\n", &memory);
    assert_true(!memory.appends && memory.not_written);
    tl_store_memory_parse("", &memory);
    assert_int_equal(memory.used, 0);
    assert_string_equal(memory.policy, "");
    assert_false(tl_store_memory_evicts(&memory));
}

static enum tl_memory_level level(uint64_t used, enum tl_memory_level was)
{
    const struct tl_store_memory memory = {.used = used, .limit = 1000000};
    return tl_store_memory_level(&memory, was);
}

static void each_level_begins_higher_than_it_ends(void **state)
{
    (void)state;
    assert_int_equal(level(799999, TL_MEMORY_ROOM), TL_MEMORY_ROOM);
    assert_int_equal(level(800000, TL_MEMORY_ROOM), TL_MEMORY_SCARCE);
    assert_int_equal(level(750000, TL_MEMORY_SCARCE), TL_MEMORY_SCARCE);
    assert_int_equal(level(749999, TL_MEMORY_SCARCE), TL_MEMORY_ROOM);
    assert_int_equal(level(949999, TL_MEMORY_SCARCE), TL_MEMORY_SCARCE);
    assert_int_equal(level(950000, TL_MEMORY_ROOM), TL_MEMORY_FULL);
    assert_int_equal(level(900000, TL_MEMORY_FULL), TL_MEMORY_FULL);
    assert_int_equal(level(899999, TL_MEMORY_FULL), TL_MEMORY_SCARCE);
    assert_int_equal(level(100000, TL_MEMORY_FULL), TL_MEMORY_ROOM);
    assert_int_equal(level(2000000, TL_MEMORY_ROOM), TL_MEMORY_FULL);
}

static void without_a_limit_there_is_room(void **state)
{
    (void)state;
    const struct tl_store_memory memory = {.used = UINT64_C(1) << 40};
    assert_int_equal(tl_store_memory_percent(&memory), 0);
    assert_int_equal(tl_store_memory_level(&memory, TL_MEMORY_FULL), TL_MEMORY_ROOM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fields_are_found_whatever_stands_around_them),
        cmocka_unit_test(each_level_begins_higher_than_it_ends),
        cmocka_unit_test(without_a_limit_there_is_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
