/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between threads: order, slices, the bound in bytes, the wait, and what is left over. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "worker/feed/mailbox.h"

#define WRITERS  4
#define LONG_MS  3600000
#define MESSAGES 2000

struct note {
    struct tl_message message;
    unsigned writer, number;
};

static _Atomic long alive; /* notes not yet freed */

static struct note *new_note(unsigned writer, unsigned number)
{
    struct note *note = calloc(1, sizeof(*note));
    assert_non_null(note);
    note->writer = writer;
    note->number = number;
    alive++;
    return note;
}

static void free_note(struct tl_message *message)
{
    alive--;
    free(message);
}

struct reader {
    struct tl_mailbox *box;
    unsigned next[WRITERS]; /* the number expected of each writer */
    unsigned count;
    unsigned out_of_order;
    useconds_t pause_us; /* per message */
    unsigned at_timer;   /* count when the timer fired */
};

static void read_note(void *context, struct tl_message *message)
{
    struct reader *reader = context;
    const struct note *note = (struct note *)message;
    reader->out_of_order += note->number != reader->next[note->writer];
    reader->next[note->writer] = note->number + 1;
    reader->count++;
    if (reader->pause_us > 0)
        usleep(reader->pause_us);
    free_note(message);
}

static struct tl_mailbox *new_box(uv_loop_t *loop, struct reader *reader, size_t bytes_max)
{
    struct tl_error err = {0};
    struct tl_mailbox *box = tl_mailbox_new(loop, bytes_max, read_note, reader, &err);
    if (box == NULL)
        fail_msg("%s", err.text);
    return box;
}

struct writer {
    pthread_t thread;
    struct tl_mailbox *box;
    unsigned index, n;
};

static void *write_notes(void *context)
{
    const struct writer *writer = context;
    for (unsigned i = 0; i < writer->n; i++)
        tl_mailbox_put(writer->box, &new_note(writer->index, i)->message, 100);
    return NULL;
}

static void start_writer(struct writer *writer, struct tl_mailbox *box, unsigned index, unsigned n)
{
    *writer = (struct writer){.box = box, .index = index, .n = n};
    assert_int_equal(pthread_create(&writer->thread, NULL, write_notes, writer), 0);
}

static void free_box(struct tl_mailbox **box)
{
    struct tl_messages left = {0};
    struct tl_message *message;
    tl_mailbox_free(box, &left);
    while ((message = tl_messages_take(&left)) != NULL)
        free_note(message);
}

static void close_loop(uv_loop_t *loop, struct tl_mailbox **box)
{
    free_box(box);
    assert_null(*box);
    uv_run(loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(loop), 0);
    assert_int_equal(alive, 0);
}

/* The bound is far below what is written, so that the writers wait again and again. */
static void the_loop_gets_every_message_in_order(void **state)
{
    (void)state;
    uv_loop_t loop;
    struct reader reader = {0};
    struct writer writers[WRITERS];
    uv_loop_init(&loop);
    struct tl_mailbox *box = new_box(&loop, &reader, 1000);
    for (unsigned i = 0; i < WRITERS; i++)
        start_writer(&writers[i], box, i, MESSAGES);
    while (reader.count < WRITERS * MESSAGES)
        uv_run(&loop, UV_RUN_ONCE);
    for (unsigned i = 0; i < WRITERS; i++)
        pthread_join(writers[i].thread, NULL);
    assert_int_equal(reader.count, WRITERS * MESSAGES);
    assert_int_equal(reader.out_of_order, 0);
    close_loop(&loop, &box);
}

static void on_timer(uv_timer_t *timer)
{
    struct reader *reader = timer->data;
    reader->at_timer = reader->count;
    uv_close((uv_handle_t *)timer, NULL);
}

