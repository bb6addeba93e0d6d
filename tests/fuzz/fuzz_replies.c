/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The replies of the store: the input is all that a server says, from the connect on, while we load
 * a line and read its events. Whatever comes, loading fails with an error, or the line is one that
 * can be used.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/store/snapshot.h"
#include "common/wire/events.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A server that says this to the next client and then listens until it goes. */
struct speaker {
    int listener;
    const uint8_t *data;
    size_t size;
};

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void *speak(void *context)
{
    const struct speaker *speaker = context;
    int client = accept(speaker->listener, NULL, NULL);
    char heard[4096];
    require(client >= 0);
    (void)send(client, speaker->data, speaker->size, MSG_NOSIGNAL);
    (void)shutdown(client, SHUT_WR);
    while (read(client, heard, sizeof(heard)) > 0)
        continue;
    close(client);
    return NULL;
}

/* Listens at a socket of its own in /tmp, for the whole run. */
static int listen_at(char *path, size_t size)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(path, size, "/tmp/fuzz-replies-%ld", (long)getpid());
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    (void)unlink(path);
    require(listener >= 0 && bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
            listen(listener, 1) == 0);
    return listener;
}

static bool handle(void *context, const struct tl_keys *keys, const void *payload, size_t length)
{
    (void)context;
    (void)keys;
    struct tl_event_entry entry;
    if (!tl_events_decode(payload, length, &entry, NULL))
        return false;
    tl_events_free(&entry);
    return true;
}

static void read_events(struct tl_redis *redis, const struct tl_keys *keys,
                        const struct tl_tail_head *head)
{
    struct tl_tail *tail = tl_tail_new(handle, NULL);
    require(tail != NULL && tl_tail_follow(tail, keys, head, NULL));
    while (tl_tail_follows(tail, keys) && tl_tail_read_one(tail, redis, 0, NULL, NULL))
        continue;
    tl_tail_free(&tail);
}

static void load(struct tl_redis *redis, const struct tl_keys *keys)
{
    struct tl_error err = {0};
    struct tl_tail_head head;
    struct tl_line *line = NULL;
    if (tl_redis_connect(redis, &err))
        line = tl_snapshot(redis, keys, &head, &err);
    if (line == NULL) {
        require(err.kind != TL_OK && err.text[0] != '\0');
        return;
    }
    require(strlen(head.id) < sizeof(head.id));
    (void)tl_line_waiting(line);
    tl_line_free(&line);
    read_events(redis, keys, &head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int listener = -1;
    static char path[64];
    static struct tl_keys keys;
    if (listener < 0) {
        listener = listen_at(path, sizeof(path));
        tl_keys_init(&keys, "tl:", "door");
    }
    char url[80];
    snprintf(url, sizeof(url), "unix://%s", path);
    struct tl_redis *redis =
        tl_redis_new(&(struct tl_redis_settings){.url = url, .timeout_ms = 5000}, NULL);
    struct speaker speaker = {.listener = listener, .data = data, .size = size};
    pthread_t thread;
    require(redis != NULL);
    require(pthread_create(&thread, NULL, speak, &speaker) == 0);
    load(redis, &keys);
    tl_redis_free(&redis);
    require(pthread_join(thread, NULL) == 0);
    return 0;
}
