/* The crowd: whose turn it is, who stands at a place, and who has no number yet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "worker/queue/crowd.h"

static struct tl_subscriber *add(struct tl_crowd *crowd, const char *visitor, tl_place place)
{
    struct tl_ticket ticket = {.place = place};
    snprintf(ticket.visitor, sizeof(ticket.visitor), "%s", visitor);
    struct tl_subscriber *subscriber = tl_crowd_add(crowd, &ticket);
    assert_non_null(subscriber);
    assert_int_equal(subscriber->place, place);
    assert_string_equal(subscriber->visitor, visitor);
    return subscriber;
}

static int start(void **state)
{
    *state = tl_crowd_new();
    return *state == NULL;
}

static int finish(void **state)
{
    struct tl_crowd *crowd = *state;
    while (tl_crowd_count(crowd) > 0)
        tl_crowd_remove(crowd, tl_crowd_turn(crowd));
    tl_crowd_free(&crowd);
    tl_crowd_free(&crowd); /* once is enough, twice does no harm */
    return crowd != NULL;
}

static void each_has_its_turn(void **state)
{
    struct tl_crowd *crowd = *state;
    assert_null(tl_crowd_turn(crowd));
    struct tl_subscriber *a = add(crowd, "a", 1);
    assert_ptr_equal(tl_crowd_turn(crowd), a);
    assert_ptr_equal(tl_crowd_turn(crowd), a);
    struct tl_subscriber *b = add(crowd, "b", 2);
    struct tl_subscriber *c = add(crowd, "c", 3);
    assert_int_equal(tl_crowd_count(crowd), 3);
    assert_ptr_equal(tl_crowd_turn(crowd), a);
    assert_ptr_equal(tl_crowd_turn(crowd), b);
    /* A new one comes last: behind c and a, in front of b. */
    struct tl_subscriber *d = add(crowd, "d", 4);
    assert_ptr_equal(tl_crowd_turn(crowd), c);
    assert_ptr_equal(tl_crowd_turn(crowd), a);
    assert_ptr_equal(tl_crowd_turn(crowd), b);
    assert_ptr_equal(tl_crowd_turn(crowd), d);
}

static void the_turn_passes_when_its_holder_leaves(void **state)
{
    struct tl_crowd *crowd = *state;
    struct tl_subscriber *a = add(crowd, "a", 1);
    struct tl_subscriber *b = add(crowd, "b", 2);
    struct tl_subscriber *c = add(crowd, "c", 3);
    tl_crowd_remove(crowd, a);
    assert_ptr_equal(tl_crowd_turn(crowd), b);
    tl_crowd_remove(crowd, b); /* not the holder: c keeps the turn */
    assert_ptr_equal(tl_crowd_turn(crowd), c);
    assert_ptr_equal(tl_crowd_turn(crowd), c);
    tl_crowd_remove(crowd, c);
    assert_null(tl_crowd_turn(crowd));
    assert_int_equal(tl_crowd_count(crowd), 0);
    a = add(crowd, "a", 1);
    assert_ptr_equal(tl_crowd_turn(crowd), a);
}

/* The subscribers of a chain, in its order; all NULL behind the last. */
static void expect_chain(struct tl_subscriber *first, struct tl_subscriber *a,
                         struct tl_subscriber *b, struct tl_subscriber *c)
{
    struct tl_subscriber *expected[] = {a, b, c};
    for (size_t i = 0; i < 3; i++) {
        assert_ptr_equal(first, expected[i]);
        first = first != NULL ? first->chain : NULL;
    }
    assert_null(first);
}

static void several_stand_at_one_place(void **state)
{
    struct tl_crowd *crowd = *state;
    struct tl_subscriber *a = add(crowd, "a", 5);
    struct tl_subscriber *b = add(crowd, "a", 5);
    struct tl_subscriber *c = add(crowd, "a", 5);
    struct tl_subscriber *other = add(crowd, "b", 6);
    expect_chain(tl_crowd_at(crowd, 5), c, b, a);
    tl_crowd_remove(crowd, b); /* from the middle */
    expect_chain(tl_crowd_at(crowd, 5), c, a, NULL);
    tl_crowd_remove(crowd, c); /* the first */
    expect_chain(tl_crowd_at(crowd, 5), a, NULL, NULL);
    tl_crowd_remove(crowd, a); /* the only one */
    assert_null(tl_crowd_at(crowd, 5));
    expect_chain(tl_crowd_at(crowd, 6), other, NULL, NULL);
}

static void the_unnumbered_are_a_list_over_all_lanes(void **state)
{
    struct tl_crowd *crowd = *state;
    assert_null(tl_crowd_unnumbered(crowd));
    struct tl_subscriber *a = add(crowd, "a", 0);
    struct tl_subscriber *b = add(crowd, "b", tl_place_make(1, 0));
    struct tl_subscriber *c = add(crowd, "c", 0);
    (void)add(crowd, "d", 1);
    expect_chain(tl_crowd_unnumbered(crowd), c, b, a);
    tl_crowd_remove(crowd, b);
    expect_chain(tl_crowd_unnumbered(crowd), c, a, NULL);
    tl_crowd_remove(crowd, c);
    expect_chain(tl_crowd_unnumbered(crowd), a, NULL, NULL);
    assert_null(tl_crowd_at(crowd, 0));
}

static void a_number_moves_a_subscriber_to_its_place(void **state)
{
    struct tl_crowd *crowd = *state;
    struct tl_subscriber *a = add(crowd, "a", 0);
    struct tl_subscriber *b = add(crowd, "b", 0);
    struct tl_subscriber *c = add(crowd, "b", 9);
    assert_true(tl_crowd_set_place(crowd, b, 9));
    assert_int_equal(b->place, 9);
    expect_chain(tl_crowd_at(crowd, 9), b, c, NULL);
    expect_chain(tl_crowd_unnumbered(crowd), a, NULL, NULL);
    assert_int_equal(tl_crowd_count(crowd), 3);
    assert_ptr_equal(tl_crowd_turn(crowd), a); /* the ring stays as it was */
    assert_ptr_equal(tl_crowd_turn(crowd), b);
    assert_ptr_equal(tl_crowd_turn(crowd), c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_has_its_turn, start, finish),
        cmocka_unit_test_setup_teardown(the_turn_passes_when_its_holder_leaves, start, finish),
        cmocka_unit_test_setup_teardown(several_stand_at_one_place, start, finish),
        cmocka_unit_test_setup_teardown(the_unnumbered_are_a_list_over_all_lanes, start, finish),
        cmocka_unit_test_setup_teardown(a_number_moves_a_subscriber_to_its_place, start, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
