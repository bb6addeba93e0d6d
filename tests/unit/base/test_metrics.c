/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/metrics.h"

enum { JOINS, WAITING, APPLY, LAST_JOIN, N_ROWS };

static const struct tl_metric_desc table[N_ROWS] = {
    [JOINS] = {"tellerline_joins_total", "Joins applied.", TL_COUNTER},
    [WAITING] = {"tellerline_waiting", "Visitors waiting.", TL_GAUGE},
    [APPLY] = {"tellerline_apply_seconds", "Time one step takes.", TL_HISTOGRAM},
    /* Behind the histogram, so that a bucket written out of bounds would show. */
    [LAST_JOIN] = {"tellerline_last_join", "Place given last.", TL_GAUGE},
};

static struct tl_metrics *new_block(void)
{
    struct tl_metrics *block = tl_metrics_new(table, N_ROWS);
    assert_non_null(block);
    return block;
}

static void test_size(void **state)
{
    (void)state;
    assert_int_equal(tl_metrics_size(table, N_ROWS) % 64, 0);
    assert_true(tl_metrics_size(table, 1) < tl_metrics_size(table, N_ROWS));
}

static void test_values(void **state)
{
    (void)state;
    struct tl_metrics *metrics = new_block();
    tl_metrics_add(metrics, JOINS, 5);
    tl_metrics_add(metrics, JOINS, 7);
    tl_metrics_set(metrics, WAITING, 100);
    tl_metrics_add(metrics, WAITING, -130);
    tl_metrics_observe(metrics, APPLY, 1);
    tl_metrics_observe(metrics, APPLY, 1);
    tl_metrics_observe(metrics, APPLY, 99000000);
    assert_int_equal(tl_metrics_get(metrics, JOINS), 12);
    assert_int_equal(tl_metrics_get(metrics, WAITING), -30);
    assert_int_equal(tl_metrics_get(metrics, APPLY), 3);
    assert_int_equal(tl_metrics_get(metrics, LAST_JOIN), 0);
    free(metrics);
}

/* The whole text, of two blocks added up. Bounds are inclusive; what lies beyond 10 s is in +Inf
 * alone. */
