/* SPDX-License-Identifier: Apache-2.0 */
/* The queues of a worker process: by name, from the follower's messages, and towards the store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "tests/unit/worker/queue/fakes.h"
#include "tests/unit/worker/queue/world.h"
#include "worker/queue/queues.h"
#include "worker/report/queue_counts.h"

struct stage {
    struct world world; /* without a queue of its own */
    struct tl_queues queues;
};

/* Instead of the ingest thread. */
static struct {
    bool no_memory;
    int n;
    char queue[TL_QUEUE_NAME_MAX + 1];
    uint64_t number;
    unsigned checks;
    uint64_t promised, late;
} sent;

bool tl_ingest_send(struct tl_ingest *ingest, const char *queue, uint64_t number, void *bytes,
                    size_t length, bool joins)
{
    (void)ingest;
    (void)joins;
    assert_true(length > 0);
    if (sent.no_memory)
        return false;
    free(bytes);
    sent.n++;
    sent.number = number;
    snprintf(sent.queue, sizeof(sent.queue), "%s", queue);
    return true;
}

bool tl_ingest_check(struct tl_ingest *ingest, const char *queue, const char *worker,
                     uint64_t number, const char *entry)
{
    (void)ingest;
    assert_string_equal(queue, sent.queue);
    assert_string_equal(worker, "w");
    assert_int_equal(number, sent.number);
    assert_string_equal(entry, "5-0");
    if (sent.no_memory)
        return false;
    sent.checks++;
    return true;
}

void tl_ingest_promised(struct tl_ingest *ingest, const char *queue,
                        const uint64_t promised[TL_PROMISED_FIELDS])
{
    (void)ingest;
    snprintf(sent.queue, sizeof(sent.queue), "%s", queue);
    sent.promised += promised[TL_PROMISED_ETA_JUDGED];
    sent.late += promised[TL_PROMISED_ETA_LATE];
}

static int start(void **state)
{
    static struct stage stage;
    stage = (struct stage){0};
    memset(&sent, 0, sizeof(sent));
    fakes_reset();
    world_start_env(&stage.world);
    stage.world.env.follower_up = false;
    stage.queues = (struct tl_queues){.env = &stage.world.env, .commands_max = 2};
    *state = &stage;
    return 0;
}

static int finish(void **state)
{
    struct stage *stage = *state;
    tl_queues_clear(&stage->queues);
    world_end(&stage->world);
    return stage->queues.list.n != 0;
}

/* The follower tells of a change of this queue. */
static void take(struct stage *stage, const char *queue, struct tl_change change)
{
    snprintf(change.queue, sizeof(change.queue), "%s", queue);
    struct tl_taken taken = tl_queues_take(&stage->queues, &change, tl_clock_ms());
    if (taken.kind == TL_TAKEN_DELETED) {
        assert_true(taken.queue->deleted);
        tl_queue_free(&taken.queue);
    } else if (taken.kind == TL_TAKEN_ENTRY) {
        tl_events_free(&taken.entry);
    }
}

static struct tl_queue *add(struct stage *stage, const char *name)
{
    const struct tl_queue_settings settings = world_settings();
    take(stage, name,
         (struct tl_change){.kind = TL_CHANGE_LINE, .line = world_line(5), .settings = &settings});
    struct tl_queue *queue = tl_queues_find(&stage->queues, name);
    assert_non_null(queue);
    return queue;
}

static void queues_are_found_by_name(void **state)
{
    static const char *const names[] = {"m", "b", "z", "a", "ma", "y"};
    struct stage *stage = *state;
    assert_null(tl_queues_find(&stage->queues, "a"));
    for (size_t i = 0; i < 6; i++)
        (void)add(stage, names[i]);
    for (size_t i = 0; i < 6; i++)
        assert_string_equal(tl_queues_find(&stage->queues, names[i])->name, names[i]);
    assert_null(tl_queues_find(&stage->queues, "c"));
    assert_null(tl_queues_find(&stage->queues, "zz"));
    take(stage, "m", (struct tl_change){.kind = TL_CHANGE_GONE});
    take(stage, "c",
         (struct tl_change){.kind = TL_CHANGE_GONE}); /* is not known: nothing happens */
    for (size_t i = 1; i < 6; i++)
        assert_string_equal(tl_queues_find(&stage->queues, names[i])->name, names[i]);
    assert_null(tl_queues_find(&stage->queues, "m"));
}

