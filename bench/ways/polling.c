/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each poll asks two things, as the pages we read about do: am I in (EXISTS of the active token),
 * and where do I stand (ZRANK). The polls of n visitors are spread evenly over three seconds and
 * sent at their true rate, one pipeline every 10 ms (kind to Redis: real ones come one by one). If
 * they cannot be sent that fast, the figure is an extrapolation and says so.
 */
#include "polling.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "bench/emit.h"
#include "limit.h"
#include "usage.h"

#define EVERY_S  3.0
#define TICK_S   0.01
#define COMMANDS 2 /* of one poll */
#define NAME     "polling every 3 s"

struct polled {
    double polls, seconds, cpu_s, commands;
};

static double now_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static double own_cpu_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void sleep_until(double when)
{
    double left = when - now_s();
    if (left > 0)
        way_sleep_ms((int64_t)(left * 1000) + 1);
}

static void poll_redis(struct pipe *pipe, uint64_t visitor)
{
    char id[WAY_ID_LENGTH + 1];
    char key[WAY_ID_LENGTH + 8];
    way_visitor(visitor, id);
    snprintf(key, sizeof(key), "active:%s", id);
    pipe_begin(pipe, "EXISTS", key);
    pipe_send(pipe, PIPE_SINGLE);
    pipe_begin(pipe, "ZRANK", "waiting");
    tl_args_bin(&pipe->args, id, WAY_ID_LENGTH);
    pipe_send(pipe, PIPE_SINGLE);
}

/* Polls in turn for so many seconds, of Redis (actor: its pipe) or of the order index. */
static struct polled poll_all(void *actor, bool ours, uint64_t n, double seconds)
{
    struct polled sum = {0};
    double commands = usage_redis_commands();
    double cpu = ours ? own_cpu_s() : usage_cpu_s(false);
    double start = now_s();
    uint64_t next = 0;
    while (now_s() - start < seconds) {
        double due = (now_s() - start) / EVERY_S * (double)n; /* polls that should have been sent */
        for (uint64_t burst = 0; sum.polls < due && burst < PIPE_SINGLE; burst++, sum.polls++) {
            uint64_t visitor = 1 + next++ % n;
            uint64_t answer;
            if (ours)
                way_ours.positions(actor, &visitor, 1, &answer);
            else
                poll_redis(actor, visitor);
        }
        if (!ours)
            pipe_drain(actor);
        if (sum.polls >= due)
            sleep_until(now_s() + TICK_S);
    }
    sum.seconds = now_s() - start;
    sum.cpu_s = (ours ? own_cpu_s() : usage_cpu_s(false)) - cpu;
    sum.commands = usage_redis_commands() - commands;
    return sum;
}

static void emit(const char *group, const char *name, bool ours, uint64_t n,
                 const struct polled *polled)
{
    char note[160] = "";
    double wanted = (double)n / EVERY_S;
    double reached = polled->polls / polled->seconds / wanted;
    double scale = 1;
    if (reached < 0.95) {
        scale = 1 / reached;
        snprintf(note, sizeof(note),
                 "extrapolated: only %.0f of %.0f polls a second could be asked",
                 polled->polls / polled->seconds, wanted);
    }
    struct tl_figure commands = {.group = group,
                                 .metric = "everyone learns their place every 3 s: Redis commands",
                                 .name = name,
                                 .n = n,
                                 .ours = ours,
                                 .value = scale * polled->commands / polled->seconds,
                                 .unit = "commands per second",
                                 .lower_is_better = true,
                                 .extrapolated = note[0] != '\0',
                                 .baseline = ours ? NAME : NULL,
                                 .note = note[0] != '\0' ? note : NULL};
    struct tl_figure cpu = commands;
    cpu.metric = "everyone learns their place every 3 s: CPU";
    cpu.value = scale * 100 * polled->cpu_s / polled->seconds;
    cpu.unit = "% of a core";
    if (note[0] == '\0')
        cpu.note = ours ? "of the worker, for the look-ups; HTTP not included"
                        : "of Redis; the web server that asks not included";
    tl_emit_figure(&commands);
    tl_emit_figure(&cpu);
}

void polling_about(const char *group)
{
    tl_emit_about(
        group, NAME,
        "The page asks again every three seconds; each time EXISTS of the active token and "
        "ZRANK of the place.",
        "nextjs-waiting-room, scale architecture (5 s polling), "
        "https://github.com/vercel-labs/nextjs-waiting-room/blob/main/docs/"
        "waiting-room-scale-architecture.md");
}

void polling_measure(const char *group, uint64_t n, double seconds)
{
    struct pipe *pipe = limit_open();
    limit_setup(pipe);
    limit_join(pipe, 1, n);
    struct polled polled = poll_all(pipe, false, n, seconds);
    emit(group, NAME, false, n, &polled);
    limit_close(pipe);

    void *ours = way_ours.open();
    way_ours.setup(ours);
    way_ours.join(ours, 1, n);
    way_ours.settle(ours, n);
    polled = poll_all(ours, true, n, seconds);
    emit(group, way_ours.name, true, n, &polled);
    way_ours.close(ours);
}
