/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of a node of a cluster that does not serve some of them: what the loop is told of their
 * gates, update by update. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/config/queue_settings.h"
#include "common/store/cluster.h"
#include "common/store/queue.h"
#include "common/store/store.h"
#include "common/store/troubles.h"
#include "redis_server.h"
#include "side_by_side.h"
#include "worker/feed/followed_queues.h"

/* redis.timeout: short, so that a node is away soon; the updates that a test needs take longer. */
enum { TIMEOUT_MS = 1000, QUEUES = 64, GIVE_UP_MS = 300000 };

struct world {
    struct test_redis *server;
    struct tl_redis *redis; /* of the test itself */
    struct tl_store *store;
    uint64_t epoch;
    struct tl_mailbox *changes;
    struct tl_followed_queues *queues;
    /* Of q0, what the last change said, and of all in how many they were told something. */
    enum { NOTHING, STAYS, AWAY, SOUND } gate;
    size_t lines, settings;
};

static const struct tl_config config = {.redis = {.timeout_ms = TIMEOUT_MS},
                                        .retention = {.changes_entries = 1000}};

static int start(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    char url[64];
    struct tl_error err = {0};
    assert_non_null(w);
    w->server = test_redis_start_node();
    w->redis = test_redis_connect(w->server);
    test_redis_node_url(w->server, url);
    w->store =
        tl_store_new(&(struct tl_redis_settings){.url = url, .timeout_ms = TIMEOUT_MS}, &err);
    w->changes = tl_mailbox_new(NULL, SIZE_MAX, NULL, NULL, &err);
    if (w->store == NULL || w->changes == NULL)
        fail_msg("%s", err.text);
    w->queues = tl_followed_queues_new(w->store, "tl:", &config, w->changes, false);
    assert_non_null(w->queues);
    *state = w;
    return 0;
}

static void make(const struct world *w, size_t n)
{
    struct tl_queue_settings settings;
    struct tl_error err = {0};
    tl_queue_settings_defaults(&settings);
    for (size_t i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof(name), "q%zu", i);
        if (!tl_queue_create(TEST_SITE(w->redis), "tl:", name, &settings, &test_actor, NULL, &err))
            fail_msg("%s", err.text);
    }
}

static void note(struct world *w, const struct tl_change *change)
{
    w->lines += change->kind == TL_CHANGE_LINE;
    w->settings += change->kind == TL_CHANGE_SETTINGS;
    if (strcmp(change->queue, "q0") != 0)
        return;
    if (change->kind == TL_CHANGE_TROUBLE)
        w->gate = change->away ? AWAY : STAYS;
    else if (change->kind == TL_CHANGE_SOUND)
        w->gate = SOUND;
}

/* A turn of the follower, as far as it is about the updates. */
static void update(struct world *w)
{
    struct tl_error err = {0};
    struct tl_messages told = {0};
    struct tl_message *message;
    if (tl_store_connect(w->store, &err)) {
        if (tl_store_epoch(w->store) != w->epoch)
            assert_true(tl_followed_queues_reconnected(w->queues, &err));
        w->epoch = tl_store_epoch(w->store);
    }
    if (!tl_followed_queues_update(w->queues, &err))
        fail_msg("%s", err.text);
    (void)tl_mailbox_wait(w->changes, 0, &told);
    while ((message = tl_messages_take(&told)) != NULL) {
        note(w, (const struct tl_change *)message);
        tl_change_free((struct tl_change *)message);
    }
}

static int stop(void **state)
{
    struct world *w = *state;
    struct tl_messages left = {0};
    struct tl_message *message;
    tl_followed_queues_free(&w->queues);
    tl_mailbox_free(&w->changes, &left);
    while ((message = tl_messages_take(&left)) != NULL)
        tl_change_free((struct tl_change *)message);
    tl_store_free(&w->store);
    tl_redis_free(&w->redis);
    test_redis_stop(&w->server);
    free(w);
    return 0;
}

/* Without a slot the node answers CLUSTERDOWN for its queues; and if all slots are required, for
 * every queue. */
static void take_slot(const struct world *w, const char *how, const char *key)
{
    char words[64];
    snprintf(words, sizeof(words), "CLUSTER %s %u", how, tl_cluster_slot(key));
    tl_reply_free(test_redis_call(w->redis, words));
}

static void until_gate(struct world *w, int gate)
{
    const int64_t until_ms = tl_clock_ms() + GIVE_UP_MS;
    for (; (int)w->gate != gate; usleep(10000)) {
        assert_true(tl_clock_ms() < until_ms);
        update(w);
    }
}

/* It may answer so for a moment after it was away. A gate that was opened, or closed, because the
 * node was away must not go back for it, and forth again. */
static void clusterdown_after_an_outage_leaves_the_gate_as_it_was(void **state)
{
    struct world *w = *state;
    make(w, 1);
    update(w);
    assert_int_equal(w->lines, 1);
    test_redis_freeze(w->server);
    until_gate(w, AWAY);
    test_redis_thaw(w->server);
    tl_reply_free(test_redis_call(w->redis, "CONFIG SET cluster-require-full-coverage yes"));
    take_slot(w, "DELSLOTS", "nobody's");
    const int64_t until_ms = tl_clock_ms() + 3 * TIMEOUT_MS; /* less than a slot may take to move */
    for (; tl_clock_ms() < until_ms; usleep(10000)) {
        w->gate = AWAY;
        update(w);
        assert_int_equal(w->gate, AWAY);
    }
    take_slot(w, "ADDSLOTS", "nobody's");
    until_gate(w, SOUND);
    /* And the next trouble is another one. */
    take_slot(w, "DELSLOTS", "nobody's");
    until_gate(w, STAYS);
}

/* As many queues as two updates look at. */
static void a_queue_in_trouble_takes_no_turn_from_the_others(void **state)
{
    struct world *w = *state;
    make(w, QUEUES);
    update(w);
    update(w);
    assert_int_equal(w->lines, QUEUES);
    take_slot(w, "DELSLOTS", "q0");
    until_gate(w, STAYS);
    for (size_t i = 1; i < QUEUES; i++)
        test_redis_ask(w->redis, "HSET tl:{q%zu}:config capacity 9", i);
    for (unsigned i = 0; i < 3; i++) {
        w->gate = NOTHING;
        usleep((TL_NODE_PAUSE_MAX_MS + 10) * 1000); /* then it rests no longer... */
        update(w);
        assert_int_not_equal(w->gate, NOTHING); /* ...and is looked at, too */
    }
    assert_int_equal(w->settings, QUEUES - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(clusterdown_after_an_outage_leaves_the_gate_as_it_was,
                                        start, stop),
        cmocka_unit_test_setup_teardown(a_queue_in_trouble_takes_no_turn_from_the_others, start,
                                        stop),
    };
    return test_side_by_side(tests, NULL, NULL);
}
