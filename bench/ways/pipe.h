/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to Redis with a pipeline: commands are sent without waiting, replies counted. */
#ifndef TL_BENCH_PIPE_H
#define TL_BENCH_PIPE_H

#include "common/store/redis.h"
#include "way.h"

#define PIPE_VARIADIC 16              /* commands under way when each carries WAY_BATCH visitors */
#define PIPE_SINGLE   (2 * WAY_BATCH) /* when each carries one */

struct pipe {
    struct tl_redis *redis;
    struct tl_args args; /* the command being built */
    size_t under_way;    /* sent, reply not read */
};

/* Connects to the server that bench/run started (BENCH_REDIS_URL). */
void pipe_open(struct pipe *pipe);
void pipe_close(struct pipe *pipe);

/* Begins the command in pipe->args. */
void pipe_begin(struct pipe *pipe, const char *command, const char *key);
void pipe_visitor(struct pipe *pipe, uint64_t number);
/* Sends it; when `most` are under way, reads half the replies first. */
void pipe_send(struct pipe *pipe, size_t most);
/* Reads the replies of all that is under way. Returns the sum of the whole numbers among them. */
int64_t pipe_drain(struct pipe *pipe);
/* Sends what was begun and returns its reply, with nothing else under way. The caller frees it. */
struct tl_reply *pipe_call(struct pipe *pipe);
/* The next reply; the caller frees it. */
struct tl_reply *pipe_next(struct pipe *pipe);

/* A whole command of words, the last NULL; its reply as a number (a nil is 0). */
int64_t pipe_ask(struct pipe *pipe, const char *word, ...) __attribute__((sentinel));
/* The server's clock, Unix ms. */
int64_t pipe_now_ms(struct pipe *pipe);
void pipe_flush_all(struct pipe *pipe);

/* ---- what several ways have in common: a Sorted Set `waiting`, score = number of the visitor ----
 */

void line_join(struct pipe *pipe, uint64_t first, uint64_t n);
/* Positions by ZRANK. */
void line_positions(struct pipe *pipe, const uint64_t *visitors, size_t n, uint64_t *answers);
/* ZPOPMIN: takes up to n from the front; [id, score, id, score...]. The caller frees it. */
struct tl_reply *line_pop(struct pipe *pipe, uint64_t n);

#endif
