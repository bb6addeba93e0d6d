/* SPDX-License-Identifier: Apache-2.0 */
/* The apply function beside a model of it that does one command after the other: random commands of
 * a few visitors, in random batches that share calls, must end as the model says for each of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/store/reply.h"
#include "ingest.h"
#include "tests/unit/random.h"

enum {
    VISITORS = 60,
    INVITES = 30,
    LANES = 3,
    ROUNDS = 150,
    BATCHES_MAX = 12,
    BATCH_MAX = 400,
    JOINED_MAX = BATCHES_MAX * BATCH_MAX,
};

static uint64_t random_state;

static unsigned below(unsigned n)
{
    return (unsigned)random_below(&random_state, n);
}

enum where { NOWHERE, WAITS, IN };

struct visitor {
    enum where where;
    tl_place place; /* the last one held */
};

struct expected_batch {
    uint64_t number, first_seq;
    size_t n;
    struct tl_exception exceptions[BATCH_MAX];
};

struct model {
    struct visitor visitors[VISITORS];
    int spent_by[INVITES]; /* -1: no visitor */
    uint64_t seq;
    unsigned max_waiting; /* 0: any number */
    bool changes_mode;    /* a mode at random in each round... */
    bool closed;          /* ...in which no one joins */
    size_t n_batches, n_joined;
    struct expected_batch batches[BATCHES_MAX]; /* of this round */
    tl_place joined[JOINED_MAX];
};

static void visitor_name(unsigned i, char name[16])
{
    snprintf(name, 16, "visitor-%u", i);
}

static void except(struct expected_batch *batch, size_t index, enum tl_outcome outcome,
                   tl_place place)
{
    batch->exceptions[batch->n++] =
        (struct tl_exception){.index = index, .outcome = outcome, .place = place};
}

static bool is_full(const struct model *model)
{
    unsigned waiting = 0;
    for (unsigned v = 0; v < VISITORS; v++)
        waiting += model->visitors[v].where == WAITS;
    return model->closed || (model->max_waiting > 0 && waiting >= model->max_waiting);
}

static void model_join(struct model *model, struct expected_batch *batch, size_t index, unsigned v,
                       unsigned lane)
{
    struct visitor *visitor = &model->visitors[v];
    model->seq++;
    if (visitor->where != NOWHERE) {
        except(batch, index, visitor->where == IN ? TL_OUTCOME_ACTIVE : TL_OUTCOME_WAITING,
               visitor->place);
        return;
    }
    if (is_full(model)) {
        except(batch, index, TL_OUTCOME_FULL, 0);
        return;
    }
    *visitor = (struct visitor){WAITS, tl_place_make(lane, model->seq)};
    model->joined[model->n_joined++] = visitor->place;
}

static void model_spend(struct model *model, struct expected_batch *batch, size_t index, unsigned v,
                        unsigned lane, unsigned invite)
{
    int by = model->spent_by[invite];
    if (is_full(model) && model->visitors[v].where == NOWHERE) {
        model->seq++;
        except(batch, index, TL_OUTCOME_FULL, 0); /* and the invite is kept */
    } else if (by < 0 || (by == (int)v && model->visitors[v].where != NOWHERE)) {
        model->spent_by[invite] = (int)v;
        model_join(model, batch, index, v, lane);
    } else {
        model->seq++;
        except(batch, index, TL_OUTCOME_SPENT, 0);
    }
}

static void model_place(struct model *model, struct expected_batch *batch, size_t index,
                        enum tl_command_kind kind, unsigned v, tl_place place)
{
    struct visitor *visitor = &model->visitors[v];
    bool here = visitor->where != NOWHERE && visitor->place == place;
    if (here && (visitor->where == IN || kind == TL_COMMAND_LEAVE)) {
        if (kind == TL_COMMAND_LEAVE || kind == TL_COMMAND_COMPLETE)
            visitor->where = NOWHERE;
        return;
    }
    except(batch, index, here ? TL_OUTCOME_WAITING : TL_OUTCOME_GONE, place);
}

/* Adds one random command to the writer and applies it to the model. */
static void add_command(struct test_store *store, struct model *model, struct expected_batch *batch,
                        size_t index)
{
    unsigned v = below(VISITORS), dice = below(100), lane = below(10) < 7 ? 1 : below(LANES);
    char name[16], id[16];
    visitor_name(v, name);
    if (dice < 55) {
        test_join(store, name, lane);
        model_join(model, batch, index, v, lane);
    } else if (dice < 60) {
        unsigned invite = below(INVITES);
        snprintf(id, sizeof(id), "i%u", invite);
        test_join_invited(store, name, lane, id);
        model_spend(model, batch, index, v, lane, invite);
    } else {
        static const enum tl_command_kind kinds[] = {TL_COMMAND_LEAVE, TL_COMMAND_COMPLETE,
                                                     TL_COMMAND_RENEW, TL_COMMAND_CLAIM,
                                                     TL_COMMAND_EXTEND};
        enum tl_command_kind kind = kinds[below(5)];
        tl_place place = model->visitors[v].place + (below(8) == 0);
        test_command(store, kind, name, place);
        model_place(model, batch, index, kind, v, place);
    }
}

