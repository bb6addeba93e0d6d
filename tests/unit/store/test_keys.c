/* SPDX-License-Identifier: Apache-2.0 */
#include <fnmatch.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/store/keys.h"
#include "common/wire/names.h"
#include "common/wire/place.h"

static void a_queue_has_its_keys(void **state)
{
    (void)state;
    static const char *const names[] = {
        "tl:{sale}:state",    "tl:{sale}:config", "tl:{sale}:waiting", "tl:{sale}:active",
        "tl:{sale}:sessions", "tl:{sale}:ended",  "tl:{sale}:events",  "tl:{sale}:ingest",
    };
    struct tl_keys keys;
    char name[TL_KEY_MAX];
    tl_keys_init(&keys, "tl:", "sale");
    assert_string_equal(keys.queue, "sale");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_string_equal(keys.names[i], names[i]);
    assert_int_equal(sizeof(keys.names), sizeof(names) / sizeof(names[0]) * TL_KEY_MAX);
    assert_string_equal(tl_key(&keys, TL_KEY_STATE, name), "tl:{sale}:state");
    assert_string_equal(tl_key(&keys, TL_KEY_HISTORY_MINUTES, name), "tl:{sale}:history:minutes");
    assert_string_equal(tl_key(&keys, TL_KEY_SPENT, name), "tl:{sale}:spent:");
    tl_keys_seen(&keys, 440942938, 0, name);
    assert_string_equal(name, "tl:{sale}:seen:440942938");
    tl_keys_seen(&keys, 440942938, 29882400, name);
    assert_string_equal(name, "tl:{sale}:seen:440942938:29882400");
    tl_keys_lease(keys.queue, "tl:", "expirer", name);
    assert_string_equal(name, "tl:{sale}:expirer");
    assert_string_equal(tl_key_common("shop.", TL_COMMON_QUEUES, name), "shop.queues");
}

/* What Redis hashes of a key: between the first { and the first } behind it, else all. */
static void copy_hashed(const char *key, char hashed[TL_KEY_MAX])
{
    const char *open = strchr(key, '{');
    const char *close = open != NULL ? strchr(open, '}') : NULL;
    if (close != NULL && close > open + 1)
        snprintf(hashed, TL_KEY_MAX, "%.*s", (int)(close - open - 1), open + 1);
    else
        snprintf(hashed, TL_KEY_MAX, "%s", key);
}

static void keys_of_no_queue_are_in_one_slot(void **state)
{
    (void)state;
    static const char *const names[] = {TL_COMMON_TEXTS};
    char queues[TL_KEY_MAX], key[TL_KEY_MAX], hashed[TL_KEY_MAX];
    tl_key_common("shop.", TL_COMMON_QUEUES, queues);
    assert_string_equal(tl_key_common("shop.", TL_COMMON_BLOCKS, key), "shop.blocks{shop.queues}");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        tl_key_common("shop.", (enum tl_common_key)i, key);
        assert_memory_equal(key + strlen("shop."), names[i], strlen(names[i]));
        copy_hashed(key, hashed);
        assert_string_equal(hashed, queues);
        /* Who may use the keys of all queues may not use these (deploy/redis/users.acl). */
        assert_int_equal(fnmatch("shop.{*}:*", key, 0), FNM_NOMATCH);
    }
}

static void presence_is_cut_into_chunks(void **state)
{
    (void)state;
    uint64_t offset;
    assert_int_equal(tl_presence_chunk(0, &offset), 0);
    assert_int_equal(offset, 0);
    assert_int_equal(tl_presence_chunk(TL_PRESENCE_CHUNK - 1, &offset), 0);
    assert_int_equal(offset, TL_PRESENCE_CHUNK - 1);
    assert_int_equal(tl_presence_chunk(TL_PRESENCE_CHUNK, &offset), 1);
    assert_int_equal(offset, 0);
    assert_int_equal(tl_presence_chunk((UINT64_C(1) << 44) + TL_PRESENCE_CHUNK + 7, &offset),
                     (1 << 24) + 1);
    assert_int_equal(offset, 7);
    assert_int_equal(tl_presence_chunk(TL_PLACE_SEQ_MAX, NULL), (1 << 28) - 1);
}

static void the_longest_names_fit(void **state)
{
    (void)state;
    char prefix[32], queue[TL_QUEUE_NAME_MAX + 1], name[TL_KEY_MAX], expected[TL_KEY_MAX];
    struct tl_keys keys;
    memset(prefix, 'p', sizeof(prefix) - 1);
    prefix[sizeof(prefix) - 1] = '\0';
    memset(queue, 'q', TL_QUEUE_NAME_MAX);
    queue[TL_QUEUE_NAME_MAX] = '\0';
    tl_keys_init(&keys, prefix, queue);
    assert_string_equal(keys.queue, queue);
    snprintf(expected, sizeof(expected), "%s{%s}:sessions", prefix, queue);
    assert_string_equal(keys.names[TL_KEY_SESSIONS], expected);
    tl_keys_seen(&keys, INT64_MAX, 0, name);
    assert_int_equal(strlen(name), 31 + 63 + 3 + strlen("seen:9223372036854775807"));
    tl_keys_seen(&keys, INT64_MAX, UINT64_MAX, name);
    assert_int_equal(strlen(name),
                     31 + 63 + 3 + strlen("seen:9223372036854775807:18446744073709551615"));
    tl_keys_lease(keys.queue, prefix, "dispatcher", name);
    assert_int_equal(strlen(name), 31 + 63 + 3 + strlen("dispatcher"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_queue_has_its_keys),
        cmocka_unit_test(keys_of_no_queue_are_in_one_slot),
        cmocka_unit_test(presence_is_cut_into_chunks),
        cmocka_unit_test(the_longest_names_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
