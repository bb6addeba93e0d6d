/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/store/library.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "rate_world.h"

struct world *test_rate_new(struct test_store *store, const char *settings)
{
    struct world *world = calloc(1, sizeof(*world));
    assert_non_null(world);
    world->store = store;
    test_library_variant(store->redis, "clock", (const char *const[]){TEST_CLOCK, NULL});
    world->admit = "tl_clock_admit";
    test_store_queue(store, settings);
    world->time_ms = test_redis_ms(store->redis);
    test_rate_look(world);
    return world;
}

void test_rate_look(struct world *world)
{
    tl_store_clock_note(&world->clocks[1 - world->serving], world->time_ms + world->ahead_ms,
                        world->time_ms, world->time_ms);
}

void test_rate_take_over(struct world *world)
{
    world->serving = 1 - world->serving;
    world->told_ms = 0;
}

void test_rate_free(struct world **world)
{
    free(*world);
    *world = NULL;
}

static void eval(struct world *world, const char *script, long long n)
{
    char number[24];
    struct tl_args args = {0};
    struct tl_error err = {0};
    snprintf(number, sizeof(number), "%lld", n);
    tl_args_strs(&args, "EVAL", script, "0", number, NULL);
    if (!tl_redis_do(world->store->redis, &args, &err))
        fail_msg("%s", err.text);
    tl_args_free(&args);
}

void test_rate_join(struct world *world, long long n)
{
    eval(world,
         "local s, n = 'tl:{q}:state', tonumber(ARGV[1]) "
         "local last = redis.call('HINCRBY', s, 'seq', n) "
         "for i = last - n + 1, last do redis.call('ZADD', 'tl:{q}:waiting', i, 'v' .. i) end "
         "redis.call('HINCRBY', s, 'joined', n) redis.call('HINCRBY', s, 'waiting', n)",
         n);
}

void test_rate_end_sessions(struct world *world, long long n)
{
    eval(world,
         "local s, gone = 'tl:{q}:state', redis.call('ZPOPMIN', 'tl:{q}:active', ARGV[1]) "
         "for i = 1, #gone, 2 do redis.call('HDEL', 'tl:{q}:sessions', gone[i]) end "
         "if #gone == 0 then return end "
         "redis.call('HINCRBY', s, 'active', -#gone / 2) "
         "redis.call('HINCRBY', s, 'completed', #gone / 2)",
         n);
}

void test_rate_empty_line(struct world *world)
{
    eval(world,
         "local n = redis.call('ZCARD', 'tl:{q}:waiting') redis.call('DEL', 'tl:{q}:waiting') "
         "redis.call('HINCRBY', 'tl:{q}:state', 'left', n) "
         "redis.call('HSET', 'tl:{q}:state', 'waiting', 0)",
         0);
}

/* The budget as the step left it is one that an audit finds possible. */
static void check_budget(const struct world *world)
{
    struct test_store *store = world->store;
    struct tl_reply *reply =
        test_function(store->redis, "tl_clock_audit_state", &store->keys, "60000", NULL);
    const struct tl_reply *list = tl_reply_at(reply, TL_AUDIT_STATE_FINDINGS);
    for (size_t i = 0; i < tl_reply_count(list); i++) {
        const char *kind = tl_reply_text(tl_reply_at(list, i), 1);
        if (strncmp(kind, "budget", strlen("budget")) == 0)
            fail_msg("%s", tl_reply_text(tl_reply_at(list, i), 2));
    }
    tl_reply_free(reply);
}

void test_rate_step(struct world *world, long long most)
{
    char arguments[160];
    struct test_store *store = world->store;
    struct tl_store_clock *clock = &world->clocks[world->serving];
    long long now_ms = world->time_ms + world->ahead_ms;
    test_redis_ask(store->redis, "DEL test:clock");
    test_redis_ask(store->redis, "RPUSH test:clock %lld %lld", now_ms / 1000, now_ms % 1000 * 1000);
    snprintf(arguments, sizeof(arguments), "%lld 1000 0 %lld %lld %lld", most,
             (long long)tl_store_clock_at(clock, world->time_ms),
             (long long)(clock->jumped_ms - world->told_ms), (long long)clock->jumped_to_ms);
    struct tl_reply *reply =
        test_function(store->redis, world->admit, &store->keys, arguments, NULL);
    world->admitted = tl_reply_integer(tl_reply_at(reply, 0));
    world->left = tl_reply_integer(tl_reply_at(reply, 1));
    assert_int_equal(tl_reply_integer(tl_reply_at(reply, 3)), now_ms);
    world->again_ms = tl_reply_integer(tl_reply_at(reply, 4));
    tl_reply_free(reply);
    check_budget(world);
    if (world->calls++ % 20 == 0) /* looks at every visitor */
        test_invariants(store->redis, &store->keys);
    tl_store_clock_note(clock, now_ms, world->time_ms, world->time_ms);
    world->told_ms = clock->jumped_ms;
    if (world->admitted > 0) {
        assert_true(world->n_steps < STEPS_MAX);
        world->steps[world->n_steps++] = (struct step){.at = world->time_ms,
                                                       .n = world->admitted,
                                                       .rule = world->n_rules,
                                                       .full = world->admitted == most};
    }
}

