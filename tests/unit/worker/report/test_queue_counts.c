/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "worker/report/queue_counts.h"

/* A bad hash: all in a row. */
enum { STREAM = 127, NAMED = 64 };

static void count(struct tl_queue_counts *counts, unsigned queue, unsigned times)
{
    char name[32];
    snprintf(name, sizeof(name), "queue-%u", queue);
    for (unsigned i = 0; i < times; i++)
        tl_queue_counts_add(counts, name, STREAM, TL_QUEUE_SESSIONS_FAST);
}

static void assert_sample(const char *text, const char *queue, unsigned value)
{
    char line[160];
    snprintf(line, sizeof(line),
             "\ntellerline_worker_queue_sessions_fast_total{role=\"worker\",queue=\"%s\"} %u\n",
             queue, value);
    if (strstr(text, line) == NULL)
        fail_msg("no %s in %s", line, text);
}

static size_t samples(const char *text)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, "fast_total{")) != NULL; at++)
        n++;
    return n;
}

static void many_queues_are_no_more_series(void **state)
{
    struct tl_error err = {0};
    struct tl_queue_counts *counts = tl_queue_counts_new(NAMED, &err);
    struct tl_text text = {0};
    (void)state;
    assert_non_null(counts);
    for (unsigned queue = 0; queue < 1000; queue++)
        count(counts, queue, 2);
    count(counts, 3, 5);
    count(counts, 999, 1);
    tl_queue_counts_write(counts, "role=\"worker\"", &text);
    assert_false(text.failed);
    assert_sample(text.data, "queue-3", 7);
    assert_sample(text.data, "queue-63", 2);
    assert_sample(text.data, TL_QUEUE_COUNTS_OTHER, 2 * (1000 - NAMED) + 1);
    assert_int_equal(samples(text.data), NAMED + 1);
    tl_text_free(&text);
    tl_queue_counts_free(&counts);
    assert_null(counts);
}

static void without_signs_there_are_no_series(void **state)
{
    struct tl_queue_counts *counts = tl_queue_counts_new(NAMED, NULL);
    struct tl_text text = {0};
    (void)state;
    tl_queue_counts_add(NULL, "bank", 1, TL_QUEUE_JOINS_MANY);
    tl_queue_counts_write(counts, "role=\"worker\"", &text);
    assert_null(strchr(text.data, '{'));
    tl_text_free(&text);
    tl_queue_counts_free(&counts);
}

static void tallies_are_of_64_queues(void **state)
{
    static struct tl_tallies tallies;
    char name[32];
    (void)state;
    for (unsigned queue = 0; queue < 100; queue++) {
        snprintf(name, sizeof(name), "queue-%u", queue);
        struct tl_tally *tally = tl_tallies_of(&tallies, name, STREAM);
        if (queue < TL_TALLIES)
            assert_string_equal(tally->queue, name);
        else
            assert_null(tally);
    }
    assert_ptr_equal(tl_tallies_of(&tallies, "queue-5", STREAM), &tallies.list[5]);
    tallies.list[0].failed = 9;
    tallies.n = 0;
    assert_int_equal(tl_tallies_of(&tallies, "door", STREAM)->failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_queues_are_no_more_series),
        cmocka_unit_test(without_signs_there_are_no_series),
        cmocka_unit_test(tallies_are_of_64_queues),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
