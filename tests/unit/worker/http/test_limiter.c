/* SPDX-License-Identifier: Apache-2.0 */
/* Counts per address, shared by processes. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/http/limiter.h"

enum { MINUTE = 60000 };

static struct tl_address address(const char *text)
{
    struct tl_address result;
    if (!tl_address_parse(text, &result))
        fail_msg("not taken for an address: %s", text);
    return result;
}

static int set_up(void **state)
{
    struct tl_error err = {0};
    struct tl_limiter *limiter = tl_limiter_new(&err);
    if (limiter == NULL)
        fail_msg("%s", err.text);
    *state = limiter;
    return 0;
}

static int tear_down(void **state)
{
    struct tl_limiter *limiter = *state;
    tl_limiter_free(&limiter);
    assert_null(limiter);
    return 0;
}

static bool allow(void **state, const struct tl_address *one, uint64_t most, int64_t now_ms)
{
    return tl_limiter_allow(*state, TL_LIMITER_WAITS, one, most, now_ms);
}

static bool within(void **state, const struct tl_address *one, uint64_t most, int64_t now_ms)
{
    return tl_limiter_within(*state, TL_LIMITER_WAITS, one, most, now_ms);
}

/* How many of `tries` are allowed. */
static unsigned allowed(void **state, const struct tl_address *one, uint64_t most, unsigned tries)
{
    unsigned n = 0;
    while (tries-- > 0)
        n += allow(state, one, most, 0);
    return n;
}

/* All of it at once, if it is there; then one each time that one has come back. */
static void an_allowance_comes_back_evenly(void **state)
{
    struct tl_address anna = address("192.0.2.1"), bert = address("192.0.2.2");
    for (int minute = 0; minute < 3; minute++) {
        int64_t now = INT64_C(2) * minute * MINUTE + 5;
        for (int i = 0; i < 3; i++)
            assert_true(allow(state, &anna, 3, now + i));
        assert_false(within(state, &anna, 3, now + MINUTE / 3 - 1));
        assert_false(allow(state, &anna, 3, now + MINUTE / 3 - 1));
        assert_true(within(state, &bert, 3, now + MINUTE / 3 - 1));
        assert_true(allow(state, &bert, 3, now + MINUTE / 3 - 1));
        assert_true(within(state, &anna, 3, now + MINUTE / 3));
        assert_true(allow(state, &anna, 3, now + MINUTE / 3));
        assert_false(allow(state, &anna, 3, now + MINUTE / 3));
    }
}

/* One client that takes all it gets does not use up what others of its address need for the rest of
 * the minute. */
static void joins_come_a_third_at_once_and_then_evenly(void **state)
{
    enum { MOST = 30, STEP = 100 };
    struct tl_address anna = address("192.0.2.1");
    unsigned first = 0, all = 0;
    for (int64_t now = 0; now < MINUTE; now += STEP) {
        bool joins = tl_limiter_allow(*state, TL_LIMITER_JOINS, &anna, MOST, now);
        first += joins && now < MOST / 3 * STEP;
        all += joins;
        assert_true(joins || now >= MOST / 3 * STEP);
    }
    assert_int_equal(first, MOST / 3);
    assert_in_range(all, MOST - 1, MOST);
    assert_true(tl_limiter_allow(*state, TL_LIMITER_JOINS, &anna, MOST, MINUTE));
    assert_false(tl_limiter_within(*state, TL_LIMITER_JOINS, &anna, MOST, MINUTE + 2999));
    assert_true(tl_limiter_within(*state, TL_LIMITER_JOINS, &anna, MOST, MINUTE + 3000));
    assert_true(tl_limiter_allow(*state, TL_LIMITER_JOINS, &anna, 1, 3 * MINUTE));
    assert_false(tl_limiter_allow(*state, TL_LIMITER_JOINS, &anna, 1, 4 * MINUTE - 1));
}

/* Counts of long ago are never taken for counts of now, whatever the machine's time. */
static void counts_of_long_ago_count_for_nothing(void **state)
{
    struct tl_address anna = address("192.0.2.1");
    static const int64_t times[] = {0,
                                    MINUTE,
                                    INT64_C(1048515) * 1000,
                                    INT64_C(1048576) * 1000,
                                    (INT64_C(1) << 42) / 1000 - MINUTE / 2,
                                    (INT64_C(1) << 42) / 1000 + MINUTE,
                                    INT64_C(3600) * 24 * 365 * 1000};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        assert_true(allow(state, &anna, 1, times[i]));
        assert_false(allow(state, &anna, 1, times[i] + MINUTE - 1));
    }
}

