/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of keys, and what a node of a cluster says of them (common/store/cluster.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <hiredis/hiredis.h>

#include "common/store/cluster.h"

/* The reply that these bytes of the protocol are. A struct tl_reply is a redisReply (reply.c). */
static struct tl_reply *reply_of(const char *bytes)
{
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;
    assert_non_null(reader);
    assert_int_equal(redisReaderFeed(reader, bytes, strlen(bytes)), REDIS_OK);
    assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
    assert_non_null(reply);
    redisReaderFree(reader);
    return reply;
}

static bool reads(const char *bytes, struct tl_cluster_map *map)
{
    struct tl_error err = {0};
    struct tl_reply *reply = reply_of(bytes);
    bool ok = tl_cluster_map_read(reply, "asked", map, &err);
    tl_reply_free(reply);
    assert_true(ok || err.kind == TL_ERR_PROTOCOL);
    return ok;
}

static void a_slot_is_that_of_the_tag(void **state)
{
    (void)state;
    assert_int_equal(tl_cluster_slot("123456789"), 0x31c3); /* of the cluster's specification */
    assert_int_equal(tl_cluster_slot("tl:{sale}:state"), tl_cluster_slot("sale"));
    assert_int_equal(tl_cluster_slot("tl:blocks{tl:queues}"), tl_cluster_slot("tl:queues"));
    assert_int_equal(tl_cluster_slot("a{b}c{d}"), tl_cluster_slot("b"));
    assert_int_not_equal(tl_cluster_slot("a{}b"), tl_cluster_slot(""));
    assert_int_not_equal(tl_cluster_slot("a{b"), tl_cluster_slot("b"));
    assert_int_equal(tl_cluster_slot(""), 0);
}

static void each_slot_has_its_master(void **state)
{
    (void)state;
    static struct tl_cluster_map map;
    assert_true(reads("*3\r\n"
                      "*4\r\n:0\r\n:5460\r\n*3\r\n$9\r\n127.0.0.1\r\n:7000\r\n$2\r\nid\r\n"
                      "*3\r\n$9\r\n127.0.0.1\r\n:7003\r\n$2\r\nid\r\n"
                      "*3\r\n:5461\r\n:5461\r\n*3\r\n$0\r\n\r\n:7001\r\n$2\r\nid\r\n"
                      "*3\r\n:16383\r\n:16383\r\n*3\r\n$9\r\n127.0.0.1\r\n:7000\r\n$2\r\nid\r\n",
                      &map));
    assert_int_equal(map.n, 2);
    assert_int_equal(map.slots[0], 0);
    assert_int_equal(map.slots[5460], 0);
    assert_int_equal(map.slots[5461], 1);
    assert_int_equal(map.slots[5462], TL_STORE_NODES_MAX); /* nobody has it */
    assert_int_equal(map.slots[16383], 0);
    assert_string_equal(map.nodes[0].host, "127.0.0.1");
    assert_int_equal(map.nodes[0].port, 7000);
    assert_string_equal(map.nodes[1].host, "asked"); /* it does not know its own address */
    assert_true(reads("*0\r\n", &map));
    assert_int_equal(map.n, 0);
    assert_int_equal(map.slots[0], TL_STORE_NODES_MAX);
}

static void what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    static struct tl_cluster_map map;
    static const char *const broken[] = {
        "*1\r\n:1\r\n",
        "*1\r\n*2\r\n:0\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:-1\r\n:1\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:2\r\n:1\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\na\r\n:65536\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\na\r\n:0\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n:7\r\n",
    };
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
        assert_false(reads(broken[i], &map));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slot_is_that_of_the_tag),
        cmocka_unit_test(each_slot_has_its_master),
        cmocka_unit_test(what_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
