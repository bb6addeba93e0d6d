/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast joins get into the line, beside what the same Redis takes as plain variadic ZADD.
 *
 *     apply_bench [--million 1] [--rounds 3] [--active 0,300,10000] [--batch 100,1000] [--bin DIR]
 *
 * Uses the redis-server at BENCH_REDIS_URL, which bench/run starts, and for every size of batch, in
 * turn and in the same run:
 *   plain  ZADD of the same visitors and places, as many a command as a batch has joins, pipelined
 *          from bytes made beforehand: all that Redis does besides is to parse the command;
 *   path   the ingest stream is filled with batches, then the real tellerline-dispatcher drains it;
 *          timed from the first change of state.joined to the last;
 *   inside what Redis spent inside the function apply on the way (INFO commandstats), beside what
 * it spent inside ZADD; and the processor time of both programs, which tells most on a busy
 * machine. Each round begins with an empty Redis. A time ends when all joins are as durable as
 * BENCH_DURABILITY says. The figures are medians of the rounds: JSON lines on standard output, text
 * for people on standard error. With --active, so many hold a session meanwhile.
 */
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/config/queue_settings.h"
#include "common/store/keys.h"
#include "common/store/library.h"
#include "common/store/queue.h"
#include "common/store/redis.h"
#include "common/store/reply.h"
#include "common/wire/batch.h"
#include "emit.h"

#define MILLION    1000000
#define WORKERS    4 /* names that the batches come from, in turn */
#define ROUNDS_MAX 9
#define SIZES_MAX  4
#define TARGET     0.5 /* of what plain ZADD takes: the least that the design wants */
#define PREFIX     "tl:"
#define QUEUE      "bench"

struct sizes {
    size_t n;
    unsigned long at[SIZES_MAX];
};

struct bench {
    unsigned long millions, rounds;
    struct sizes batches, actives;
    char bin[256];
    char folder[64], config[96];
    const char *url, *durability; /* of Redis */
    pid_t dispatcher;
    struct tl_redis *redis;
    struct tl_keys keys;
    uint64_t number; /* of the last batch */
};

/* Seconds that one million joins and more took. */
struct cost {
    double wall, inside, processor; /* passed; inside the command; of Redis's processor time */
    double dispatcher;              /* of the dispatcher's processor time */
};

static struct bench bench = {
    .millions = 1, .rounds = 3, .batches = {2, {100, 1000}}, .actives = {3, {0, 300, 10000}}};

/* ---- processes ---- */

/* Returns the seconds of processor time that it used. */
static double stop(pid_t *pid, int signal_number)
{
    struct rusage used = {0};
    if (*pid > 0) {
        kill(*pid, signal_number);
        wait4(*pid, NULL, 0, &used);
    }
    *pid = 0;
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static void clean_up(void)
{
    stop(&bench.dispatcher, SIGKILL);
    unlink(bench.config);
    if (bench.folder[0] != '\0')
        rmdir(bench.folder);
}

static void require(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "apply_bench: %s\n", what);
    clean_up();
    exit(1);
}

static void pause_ms(int ms)
{
    poll(NULL, 0, ms);
}

static void connect_to_redis(void)
{
    bench.url = getenv("BENCH_REDIS_URL");
    bench.durability = getenv("BENCH_DURABILITY");
    require(bench.url != NULL, "BENCH_REDIS_URL (address of a redis-server) is not set");
    const struct tl_redis_settings settings = {.url = bench.url, .timeout_ms = 60000};
    struct tl_error err = {0};
    bench.redis = tl_redis_new(&settings, &err);
    require(bench.redis != NULL && tl_redis_connect(bench.redis, &err), err.text);
}

