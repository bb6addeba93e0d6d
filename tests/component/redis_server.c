/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/config/config.h"
#include "common/config/queue_settings.h"
#include "common/store/library.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "generated/library_text.h"
#include "redis_server.h"

/* A safety net: a machine ten times slower than any we know starts one sooner. */
#define START_MS  120000
#define WORDS_MAX 4096

struct test_redis {
    char folder[64];
    char url[128];
    bool keeps;          /* its history, over a restart */
    unsigned port, peer; /* of a node of a cluster: for clients, for other nodes; else 0 */
    pid_t pid;
};

static void spawn(struct test_redis *server, const char *setting, const char *value)
{
    char socket[96];
    char option[64];
    char port[16], peer[16];
    snprintf(socket, sizeof(socket), "%s/redis.sock", server->folder);
    snprintf(port, sizeof(port), "%u", server->port);
    snprintf(peer, sizeof(peer), "%u", server->peer);
    snprintf(option, sizeof(option), "--%s", setting);
    server->pid = fork();
    assert_true(server->pid >= 0);
    if (server->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int null = open("/dev/null", O_RDWR);
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        /* What it has written before it answers outlives the process, if not a power cut. */
        execlp("redis-server", "redis-server", "--port", port, "--bind", "127.0.0.1",
               "--cluster-enabled", server->port > 0 ? "yes" : "no", "--cluster-port", peer,
               "--cluster-require-full-coverage", "no", "--unixsocket", socket, "--dir",
               server->folder, "--save", "", "--appendonly", server->keeps ? "yes" : "no",
               "--appendfsync", "no", "--daemonize", "no", option, value, (char *)NULL);
        _exit(127);
    }
}

struct tl_redis *test_redis_open(const char *url, int64_t timeout_ms)
{
    const struct tl_redis_settings settings = {.url = url, .timeout_ms = timeout_ms};
    struct tl_error err = {0};
    struct tl_redis *redis = tl_redis_new(&settings, &err);
    if (redis == NULL)
        fail_msg("%s", err.text);
    return redis;
}

bool test_redis_ping(struct tl_redis *redis, struct tl_error *err)
{
    struct tl_args args = {0};
    tl_args_str(&args, "PING");
    bool ok = tl_redis_do(redis, &args, err);
    tl_args_free(&args);
    return ok;
}

static void wait_until_up(struct test_redis *server)
{
    struct tl_redis *redis = test_redis_open(server->url, START_MS);
    struct tl_error err = {0};
    bool up = false;
    for (int64_t start = tl_clock_ms(); !up && tl_clock_ms() - start < START_MS;) {
        if (waitpid(server->pid, NULL, WNOHANG) == server->pid)
            fail_msg("redis-server could not be started: is the package redis-server installed?");
        up = tl_redis_connect(redis, &err) && test_redis_ping(redis, &err);
        if (!up)
            usleep(2000); /* between two looks */
    }
    tl_redis_free(&redis);
    if (!up)
        fail_msg("redis-server did not answer: %s", err.text);
}

static unsigned free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    close(fd);
    return ntohs(address.sin_port);
}

static struct test_redis *start(bool keeps, bool is_node)
{
    struct test_redis *server = calloc(1, sizeof(*server));
    (void)signal(SIGPIPE, SIG_IGN); /* as in every program */
    assert_non_null(server);
    server->keeps = keeps;
    server->port = is_node ? free_port() : 0;
    server->peer = is_node ? free_port() : 0;
    snprintf(server->folder, sizeof(server->folder), "/tmp/tellerline-test-XXXXXX");
    assert_non_null(mkdtemp(server->folder));
    snprintf(server->url, sizeof(server->url), "unix://%s/redis.sock", server->folder);
    test_redis_restart(server);
    return server;
}

struct test_redis *test_redis_start(void)
{
    return start(false, false);
}

struct test_redis *test_redis_start_kept(void)
{
    return start(true, false);
}

/* A node of a cluster takes commands a moment after it has a slot. */
static void wait_until_ok(struct tl_redis *redis)
{
    bool ok = false;
    for (int64_t begin = tl_clock_ms(); !ok && tl_clock_ms() - begin < START_MS; usleep(10000)) {
        struct tl_reply *info = test_redis_call(redis, "CLUSTER INFO");
        ok = strstr(tl_reply_string(info, NULL), "cluster_state:ok") != NULL;
        tl_reply_free(info);
    }
    assert_true(ok);
}

struct test_redis *test_redis_start_node(void)
{
    struct test_redis *server = start(false, true);
    struct tl_redis *redis = test_redis_connect(server);
    tl_reply_free(test_redis_call(redis, "CLUSTER ADDSLOTSRANGE 0 16383"));
    wait_until_ok(redis);
    tl_redis_free(&redis);
    return server;
}

