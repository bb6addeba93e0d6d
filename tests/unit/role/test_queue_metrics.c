/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/role/queue_metrics.h"

enum { WAITING, OLDEST, JOINED, WAIT, QUEUE_ROWS };
enum { LANE_JOINED, LANE_ROWS };

static const struct tl_metric_desc queue_rows[QUEUE_ROWS] = {
    [WAITING] = {"waiting", "Waiting.", TL_GAUGE},
    [OLDEST] = {"oldest", "Oldest.", TL_GAUGE_MAX},
    [JOINED] = {"joined_total", "Joined.", TL_COUNTER},
    [WAIT] = {"wait_seconds", "Waited.", TL_HISTOGRAM_LONG},
};
static const struct tl_metric_desc lane_rows[LANE_ROWS] = {
    [LANE_JOINED] = {"lane_joined_total", "Joined.", TL_COUNTER},
};
static const struct tl_queue_metrics_tables tables = {.queue = queue_rows,
                                                      .n_queue = QUEUE_ROWS,
                                                      .lane = lane_rows,
                                                      .n_lane = LANE_ROWS,
                                                      .state = true};

static struct tl_queue_series *add(struct tl_queue_metrics *metrics, const char *queue,
                                   int64_t value, unsigned lane)
{
    struct tl_queue_series *series = tl_queue_metrics_add(metrics, queue);
    assert_non_null(series);
    tl_metrics_set(series->values, WAITING, value);
    tl_metrics_set(series->values, OLDEST, value);
    tl_metrics_add(series->values, JOINED, value);
    tl_metrics_add(tl_queue_series_lane(series, lane), LANE_JOINED, value);
    return series;
}

static void write_to(struct tl_queue_metrics *metrics, struct tl_text *text)
{
    tl_text_free(text);
    *text = (struct tl_text){0};
    tl_queue_metrics_write(metrics, "role=\"r\"", text);
    assert_false(text->failed);
}

static void assert_line(const struct tl_text *text, const char *line)
{
    char whole[160];
    snprintf(whole, sizeof(whole), "\n%s\n", line);
    if (strstr(text->data, whole) == NULL)
        fail_msg("no %s in\n%s", line, text->data);
}

static size_t samples(const struct tl_text *text)
{
    size_t n = 0;
    for (const char *at = text->data; (at = strstr(at, "{role=")) != NULL; at++)
        n++;
    return n;
}

/* The whole text of one queue. */
static void test_text(void **state)
{
    static const char expected[] =
        "# HELP waiting Waiting.\n# TYPE waiting gauge\nwaiting{role=\"r\",queue=\"a\"} 7\n"
        "# HELP oldest Oldest.\n# TYPE oldest gauge\noldest{role=\"r\",queue=\"a\"} 7\n"
        "# HELP joined_total Joined.\n# TYPE joined_total counter\n"
        "joined_total{role=\"r\",queue=\"a\"} 7\n"
        "# HELP wait_seconds Waited.\n# TYPE wait_seconds histogram\n"
        "wait_seconds_bucket{role=\"r\",queue=\"a\",le=\"1\"} 0\n";
    static const char end[] = "# HELP lane_joined_total Joined.\n# TYPE lane_joined_total counter\n"
                              "lane_joined_total{role=\"r\",queue=\"a\",lane=\"3\"} 7\n"
                              "# HELP tellerline_queue_state 1, with the state of the queue as a "
                              "label; of the others, how many queues are in it\n"
                              "# TYPE tellerline_queue_state gauge\n"
                              "tellerline_queue_state{role=\"r\",queue=\"a\",state=\"paused\"} 1\n";
    struct tl_queue_metrics *metrics = tl_queue_metrics_new(&tables, 10);
    struct tl_text text = {0};
    (void)state;
    write_to(metrics, &text);
    assert_int_equal(text.length, 0);
    struct tl_queue_series *series = add(metrics, "a", 7, 3);
    assert_null(tl_queue_series_lane(series, 16));
    tl_queue_series_set_state(series, "paused");
    tl_metrics_observe(series->values, WAIT, INT64_C(61000000));
    write_to(metrics, &text);
    assert_memory_equal(text.data, expected, sizeof(expected) - 1);
    assert_line(&text, "wait_seconds_bucket{role=\"r\",queue=\"a\",le=\"60\"} 0");
    assert_line(&text, "wait_seconds_bucket{role=\"r\",queue=\"a\",le=\"120\"} 1");
    assert_line(&text, "wait_seconds_sum{role=\"r\",queue=\"a\"} 61.000000");
    assert_string_equal(text.data + text.length - (sizeof(end) - 1), end);
    tl_queue_metrics_remove(metrics, &series);
    assert_null(series);
    write_to(metrics, &text);
    assert_int_equal(text.length, 0);
    tl_queue_metrics_free(&metrics);
    assert_null(metrics);
}