static void start_dispatcher(void)
{
    FILE *file = fopen(bench.config, "w");
    require(file != NULL, "cannot write the configuration");
    fprintf(file, "redis:\n  url: %s\nadmin:\n  dispatcher: \"\"\nlog:\n  level: warn\n",
            bench.url);
    require(fclose(file) == 0, "cannot write the configuration");
    char program[320];
    snprintf(program, sizeof(program), "%s/tellerline-dispatcher", bench.bin);
    fflush(NULL);
    bench.dispatcher = fork();
    require(bench.dispatcher >= 0, "cannot start the dispatcher");
    if (bench.dispatcher > 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(STDERR_FILENO, STDOUT_FILENO); /* our standard output is for figures */
    execl(program, program, "--config", bench.config, (char *)NULL);
    perror(program);
    _exit(127);
}

/* ---- asking Redis ---- */

/* One command, words divided by spaces. The caller frees the reply. */
static struct tl_reply *ask(const char *line)
{
    struct tl_args args = {0};
    struct tl_error err = {0};
    for (const char *at = line; *at != '\0';) {
        size_t length = strcspn(at, " ");
        tl_args_bin(&args, at, length);
        at += length + (at[length] == ' ');
    }
    struct tl_reply *reply = tl_redis_call(bench.redis, &args, &err);
    tl_args_free(&args);
    require(reply != NULL, err.text);
    return reply;
}

static void tell(const char *line)
{
    tl_reply_free(ask(line));
}

/* Returns once all that was written before is as durable as asked for. With appendfsync always,
 * Redis answers nothing before it has synced. */
static void wait_until_durable(void)
{
    tell("SET written 1");
    if (bench.durability == NULL || strcmp(bench.durability, "replicated") != 0)
        return;
    struct tl_reply *reply = ask("WAIT 1 60000");
    require(tl_reply_integer(reply) > 0, "no replica has the joins");
    tl_reply_free(reply);
}

static double info(const char *section, const char *before, const char *name)
{
    char line[64];
    snprintf(line, sizeof(line), "INFO %s", section);
    struct tl_reply *reply = ask(line);
    const char *at = strstr(tl_reply_string(reply, NULL), before);
    at = at != NULL ? strstr(at, name) : NULL;
    double value = at != NULL ? strtod(at + strlen(name), NULL) : 0;
    tl_reply_free(reply);
    return value;
}

static double processor_seconds(void)
{
    return info("cpu", "used_cpu_user_main_thread", "used_cpu_user_main_thread:") +
           info("cpu", "used_cpu_sys_main_thread", "used_cpu_sys_main_thread:");
}

static uint64_t joined_now(void)
{
    char line[TL_KEY_MAX + 16];
    snprintf(line, sizeof(line), "HGET %s joined", bench.keys.names[TL_KEY_STATE]);
    struct tl_reply *reply = ask(line);
    int64_t joined = tl_reply_integer(reply);
    tl_reply_free(reply);
    return (uint64_t)joined;
}

/* ---- bytes for Redis, made beforehand ---- */

struct bytes {
    char *at;
    size_t length;
    FILE *file;
};

static void bytes_open(struct bytes *bytes)
{
    bytes->file = open_memstream(&bytes->at, &bytes->length);
    require(bytes->file != NULL, "out of memory");
}

static void put_word(struct bytes *bytes, const void *word, size_t length)
{
    fprintf(bytes->file, "$%zu\r\n", length);
    fwrite(word, 1, length, bytes->file);
    fputs("\r\n", bytes->file);
}

static void put_text(struct bytes *bytes, const char *text)
{
    put_word(bytes, text, strlen(text));
}

/* A connection to Redis of the same kind as the others. */
static int open_socket(void)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct sockaddr_in loopback = {.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const char *port = getenv("BENCH_REDIS_PORT");
    bool tcp = strncmp(bench.url, "redis:", 6) == 0;
    if (tcp)
        loopback.sin_port = htons((uint16_t)strtoul(port != NULL ? port : "6379", NULL, 10));
    else
        snprintf(local.sun_path, sizeof(local.sun_path), "%s", bench.url + strlen("unix://"));
    int fd = socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM, 0);
    require(fd >= 0 && connect(fd, tcp ? (struct sockaddr *)&loopback : (struct sockaddr *)&local,
                               tcp ? sizeof(loopback) : sizeof(local)) == 0,
            "cannot connect to Redis");
    return fd;
}