struct test_redis *test_redis_join_node(const struct test_redis *first)
{
    struct test_redis *server = start(false, true);
    struct tl_redis *redis = test_redis_connect(server);
    char words[64];
    snprintf(words, sizeof(words), "CLUSTER MEET 127.0.0.1 %u %u", first->port, first->peer);
    tl_reply_free(test_redis_call(redis, words));
    tl_redis_free(&redis);
    return server;
}

/* Tells a node who has a slot, once it knows that node. */
static void set_slot(struct tl_redis *redis, unsigned slot, const char *what, struct tl_redis *node)
{
    struct tl_reply *id = test_redis_call(node, "CLUSTER MYID");
    struct tl_args args = {0};
    struct tl_error err = {0};
    bool done = false;
    tl_args_strs(&args, "CLUSTER", "SETSLOT", NULL);
    tl_args_uint(&args, slot);
    tl_args_strs(&args, what, tl_reply_string(id, NULL), NULL);
    for (int64_t begin = tl_clock_ms(); !done && tl_clock_ms() - begin < START_MS; usleep(10000))
        done = tl_redis_do(redis, &args, &err);
    if (!done)
        fail_msg("%s", err.text);
    tl_args_free(&args);
    tl_reply_free(id);
}

void test_redis_give_slot(struct tl_redis *from, struct tl_redis *to, unsigned slot)
{
    set_slot(to, slot, "IMPORTING", from);
    set_slot(to, slot, "NODE", to);
    set_slot(from, slot, "NODE", to);
    wait_until_ok(to);
}

void test_redis_node_url(const struct test_redis *server, char url[64])
{
    snprintf(url, 64, "redis+cluster://127.0.0.1:%u", server->port);
}

void test_redis_kill(struct test_redis *server)
{
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
    server->pid = 0;
}

void test_redis_restart_with(struct test_redis *server, const char *setting, const char *value)
{
    spawn(server, setting, value);
}

void test_redis_restart(struct test_redis *server)
{
    assert_int_equal(server->pid, 0);
    spawn(server, "loglevel", "warning");
    wait_until_up(server);
}

/* Writes the path of the file to which it appends its commands. Each start makes a new one. */
static void find_history(const struct test_redis *server, char *path, size_t size)
{
    glob_t found;
    char pattern[128];
    assert_true(server->keeps);
    snprintf(pattern, sizeof(pattern), "%s/appendonlydir/*.incr.aof", server->folder);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    snprintf(path, size, "%s", found.gl_pathv[0]);
    globfree(&found);
}

long long test_redis_history(const struct test_redis *server)
{
    char path[256];
    struct stat info;
    find_history(server, path, sizeof(path));
    assert_int_equal(stat(path, &info), 0);
    return (long long)info.st_size;
}

void test_redis_lose_tail(struct test_redis *server, long long history)
{
    char path[256];
    test_redis_kill(server);
    find_history(server, path, sizeof(path));
    assert_int_equal(truncate(path, (off_t)history), 0);
    test_redis_restart(server);
}

void test_redis_freeze(struct test_redis *server)
{
    assert_int_equal(kill(server->pid, SIGSTOP), 0);
    int status = 0;
    assert_int_equal(waitpid(server->pid, &status, WUNTRACED), server->pid);
    assert_true(WIFSTOPPED(status));
}

void test_redis_thaw(struct test_redis *server)
{
    assert_int_equal(kill(server->pid, SIGCONT), 0);
}

void test_redis_stop(struct test_redis **server)
{
    if ((*server)->pid > 0)
        test_redis_kill(*server);
    char command[96];
    snprintf(command, sizeof(command), "rm -rf '%s'", (*server)->folder);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a folder this test made */
    free(*server);
    *server = NULL;
}

const char *test_redis_url(const struct test_redis *server)
{
    return server->url;
}

const char *test_redis_folder(const struct test_redis *server)
{
    return server->folder;
}

struct tl_redis *test_redis_connect(const struct test_redis *server)
{
    struct tl_redis *redis = test_redis_open(server->url, START_MS);
    struct tl_error err = {0};
    if (!tl_redis_connect(redis, &err))
        fail_msg("%s", err.text);
    return redis;
}

static void append_words(struct tl_args *args, const char *words)
{
    char copy[WORDS_MAX];
    assert_true(strlen(words) < sizeof(copy));
    memcpy(copy, words, strlen(words) + 1);
    char *rest = NULL;
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        tl_args_str(args, word);
}

