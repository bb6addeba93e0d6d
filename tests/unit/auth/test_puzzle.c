/* SPDX-License-Identifier: Apache-2.0 */
/* Puzzles: who may solve them, when, and what is no solution. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/auth/keyring.h"
#include "common/auth/puzzle.h"
#include "common/auth/secret_file.h"
#include "common/auth/ticket.h"
#include "common/base/net.h"
#include "tests/unit/auth/puzzle_solve.h"

#define KEY_A "0000000a 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n"
#define KEY_B "0000000b ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n"
#define KEY_C "0000000a ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n"

enum { BITS = 6, NOW = 1795000000, WAIT = 10 };

static struct tl_keyring *keyring_of(const char *text)
{
    char folder[] = "/tmp/tl-puzzle-XXXXXX";
    char path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/keys", folder);
    assert_true(tl_secret_create(path, text, strlen(text), "keys", NULL));
    struct tl_keyring *keyring = tl_keyring_load(path, false, NULL);
    assert_non_null(keyring);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
    return keyring;
}

static struct tl_keyring *keyring;
static struct tl_prefix here, there;
static struct tl_puzzle_scope scope; /* of most tests */

static int set_up(void **state)
{
    (void)state;
    keyring = keyring_of(KEY_A);
    assert_true(tl_prefix_parse("203.0.113.7", &here, NULL));
    assert_true(tl_prefix_parse("203.0.113.8", &there, NULL));
    scope = (struct tl_puzzle_scope){.queue = "concert", .prefix = &here};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tl_keyring_free(&keyring);
    return 0;
}

/* The solution of a fresh puzzle. */
static void solve(enum tl_puzzle_kind kind, char solution[TL_PUZZLE_SOLUTION_MAX])
{
    char puzzle[TL_PUZZLE_MAX];
    tl_puzzle_make(keyring, &scope, kind, kind == TL_PUZZLE_WORK ? BITS : WAIT, NOW, puzzle);
    assert_int_equal(strlen(puzzle), 46);
    if (kind == TL_PUZZLE_WORK)
        puzzle_solve(puzzle, BITS, solution);
    else
        snprintf(solution, TL_PUZZLE_SOLUTION_MAX, "%s", puzzle);
}

static enum tl_puzzle_result check(const char *solution, int64_t now)
{
    struct tl_puzzle_solved solved;
    return tl_puzzle_check(keyring, &scope, solution, strlen(solution), now, &solved);
}

static void a_solution_counts_for_its_lifetime(void **state)
{
    (void)state;
    char solution[TL_PUZZLE_SOLUTION_MAX];
    struct tl_puzzle_solved solved;
    solve(TL_PUZZLE_WORK, solution);
    assert_int_equal(strlen(solution), 133);
    for (int64_t now = NOW; now <= NOW + TL_PUZZLE_LIFETIME_S; now += TL_PUZZLE_LIFETIME_S) {
        assert_int_equal(tl_puzzle_check(keyring, &scope, solution, strlen(solution), now, &solved),
                         TL_PUZZLE_SOLVED);
        assert_int_equal(solved.kind, TL_PUZZLE_WORK);
        assert_int_equal(strlen(solved.id), TL_PUZZLE_ID_LENGTH);
        assert_int_equal(solved.id[0], '~');
        assert_true(tl_visitor_valid(solved.id + 1, strlen(solved.id + 1)));
        /* A worker whose clock is a minute behind still takes the solution until then. */
        assert_true(solved.kept_until >= NOW + TL_PUZZLE_LIFETIME_S + 60);
    }
    assert_int_equal(check(solution, NOW + TL_PUZZLE_LIFETIME_S + 1), TL_PUZZLE_EXPIRED);
    assert_int_equal(check(solution, NOW - 60), TL_PUZZLE_SOLVED); /* a clock that is behind */
    assert_int_equal(check(solution, NOW - 61), TL_PUZZLE_EXPIRED);
}