/* Sends the bytes while it reads what comes back, and counts the lines of that. */
static double pipe_through(struct bytes *bytes, size_t lines)
{
    require(fclose(bytes->file) == 0, "out of memory");
    int fd = open_socket();
    int64_t started_us = tl_clock_us();
    size_t sent = 0, seen = 0;
    while (seen < lines) {
        struct pollfd event = {.fd = fd, .events = POLLIN};
        event.events = (short)(event.events | (sent < bytes->length ? POLLOUT : 0));
        require(poll(&event, 1, 60000) > 0, "Redis does not answer");
        if ((event.revents & POLLOUT) != 0) {
            ssize_t n = send(fd, bytes->at + sent, bytes->length - sent, MSG_DONTWAIT);
            require(n > 0 || errno == EAGAIN, "the connection to Redis broke");
            sent += n > 0 ? (size_t)n : 0;
        }
        if ((event.revents & POLLIN) != 0) {
            char answer[65536];
            ssize_t n = read(fd, answer, sizeof(answer));
            require(n > 0, "the connection to Redis broke");
            for (ssize_t i = 0; i < n; i++) {
                require(answer[i] != '-' || i == 0 || answer[i - 1] != '\n',
                        "Redis answered with an error");
                seen += answer[i] == '\n';
            }
        }
    }
    double seconds = (double)(tl_clock_us() - started_us) / 1e6;
    close(fd);
    free(bytes->at);
    return seconds;
}

/* The i-th visitor: 128 mixed bits as 22 characters, as the worker makes them. */
static void visitor(uint64_t i, char text[23])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint64_t x = i;
    for (size_t k = 0; k < 22; k++) {
        if (k % 10 == 0) { /* splitmix64 (G. Steele et al., 2014) */
            x += UINT64_C(0x9E3779B97F4A7C15);
            x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
            x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
            x ^= x >> 31;
        }
        text[k] = digits[x >> (6 * (k % 10)) & 63];
    }
    text[22] = '\0';
}

/* ---- plain ---- */

static struct cost plain(unsigned long batch)
{
    struct cost cost = {0};
    tell("FLUSHALL SYNC");
    tell("CONFIG RESETSTAT");
    double before = processor_seconds();
    for (uint64_t million = 0; million < bench.millions; million++) {
        struct bytes bytes;
        bytes_open(&bytes);
        for (uint64_t i = 0; i < MILLION; i++) {
            if (i % batch == 0) {
                fprintf(bytes.file, "*%lu\r\n", 2 + 2 * batch);
                put_text(&bytes, "ZADD");
                put_text(&bytes, bench.keys.names[TL_KEY_WAITING]);
            }
            char place[24], name[23];
            snprintf(place, sizeof(place), "%" PRIu64, million * MILLION + i + 1);
            visitor(million * MILLION + i, name);
            put_text(&bytes, place);
            put_text(&bytes, name);
        }
        cost.wall += pipe_through(&bytes, MILLION / batch);
    }
    int64_t sent_us = tl_clock_us();
    wait_until_durable();
    cost.wall += (double)(tl_clock_us() - sent_us) / 1e6;
    cost.processor = processor_seconds() - before;
    cost.inside = info("commandstats", "cmdstat_zadd:", "usec=") / 1e6;
    return cost;
}

/* ---- the path ---- */

static void fill(uint64_t from, uint64_t n, unsigned long batch)
{
    static const char *const workers[WORKERS] = {"bench-0", "bench-1", "bench-2", "bench-3"};
    struct tl_batch_writer writer = {0};
    struct bytes bytes;
    bytes_open(&bytes);
    size_t entries = 0;
    for (uint64_t i = 0; i < n; i++) {
        char name[23];
        visitor(from + i, name);
        const struct tl_command join = {
            .kind = TL_COMMAND_JOIN, .visitor = name, .visitor_length = 22};
        require(tl_batch_add(&writer, &join) >= 0, "a batch is full");
        if (writer.n < batch && i + 1 < n)
            continue;
        size_t length;
        const void *payload =
            tl_batch_finish(&writer, workers[entries % WORKERS], ++bench.number, &length);
        require(payload != NULL, "out of memory");
        fputs("*5\r\n", bytes.file);
        put_text(&bytes, "XADD");
        put_text(&bytes, bench.keys.names[TL_KEY_INGEST]);
        put_text(&bytes, "*");
        put_text(&bytes, "d");
        put_word(&bytes, payload, length);
        tl_batch_writer_reset(&writer);
        entries++;
    }
    free(writer.bytes);
    pipe_through(&bytes, 2 * entries);
}

static void wait_for_joined(uint64_t joined)
{
    while (joined_now() < joined) {
        require(waitpid(bench.dispatcher, NULL, WNOHANG) == 0, "the dispatcher has ended");
        pause_ms(1);
    }
}