static void test_text_of_two_blocks(void **state)
{
    (void)state;
    static const char expected[] =
        "# HELP tellerline_joins_total Joins applied.\n"
        "# TYPE tellerline_joins_total counter\n"
        "tellerline_joins_total{role=\"worker\"} 42\n"
        "# HELP tellerline_waiting Visitors waiting.\n"
        "# TYPE tellerline_waiting gauge\n"
        "tellerline_waiting{role=\"worker\"} -1\n"
        "# HELP tellerline_apply_seconds Time one step takes.\n"
        "# TYPE tellerline_apply_seconds histogram\n"
        "tellerline_apply_seconds_bucket{role=\"worker\",le=\"0.00005\"} 3\n"
        "tellerline_apply_seconds_bucket{role=\"worker\",le=\"0.0001\"} 4\n"
        "tellerline_apply_seconds_bucket{role=\"worker\",le=\"0.0002\"} 4\n"
        "tellerline_apply_seconds_bucket{role=\"worker\",le=\"0.0005\"} 4\n"
        "tellerline_apply_seconds_bucket{role=\"worker\",le=\"0.001\"} 5\n"
        "tellerline_apply_seconds_bucket{role=\"worker\",le=\"0.002\"} 5\n"
        "tellerline_apply_seconds_bucket{role=\"worker\",le=\"0.005\"} 5\n"
        "tellerline_apply_seconds_bucket{role=\"worker\",le=\"0.01\"} 5\n"
        "tellerline_apply_seconds_bucket{role=\"worker\",le=\"0.02\"} 5\n"
        "tellerline_apply_seconds_bucket{role=\"worker\",le=\"0.05\"} 5\n"
        "tellerline_apply_seconds_bucket{role=\"worker\",le=\"0.1\"} 5\n"
        "tellerline_apply_seconds_bucket{role=\"worker\",le=\"0.2\"} 5\n"
        "tellerline_apply_seconds_bucket{role=\"worker\",le=\"0.5\"} 5\n"
        "tellerline_apply_seconds_bucket{role=\"worker\",le=\"1\"} 6\n"
        "tellerline_apply_seconds_bucket{role=\"worker\",le=\"2\"} 6\n"
        "tellerline_apply_seconds_bucket{role=\"worker\",le=\"5\"} 6\n"
        "tellerline_apply_seconds_bucket{role=\"worker\",le=\"10\"} 7\n"
        "tellerline_apply_seconds_bucket{role=\"worker\",le=\"+Inf\"} 8\n"
        "tellerline_apply_seconds_sum{role=\"worker\"} 21.001103\n"
        "tellerline_apply_seconds_count{role=\"worker\"} 8\n"
        "# HELP tellerline_last_join Place given last.\n"
        "# TYPE tellerline_last_join gauge\n"
        "tellerline_last_join{role=\"worker\"} 9007199254740993\n";
    struct tl_metrics *blocks[] = {new_block(), new_block()};
    struct tl_text text = {0};
    tl_metrics_add(blocks[0], JOINS, 40);
    tl_metrics_add(blocks[1], JOINS, 2);
    tl_metrics_set(blocks[0], WAITING, 9);
    tl_metrics_set(blocks[1], WAITING, -10);
    tl_metrics_set(blocks[1], LAST_JOIN, INT64_C(9007199254740993)); /* not exact in a double */
    tl_metrics_observe(blocks[0], APPLY, 1);
    tl_metrics_observe(blocks[1], APPLY, 50);
    tl_metrics_observe(blocks[1], APPLY, -7); /* counts as 0 */
    tl_metrics_observe(blocks[0], APPLY, 51);
    tl_metrics_observe(blocks[0], APPLY, 1000);
    tl_metrics_observe(blocks[1], APPLY, 1000000);
    tl_metrics_observe(blocks[0], APPLY, 10000000);
    tl_metrics_observe(blocks[1], APPLY, 10000001);
    tl_metrics_write(blocks, 2, "role=\"worker\"", &text);
    assert_false(text.failed);
    assert_string_equal(text.data, expected);
    assert_int_equal(text.length, sizeof(expected) - 1);
    tl_text_free(&text);
    free(blocks[0]);
    free(blocks[1]);
}

static void test_text_of_one_block(void **state)
{
    (void)state;
    struct tl_metrics *metrics = new_block();
    struct tl_text text = {0};
    tl_metrics_add(metrics, JOINS, 3);
    tl_metrics_observe(metrics, APPLY, 1500);
    tl_metrics_write(&metrics, 1, "r=\"w\"", &text);
    assert_non_null(strstr(text.data, "\ntellerline_joins_total{r=\"w\"} 3\n"));
    assert_non_null(
        strstr(text.data, "\ntellerline_apply_seconds_bucket{r=\"w\",le=\"0.001\"} 0\n"));
    assert_non_null(
        strstr(text.data, "\ntellerline_apply_seconds_bucket{r=\"w\",le=\"0.002\"} 1\n"));
    assert_non_null(
        strstr(text.data, "\ntellerline_apply_seconds_bucket{r=\"w\",le=\"+Inf\"} 1\n"));
    assert_non_null(strstr(text.data, "\ntellerline_apply_seconds_sum{r=\"w\"} 0.001500\n"));
    assert_non_null(strstr(text.data, "\ntellerline_apply_seconds_count{r=\"w\"} 1\n"));
    tl_text_free(&text);
    tl_metrics_write(&metrics, 0, "r=\"w\"", &text);
    assert_int_equal(text.length, 0);
    free(metrics);
}

