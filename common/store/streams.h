/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the streams of many queues. A command that blocks names all streams, and Redis takes the
 * client off all of them whenever one has an entry, which with many queues costs more than the work
 * itself. Above TL_STREAMS_BLOCKING_MAX the server therefore remembers what was read (client
 * tracking, opt-in), tells once over a second connection which stream was written since, and only
 * those are read. In case a message is lost, all are read once in TL_STREAMS_SWEEP_MS.
 */
#ifndef TL_STREAMS_H
#define TL_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/named.h"
#include "common/store/redis.h"

/* The most streams that one blocking command waits for. */
#define TL_STREAMS_BLOCKING_MAX 32
#define TL_STREAMS_SWEEP_MS     1000
#define TL_STREAM_ID_MAX        48

struct tl_stream {
    const char *key;           /* borrowed */
    void *thing;               /* the caller's */
    char id[TL_STREAM_ID_MAX]; /* entries after this one are read; the caller moves it on */
    bool rests;                /* is not read */
    bool unread;               /* there may be entries; blocking reads do not ask */
};

/* Zeroed but for the first two before the first use. */
struct tl_streams {
    const char *const *command; /* that reads, up to COUNT: {"XREAD", NULL}; borrowed */
    bool writes;                /* so does it, as XREADGROUP: the server remembers no keys of it */
    struct tl_named list;       /* struct tl_stream, by key */
    struct tl_args args;
    struct tl_args look;       /* the command whose keys the server remembers */
    struct tl_redis *listener; /* learns what was written; NULL: not open */
    uint64_t epoch;            /* of the connection whose reads are remembered */
    int64_t sweep_ms;          /* when all streams are read again */
};

/* Frees what it holds. */
void tl_streams_free(struct tl_streams *streams);

/* Adds a stream that is not there yet. NULL when out of memory. */
struct tl_stream *tl_streams_add(struct tl_streams *streams, const char *key, void *thing);
/* Does nothing if it is not there. */
void tl_streams_remove(struct tl_streams *streams, const char *key);
/* NULL: it is not there. */
struct tl_stream *tl_streams_find(const struct tl_streams *streams, const char *key);
/* The i-th of list.n. */
struct tl_stream *tl_streams_at(const struct tl_streams *streams, size_t i);

/* Waits up to block_ms (0: does not wait) for entries of the streams that do not rest, and reads
 * `most` of each. *reply gets [[key, [entry...]]...], which the caller frees; NULL when there was
 * no stream to read. False when one stream cannot be read, or when one of the two connections
 * broke: then all streams are read again later. */
bool tl_streams_read(struct tl_streams *streams, struct tl_redis *redis, uint64_t most,
                     int64_t block_ms, struct tl_reply **reply, struct tl_error *err);
/* What was read last, or anything else, has to be read again. */
void tl_streams_unread(struct tl_streams *streams);

#endif