/* A thousand queues are no more series than the first ten and the others, whose counters do not
 * fall when a queue goes. */
static void test_others_are_added_up(void **state)
{
    struct tl_queue_metrics *metrics = tl_queue_metrics_new(&tables, 10);
    struct tl_queue_series *series[1000];
    struct tl_text text = {0};
    char name[16];
    (void)state;
    for (int64_t i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "q%03d", (int)i);
        series[i] = add(metrics, name, i, 0);
        tl_queue_series_set_state(series[i], i % 2 == 0 ? "open" : "paused");
    }
    write_to(metrics, &text);
    assert_int_equal(samples(&text), 11 * (3 + 20 + 1) + 10 + 2);
    assert_line(&text, "waiting{role=\"r\",queue=\"q009\"} 9");
    assert_null(strstr(text.data, "q010"));
    assert_line(&text, "waiting{role=\"r\",queue=\"_other\"} 499455");
    assert_line(&text, "oldest{role=\"r\",queue=\"_other\"} 999");
    assert_line(&text, "lane_joined_total{role=\"r\",queue=\"_other\",lane=\"0\"} 499455");
    assert_line(&text, "tellerline_queue_state{role=\"r\",queue=\"_other\",state=\"open\"} 495");
    tl_queue_metrics_remove(metrics, &series[999]);
    tl_queue_metrics_remove(metrics, &series[0]);
    write_to(metrics, &text);
    assert_line(&text, "waiting{role=\"r\",queue=\"_other\"} 498456");
    assert_line(&text, "joined_total{role=\"r\",queue=\"_other\"} 499455");
    assert_line(&text, "lane_joined_total{role=\"r\",queue=\"_other\",lane=\"0\"} 499455");
    assert_null(strstr(text.data, "q000"));
    series[0] = add(metrics, "new", 5, 1); /* takes the place of q000 */
    write_to(metrics, &text);
    assert_line(&text, "waiting{role=\"r\",queue=\"new\"} 5");
    tl_text_free(&text);
    tl_queue_metrics_free(&metrics);
}

static void *write_often(void *context)
{
    struct tl_text text = {0};
    for (unsigned i = 0; i < 300; i++)
        write_to(context, &text);
    tl_text_free(&text);
    return NULL;
}

/* The admin listener's thread writes while the program adds and removes queues. */
static void test_two_threads(void **state)
{
    struct tl_queue_metrics *metrics = tl_queue_metrics_new(&tables, 2);
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, write_often, metrics), 0);
    for (unsigned i = 0; i < 300; i++) {
        struct tl_queue_series *series[4];
        for (unsigned k = 0; k < 4; k++)
            series[k] = add(metrics, (const char *[]){"a", "b", "c", "d"}[k], 1, k);
        for (unsigned k = 0; k < 4; k++)
            tl_queue_metrics_remove(metrics, &series[k]);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    tl_queue_metrics_free(&metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text),
                                       cmocka_unit_test(test_others_are_added_up),
                                       cmocka_unit_test(test_two_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
