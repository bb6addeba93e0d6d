/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tellerline: batches of joins go into the ingest stream as a worker writes them, the real
 * tellerline-dispatcher applies them; positions come from the order index, built from a snapshot as
 * a worker builds it; admission and expiry are the real functions, called as the admitter and the
 * expirer call them.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/config/queue_settings.h"
#include "common/store/library.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "common/store/snapshot.h"
#include "common/store/tail.h"
#include "common/wire/batch.h"
#include "pipe.h"

#define PREFIX        "tl:"
#define QUEUE         "bench"
#define STEP          1000  /* admitter.batch and expirer.batch: the defaults */
#define EVENTS_LENGTH 20000 /* retention.events_entries: the default */

struct ours {
    struct pipe pipe;
    struct tl_keys keys;
    struct tl_batch_writer writer;
    uint64_t batches;
    struct tl_line *line;
    uint64_t base_seq; /* the first visitor has the seq after it */
    pid_t dispatcher;  /* of the first actor */
};

static void *ours_open(void)
{
    struct ours *self = calloc(1, sizeof(*self));
    if (self == NULL)
        way_die("out of memory");
    pipe_open(&self->pipe);
    tl_keys_init(&self->keys, PREFIX, QUEUE);
    return self;
}

static void stop_dispatcher(struct ours *self)
{
    if (self->dispatcher > 0) {
        kill(self->dispatcher, SIGTERM);
        waitpid(self->dispatcher, NULL, 0);
        self->dispatcher = 0;
    }
}

static void ours_close(void *actor)
{
    struct ours *self = actor;
    stop_dispatcher(self);
    pipe_close(&self->pipe);
    free(self->writer.bytes);
    tl_line_free(&self->line);
    free(self);
}

static void make_queue(struct ours *self)
{
    static const char *const values[][2] = {
        {"lanes", "only"}, {"capacity", "1400"}, {"session_ttl", "400ms"}, {"claim_ttl", "400ms"}};
    struct tl_queue_settings settings;
    struct tl_error err = {0};
    tl_queue_settings_defaults(&settings);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        if (!tl_queue_settings_set(&settings, values[i][0], values[i][1], TL_FORM_FILE, &err))
            way_die("%s: %s", values[i][0], err.text);
    }
    const struct tl_actor nobody = {.name = "bench", .from = "bench", .kept = 100};
    if (!tl_queue_ensure((struct tl_queue_site){self->pipe.redis, self->pipe.redis}, PREFIX, QUEUE,
                         &settings, &nobody, NULL, &err))
        way_die("%s", err.text);
}

static void start_dispatcher(struct ours *self)
{
    const char *bin = getenv("BENCH_BIN");
    const char *folder = getenv("BENCH_TMP");
    char program[512];
    char config[512];
    if (bin == NULL || folder == NULL)
        way_die("BENCH_BIN and BENCH_TMP have to be set");
    snprintf(program, sizeof(program), "%s/tellerline-dispatcher", bin);
    snprintf(config, sizeof(config), "%s/dispatcher.yaml", folder);
    FILE *file = fopen(config, "w");
    if (file == NULL)
        way_die("cannot write %s", config);
    fprintf(file, "redis:\n  url: %s\nadmin:\n  dispatcher: \"\"\nlog:\n  level: warn\n",
            getenv("BENCH_REDIS_URL"));
    fclose(file);
    self->dispatcher = fork();
    if (self->dispatcher == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl(program, program, "--config", config, (char *)NULL);
        _exit(127);
    }
}

static void wait_for(struct ours *self, uint64_t joined)
{
    while (pipe_ask(&self->pipe, "HGET", self->keys.names[TL_KEY_STATE], "joined", NULL) <
           (int64_t)joined) {
        if (waitpid(self->dispatcher, NULL, WNOHANG) != 0)
            way_die("the dispatcher has ended");
        usleep(500);
    }
}

/* A queue and a dispatcher that holds its lease: it has shown so once its fence is in the state. */
static void setup(void *actor)
{
    struct ours *self = actor;
    pipe_flush_all(&self->pipe);
    make_queue(self);
    start_dispatcher(self);
    while (pipe_ask(&self->pipe, "HGET", self->keys.names[TL_KEY_STATE], "fence", NULL) < 1) {
        if (waitpid(self->dispatcher, NULL, WNOHANG) != 0)
            way_die("the dispatcher has ended");
        usleep(1000);
    }
}