static void send_batch(struct test_store *store, struct model *model)
{
    struct expected_batch *batch = &model->batches[model->n_batches++];
    size_t n = below(20) == 0 ? 1 + below(BATCH_MAX) : 1 + below(20);
    *batch = (struct expected_batch){.number = ++store->number, .first_seq = model->seq + 1};
    for (size_t i = 0; i < n; i++)
        add_command(store, model, batch, i);
    test_send(store, "w", batch->number, NULL);
    if (below(10) == 0) { /* the same number again: must do nothing */
        test_join(store, "repeated", 0);
        test_send(store, "w", batch->number, NULL);
    }
}

static int by_index(const void *a, const void *b)
{
    uint64_t x = ((const struct tl_exception *)a)->index;
    uint64_t y = ((const struct tl_exception *)b)->index;
    return (x > y) - (x < y);
}

static int ascending(const void *a, const void *b)
{
    tl_place x = *(const tl_place *)a, y = *(const tl_place *)b;
    return (x > y) - (x < y);
}

static void compare_batch(const struct expected_batch *expected, const struct tl_event *event)
{
    assert_int_equal(event->batch, expected->number);
    assert_int_equal(event->first_seq, expected->first_seq);
    assert_int_equal(event->n_exceptions, expected->n);
    if (expected->n > 0)
        qsort(event->exceptions, expected->n, sizeof(*event->exceptions), by_index);
    for (size_t i = 0; i < expected->n; i++) {
        assert_int_equal(event->exceptions[i].index, expected->exceptions[i].index);
        assert_int_equal(event->exceptions[i].outcome, expected->exceptions[i].outcome);
        assert_int_equal(event->exceptions[i].place, expected->exceptions[i].place);
    }
}

static void collect_places(const struct tl_event *event, tl_place *places, size_t *n)
{
    for (size_t i = 0; i < event->places.n; i++)
        for (uint64_t k = 0; k < event->places.runs[i].count; k++) {
            assert_in_range(*n, 0, JOINED_MAX - 1);
            places[(*n)++] = event->places.runs[i].first + k;
        }
}

/* What the events of this round, from `from` on, say of each batch, and who joined. */
static void compare_events(struct test_store *store, struct model *model, const char *from)
{
    static tl_place joined[JOINED_MAX];
    size_t n_batches = 0, n_joined = 0;
    char words[256];
    snprintf(words, sizeof(words), "XRANGE %s (%s +", store->keys.names[TL_KEY_EVENTS], from);
    struct tl_reply *reply = test_redis_call(store->redis, words);
    for (size_t i = 0; i < tl_reply_count(reply); i++) {
        size_t length;
        const struct tl_reply *fields = tl_reply_at(tl_reply_at(reply, i), 1);
        const char *payload = tl_reply_string(tl_reply_at(fields, 1), &length);
        struct tl_event_entry entry;
        struct tl_error err = {0};
        assert_true(tl_events_decode(payload, length, &entry, &err));
        for (size_t k = 0; k < entry.n_events; k++) {
            if (entry.events[k].kind == TL_EVENT_APPLIED) {
                assert_in_range(n_batches, 0, model->n_batches - 1);
                compare_batch(&model->batches[n_batches++], &entry.events[k]);
            } else if (entry.events[k].kind == TL_EVENT_JOINED) {
                collect_places(&entry.events[k], joined, &n_joined);
            }
        }
        tl_events_free(&entry);
    }
    tl_reply_free(reply);
    assert_int_equal(n_batches, model->n_batches);
    assert_int_equal(n_joined, model->n_joined);
    qsort(joined, n_joined, sizeof(*joined), ascending);
    qsort(model->joined, n_joined, sizeof(*joined), ascending);
    assert_memory_equal(joined, model->joined, n_joined * sizeof(*joined));
}