static void a_second_line_is_for_the_same_queue(void **state)
{
    struct stage *stage = *state;
    struct tl_queue *queue = add(stage, "a");
    assert_ptr_equal(add(stage, "a"), queue);
    assert_int_equal(world_metric(&stage->world, TL_WORKER_SNAPSHOTS), 2);
}

static void the_follower_reaches_the_queue(void **state)
{
    struct stage *stage = *state;
    struct tl_queue_settings settings = world_settings();
    struct tl_queue *queue = add(stage, "a");
    settings.capacity = 99;
    take(stage, "a", (struct tl_change){.kind = TL_CHANGE_SETTINGS, .settings = &settings});
    assert_int_equal(queue->settings.capacity, 99);
    take(stage, "a", (struct tl_change){.kind = TL_CHANGE_NOTICE, .bytes = "Soon", .length = 4});
    assert_string_equal(tl_notice_text(&queue->notice, NULL), "Soon");
    struct packed buffer;
    pack_text(&buffer, "[1,11,7,6,3,[[2,[9,1]]]]");
    const struct tl_change entry = {
        .kind = TL_CHANGE_ENTRY, .bytes = buffer.data, .length = buffer.size};
    take(stage, "a", entry);
    take(stage, "unknown", entry);
    pack_free(&buffer);
    assert_int_equal(tl_line_waiting(queue->line), 6);
    take(stage, "", (struct tl_change){.kind = TL_CHANGE_CLOCK, .offset_ms = 1234});
    assert_int_equal(stage->world.env.store_offset_ms, 1234);
    take(stage, "unknown", (struct tl_change){.kind = TL_CHANGE_SETTINGS, .settings = &settings});
    take(stage, "unknown",
         (struct tl_change){.kind = TL_CHANGE_NOTICE, .bytes = "Soon", .length = 4});
}

static void readiness_needs_the_store_and_every_line(void **state)
{
    struct stage *stage = *state;
    const struct tl_store_memory memory = {.used = 97, .limit = 100};
    assert_int_equal(tl_queues_readiness(&stage->queues), TL_STORE_DOWN);
    take(stage, "", (struct tl_change){.kind = TL_CHANGE_STORE, .up = true});
    assert_int_equal(tl_queues_readiness(&stage->queues), TL_LINES_LOADING);
    (void)add(stage, "a");
    assert_int_equal(tl_queues_readiness(&stage->queues), TL_LINES_LOADING);
    take(stage, "", (struct tl_change){.kind = TL_CHANGE_LISTED});
    assert_int_equal(tl_queues_readiness(&stage->queues), TL_READY);
    stage->world.env.refuses = TL_ERR_MISCONF;
    assert_int_equal(tl_queues_readiness(&stage->queues), TL_STORE_NO_DISK);
    stage->world.env.refuses = TL_ERR_OOM;
    assert_int_equal(tl_queues_readiness(&stage->queues), TL_STORE_NO_MEMORY);
    assert_int_equal(tl_queues_readiness_here(&stage->queues), TL_READY);
    stage->world.env.refuses = TL_OK;
    take(stage, "",
         (struct tl_change){.kind = TL_CHANGE_MEMORY, .memory = memory, .level = TL_MEMORY_FULL});
    assert_int_equal(tl_queues_readiness(&stage->queues), TL_STORE_NO_MEMORY);
    assert_int_equal(stage->world.env.memory_percent, 97);
    take(stage, "",
         (struct tl_change){.kind = TL_CHANGE_MEMORY, .memory = memory, .level = TL_MEMORY_ROOM});
    assert_int_equal(tl_queues_readiness(&stage->queues), TL_READY);
    stage->world.env.ingest_up = false;
    assert_int_equal(tl_queues_readiness(&stage->queues), TL_STORE_DOWN);
    assert_int_equal(tl_queues_readiness_here(&stage->queues), TL_READY);
    stage->world.env.draining = true;
    assert_int_equal(tl_queues_readiness_here(&stage->queues), TL_DRAINING);
    assert_int_equal(tl_queues_readiness(&stage->queues), TL_DRAINING);
}