struct tl_reply *test_redis_call(struct tl_redis *redis, const char *words)
{
    struct tl_args args = {0};
    struct tl_error err = {0};
    append_words(&args, words);
    struct tl_reply *reply = tl_redis_call(redis, &args, &err);
    tl_args_free(&args);
    if (reply == NULL)
        fail_msg("%s: %s", words, err.text);
    return reply;
}

long long test_redis_number(struct tl_redis *redis, const char *words)
{
    struct tl_reply *reply = test_redis_call(redis, words);
    long long number = tl_reply_type(reply) == TL_REPLY_NIL ? -1 : tl_reply_integer(reply);
    tl_reply_free(reply);
    return number;
}

long long test_redis_ask(struct tl_redis *redis, const char *format, ...)
{
    char words[WORDS_MAX];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(words, sizeof(words), format, args);
    va_end(args);
    assert_in_range(length, 1, sizeof(words) - 1);
    return test_redis_number(redis, words);
}

enum tl_error_kind test_redis_refusal(struct tl_redis *redis, const char *words)
{
    struct tl_args args = {0};
    struct tl_error err = {0};
    append_words(&args, words);
    if (tl_redis_do(redis, &args, &err))
        fail_msg("%s was not refused", words);
    tl_args_free(&args);
    return err.kind;
}

/* FNV-1a (G. Fowler, L. Noll, K.-P. Vo, 1991) */
static uint64_t hash(uint64_t value, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        value = (value ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
    return value;
}

uint64_t test_redis_fingerprint(struct tl_redis *redis)
{
    struct tl_reply *keys = test_redis_call(redis, "KEYS *");
    uint64_t sum = tl_reply_count(keys);
    for (size_t i = 0; i < tl_reply_count(keys); i++) {
        const char *key = tl_reply_string(tl_reply_at(keys, i), NULL);
        size_t length;
        struct tl_args args = {0};
        struct tl_error err = {0};
        tl_args_strs(&args, "DUMP", key, NULL); /* a key may have spaces */
        struct tl_reply *dump = tl_redis_call(redis, &args, &err);
        tl_args_free(&args);
        if (dump == NULL)
            fail_msg("%s", err.text);
        const char *bytes = tl_reply_string(dump, &length);
        uint64_t of_key = hash(UINT64_C(0xcbf29ce484222325), key, strlen(key));
        sum += hash(of_key, bytes, length); /* a sum: KEYS has no order */
        tl_reply_free(dump);
    }
    tl_reply_free(keys);
    return sum;
}

static long long size_of(struct tl_redis *redis, const char *command, const char *key)
{
    char words[256];
    snprintf(words, sizeof(words), "%s %s", command, key);
    return test_redis_number(redis, words);
}

void test_invariants(struct tl_redis *redis, const struct tl_keys *keys)
{
    struct tl_state n;
    struct tl_error err = {0};
    if (!tl_state_read(redis, keys, TL_STATE_COUNTERS, &n, &err))
        fail_msg("%s", err.text);
    assert_int_equal(n.waiting, size_of(redis, "ZCARD", keys->names[TL_KEY_WAITING]));
    assert_int_equal(n.active, size_of(redis, "ZCARD", keys->names[TL_KEY_ACTIVE]));
    assert_int_equal(n.active, size_of(redis, "HLEN", keys->names[TL_KEY_SESSIONS]));
    assert_int_equal(n.totals[TL_TOTAL_JOINED],
                     n.waiting + n.active + n.totals[TL_TOTAL_COMPLETED] +
                         n.totals[TL_TOTAL_EXPIRED] + n.totals[TL_TOTAL_LEFT]);
    char words[400];
    snprintf(words, sizeof(words), "ZINTERCARD 2 %s %s", keys->names[TL_KEY_WAITING],
             keys->names[TL_KEY_ACTIVE]);
    assert_int_equal(test_redis_number(redis, words), 0);
}

void test_queue(struct tl_redis *redis, const char *settings, struct tl_keys *keys)
{
    struct tl_queue_settings values;
    struct tl_error err = {0};
    tl_queue_settings_defaults(&values);
    char copy[WORDS_MAX];
    snprintf(copy, sizeof(copy), "%s", settings);
    char *rest = NULL;
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(word, '=');
        assert_non_null(value);
        *value++ = '\0';
        if (!tl_queue_settings_set(&values, word, value, TL_FORM_FILE, &err))
            fail_msg("%s", err.text);
    }
    bool created = false;
    if (!tl_queue_ensure(TEST_SITE(redis), "tl:", "q", &values, &test_actor, &created, &err))
        fail_msg("%s", err.text);
    assert_true(created);
    tl_keys_init(keys, "tl:", "q");
    test_redis_ask(redis, "HSET %s seq 0 event 0 fence 0 base_seq 0", keys->names[TL_KEY_STATE]);
}

