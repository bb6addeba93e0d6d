/* SPDX-License-Identifier: Apache-2.0 */
/* The subscribers of a queue: whose turn it is, which are at a place, which have no number yet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "worker/queue/queue.h"
#include "worker/visit/subscriber_table.h"

static struct tl_queue queue; /* of all */

static struct tl_subscriber *add(struct tl_subscriber_table *table, const char *visitor,
                                 tl_place place)
{
    struct tl_ticket ticket = {.place = place};
    snprintf(ticket.visitor, sizeof(ticket.visitor), "%s", visitor);
    struct tl_subscriber *subscriber = tl_subscriber_table_add(table, &queue, &ticket);
    assert_non_null(subscriber);
    assert_int_equal(subscriber->ticket.place, place);
    assert_string_equal(subscriber->ticket.visitor, visitor);
    return subscriber;
}

static int start(void **state)
{
    static struct tl_subscriber_table table;
    tl_subscriber_table_init(&table);
    *state = &table;
    return 0;
}

static int finish(void **state)
{
    struct tl_subscriber_table *table = *state;
    while (table->n > 0)
        tl_subscriber_table_remove(table, tl_subscriber_table_next(table));
    tl_subscriber_table_clear(table);
    return 0;
}

static void each_has_its_turn(void **state)
{
    struct tl_subscriber_table *table = *state;
    assert_null(tl_subscriber_table_next(table));
    struct tl_subscriber *a = add(table, "a", 1);
    assert_ptr_equal(tl_subscriber_table_next(table), a);
    assert_ptr_equal(tl_subscriber_table_next(table), a);
    struct tl_subscriber *b = add(table, "b", 2);
    struct tl_subscriber *c = add(table, "c", 3);
    assert_int_equal(table->n, 3);
    assert_ptr_equal(tl_subscriber_table_next(table), a);
    assert_ptr_equal(tl_subscriber_table_next(table), b);
    /* A new one comes last: behind c and a, in front of b. */
    struct tl_subscriber *d = add(table, "d", 4);
    assert_ptr_equal(tl_subscriber_table_next(table), c);
    assert_ptr_equal(tl_subscriber_table_next(table), a);
    assert_ptr_equal(tl_subscriber_table_next(table), b);
    assert_ptr_equal(tl_subscriber_table_next(table), d);
}