/* Those that are sound are served. */
static void troubled_queues_are_named(void **state)
{
    struct stage *stage = *state;
    char text[64];
    stage->world.env.listed = true;
    take(stage, "bad", (struct tl_change){.kind = TL_CHANGE_TROUBLE});
    take(stage, "bad", (struct tl_change){.kind = TL_CHANGE_TROUBLE});
    assert_int_equal(world_metric(&stage->world, TL_WORKER_TROUBLED), 1);
    assert_int_equal(tl_queues_readiness_here(&stage->queues), TL_QUEUES_TROUBLED);
    (void)add(stage, "a");
    take(stage, "worse", (struct tl_change){.kind = TL_CHANGE_TROUBLE});
    assert_int_equal(tl_queues_readiness_here(&stage->queues), TL_READY);
    tl_queues_troubles(&stage->queues, text, sizeof(text));
    assert_string_equal(text, "not served: bad, worse");
    take(stage, "worse", (struct tl_change){.kind = TL_CHANGE_GONE});
    take(stage, "bad", (struct tl_change){.kind = TL_CHANGE_SOUND});
    assert_int_equal(world_metric(&stage->world, TL_WORKER_TROUBLED), 0);
    assert_int_equal(tl_queues_readiness_here(&stage->queues),
                     TL_LINES_LOADING); /* it has no line yet */
    (void)add(stage, "bad");
    assert_int_equal(tl_queues_readiness_here(&stage->queues), TL_READY);
    tl_queues_troubles(&stage->queues, text, sizeof(text));
    assert_string_equal(text, "");
}

static void receipt(struct stage *stage, const char *queue, bool taken)
{
    tl_queues_batch_sent(
        &stage->queues, queue,
        &(struct tl_batch_receipt){.number = sent.number,
                                   .fate = taken ? TL_BATCH_TAKEN : TL_BATCH_REFUSED,
                                   .entry = taken ? "5-0" : ""},
        1000);
}

static void batches_go_to_the_ingest_thread(void **state)
{
    struct stage *stage = *state;
    (void)add(stage, "a");
    struct tl_queue *queue = add(stage, "b");
    assert_non_null(tl_outbox_join(queue->outbox, "x", 0, NULL, 0));
    assert_int_equal(tl_queues_in_flight(&stage->queues), 1);
    tl_queues_flush(&stage->queues);
    tl_queues_flush(&stage->queues);
    assert_int_equal(sent.n, 1);
    assert_string_equal(sent.queue, "b");
    assert_int_equal(world_metric(&stage->world, TL_WORKER_BATCHES), 1);
    assert_int_equal(world_metric(&stage->world, TL_WORKER_COMMANDS), 1);
    receipt(stage, "unknown", true);
    receipt(stage, "b", false);
    assert_int_equal(stage->world.refused, 1);
    assert_int_equal(tl_queues_in_flight(&stage->queues), 0);
    /* What the thread cannot take is refused. */
    sent.no_memory = true;
    assert_non_null(tl_outbox_join(queue->outbox, "x", 0, NULL, 0));
    tl_queues_flush(&stage->queues);
    assert_int_equal(stage->world.refused, 2);
}