/* Long waits, sizes, and a level of which the greatest counts. */
static void test_other_kinds(void **state)
{
    static const struct tl_metric_desc rows[] = {{"wait_seconds", "Waits.", TL_HISTOGRAM_LONG},
                                                 {"batch", "Sizes.", TL_HISTOGRAM_SIZE},
                                                 {"used", "Level.", TL_GAUGE_MAX}};
    struct tl_metrics *blocks[2];
    struct tl_text text = {0};
    (void)state;
    for (int i = 0; i < 2; i++) {
        blocks[i] = tl_metrics_new(rows, 3);
        assert_non_null(blocks[i]);
        tl_metrics_observe(blocks[i], 0, INT64_C(600000000) + i); /* the bound of 600 s, and more */
        tl_metrics_observe(blocks[i], 1, 2 + i);
        tl_metrics_set(blocks[i], 2, 30 - i);
    }
    tl_metrics_write(blocks, 2, "r=\"w\"", &text);
    assert_non_null(strstr(text.data, "# TYPE wait_seconds histogram\n"));
    assert_non_null(strstr(text.data, "\nwait_seconds_bucket{r=\"w\",le=\"600\"} 1\n"));
    assert_non_null(strstr(text.data, "\nwait_seconds_bucket{r=\"w\",le=\"900\"} 2\n"));
    assert_non_null(strstr(text.data, "\nwait_seconds_sum{r=\"w\"} 1200.000001\n"));
    assert_non_null(strstr(text.data, "\nbatch_bucket{r=\"w\",le=\"1\"} 0\n"));
    assert_non_null(strstr(text.data, "\nbatch_bucket{r=\"w\",le=\"2\"} 1\n"));
    assert_non_null(strstr(text.data, "\nbatch_sum{r=\"w\"} 5\nbatch_count{r=\"w\"} 2\n"));
    assert_non_null(strstr(text.data, "# TYPE used gauge\nused{r=\"w\"} 30\n"));
    tl_metrics_add_up(blocks[0], blocks[1]);
    assert_int_equal(tl_metrics_get(blocks[0], 0), 2);
    assert_int_equal(tl_metrics_get(blocks[0], 2), 30);
    tl_text_free(&text);
    free(blocks[0]);
    free(blocks[1]);
}

/* A child's counts are seen by its parent, and outlive the child. */
static void test_shared_memory(void **state)
{
    (void)state;
    size_t size = tl_metrics_size(table, N_ROWS);
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    struct tl_metrics *metrics = tl_metrics_init(memory, table, N_ROWS);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        tl_metrics_add(metrics, JOINS, 1000);
        tl_metrics_observe(metrics, APPLY, 75);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(tl_metrics_get(metrics, JOINS), 1000);
    assert_int_equal(tl_metrics_get(metrics, APPLY), 1);
    assert_int_equal(munmap(memory, size), 0);
}

enum { THREADS = 4, UPDATES = 50000 };

static void *update(void *argument)
{
    struct tl_metrics *metrics = argument;
    for (int i = 0; i < UPDATES; i++) {
        tl_metrics_add(metrics, JOINS, 1);
        tl_metrics_observe(metrics, APPLY, i);
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    struct tl_metrics *metrics = new_block();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, update, metrics), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(tl_metrics_get(metrics, JOINS), THREADS * UPDATES);
    assert_int_equal(tl_metrics_get(metrics, APPLY), THREADS * UPDATES);
    free(metrics);
}

static void test_text_grows(void **state)
{
    (void)state;
    struct tl_text text = {0};
    tl_text_append(&text, "%s", "");
    assert_string_equal(text.data, "");
    for (int i = 0; i < 10000; i++)
        tl_text_append(&text, "%04d\n", i);
    assert_false(text.failed);
    assert_int_equal(text.length, 50000);
    assert_int_equal(strlen(text.data), 50000);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(strtol(text.data + (ptrdiff_t)i * 5, NULL, 10), i);
    /* One piece longer than twice what is there. */
    tl_text_append(&text, "%0*d", 200000, 7);
    assert_int_equal(text.length, 250000);
    assert_int_equal(text.data[text.length - 1], '7');
    assert_true(text.capacity > text.length);
    tl_text_free(&text);
    assert_null(text.data);
    assert_int_equal(text.length, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_size),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_text_of_two_blocks),
        cmocka_unit_test(test_text_of_one_block),
        cmocka_unit_test(test_other_kinds),
        cmocka_unit_test(test_shared_memory),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_text_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
