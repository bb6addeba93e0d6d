/* SPDX-License-Identifier: Apache-2.0 */
#include "pipe.h"
#include "common/store/reply.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void way_die(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    fputs("ways_bench: ", stderr);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
    exit(1);
}

void way_sleep_ms(int64_t ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

void way_visitor(uint64_t number, char id[WAY_ID_LENGTH + 1])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint64_t bits = 0;
    for (int i = 0; i < WAY_ID_LENGTH; i++) {
        if (i % 10 == 0) {
            /* splitmix64 (G. Steele et al., "Fast splittable pseudorandom number generators",
             * 2014) */
            bits = number * 4 + (uint64_t)i / 10 + UINT64_C(0x9E3779B97F4A7C15);
            bits = (bits ^ (bits >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
            bits = (bits ^ (bits >> 27)) * UINT64_C(0x94D049BB133111EB);
            bits ^= bits >> 31;
        }
        id[i] = digits[bits & 63];
        bits >>= 6;
    }
    id[WAY_ID_LENGTH] = '\0';
}

void pipe_open(struct pipe *pipe)
{
    const char *url = getenv("BENCH_REDIS_URL");
    if (url == NULL)
        way_die("BENCH_REDIS_URL (address of a redis-server) is not set");
    const struct tl_redis_settings settings = {.url = url, .ca_file = "", .timeout_ms = 120000};
    struct tl_error err = {0};
    *pipe = (struct pipe){.redis = tl_redis_new(&settings, &err)};
    if (pipe->redis == NULL || !tl_redis_connect(pipe->redis, &err))
        way_die("%s", err.text);
}

void pipe_close(struct pipe *pipe)
{
    tl_redis_free(&pipe->redis);
    tl_args_free(&pipe->args);
}

void pipe_begin(struct pipe *pipe, const char *command, const char *key)
{
    tl_args_reset(&pipe->args);
    tl_args_str(&pipe->args, command);
    if (key != NULL)
        tl_args_str(&pipe->args, key);
}

void pipe_visitor(struct pipe *pipe, uint64_t number)
{
    char id[WAY_ID_LENGTH + 1];
    way_visitor(number, id);
    tl_args_bin(&pipe->args, id, WAY_ID_LENGTH);
}

struct tl_reply *pipe_next(struct pipe *pipe)
{
    struct tl_error err = {0};
    struct tl_reply *reply = tl_redis_next(pipe->redis, &err);
    if (reply == NULL)
        way_die("%s", err.text);
    pipe->under_way--;
    return reply;
}

void pipe_send(struct pipe *pipe, size_t most)
{
    struct tl_error err = {0};
    if (pipe->under_way >= most) {
        for (size_t i = 0; i < most / 2; i++)
            tl_reply_free(pipe_next(pipe));
    }
    if (!tl_redis_append(pipe->redis, &pipe->args, &err))
        way_die("%s", err.text);
    pipe->under_way++;
}

int64_t pipe_drain(struct pipe *pipe)
{
    int64_t sum = 0;
    while (pipe->under_way > 0) {
        struct tl_reply *reply = pipe_next(pipe);
        if (tl_reply_type(reply) == TL_REPLY_INTEGER)
            sum += tl_reply_integer(reply);
        tl_reply_free(reply);
    }
    return sum;
}

struct tl_reply *pipe_call(struct pipe *pipe)
{
    pipe_drain(pipe);
    pipe_send(pipe, 1);
    return pipe_next(pipe);
}

int64_t pipe_ask(struct pipe *pipe, const char *word, ...)
{
    va_list words;
    tl_args_reset(&pipe->args);
    va_start(words, word);
    for (; word != NULL; word = va_arg(words, const char *))
        tl_args_str(&pipe->args, word);
    va_end(words);
    struct tl_reply *reply = pipe_call(pipe);
    int64_t number = tl_reply_integer(reply);
    tl_reply_free(reply);
    return number;
}

int64_t pipe_now_ms(struct pipe *pipe)
{
    pipe_begin(pipe, "TIME", NULL);
    struct tl_reply *reply = pipe_call(pipe);
    int64_t ms = tl_reply_signed(reply, 0) * 1000 + tl_reply_signed(reply, 1) / 1000;
    tl_reply_free(reply);
    return ms;
}

void pipe_flush_all(struct pipe *pipe)
{
    pipe_ask(pipe, "FLUSHALL", "SYNC", NULL);
    pipe_ask(pipe, "CONFIG", "SET", "notify-keyspace-events", "", NULL);
}

void line_join(struct pipe *pipe, uint64_t first, uint64_t n)
{
    for (uint64_t done = 0; done < n; done += WAY_BATCH) {
        uint64_t batch = n - done < WAY_BATCH ? n - done : WAY_BATCH;
        pipe_begin(pipe, "ZADD", "waiting");
        for (uint64_t i = 0; i < batch; i++) {
            tl_args_uint(&pipe->args, first + done + i);
            pipe_visitor(pipe, first + done + i);
        }
        pipe_send(pipe, PIPE_VARIADIC);
    }
    pipe_drain(pipe);
}

void line_positions(struct pipe *pipe, const uint64_t *visitors, size_t n, uint64_t *answers)
{
    for (size_t i = 0; i < n; i++) {
        pipe_begin(pipe, "ZRANK", "waiting");
        pipe_visitor(pipe, visitors[i]);
        pipe_send(pipe, n + 1);
    }
    for (size_t i = 0; i < n; i++) {
        struct tl_reply *reply = pipe_next(pipe);
        bool waits = tl_reply_type(reply) == TL_REPLY_INTEGER;
        answers[i] = waits ? (uint64_t)tl_reply_integer(reply) + 1 : 0;
        tl_reply_free(reply);
    }
}

struct tl_reply *line_pop(struct pipe *pipe, uint64_t n)
{
    pipe_begin(pipe, "ZPOPMIN", "waiting");
    tl_args_uint(&pipe->args, n);
    return pipe_call(pipe);
}