static void make_queue(void)
{
    struct tl_queue_settings settings;
    struct tl_error err = {0};
    tl_queue_settings_defaults(&settings);
    settings.capacity = 100000;
    const struct tl_actor nobody = {.name = "bench", .from = "bench", .kept = 100};
    require(tl_queue_ensure((struct tl_queue_site){bench.redis, bench.redis}, PREFIX, QUEUE,
                            &settings, &nobody, NULL, &err),
            err.text);
}

/* The first `active` visitors join and are admitted. */
static void admit(unsigned long active)
{
    if (active == 0)
        return;
    fill(UINT64_C(1) << 40, active, 1000);
    start_dispatcher();
    wait_for_joined(active);
    stop(&bench.dispatcher, SIGTERM);
    struct tl_args args = {0};
    struct tl_error err = {0};
    for (uint64_t done = 0; done < active;) {
        tl_call_begin(&args, TL_FN_ADMIT, &bench.keys);
        tl_args_strs(&args, "1000", "10000", NULL);
        struct tl_reply *reply = tl_call(bench.redis, &args, &err);
        require(reply != NULL && tl_reply_signed(reply, 0) > 0, "no visitor is admitted");
        done += tl_reply_number(reply, 0);
        tl_reply_free(reply);
    }
    tl_args_free(&args);
}

static struct cost path(unsigned long batch, unsigned long active)
{
    struct cost cost = {0};
    tell("FLUSHALL SYNC");
    make_queue();
    admit(active);
    for (uint64_t million = 0; million < bench.millions; million++)
        fill(million * MILLION, MILLION, batch);
    tell("CONFIG RESETSTAT");
    start_dispatcher();
    wait_for_joined(active + 1);
    int64_t started_us = tl_clock_us();
    double before = processor_seconds();
    uint64_t first = joined_now(), last = active + bench.millions * MILLION;
    wait_for_joined(last);
    wait_until_durable();
    cost.wall = (double)(tl_clock_us() - started_us) / 1e6;
    cost.processor = processor_seconds() - before;
    cost.inside = info("commandstats", "cmdstat_fcall:", "usec=") / 1e6;
    cost.dispatcher = stop(&bench.dispatcher, SIGTERM);
    double share = (double)(bench.millions * MILLION) / (double)(last - first);
    cost.wall *= share;
    cost.processor *= share;
    return cost;
}

/* ---- reporting ---- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *figures)
{
    qsort(figures, bench.rounds, sizeof(*figures), ascending);
    return figures[bench.rounds / 2];
}

static struct cost middle(const struct cost *costs)
{
    double wall[ROUNDS_MAX] = {0}, inside[ROUNDS_MAX] = {0};
    double processor[ROUNDS_MAX] = {0}, dispatcher[ROUNDS_MAX] = {0};
    for (size_t i = 0; i < bench.rounds; i++) {
        wall[i] = costs[i].wall;
        inside[i] = costs[i].inside;
        processor[i] = costs[i].processor;
        dispatcher[i] = costs[i].dispatcher;
    }
    return (struct cost){median(wall), median(inside), median(processor), median(dispatcher)};
}

#define PLAIN           "plain ZADD"
#define PLAIN_PROCESSOR "plain ZADD, Redis's processor time"
#define PLAIN_INSIDE    "plain ZADD, inside the command"

static double rate(double seconds)
{
    return (double)(bench.millions * MILLION) / seconds;
}

/* baseline: what it is compared with, NULL for what others are compared with. */
static void tell_figure(const char *metric, const char *name, double seconds, const char *baseline,
                        double baseline_seconds)
{
    double target = baseline != NULL && strcmp(baseline, PLAIN) == 0 ? TARGET : 0;
    tl_emit_figure(&(struct tl_figure){.group = "apply",
                                       .metric = metric,
                                       .name = name,
                                       .n = bench.millions * MILLION,
                                       .value = rate(seconds),
                                       .unit = "joins/s",
                                       .ours = baseline != NULL,
                                       .baseline = baseline,
                                       .target = target});
    if (baseline != NULL)
        fprintf(stderr, "%-30s %-38s %9.0f joins/s   plain ZADD %9.0f   ratio %.3f\n", metric, name,
                rate(seconds), rate(baseline_seconds), baseline_seconds / seconds);
}