static void the_store_is_asked_about_a_batch_that_is_overdue(void **state)
{
    struct stage *stage = *state;
    struct tl_outbox *outbox = add(stage, "a")->outbox;
    assert_non_null(tl_outbox_join(outbox, "x", 0, NULL, 0));
    tl_queues_flush(&stage->queues);
    receipt(stage, "a", true);
    stage->world.env.follower_up = true;
    tl_queues_tick(&stage->queues, 3999);
    assert_int_equal(sent.checks, 0);
    stage->world.env.ingest_up = false;
    tl_queues_tick(&stage->queues, 4000);
    assert_int_equal(sent.checks, 0);
    stage->world.env.ingest_up = true;
    sent.no_memory = true;
    tl_queues_tick(&stage->queues, 4000);
    sent.no_memory = false;
    tl_queues_tick(&stage->queues, 10000);
    assert_int_equal(sent.checks, 1);
    const struct tl_batch_check gone = {.waits = false};
    tl_queues_batch_checked(&stage->queues, "unknown", sent.number, &gone, 10000);
    tl_queues_batch_checked(&stage->queues, "a", sent.number, &gone, 10000);
    tl_queues_tick(&stage->queues, 10000);
    assert_int_equal(sent.checks, 1);
    assert_int_equal(world_metric(&stage->world, TL_WORKER_BATCHES_MISSED), 1);
    tl_queues_flush(&stage->queues);
    assert_int_equal(sent.n, 2); /* its command is sent again */
}

static void too_many_commands_in_progress_are_noted_each_turn(void **state)
{
    struct stage *stage = *state;
    struct tl_queue *a = add(stage, "a");
    struct tl_queue *b = add(stage, "b");
    assert_non_null(tl_outbox_join(a->outbox, "x", 0, NULL, 0));
    tl_queues_flush(&stage->queues);
    assert_false(stage->world.env.full);
    assert_non_null(tl_outbox_join(b->outbox, "x", 0, NULL, 0));
    tl_queues_flush(&stage->queues);
    assert_true(stage->world.env.full);
    receipt(stage, "b", false);
    tl_queues_flush(&stage->queues);
    assert_false(stage->world.env.full);
}

static void flushed_means_all_sent(void **state)
{
    struct stage *stage = *state;
    struct tl_queue *queue = add(stage, "a");
    assert_true(tl_queues_flushed(&stage->queues));
    assert_non_null(tl_outbox_join(queue->outbox, "y", 0, NULL, 0));
    assert_false(tl_queues_flushed(&stage->queues));
    tl_queues_flush(&stage->queues);
    assert_false(tl_queues_flushed(&stage->queues)); /* the store has not answered */
    receipt(stage, "a", true);
    assert_true(tl_queues_flushed(&stage->queues)); /* the outcome is not waited for */
}

static void a_deleted_queue_settles_its_commands(void **state)
{
    struct stage *stage = *state;
    struct tl_queue *queue = add(stage, "a");
    assert_non_null(tl_outbox_join(queue->outbox, "y", 0, NULL, 0));
    take(stage, "a", (struct tl_change){.kind = TL_CHANGE_GONE});
    assert_null(tl_queues_find(&stage->queues, "a"));
    assert_int_equal(stage->world.refused, 1);
}

static void ticks_measure_the_lines(void **state)
{
    struct stage *stage = *state;
    const struct tl_queue *queues[] = {add(stage, "a"), add(stage, "b")};
    size_t bytes = 0;
    for (size_t i = 0; i < 2; i++)
        bytes += tl_line_bytes(queues[i]->line) + sizeof(queues[i]->eta) +
                 tl_placemap_bytes(&queues[i]->eta.sessions.running);
    tl_queues_tick(&stage->queues, 1000);
    assert_true(bytes > 0);
    assert_int_equal(world_metric(&stage->world, TL_WORKER_LINE_BYTES), bytes);
    assert_int_equal(tl_queues_in_flight(&stage->queues), 0); /* no presence: the store is down */
    stage->world.env.follower_up = true;
    tl_queues_tick(&stage->queues, 1000);
    assert_int_equal(tl_queues_in_flight(&stage->queues), 2);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, start, finish)