static void a_solution_is_good_for_one_queue_and_one_address(void **state)
{
    (void)state;
    char solution[TL_PUZZLE_SOLUTION_MAX];
    for (int kind = TL_PUZZLE_WORK; kind <= TL_PUZZLE_WAIT; kind++) {
        solve((enum tl_puzzle_kind)kind, solution);
        assert_int_equal(check(solution, NOW + WAIT), TL_PUZZLE_SOLVED);
        scope.queue = "concert2";
        assert_int_equal(check(solution, NOW + WAIT), TL_PUZZLE_FORGED);
        scope = (struct tl_puzzle_scope){.queue = "concert", .prefix = &there};
        assert_int_equal(check(solution, NOW + WAIT), TL_PUZZLE_FORGED);
        scope.prefix = &here;
    }
}

static void a_wait_is_good_after_its_time(void **state)
{
    (void)state;
    char solution[TL_PUZZLE_SOLUTION_MAX];
    solve(TL_PUZZLE_WAIT, solution);
    assert_int_equal(check(solution, NOW), TL_PUZZLE_EARLY);
    assert_int_equal(check(solution, NOW + WAIT - 1), TL_PUZZLE_EARLY);
    assert_int_equal(check(solution, NOW + WAIT), TL_PUZZLE_SOLVED);
    assert_int_equal(check(solution, NOW + TL_PUZZLE_LIFETIME_S + 1), TL_PUZZLE_EXPIRED);
    memcpy(solution + strlen(solution), ".AAAA", sizeof(".AAAA"));
    assert_int_equal(check(solution, NOW + WAIT), TL_PUZZLE_FORGED);
}

static void every_part_must_be_solved(void **state)
{
    (void)state;
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    char solution[TL_PUZZLE_SOLUTION_MAX];
    solve(TL_PUZZLE_WORK, solution);
    unsigned wrong[TL_PUZZLE_PARTS] = {0};
    for (size_t i = 47; i < 132; i++) { /* each digit of the numbers; the last has unused bits */
        size_t part = ((i - 47) * 6 + 5) / 8 / 4; /* which has the last bit of the digit */
        char kept = solution[i];
        solution[i] = digits[(strchr(digits, kept) - digits + 1) % 64];
        enum tl_puzzle_result result = check(solution, NOW);
        assert_true(result == TL_PUZZLE_WRONG || result == TL_PUZZLE_SOLVED);
        wrong[part] += result == TL_PUZZLE_WRONG ? 1 : 0;
        solution[i] = kept;
    }
    for (size_t part = 0; part < TL_PUZZLE_PARTS; part++)
        assert_true(wrong[part] > 0); /* another number solves one of 6 bits once in 64 tries */
    /* The parts differ: the number of one does not serve for another. */
    memcpy(solution + 47 + 16, solution + 47, 16);
    memcpy(solution + 47 + 32, solution + 47, 32);
    assert_int_equal(check(solution, NOW), TL_PUZZLE_WRONG);
}