static void send_batch(struct ours *self)
{
    size_t length;
    const void *payload = tl_batch_finish(&self->writer, "bench", ++self->batches, &length);
    pipe_begin(&self->pipe, "XADD", self->keys.names[TL_KEY_INGEST]);
    tl_args_strs(&self->pipe.args, "*", "d", NULL);
    tl_args_bin(&self->pipe.args, payload, length);
    pipe_send(&self->pipe, PIPE_VARIADIC);
    tl_batch_writer_reset(&self->writer);
}

static void join(void *actor, uint64_t first, uint64_t n)
{
    struct ours *self = actor;
    for (uint64_t i = 0; i < n; i++) {
        char id[WAY_ID_LENGTH + 1];
        way_visitor(first + i, id);
        const struct tl_command join = {
            .kind = TL_COMMAND_JOIN, .visitor = id, .visitor_length = WAY_ID_LENGTH};
        tl_batch_add(&self->writer, &join);
        if (self->writer.n == WAY_BATCH || i + 1 == n)
            send_batch(self);
    }
    pipe_drain(&self->pipe);
    wait_for(self, first + n - 1);
}

/* A running system has its functions loaded and its index built. From here on the dispatcher would
 * only keep its lease: without it, every command is a look-up's.
 */
static void settle(void *actor, uint64_t n)
{
    struct ours *self = actor;
    struct tl_tail_head head;
    struct tl_error err = {0};
    (void)n;
    stop_dispatcher(self);
    self->base_seq =
        (uint64_t)pipe_ask(&self->pipe, "HGET", self->keys.names[TL_KEY_STATE], "base_seq", NULL);
    self->line = tl_snapshot(self->pipe.redis, &self->keys, &head, &err);
    if (self->line == NULL || !tl_library_load(self->pipe.redis, &err))
        way_die("%s", err.text);
}

/* The ticket holds the place; the k-th join of the queue has the k-th seq after its first. */
static void positions(void *actor, const uint64_t *visitors, size_t n, uint64_t *answers)
{
    const struct ours *self = actor;
    for (size_t i = 0; i < n; i++) {
        struct tl_line_view view =
            tl_line_look(self->line, tl_place_make(0, self->base_seq + visitors[i]));
        answers[i] = view.status == TL_LINE_WAITING ? view.ahead + 1 : 0;
    }
}

static uint64_t step(struct ours *self, const char *function, uint64_t most)
{
    struct tl_error err = {0};
    tl_call_begin(&self->pipe.args, function, &self->keys);
    tl_args_uint(&self->pipe.args, most);
    tl_args_uint(&self->pipe.args, EVENTS_LENGTH);
    struct tl_reply *reply = tl_call(self->pipe.redis, &self->pipe.args, &err);
    if (reply == NULL)
        way_die("%s", err.text);
    uint64_t n = tl_reply_number(reply, 0);
    tl_reply_free(reply);
    return n;
}

static uint64_t steps(struct ours *self, const char *function, uint64_t most)
{
    uint64_t done = 0;
    uint64_t asked = 0;
    uint64_t n = 0;
    while (n == asked && done < most) {
        asked = most - done < STEP ? most - done : STEP;
        n = step(self, function, asked);
        done += n;
    }
    return done;
}

static uint64_t admit(void *actor)
{
    struct ours *self = actor;
    return steps(self, TL_FN_ADMIT, UINT64_MAX);
}

static uint64_t expire(void *actor, uint64_t most)
{
    struct ours *self = actor;
    return steps(self, TL_FN_EXPIRE, most);
}

static void restart(void *actor)
{
    struct ours *self = actor;
    pipe_close(&self->pipe);
    way_sleep_ms(200);
    pipe_open(&self->pipe);
}

static int64_t counted(void *actor)
{
    struct ours *self = actor;
    return pipe_ask(&self->pipe, "HGET", self->keys.names[TL_KEY_STATE], "active", NULL);
}

const struct way way_ours = {
    .name = "Tellerline",
    .what =
        "Joins in batches through the ingest stream and the real dispatcher's function; positions "
        "from the worker's order index, without Redis; admission and expiry by one function a "
        "step. Every step also tells all workers what happened.",
    .source = "docs/contributors/how-it-works.md",
    .ours = true,
    .open = ours_open,
    .close = ours_close,
    .setup = setup,
    .join = join,
    .settle = settle,
    .positions = positions,
    .admit = admit,
    .expire = expire,
    .restart = restart,
    .counted = counted,
};
