#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "worker/feed/mailbox.h"

/* The other thread waits while more than this is undelivered, and the loop serves requests between
 * slices. */
enum { BYTES_MAX = 64 * 1024 * 1024, SLICE_US = 5000 };

struct tl_mailbox {
    pthread_mutex_t mutex;
    pthread_cond_t room;
    struct tl_message *first, **end;
    size_t bytes;
    bool closed;
    struct tl_message *delivering, **delivering_end; /* the loop's own */
    uv_async_t async;
    void *context;
    void (*deliver)(void *context, struct tl_message *message);
};

struct tl_message *tl_message_new(enum tl_message_kind kind, const char *queue, size_t n)
{
    struct tl_message *message = calloc(1, sizeof(*message) + n);
    if (message == NULL)
        return NULL;
    message->kind = kind;
    message->length = n;
    if (queue != NULL)
        snprintf(message->queue, sizeof(message->queue), "%s", queue);
    return message;
}

void tl_message_free(struct tl_message *message)
{
    tl_line_free(&message->line);
    free(message->settings);
    free(message);
}

static size_t weight(const struct tl_message *message)
{
    return sizeof(*message) + message->length;
}

static void take_all(struct tl_mailbox *box)
{
    pthread_mutex_lock(&box->mutex);
    if (box->first != NULL) {
        *box->delivering_end = box->first;
        box->delivering_end = box->end;
        box->first = NULL;
        box->end = &box->first;
    }
    pthread_mutex_unlock(&box->mutex);
}

static void give_room(struct tl_mailbox *box, size_t bytes)
{
    pthread_mutex_lock(&box->mutex);
    box->bytes -= bytes;
    pthread_cond_signal(&box->room);
    pthread_mutex_unlock(&box->mutex);
}

static void on_async(uv_async_t *async)
{
    struct tl_mailbox *box = async->data;
    int64_t until_us = tl_clock_us() + SLICE_US;
    size_t done = 0;
    take_all(box);
    while (box->delivering != NULL && tl_clock_us() < until_us) {
        struct tl_message *message = box->delivering;
        box->delivering = message->next;
        if (box->delivering == NULL)
            box->delivering_end = &box->delivering;
        done += weight(message);
        box->deliver(box->context, message);
        tl_message_free(message);
    }
    if (done > 0)
        give_room(box, done);
    if (box->delivering != NULL)
        uv_async_send(&box->async);
}

struct tl_mailbox *tl_mailbox_new(uv_loop_t *loop, void *context,
                                  void (*deliver)(void *context, struct tl_message *message))
{
    struct tl_mailbox *box = calloc(1, sizeof(*box));
    if (box == NULL || uv_async_init(loop, &box->async, on_async) != 0) {
        free(box);
        return NULL;
    }
    box->async.data = box;
    box->context = context;
    box->deliver = deliver;
    box->end = &box->first;
    box->delivering_end = &box->delivering;
    pthread_mutex_init(&box->mutex, NULL);
    pthread_cond_init(&box->room, NULL);
    return box;
}

void tl_mailbox_close(struct tl_mailbox *box)
{
    pthread_mutex_lock(&box->mutex);
    box->closed = true;
    pthread_cond_signal(&box->room);
    pthread_mutex_unlock(&box->mutex);
}

static void on_closed(uv_handle_t *handle)
{
    struct tl_mailbox *box = uv_handle_get_data(handle);
    take_all(box);
    while (box->delivering != NULL) {
        struct tl_message *message = box->delivering;
        box->delivering = message->next;
        tl_message_free(message);
    }
    pthread_cond_destroy(&box->room);
    pthread_mutex_destroy(&box->mutex);
    free(box);
}

void tl_mailbox_free(struct tl_mailbox **box)
{
    if (*box == NULL)
        return;
    uv_close((uv_handle_t *)&(*box)->async, on_closed);
    *box = NULL;
}

void tl_mailbox_put(struct tl_mailbox *box, struct tl_message *message)
{
    message->next = NULL;
    pthread_mutex_lock(&box->mutex);
    while (box->bytes > BYTES_MAX && !box->closed)
        pthread_cond_wait(&box->room, &box->mutex);
    box->bytes += weight(message);
    *box->end = message;
    box->end = &message->next;
    pthread_mutex_unlock(&box->mutex);
    uv_async_send(&box->async);
}