static void the_difficulty_is_signed(void **state)
{
    (void)state;
    char easy[TL_PUZZLE_MAX], solution[TL_PUZZLE_SOLUTION_MAX];
    unsigned char bytes[34];
    tl_puzzle_make(keyring, &scope, TL_PUZZLE_WORK, 20, NOW, easy);
    assert_int_equal(sodium_base642bin(bytes, 34, easy, 46, NULL, NULL, NULL,
                                       sodium_base64_VARIANT_URLSAFE_NO_PADDING),
                     0);
    assert_int_equal(bytes[9], 20);
    bytes[9] = 1;
    sodium_bin2base64(easy, sizeof(easy), bytes, 34, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    puzzle_solve(easy, 1, solution);
    assert_int_equal(check(solution, NOW), TL_PUZZLE_FORGED);
    bytes[9] = 20;
    bytes[0] = TL_PUZZLE_WAIT; /* the work becomes a wait */
    sodium_bin2base64(easy, sizeof(easy), bytes, 34, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    assert_int_equal(check(easy, NOW + 20), TL_PUZZLE_FORGED);
}

static void what_is_no_solution_is_refused(void **state)
{
    (void)state;
    char solution[TL_PUZZLE_SOLUTION_MAX];
    solve(TL_PUZZLE_WORK, solution);
    for (size_t n = 0; n < strlen(solution); n++) { /* cut short */
        struct tl_puzzle_solved solved;
        assert_int_equal(tl_puzzle_check(keyring, &scope, solution, n, NOW, &solved),
                         TL_PUZZLE_FORGED);
    }
    for (size_t i = 0; i < 45; i++) { /* changed */
        solution[i] = solution[i] == 'A' ? 'B' : 'A';
        assert_int_equal(check(solution, NOW), TL_PUZZLE_FORGED);
        solve(TL_PUZZLE_WORK, solution);
    }
    memcpy(solution + strlen(solution), "A", sizeof("A"));
    assert_int_equal(check(solution, NOW), TL_PUZZLE_FORGED);
}

static void keys_rotate(void **state)
{
    (void)state;
    char solution[TL_PUZZLE_SOLUTION_MAX];
    struct tl_puzzle_solved solved;
    solve(TL_PUZZLE_WORK, solution);
    struct tl_keyring *both = keyring_of(KEY_B KEY_A), *other = keyring_of(KEY_B),
                      *same_id = keyring_of(KEY_C);
    assert_int_equal(tl_puzzle_check(both, &scope, solution, strlen(solution), NOW, &solved),
                     TL_PUZZLE_SOLVED);
    assert_int_equal(tl_puzzle_check(other, &scope, solution, strlen(solution), NOW, &solved),
                     TL_PUZZLE_FORGED);
    assert_int_equal(tl_puzzle_check(same_id, &scope, solution, strlen(solution), NOW, &solved),
                     TL_PUZZLE_FORGED);
    tl_keyring_free(&both);
    tl_keyring_free(&other);
    tl_keyring_free(&same_id);
}

static void puzzles_and_tickets_are_apart(void **state)
{
    (void)state;
    char puzzle[TL_PUZZLE_MAX], text[TL_TICKET_MAX], one[TL_PUZZLE_SOLUTION_MAX],
        other[TL_PUZZLE_SOLUTION_MAX];
    struct tl_ticket ticket = {.visitor = "alice", .place = 1};
    struct tl_puzzle_solved first, second;
    tl_puzzle_make(keyring, &scope, TL_PUZZLE_WAIT, WAIT, NOW, puzzle);
    assert_false(tl_ticket_verify(keyring, "concert", puzzle, strlen(puzzle), &ticket));
    tl_ticket_sign(keyring, "concert", &ticket, text);
    assert_int_equal(check(text, NOW), TL_PUZZLE_FORGED);
    solve(TL_PUZZLE_WORK, one);
    solve(TL_PUZZLE_WORK, other);
    assert_int_equal(tl_puzzle_check(keyring, &scope, one, strlen(one), NOW, &first),
                     TL_PUZZLE_SOLVED);
    assert_int_equal(tl_puzzle_check(keyring, &scope, other, strlen(other), NOW, &second),
                     TL_PUZZLE_SOLVED);
    assert_string_not_equal(first.id, second.id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_solution_counts_for_its_lifetime),
        cmocka_unit_test(a_solution_is_good_for_one_queue_and_one_address),
        cmocka_unit_test(a_wait_is_good_after_its_time),
        cmocka_unit_test(every_part_must_be_solved),
        cmocka_unit_test(the_difficulty_is_signed),
        cmocka_unit_test(what_is_no_solution_is_refused),
        cmocka_unit_test(keys_rotate),
        cmocka_unit_test(puzzles_and_tickets_are_apart),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
