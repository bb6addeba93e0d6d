/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the streams of many queues. A command that blocks names all streams, and Redis takes the
 * client off all of them whenever one has an entry, which with many queues costs more than the work
 * itself. Above TL_STREAMS_BLOCKING_MAX the server therefore remembers what was read (client
 * tracking, opt-in), tells once over a second connection which stream was written since, and only
 * those are read. In case a message is lost, all are read once in TL_STREAMS_SWEEP_MS.
 *
 * In a cluster no command may name the keys of two queues. So there each node tells what was
 * written, however few the streams are, and each stream is read by a command of its own.
 */
#ifndef TL_STREAMS_H
#define TL_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/log.h"
#include "common/base/named.h"
#include "common/store/store.h"

/* The most streams that one blocking command waits for. */
#define TL_STREAMS_BLOCKING_MAX 32
#define TL_STREAMS_SWEEP_MS     1000
/* In a cluster, where a sweep takes as many commands as there are streams. What tells of writes is
 * asked for an answer more often: a connection that broke unnoticed would tell nothing. */
#define TL_STREAMS_NODE_SWEEP_MS 60000
#define TL_STREAMS_NODE_PING_MS  2000
#define TL_STREAM_ID_MAX         48

struct tl_stream {
    const char *key;           /* borrowed */
    void *thing;               /* the caller's */
    char id[TL_STREAM_ID_MAX]; /* entries after this one are read; the caller moves it on */
    bool rests;                /* is not read */
    bool unread;               /* there may be entries; blocking reads do not ask */
    /* In a cluster: */
    struct tl_redis *redis;    /* its node; NULL: not looked up yet */
    enum tl_error_kind failed; /* the node refused to read it; TL_OK: it did not */
    int64_t retry_ms;          /* one that failed is not read before */
};

/* Learns over a connection of its own what was written of what another one has read. */
struct tl_listener {
    struct tl_redis *redis;      /* the other one */
    struct tl_redis *connection; /* NULL: not open */
    uint64_t epoch;              /* of the other one, whose reads are remembered */
    int64_t sweep_ms;            /* when all streams are read again */
    int64_t ping_ms;             /* of a node: when it is asked for an answer... */
    bool asked;                  /* ...which has not come yet */
};

/* Zeroed but for the first two before the first use. */
struct tl_streams {
    const char *const *command; /* that reads, up to COUNT: {"XREAD", NULL}; borrowed */
    bool writes;                /* so does it, as XREADGROUP: the server remembers no keys of it */
    struct tl_named list;       /* struct tl_stream, by key */
    struct tl_args args;
    struct tl_args look;           /* the command whose keys the server remembers */
    struct tl_listener *listeners; /* one; of a cluster: one for each node */
    size_t n_listeners;
    struct tl_reply **replies; /* what was read last */
    size_t n_replies, replies_capacity;
    struct tl_log_limit limit; /* of nodes that cannot be listened to */
    uint64_t epoch;            /* of the store, when the nodes of the streams were looked up */
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

/* In a cluster, before the streams of each node are read: waits up to block_ms until one may have
 * entries. */
void tl_streams_wait(struct tl_streams *streams, struct tl_store *store, int64_t block_ms);
/* Waits up to block_ms (0, and in a cluster: does not wait) for entries of the streams that do not
 * rest, and reads `most` of each. In a cluster only of those of this node. False when one stream
 * cannot be read, or when one of the two connections broke: then all streams are read again later.
 * In a cluster, a stream that cannot be read is marked as failed, and is not read again until
 * tl_streams_wait finds that enough time has passed. */
bool tl_streams_read(struct tl_streams *streams, struct tl_redis *redis, uint64_t most,
                     int64_t block_ms, struct tl_error *err);
/* What was read: [key, [entry...]] of one stream after the other, borrowed until the next call. *i
 * is 0 at first. NULL at the end. */
const struct tl_reply *tl_streams_next(const struct tl_streams *streams, size_t *i);
/* What was read of this node could not be used, for this reason: its streams are read again after
 * this time. */
void tl_streams_fail(struct tl_streams *streams, const struct tl_redis *redis,
                     enum tl_error_kind reason, int64_t retry_ms);
/* The same for one stream, which is read again in a moment: its slot may be on its way. */
void tl_streams_fail_one(struct tl_stream *stream, enum tl_error_kind reason);
/* What was read last, or anything else, has to be read again. */
void tl_streams_unread(struct tl_streams *streams);

#endif