static void other_work_of_the_loop_comes_between_slices(void **state)
{
    (void)state;
    uv_loop_t loop;
    uv_timer_t timer;
    struct reader reader = {.pause_us = 2000};
    uv_loop_init(&loop);
    struct tl_mailbox *box = new_box(&loop, &reader, SIZE_MAX);
    uv_timer_init(&loop, &timer);
    timer.data = &reader;
    uv_timer_start(&timer, on_timer, 1, 0);
    for (unsigned i = 0; i < 50; i++)
        tl_mailbox_put(box, &new_note(0, i)->message, 1);
    while (reader.count < 50)
        uv_run(&loop, UV_RUN_ONCE);
    assert_in_range(reader.at_timer, 0, 20); /* 50 messages take 100 ms, a slice about 5 ms */
    assert_int_equal(reader.out_of_order, 0);
    close_loop(&loop, &box);
}

static void a_thread_waits_for_messages(void **state)
{
    (void)state;
    struct tl_mailbox *box = new_box(NULL, NULL, 1000);
    struct reader reader = {0};
    struct writer writers[WRITERS];
    struct tl_messages messages = {0};
    for (unsigned i = 0; i < WRITERS; i++)
        start_writer(&writers[i], box, i, MESSAGES);
    while (reader.count < WRITERS * MESSAGES) {
        struct tl_message *message;
        assert_true(tl_mailbox_wait(box, tl_clock_ms() + LONG_MS, &messages));
        while ((message = tl_messages_take(&messages)) != NULL)
            read_note(&reader, message);
    }
    for (unsigned i = 0; i < WRITERS; i++)
        pthread_join(writers[i].thread, NULL);
    assert_int_equal(reader.out_of_order, 0);
    free_box(&box);
    assert_int_equal(alive, 0);
}

static void a_wait_ends_at_its_time(void **state)
{
    (void)state;
    struct tl_mailbox *box = new_box(NULL, NULL, 1000);
    struct tl_messages messages = {0};
    int64_t until_ms = tl_clock_ms() + 30;
    assert_true(tl_mailbox_wait(box, until_ms, &messages));
    assert_true(tl_clock_ms() >= until_ms);
    assert_null(messages.first);
    assert_true(tl_mailbox_wait(box, 0, &messages)); /* does not wait */
    free_box(&box);
}

struct waiting_reader {
    struct tl_mailbox *box;
    bool open;
};

static void *wait_for_messages(void *context)
{
    struct waiting_reader *reader = context;
    struct tl_messages messages = {0};
    reader->open = tl_mailbox_wait(reader->box, tl_clock_ms() + LONG_MS, &messages);
    return NULL;
}

static void closing_wakes_the_reader(void **state)
{
    (void)state;
    pthread_t thread;
    struct waiting_reader reader = {.box = new_box(NULL, NULL, 1000), .open = true};
    assert_int_equal(pthread_create(&thread, NULL, wait_for_messages, &reader), 0);
    tl_mailbox_close(reader.box);
    pthread_join(thread, NULL);
    assert_false(reader.open);
    free_box(&reader.box);
}

static void closing_lets_writers_go_and_free_drops_the_rest(void **state)
{
    (void)state;
    uv_loop_t loop;
    struct reader reader = {0};
    struct writer writer;
    uv_loop_init(&loop);
    struct tl_mailbox *box = new_box(&loop, &reader, 1000);
    start_writer(&writer, box, 0, MESSAGES); /* far more than the bound */
    usleep(1000);                            /* it may wait by now: either way it must end */
    tl_mailbox_close(box);
    pthread_join(writer.thread, NULL);
    assert_int_equal(alive, MESSAGES);
    close_loop(&loop, &box);
    assert_int_equal(reader.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loop_gets_every_message_in_order),
        cmocka_unit_test(other_work_of_the_loop_comes_between_slices),
        cmocka_unit_test(a_thread_waits_for_messages),
        cmocka_unit_test(a_wait_ends_at_its_time),
        cmocka_unit_test(closing_wakes_the_reader),
        cmocka_unit_test(closing_lets_writers_go_and_free_drops_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