/* One of the five is told a wait by the rate, and is called an hour later. */
static void break_a_promise(struct tl_promises *promises, int64_t now_ms)
{
    struct tl_line *line = world_line(5);
    struct tl_eta eta = {0};
    struct tl_run run = {.first = tl_place_make(0, 4), .count = 5};
    struct tl_event event = {.kind = TL_EVENT_JOINED, .places = {.n = 1, .runs = &run}};
    struct tl_event_entry entry = {.n_events = 1, .events = &event, .waiting = 5};
    assert_non_null(line);
    tl_eta_set_rule(&eta, &(struct tl_eta_rule){.admit = 10, .every_ms = 10000}, now_ms);
    tl_eta_set_open(&eta, true, now_ms);
    tl_eta_apply(&eta, &entry, now_ms);
    tl_promises_tick(promises, &eta, line, now_ms);
    event = (struct tl_event){
        .kind = TL_EVENT_ADMITTED, .places = {.n = 1, .runs = &run}, .deadline_ms = 1};
    entry = (struct tl_event_entry){.number = line->event + 1,
                                    .generation = line->generation,
                                    .n_events = 1,
                                    .events = &event,
                                    .active = 8};
    assert_int_equal(tl_line_apply(line, &entry, now_ms + 3600000), TL_LINE_APPLIED);
    tl_promises_apply(promises, line, &entry, now_ms + 3600000);
    tl_placemap_clear(&eta.sessions.running);
    tl_line_free(&line);
}

/* The metric of the waits told that came true. */
static uint64_t judged(const struct tl_queue_counts *counts)
{
    struct tl_text text = {0};
    tl_queue_counts_write(counts, "x=\"y\"", &text);
    const char *sample = strstr(text.data, "\ntellerline_worker_queue_eta_judged_total{");
    assert_non_null(sample);
    sample = strstr(sample, "} ");
    assert_non_null(sample);
    const uint64_t value = strtoull(sample + 2, NULL, 10);
    tl_text_free(&text);
    return value;
}

/* To the metrics at once; to the store ten seconds after it came true, while that takes it. To each
 * once. */
static void what_came_true_is_told(void **state)
{
    struct stage *stage = *state;
    int64_t at_ms = 3601000;
    (void)add(stage, "a");
    break_a_promise(&add(stage, "b")->promises, at_ms - 3600000);
    struct tl_error err;
    struct tl_queue_counts *counts = tl_queue_counts_new(2, &err);
    assert_non_null(counts);
    stage->world.env.queue_counts = counts;
    tl_queues_tick(&stage->queues, at_ms);
    const uint64_t measured = judged(counts);
    assert_true(measured >= 1);
    stage->world.env.follower_up = true;
    tl_queues_tick(&stage->queues, at_ms + 9999);
    stage->world.env.ingest_up = false;
    tl_queues_tick(&stage->queues, at_ms + 10000);
    stage->world.env.ingest_up = true;
    stage->world.env.memory_full = true;
    tl_queues_tick(&stage->queues, at_ms + 10000);
    assert_int_equal(sent.promised, 0);
    stage->world.env.memory_full = false;
    tl_queues_tick(&stage->queues, at_ms + 10000);
    tl_queues_tick(&stage->queues, at_ms + 20000);
    assert_string_equal(sent.queue, "b");
    assert_true(sent.promised >= 1);
    assert_int_equal(sent.late, sent.promised);
    uint64_t once = sent.promised;
    tl_queues_tick(&stage->queues, at_ms + 40000);
    assert_int_equal(sent.promised, once);
    assert_int_equal(measured, once);
    assert_int_equal(judged(counts), once);
    stage->world.env.queue_counts = NULL;
    tl_queue_counts_free(&counts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(queues_are_found_by_name),
        TEST(a_second_line_is_for_the_same_queue),
        TEST(the_follower_reaches_the_queue),
        TEST(readiness_needs_the_store_and_every_line),
        TEST(troubled_queues_are_named),
        TEST(batches_go_to_the_ingest_thread),
        TEST(the_store_is_asked_about_a_batch_that_is_overdue),
        TEST(too_many_commands_in_progress_are_noted_each_turn),
        TEST(flushed_means_all_sent),
        TEST(a_deleted_queue_settles_its_commands),
        TEST(ticks_measure_the_lines),
        TEST(what_came_true_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