static void compare_visitors(struct test_store *store, const struct model *model)
{
    size_t waiting = 0, active = 0;
    for (unsigned v = 0; v < VISITORS; v++) {
        const struct visitor *visitor = &model->visitors[v];
        char name[16];
        visitor_name(v, name);
        assert_int_equal(test_waiting_place(store, name),
                         visitor->where == WAITS ? (long long)visitor->place : -1);
        assert_int_equal(test_deadline(store, name) >= 0, visitor->where == IN);
        waiting += visitor->where == WAITS;
        active += visitor->where == IN;
    }
    assert_int_equal(test_state(store, "waiting"), waiting);
    assert_int_equal(test_state(store, "active"), active);
    assert_int_equal(test_state(store, "seq"), model->seq);
    test_invariants(store->redis, &store->keys);
}

/* The first n of the line become active. */
static void admit(struct test_store *store, struct model *model, unsigned n)
{
    long long admitted = n > 0 ? test_admit(store, n) : 0;
    for (; admitted > 0; admitted--) {
        struct visitor *first = NULL;
        for (unsigned v = 0; v < VISITORS; v++) {
            struct visitor *visitor = &model->visitors[v];
            if (visitor->where == WAITS && (first == NULL || visitor->place < first->place))
                first = visitor;
        }
        assert_non_null(first);
        first->where = IN;
    }
}

static void round_of_batches(struct test_store *store, struct model *model)
{
    struct tl_apply_counts counts = {0};
    struct tl_error err = {0};
    char words[256], last[TL_STREAM_ID_MAX];
    snprintf(words, sizeof(words), "XREVRANGE %s + - COUNT 1", store->keys.names[TL_KEY_EVENTS]);
    struct tl_reply *reply = test_redis_call(store->redis, words);
    const char *id = tl_reply_string(tl_reply_at(tl_reply_at(reply, 0), 0), NULL);
    snprintf(last, sizeof(last), "%s", id[0] != '\0' ? id : "0-0");
    tl_reply_free(reply);
    model->n_batches = model->n_joined = 0;
    for (unsigned n = 1 + below(BATCHES_MAX); n > 0; n--)
        send_batch(store, model);
    assert_in_range(test_deliver(store), model->n_batches, 64);
    if (!test_apply_pending(store, 1, &counts, &err))
        fail_msg("%s", err.text);
    assert_int_equal(counts.applied, model->n_batches);
    compare_events(store, model, last);
}

/* Of the modes that admit or not, for the admit function as well; the one of a later release is
 * taken for closed. */
static void change_mode(struct test_store *store, struct model *model)
{
    static const struct {
        const char *name;
        bool joins;
    } modes[] = {{"open", true}, {"draining", false}, {"open", true}, {"novel", false}};
    unsigned i = below(sizeof(modes) / sizeof(modes[0]));
    test_redis_ask(store->redis, "HSET %s mode %s", store->keys.names[TL_KEY_CONFIG],
                   modes[i].name);
    model->closed = !modes[i].joins;
}

static void run_model(struct test_store *store, const char *limit, unsigned max_waiting,
                      bool changes_mode)
{
    static struct model model;
    char settings[128];
    model = (struct model){.max_waiting = max_waiting, .changes_mode = changes_mode};
    random_state = random_seed("apply_model");
    snprintf(settings, sizeof(settings),
             "lanes=vip,normal,late capacity=40 session_ttl=1h claim_ttl=1h%s", limit);
    test_store_queue(store, settings);
    for (size_t i = 0; i < INVITES; i++)
        model.spent_by[i] = -1;
    for (unsigned i = 0; i < ROUNDS; i++) {
        if (model.changes_mode)
            change_mode(store, &model);
        round_of_batches(store, &model);
        compare_visitors(store, &model);
        admit(store, &model, below(3) == 0 ? below(30) : 0);
    }
    assert_int_equal(test_waiting_place(store, "repeated"), -1);
}

static void each_visitor_ends_as_in_the_model(void **state)
{
    run_model(*state, "", 0, false);
}

/* Also where joins of one call find room for some of them only. */
static void a_full_line_takes_exactly_so_many(void **state)
{
    run_model(*state, " max_waiting=25 reopen.margin=0% reopen.after=0s", 25, false);
}

/* Whatever the mode, those who hold a place keep it, and no one else gets one while it is closed.
 */
static void a_mode_keeps_newcomers_out_and_no_one_else(void **state)
{
    run_model(*state, "", 0, true);
    test_redis_ask(((struct test_store *)*state)->redis, "FLUSHALL");
    run_model(*state, " max_waiting=25 reopen.margin=0% reopen.after=0s", 25, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(each_visitor_ends_as_in_the_model, test_store_clean),
        cmocka_unit_test_setup(a_full_line_takes_exactly_so_many, test_store_clean),
        cmocka_unit_test_setup(a_mode_keeps_newcomers_out_and_no_one_else, test_store_clean),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close);
}
