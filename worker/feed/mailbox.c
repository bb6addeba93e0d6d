/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "common/base/clock.h"
#include "worker/feed/mailbox.h"

/* The loop serves requests between two slices of messages. */
enum { SLICE_US = 5000 };

struct tl_mailbox {
    struct tl_mailbox_settings settings;
    pthread_mutex_t mutex; /* guards waiting, bytes, closed */
    pthread_cond_t filled; /* for a reader that is a thread */
    pthread_cond_t space;  /* for the writers */
    struct tl_messages waiting;
    size_t bytes; /* put and not delivered yet */
    bool closed;
    uv_async_t async;              /* with a loop */
    struct tl_messages delivering; /* the loop's own */
};

void tl_messages_init(struct tl_messages *messages)
{
    messages->first = NULL;
    messages->end = &messages->first;
}

void tl_messages_add(struct tl_messages *messages, struct tl_message *message)
{
    message->next = NULL;
    *messages->end = message;
    messages->end = &message->next;
}

struct tl_message *tl_messages_take(struct tl_messages *messages)
{
    struct tl_message *message = messages->first;
    if (message == NULL)
        return NULL;
    messages->first = message->next;
    if (messages->first == NULL)
        messages->end = &messages->first;
    return message;
}

void tl_messages_move(struct tl_messages *to, struct tl_messages *from)
{
    if (from->first == NULL)
        return;
    *to->end = from->first;
    to->end = from->end;
    tl_messages_init(from);
}

static void free_messages(const struct tl_mailbox *box, struct tl_messages *messages)
{
    struct tl_message *message;
    while ((message = tl_messages_take(messages)) != NULL)
        box->settings.free_message(message);
}

static void on_async(uv_async_t *async)
{
    struct tl_mailbox *box = async->data;
    int64_t until_us = tl_clock_us() + SLICE_US;
    size_t bytes = 0;
    struct tl_message *message;
    pthread_mutex_lock(&box->mutex);
    tl_messages_move(&box->delivering, &box->waiting);
    pthread_mutex_unlock(&box->mutex);
    do {
        message = tl_messages_take(&box->delivering);
        if (message == NULL)
            break;
        bytes += message->bytes;
        box->settings.deliver(box->settings.context, message);
        box->settings.free_message(message);
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

struct tl_mailbox *tl_mailbox_new(const struct tl_mailbox_settings *settings, struct tl_error *err)
{
    struct tl_mailbox *box = calloc(1, sizeof(*box));
    if (box == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for a mailbox");
        return NULL;
    }
    int problem = settings->loop != NULL ? uv_async_init(settings->loop, &box->async, on_async) : 0;
    if (problem != 0) {
        tl_error_set(err, TL_ERR_SYSTEM, "cannot create a mailbox: %s", uv_strerror(problem));
        free(box);
        return NULL;
    }
    box->async.data = box;
    box->settings = *settings;
    tl_messages_init(&box->waiting);
    tl_messages_init(&box->delivering);
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

static void destroy(struct tl_mailbox *box)
{
    free_messages(box, &box->delivering);
    free_messages(box, &box->waiting);
    pthread_cond_destroy(&box->space);
    pthread_cond_destroy(&box->filled);
    pthread_mutex_destroy(&box->mutex);
    free(box);
}

static void on_closed(uv_handle_t *handle)
{
    destroy(uv_handle_get_data(handle));
}

void tl_mailbox_free(struct tl_mailbox **box)
{
    struct tl_mailbox *old = *box;
    *box = NULL;
    if (old == NULL)
        return;
    if (old->settings.loop != NULL)
        uv_close((uv_handle_t *)&old->async, on_closed);
    else
        destroy(old);
}

void tl_mailbox_put(struct tl_mailbox *box, struct tl_message *message, size_t bytes)
{
    message->bytes = bytes;
    pthread_mutex_lock(&box->mutex);
    while (box->bytes > box->settings.bytes_max && !box->closed)
        pthread_cond_wait(&box->space, &box->mutex);
    box->bytes += bytes;
    tl_messages_add(&box->waiting, message);
    pthread_cond_signal(&box->filled);
    pthread_mutex_unlock(&box->mutex);
    if (box->settings.loop != NULL)
        uv_async_send(&box->async);
}

bool tl_mailbox_wait(struct tl_mailbox *box, int64_t until_ms, struct tl_messages *messages)
{
    struct timespec until = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000};
    pthread_mutex_lock(&box->mutex);
    while (box->waiting.first == NULL && !box->closed) {
        if (until_ms == TL_MAILBOX_FOREVER)
            pthread_cond_wait(&box->filled, &box->mutex);
        else if (tl_clock_ms() >= until_ms)
            break;
        else
            pthread_cond_timedwait(&box->filled, &box->mutex, &until);
    }
    tl_messages_move(messages, &box->waiting);
    box->bytes = 0; /* this reader has taken all there were */
    pthread_cond_broadcast(&box->space);
    bool open = !box->closed;
    pthread_mutex_unlock(&box->mutex);
    return open;
}