static void report(unsigned long batch, unsigned long active, const struct cost *base,
                   const struct cost *cost)
{
    char metric[64];
    snprintf(metric, sizeof(metric), "batches of %lu, %lu active", batch, active);
    tell_figure(metric, PLAIN, base->wall, NULL, 0);
    tell_figure(metric, PLAIN_PROCESSOR, base->processor, NULL, 0);
    tell_figure(metric, PLAIN_INSIDE, base->inside, NULL, 0);
    tell_figure(metric, "path", cost->wall, PLAIN, base->wall);
    tell_figure(metric, "path, Redis's processor time", cost->processor, PLAIN_PROCESSOR,
                base->processor);
    tell_figure(metric, "inside the function", cost->inside, PLAIN_INSIDE, base->inside);
    tell_figure(metric, "path, the dispatcher's processor time", cost->dispatcher, PLAIN_PROCESSOR,
                base->processor);
}

static void measure(unsigned long batch)
{
    struct cost plains[ROUNDS_MAX] = {0}, paths[SIZES_MAX][ROUNDS_MAX] = {0};
    for (size_t round = 0; round < bench.rounds; round++) {
        plains[round] = plain(batch);
        for (size_t i = 0; i < bench.actives.n; i++)
            paths[i][round] = path(batch, bench.actives.at[i]);
    }
    struct cost base = middle(plains);
    for (size_t i = 0; i < bench.actives.n; i++) {
        struct cost cost = middle(paths[i]);
        report(batch, bench.actives.at[i], &base, &cost);
    }
}

/* ---- options ---- */

static bool parse_number(const char *text, unsigned long least, unsigned long most,
                         unsigned long *value)
{
    char *end;
    errno = 0;
    *value = strtoul(text, &end, 10);
    return errno == 0 && end != text && (*end == '\0' || *end == ',') && *value >= least &&
           *value <= most;
}

static bool parse_sizes(const char *text, unsigned long least, unsigned long most,
                        struct sizes *sizes)
{
    sizes->n = 0;
    do {
        if (sizes->n == SIZES_MAX || !parse_number(text, least, most, &sizes->at[sizes->n++]))
            return false;
        text += strcspn(text, ",");
    } while (*text++ == ',');
    return true;
}

static bool parse(int argc, char **argv)
{
    bool ok = argc % 2 == 1;
    for (int i = 1; ok && i + 1 < argc; i += 2) {
        const char *value = argv[i + 1];
        if (strcmp(argv[i], "--million") == 0)
            ok = parse_number(value, 1, 10, &bench.millions);
        else if (strcmp(argv[i], "--rounds") == 0)
            ok = parse_number(value, 1, ROUNDS_MAX, &bench.rounds);
        else if (strcmp(argv[i], "--active") == 0)
            ok = parse_sizes(value, 0, 100000, &bench.actives);
        else if (strcmp(argv[i], "--batch") == 0)
            ok = parse_sizes(value, 1, TL_BATCH_COMMANDS_MAX, &bench.batches);
        else if (strcmp(argv[i], "--bin") == 0)
            snprintf(bench.bin, sizeof(bench.bin), "%s", value);
        else
            ok = false;
    }
    for (size_t i = 0; ok && i < bench.batches.n; i++)
        ok = MILLION % bench.batches.at[i] == 0;
    return ok;
}

int main(int argc, char **argv)
{
    ssize_t length = readlink("/proc/self/exe", bench.bin, sizeof(bench.bin) - 1);
    bench.bin[length > 0 ? length : 0] = '\0';
    *(strrchr(bench.bin, '/') != NULL ? strrchr(bench.bin, '/') : bench.bin) = '\0';
    if (!parse(argc, argv)) {
        fputs("usage: apply_bench [--million 1..10] [--rounds 1..9] [--active N,N] [--batch N,N] "
              "[--bin DIR]\n"
              "A batch is 1 to 1000 joins and divides a million.\n",
              stderr);
        return 2;
    }
    snprintf(bench.folder, sizeof(bench.folder), "/tmp/apply-bench-XXXXXX");
    require(mkdtemp(bench.folder) != NULL, "cannot make a folder");
    snprintf(bench.config, sizeof(bench.config), "%s/tellerline.yaml", bench.folder);
    tl_keys_init(&bench.keys, PREFIX, QUEUE);
    connect_to_redis();
    for (size_t i = 0; i < bench.batches.n; i++)
        measure(bench.batches.at[i]);
    tl_redis_free(&bench.redis);
    clean_up();
    return 0;
}
