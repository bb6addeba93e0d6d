/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "common/base/clock.h"
#include "worker/feed/mailbox.h"

/* The loop serves requests between two slices of messages. */
enum { SLICE_US = 5000 };

struct tl_mailbox {
    size_t bytes_max;
    pthread_mutex_t mutex; /* guards waiting, bytes, closed */
    pthread_cond_t filled; /* for a reader that is a thread */
    pthread_cond_t space;  /* for the writers */
    struct tl_messages waiting;
    size_t bytes; /* put and not delivered yet */
    bool closed;
    bool has_loop; /* then: */
    uv_async_t async;
    tl_deliver *deliver;
    void *context;
    struct tl_messages delivering; /* the loop's own */
};

void tl_messages_add(struct tl_messages *messages, struct tl_message *message)
{
    message->next = NULL;
    if (messages->first == NULL)
        messages->first = message;
    else
        messages->last->next = message;
    messages->last = message;
}

struct tl_message *tl_messages_take(struct tl_messages *messages)
{
    struct tl_message *message = messages->first;
    if (message != NULL)
        messages->first = message->next;
    return message;
}

/* Moves everything from one list to the end of the other. */
static void move_all(struct tl_messages *to, struct tl_messages *from)
{
    if (from->first == NULL)
        return;
    if (to->first == NULL)
        to->first = from->first;
    else
        to->last->next = from->first;
    to->last = from->last;
    from->first = NULL;
}

static void on_async(uv_async_t *async)
{
    struct tl_mailbox *box = async->data;
    int64_t until_us = tl_clock_us() + SLICE_US;
    size_t bytes = 0;
    struct tl_message *message;
    pthread_mutex_lock(&box->mutex);
    move_all(&box->delivering, &box->waiting);
    pthread_mutex_unlock(&box->mutex);
    do {
        message = tl_messages_take(&box->delivering);
        if (message == NULL)
            break;
        bytes += message->bytes;
        box->deliver(box->context, message);
    } while (tl_clock_us() < until_us);
    if (bytes > 0) {
        pthread_mutex_lock(&box->mutex);
        box->bytes -= bytes;
        pthread_cond_broadcast(&box->space);
        pthread_mutex_unlock(&box->mutex);
    }
    if (box->delivering.first != NULL)
        uv_async_send(&box->async);
}

struct tl_mailbox *tl_mailbox_new(uv_loop_t *loop, size_t bytes_max, tl_deliver *deliver,
                                  void *context, struct tl_error *err)
{
    struct tl_mailbox *box = calloc(1, sizeof(*box));
    int problem = box != NULL && loop != NULL ? uv_async_init(loop, &box->async, on_async) : 0;
    if (box == NULL || problem != 0) {
        tl_error_set(err, box == NULL ? TL_ERR_NOMEM : TL_ERR_SYSTEM, "cannot create a mailbox: %s",
                     uv_strerror(box == NULL ? UV_ENOMEM : problem));
        free(box);
        return NULL;
    }
    box->bytes_max = bytes_max;
    box->has_loop = loop != NULL;
    box->async.data = box;
    box->deliver = deliver;
    box->context = context;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&box->mutex, NULL);
    pthread_cond_init(&box->filled, &attributes);
    pthread_cond_init(&box->space, NULL);
    pthread_condattr_destroy(&attributes);
    return box;
}

void tl_mailbox_close(struct tl_mailbox *box)
{
    pthread_mutex_lock(&box->mutex);
    box->closed = true;
    pthread_cond_broadcast(&box->filled);
    pthread_cond_broadcast(&box->space);
    pthread_mutex_unlock(&box->mutex);
}

static void on_closed(uv_handle_t *handle)
{
    free(uv_handle_get_data(handle));
}

void tl_mailbox_free(struct tl_mailbox **box, struct tl_messages *left)
{
    struct tl_mailbox *old = *box;
    *box = NULL;
    if (old == NULL)
        return;
    move_all(left, &old->delivering);
    move_all(left, &old->waiting);
    pthread_cond_destroy(&old->space);
    pthread_cond_destroy(&old->filled);
    pthread_mutex_destroy(&old->mutex);
    if (old->has_loop)
        uv_close((uv_handle_t *)&old->async, on_closed);
    else
        free(old);
}

void tl_mailbox_put(struct tl_mailbox *box, struct tl_message *message, size_t bytes)
{
    message->bytes = bytes;
    pthread_mutex_lock(&box->mutex);
    while (box->bytes > box->bytes_max && !box->closed)
        pthread_cond_wait(&box->space, &box->mutex);
    box->bytes += bytes;
    tl_messages_add(&box->waiting, message);
    pthread_cond_signal(&box->filled);
    pthread_mutex_unlock(&box->mutex);
    if (box->has_loop)
        uv_async_send(&box->async);
}

bool tl_mailbox_wait(struct tl_mailbox *box, int64_t until_ms, struct tl_messages *messages)
{
    struct timespec until = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000};
    pthread_mutex_lock(&box->mutex);
    while (box->waiting.first == NULL && !box->closed && tl_clock_ms() < until_ms)
        pthread_cond_timedwait(&box->filled, &box->mutex, &until);
    move_all(messages, &box->waiting);
    box->bytes = 0; /* this reader has taken all there were */
    pthread_cond_broadcast(&box->space);
    bool open = !box->closed;
    pthread_mutex_unlock(&box->mutex);
    return open;
}