const struct tl_actor test_actor = {.name = "tester", .from = "test", .kept = 1000};

bool test_queue_set(struct tl_redis *redis, const struct tl_keys *keys, const char *name,
                    const char *value, struct tl_error *err)
{
    const struct tl_queue_change change = {.name = name, .value = value};
    const struct tl_queue_changes changes = {.list = &change, .n = 1};
    return tl_queue_configure(redis, keys, &changes, &test_actor, NULL, err);
}

/* Does this function record changes, and so want to know who makes them? */
static bool records_changes(const char *function)
{
    char head[64];
    snprintf(head, sizeof(head), "\nentry('%s',", strchr(strchr(function, '_') + 1, '_') + 1);
    const char *from = strstr(library_text, head);
    assert_non_null(from);
    const char *to = strstr(from + 1, "\nentry(");
    const char *found = strstr(from, "CHANGES_KEPT"), *actor = strstr(from, "changes.actor(");
    return (found != NULL && (to == NULL || found < to)) ||
           (actor != NULL && (to == NULL || actor < to));
}

struct tl_reply *test_function(struct tl_redis *redis, const char *function,
                               const struct tl_keys *keys, const char *arguments, char *error)
{
    struct tl_args args = {0};
    struct tl_error err = {0};
    tl_call_begin(&args, function, keys);
    append_words(&args, arguments);
    if (records_changes(function))
        tl_actor_append(&test_actor, &args);
    struct tl_reply *reply = tl_call(redis, &args, &err);
    tl_args_free(&args);
    if (reply == NULL && error == NULL)
        fail_msg("%s: %s", function, err.text);
    if (error != NULL)
        snprintf(error, sizeof(err.text), "%s", reply == NULL ? err.text : "");
    return reply;
}

struct tl_reply *test_eval(struct tl_redis *redis, const char *source, const struct tl_keys *keys,
                           char *error)
{
    struct tl_args args = {0};
    struct tl_error err = {0};
    tl_args_strs(&args, "EVAL", source, NULL);
    tl_args_uint(&args, TL_KEY_INGEST + 1);
    for (size_t i = 0; i <= TL_KEY_INGEST; i++)
        tl_args_str(&args, keys->names[i]);
    struct tl_reply *reply = tl_redis_call(redis, &args, &err);
    tl_args_free(&args);
    if (reply == NULL && error == NULL)
        fail_msg("%s: %s", source, err.text);
    if (error != NULL)
        snprintf(error, sizeof(err.text), "%s", reply == NULL ? err.text : "");
    return reply;
}

static char *replace(const char *text, const char *from, const char *to)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, from)) != NULL; at += strlen(from))
        n++;
    assert_true(n > 0);
    char *result = calloc(1, strlen(text) + n * strlen(to) + 1);
    assert_non_null(result);
    char *end = result;
    while (*text != '\0') {
        const char *found = strstr(text, from);
        size_t length = found != NULL ? (size_t)(found - text) : strlen(text);
        memcpy(end, text, length);
        end += length;
        text += length;
        if (found != NULL) {
            memcpy(end, to, strlen(to));
            end += strlen(to);
            text += strlen(from);
        }
    }
    return result;
}

void test_library_variant(struct tl_redis *redis, const char *name, const char *const pairs[])
{
    struct tl_args args = {0};
    struct tl_error err = {0};
    char command[80];
    snprintf(command, sizeof(command), "FUNCTION LIST LIBRARYNAME tellerline_%s", name);
    struct tl_reply *there = test_redis_call(redis, command);
    bool known = tl_reply_count(there) > 0;
    tl_reply_free(there);
    if (known)
        return;
    char *text = replace(library_text, strchr(TL_LIBRARY, '_') + 1, name);
    for (size_t i = 0; pairs[i] != NULL; i += 2) {
        char *changed = replace(text, pairs[i], pairs[i + 1]);
        free(text);
        text = changed;
    }
    tl_args_strs(&args, "FUNCTION", "LOAD", text, NULL);
    if (!tl_redis_do(redis, &args, &err))
        fail_msg("%s", err.text);
    tl_args_free(&args);
    free(text);
}

long long test_redis_ms(struct tl_redis *redis)
{
    struct tl_reply *time = test_redis_call(redis, "TIME");
    long long ms = tl_reply_integer(tl_reply_at(time, 0)) * 1000 +
                   tl_reply_integer(tl_reply_at(time, 1)) / 1000;
    tl_reply_free(time);
    return ms;
}

void test_redis_pass_time(struct tl_redis *redis, long long ms)
{
    long long until = test_redis_ms(redis) + ms;
    for (long long left = ms; left > 0; left = until - test_redis_ms(redis))
        usleep((useconds_t)(left < 500 ? left : 500) * 1000);
}