static void without_a_limit_all_pass(void **state)
{
    struct tl_address anna = address("192.0.2.1");
    assert_int_equal(allowed(state, &anna, 0, 1000), 1000);
    assert_true(within(state, &anna, 0, 0));
    assert_int_equal(allowed(state, &anna, 1000000, 1000), 1000);
}

static void an_ipv6_customer_is_a_56(void **state)
{
    struct tl_address one = address("2001:db8:0:1::1"), same = address("2001:db8:0:ff:ffff::2");
    struct tl_address neighbour = address("2001:db8:0:100::1");
    assert_true(allow(state, &one, 1, 0));
    assert_false(allow(state, &same, 1, 0));
    assert_true(allow(state, &neighbour, 1, 0));
}

static struct tl_address numbered(struct tl_address start, size_t byte, uint32_t n)
{
    for (size_t k = 0; k < 4; k++)
        start.bytes[byte + k] = (unsigned char)(n >> (24 - 8 * k));
    return start;
}

/* A /48 of 65,536 /64s and 256 /56s: 16 times what one of them may have, and not more; and its
 * neighbour has what is its own. */
static void a_48_has_a_limit_of_its_own(void **state)
{
    struct tl_address start = address("2001:db8:7::"), other = address("2001:db8:8::1");
    unsigned n = 0;
    for (uint32_t i = 0; i < 65536; i += 16) {
        struct tl_address one = numbered(start, 4, 0x00070000U | i);
        n += allow(state, &one, 3, 0);
    }
    assert_int_equal(n, 3 * 16);
    assert_int_equal(allowed(state, &other, 3, 10), 3);
}

/* A provider's /32 with more /48s than the table has room for: each counted customer gets no more
 * than its limit, those beyond share one small count, and other networks notice nothing. */
static void a_network_that_fills_the_table_shuts_out_itself(void **state)
{
    struct tl_address start = address("2001:db8::"), other = address("2001:db9::1");
    struct tl_address v4 = address("198.51.100.1");
    unsigned n = 0, late = 0;
    for (uint32_t i = 0; i < 100000; i++) {
        struct tl_address one = start;
        one.bytes[4] = (unsigned char)(i >> 8);
        one.bytes[5] = (unsigned char)i;
        one.bytes[6] = (unsigned char)(i >> 16);
        bool fits = allow(state, &one, 1, 0);
        n += fits;
        late += fits && i >= 90000;
        assert_false(within(state, &one, 1, 0) && !fits);
    }
    assert_in_range(n, 1, 65536 + 16);
    assert_int_equal(late, 0);
    assert_int_equal(allowed(state, &other, 1, 3), 1);
    assert_int_equal(allowed(state, &v4, 1, 3), 1);
}

/* All of the table is taken: still no address has more than its network's share. */
static void a_full_table_lets_nothing_through(void **state)
{
    struct tl_address start = address("10.0.0.0"), late = address("203.0.113.1");
    for (uint32_t i = 0; i < 18U << 16; i++) {
        struct tl_address one = numbered(start, 12, 0x0A000000U + i);
        (void)allow(state, &one, 1, 0);
    }
    assert_in_range(allowed(state, &late, 1, 1000), 1, 16);
}

enum { CHILDREN = 4, ROUNDS = 5000 };

/* Counts of several processes are one count, and killing one of them in the middle stops nobody. */
static void processes_share_counts(void **state)
{
    struct tl_address anna = address("192.0.2.1"), bert = address("192.0.2.2");
    pid_t pids[CHILDREN], restless;
    _Atomic unsigned *n =
        mmap(NULL, sizeof(*n), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal((void *)n, MAP_FAILED);
    restless = fork();
    if (restless == 0) {
        for (;;)
            (void)allow(state, &bert, 1000000, 0);
    }
    for (size_t i = 0; i < CHILDREN; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            unsigned mine = 0;
            for (int k = 0; k < ROUNDS; k++)
                mine += allow(state, &anna, ROUNDS, 0);
            *n += mine;
            _exit(0);
        }
        assert_true(pids[i] > 0);
    }
    kill(restless, SIGKILL);
    assert_int_equal(waitpid(restless, NULL, 0), restless);
    for (size_t i = 0; i < CHILDREN; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(*n, ROUNDS);
    assert_true(allow(state, &bert, 1000001, 0));
    munmap((void *)n, sizeof(*n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_allowance_comes_back_evenly, set_up, tear_down),
        cmocka_unit_test_setup_teardown(joins_come_a_third_at_once_and_then_evenly, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(counts_of_long_ago_count_for_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_a_limit_all_pass, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_ipv6_customer_is_a_56, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_48_has_a_limit_of_its_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_network_that_fills_the_table_shuts_out_itself, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_full_table_lets_nothing_through, set_up, tear_down),
        cmocka_unit_test_setup_teardown(processes_share_counts, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