long long test_rate_admit(struct world *world)
{
    long long n = 0;
    do {
        test_rate_step(world, MOST);
        n += world->admitted;
    } while (world->admitted > 0 && world->left > 0);
    return n;
}

void test_rate_set(struct world *world, const char *name, const char *value)
{
    struct tl_error err = {0};
    if (!test_queue_set(world->store->redis, &world->store->keys, name, value, &err))
        fail_msg("%s", err.text);
}

void test_rate_rule(struct world *world, const char *policy, const struct rule *rule)
{
    char admit[24], every[24], burst[24];
    snprintf(admit, sizeof(admit), "%lld", rule->admit);
    snprintf(every, sizeof(every), "%lldms", rule->every);
    snprintf(burst, sizeof(burst), "%lld", rule->burst);
    const struct tl_queue_change list[] = {
        {"rate.admit", admit},
        {"rate.every", every},
        {"rate.shape", rule->batches ? "batches" : "smooth"},
        {"rate.burst", burst},
        {"policy", policy},
    };
    struct tl_error err = {0};
    if (!tl_queue_configure(world->store->redis, &world->store->keys,
                            &(struct tl_queue_changes){.list = list, .n = 5}, &test_actor, NULL,
                            &err))
        fail_msg("%s", err.text);
    assert_true(world->n_rules < STEPS_MAX - 1);
    world->rules[++world->n_rules] = *rule;
}

void test_rate_forget(struct world *world, const char *kept)
{
    if (kept != NULL)
        test_redis_ask(world->store->redis, "HSET tl:{q}:state store old budget %s", kept);
    else
        test_redis_ask(world->store->redis, "HSET tl:{q}:state store old");
}

void test_rate_budget(struct world *world, char text[200])
{
    struct tl_reply *reply = test_redis_call(world->store->redis, "HGET tl:{q}:state budget");
    snprintf(text, 200, "%s", tl_reply_string(reply, NULL));
    tl_reply_free(reply);
}

/* ---- what must hold ---- */

/* How many a window that ends with this step may hold. Where the rule changed inside the window,
 * the faster of the rules counts for all of it. */
static long long window_limit(const struct world *world, size_t last, size_t first)
{
    const struct rule *rule = &world->rules[world->steps[last].rule];
    long long limit = 0, burst = 0;
    for (size_t i = world->steps[first].rule; i <= world->steps[last].rule; i++) {
        const struct rule *other = &world->rules[i];
        long long n = (rule->every * other->admit + other->every - 1) / other->every;
        if (other->batches && other->admit > n)
            n = other->admit;
        limit = n > limit ? n : limit;
        burst = other->burst > burst ? other->burst : burst;
    }
    return limit + burst;
}

void test_rate_windows(const struct world *world)
{
    size_t first = 0;
    long long sum = 0;
    for (size_t last = 0; last < world->n_steps; last++) {
        const struct step *now = &world->steps[last];
        const struct rule *rule = &world->rules[now->rule];
        /* Rules differ in length: begin each window again from its end. */
        sum = 0;
        for (first = last + 1; first > 0 && world->steps[first - 1].at > now->at - rule->every;)
            sum += world->steps[--first].n;
        long long limit = window_limit(world, last, first);
        if (sum > limit)
            fail_msg("%lld were admitted in %lld ms until step %zu, rule %zu; at most %lld may be",
                     sum, rule->every, last, now->rule, limit);
    }
}

/* A batch begins `every` after the last step of the one before. */
void test_rate_lumps(const struct world *world)
{
    for (size_t i = 1; i < world->n_steps; i++) {
        const struct step *before = &world->steps[i - 1], *now = &world->steps[i];
        const struct rule *rule = &world->rules[now->rule];
        bool goes_on = before->full && before->rule == now->rule;
        if (rule->batches && !goes_on && now->at - before->at < rule->every)
            fail_msg("step %zu begins a batch %lld ms after the one before, not %lld", i,
                     now->at - before->at, rule->every);
    }
}