static void the_turn_passes_when_its_holder_leaves(void **state)
{
    struct tl_subscriber_table *table = *state;
    struct tl_subscriber *a = add(table, "a", 1);
    struct tl_subscriber *b = add(table, "b", 2);
    struct tl_subscriber *c = add(table, "c", 3);
    tl_subscriber_table_remove(table, a);
    assert_ptr_equal(tl_subscriber_table_next(table), b);
    tl_subscriber_table_remove(table, b); /* not the holder: c keeps the turn */
    assert_ptr_equal(tl_subscriber_table_next(table), c);
    assert_ptr_equal(tl_subscriber_table_next(table), c);
    tl_subscriber_table_remove(table, c);
    assert_null(tl_subscriber_table_next(table));
    assert_int_equal(table->n, 0);
    a = add(table, "a", 1);
    assert_ptr_equal(tl_subscriber_table_next(table), a);
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

static void several_are_at_one_place(void **state)
{
    struct tl_subscriber_table *table = *state;
    struct tl_subscriber *a = add(table, "a", 5);
    struct tl_subscriber *b = add(table, "a", 5);
    struct tl_subscriber *c = add(table, "a", 5);
    struct tl_subscriber *other = add(table, "b", 6);
    expect_chain(tl_subscriber_table_first(table, &queue, "", 5), c, b, a);
    tl_subscriber_table_remove(table, b); /* from the middle */
    expect_chain(tl_subscriber_table_first(table, &queue, "", 5), c, a, NULL);
    tl_subscriber_table_remove(table, c); /* the first */
    expect_chain(tl_subscriber_table_first(table, &queue, "", 5), a, NULL, NULL);
    tl_subscriber_table_remove(table, a); /* the only one */
    assert_null(tl_subscriber_table_first(table, &queue, "", 5));
    expect_chain(tl_subscriber_table_first(table, &queue, "", 6), other, NULL, NULL);
}

/* A walk from the front of the chain, which has the newest first, would take minutes here. */
static void a_crowd_at_one_place_leaves_in_order_of_age(void **state)
{
    enum { CROWD = 200000 };
    struct tl_subscriber_table *table = *state;
    struct tl_subscriber **crowd = calloc(CROWD, sizeof(struct tl_subscriber *));
    assert_non_null(crowd);
    for (tl_place place = 0; place < 2; place++) { /* 0: not numbered */
        for (size_t i = 0; i < CROWD; i++)
            crowd[i] = add(table, "a", place);
        for (size_t i = 0; i < CROWD; i++)
            tl_subscriber_table_remove(table, crowd[i]);
        assert_int_equal(table->n, 0);
    }
    free(crowd);
}

static void the_unnumbered_are_found_by_visitor(void **state)
{
    struct tl_subscriber_table *table = *state;
    assert_null(tl_subscriber_table_first(table, &queue, "a", 0));
    struct tl_subscriber *a = add(table, "a", 0);
    struct tl_subscriber *b = add(table, "a", tl_place_make(1, 0)); /* whatever the lane */
    struct tl_subscriber *c = add(table, "a", 0);
    struct tl_subscriber *other = add(table, "b", 0);
    struct tl_subscriber *numbered = add(table, "a", 1);
    expect_chain(tl_subscriber_table_first(table, &queue, "a", 0), c, b, a);
    expect_chain(tl_subscriber_table_first(table, &queue, "b", 0), other, NULL, NULL);
    expect_chain(tl_subscriber_table_first(table, &queue, "a", 1), numbered, NULL, NULL);
    tl_subscriber_table_remove(table, b);
    expect_chain(tl_subscriber_table_first(table, &queue, "a", 0), c, a, NULL);
    tl_subscriber_table_remove(table, c);
    expect_chain(tl_subscriber_table_first(table, &queue, "a", 0), a, NULL, NULL);
}

static void each_queue_has_places_of_its_own(void **state)
{
    static struct tl_queue other;
    struct tl_subscriber_table *table = *state;
    const struct tl_ticket numbered = {.visitor = "a", .place = 5}, pending = {.visitor = "a"};
    struct tl_subscriber *here = add(table, "a", 5);
    struct tl_subscriber *there = tl_subscriber_table_add(table, &other, &numbered);
    struct tl_subscriber *soon = tl_subscriber_table_add(table, &other, &pending);
    expect_chain(tl_subscriber_table_first(table, &queue, "", 5), here, NULL, NULL);
    expect_chain(tl_subscriber_table_first(table, &other, "", 5), there, NULL, NULL);
    assert_null(tl_subscriber_table_first(table, &queue, "a", 0));
    expect_chain(tl_subscriber_table_first(table, &other, "a", 0), soon, NULL, NULL);
}

static void a_number_moves_a_subscriber_to_its_place(void **state)
{
    struct tl_subscriber_table *table = *state;
    struct tl_subscriber *a = add(table, "a", 0);
    struct tl_subscriber *b = add(table, "b", 0);
    struct tl_subscriber *c = add(table, "b", 9);
    assert_true(tl_subscriber_table_set_place(table, b, 7, 9));
    assert_int_equal(b->ticket.generation, 7);
    assert_int_equal(b->ticket.place, 9);
    expect_chain(tl_subscriber_table_first(table, &queue, "", 9), b, c, NULL);
    assert_null(tl_subscriber_table_first(table, &queue, "b", 0));
    expect_chain(tl_subscriber_table_first(table, &queue, "a", 0), a, NULL, NULL);
    assert_int_equal(table->n, 3);
    assert_ptr_equal(tl_subscriber_table_next(table), a); /* the ring stays as it was */
    assert_ptr_equal(tl_subscriber_table_next(table), b);
    assert_ptr_equal(tl_subscriber_table_next(table), c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_has_its_turn, start, finish),
        cmocka_unit_test_setup_teardown(the_turn_passes_when_its_holder_leaves, start, finish),
        cmocka_unit_test_setup_teardown(several_are_at_one_place, start, finish),
        cmocka_unit_test_setup_teardown(a_crowd_at_one_place_leaves_in_order_of_age, start, finish),
        cmocka_unit_test_setup_teardown(the_unnumbered_are_found_by_visitor, start, finish),
        cmocka_unit_test_setup_teardown(each_queue_has_places_of_its_own, start, finish),
        cmocka_unit_test_setup_teardown(a_number_moves_a_subscriber_to_its_place, start, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
