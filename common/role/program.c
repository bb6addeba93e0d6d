/* SPDX-License-Identifier: Apache-2.0 */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/config/config.h"
#include "common/role/program.h"

#define HEALTH_PATH          "/livez"
#define CONFIG_PATH_VARIABLE "TELLERLINE_CONFIG"

enum {
    HEALTH_TIMEOUT_MS = 3000,
    QUOTED_SIZE = 96,
    STATUS_LINE_LEAST = 12, /* "HTTP/1.1 200" */
};

/* What the command line asks for. */
struct request {
    const struct tl_program *program;
    const char *config_path;
    bool check, healthcheck, version, help;
};

const struct tl_listen *tl_program_listen(const struct tl_config *config, size_t offset)
{
    return (const void *)((const char *)config + offset);
}

const char *tl_program_config_path(const char *given)
{
    const char *named = getenv(CONFIG_PATH_VARIABLE);
    if (given != NULL)
        return given;
    return named != NULL && *named != '\0' ? named : NULL;
}

static void build_table(struct request *request, struct tl_option table[TL_OPTIONS_MAX + 1])
{
    const struct tl_option first[] = {
        {.value = {.path = "config",
                   .type = TL_SETTING_STRING,
                   .help = "the configuration (YAML); without it defaults and environment"},
         .argument = "FILE",
         .base = &request->config_path},
        {.value = {.path = "check",
                   .help = "only check the configuration; exit status 1 if it is wrong"},
         .base = &request->check},
        {.value = {.path = "healthcheck",
                   .help = "ask the running program whether it is alive; exit status 1 if not"},
         .base = &request->healthcheck},
    };
    const struct tl_option last[] = {
        {.value = {.path = "version", .help = "print the version"},
         .base = &request->version,
         .last = true},
        {.value = {.path = "help", .help = "print this"},
         .base = &request->help,
         .last = true,
         .letter = 'h'},
        {.argument = NULL},
    };
    size_t n = sizeof(first) / sizeof(first[0]);
    memcpy(table, first, sizeof(first));
    const struct tl_option *own = request->program->options;
    for (; own != NULL && own->value.path != NULL; own++) {
        if (n + sizeof(last) / sizeof(last[0]) > TL_OPTIONS_MAX + 1)
            abort(); /* the program's table outgrew TL_OPTIONS_MAX */
        table[n++] = *own;
    }
    memcpy(table + n, last, sizeof(last));
}

/* Asks the first listener that is configured with a port known before the start. */
static int check_health(const struct request *request, const struct tl_config *config)
{
    const struct tl_program *program = request->program;
    const struct tl_listen *listen = NULL;
    for (size_t i = 0; i < TL_LISTENERS_MAX && listen == NULL; i++) {
        const struct tl_listen *one = tl_program_listen(config, program->listeners[i]);
        if (program->listeners[i] != 0 && one->port > 0)
            listen = one;
    }
    if (listen == NULL) {
        fprintf(program->errors, "%s: no listener with a fixed port is configured for /livez\n",
                program->name);
        return 1;
    }
    bool is_ipv6 = strchr(listen->host, ':') != NULL;
    char address[sizeof(listen->host) + 32];
    snprintf(address, sizeof(address), is_ipv6 ? "[%s]:%d" : "%s:%d", listen->host, listen->port);
    int status = tl_http_get(listen->host, listen->port, HEALTH_PATH, HEALTH_TIMEOUT_MS, NULL, 0);
    if (status == 200) {
        fprintf(program->out, "%s at %s is alive\n", program->name, address);
        return 0;
    }
    if (status < 0)
        fprintf(program->errors, "%s at %s does not answer\n", program->name, address);
    else
        fprintf(program->errors, "%s at %s answers " HEALTH_PATH " with %d\n", program->name,
                address, status);
    return 1;
}

/* --check and --healthcheck; returns the exit status. */
static int run_check(const struct request *request)
{
    const struct tl_program *program = request->program;
    struct tl_mistakes mistakes = {0};
    const struct tl_config *config = tl_config_load_all(request->config_path, &mistakes);
    int status = config != NULL ? 0 : 1;
    if (config == NULL)
        tl_mistakes_write(&mistakes, "", program->errors);
    else if (request->healthcheck)
        status = check_health(request, config);
    else
        fprintf(program->out, "%s: ok\n",
                request->config_path != NULL ? request->config_path : "environment");
    tl_config_free(&config);
    return status;
}

bool tl_program_parse(const struct tl_program *program, int argc, char **argv,
                      const char **config_path, int *status)
{
    struct tl_option table[TL_OPTIONS_MAX + 1];
    struct request request = {.program = program};
    FILE *out = program->out;
    struct tl_error err = {0};
    build_table(&request, table);
    int first_operand = tl_options_read(table, argc, argv, &err);
    *status = 0;
    if (request.help) {
        fprintf(out, "Usage: %s [OPTION...]\n%s\n\n", program->name, program->summary);
        tl_options_print(table, out);
        fputs("\nTELLERLINE_* variables override the configuration: TELLERLINE_REDIS_URL, "
              "TELLERLINE_HTTP_LISTEN, ...\n" CONFIG_PATH_VARIABLE
              " names the file when --config does not.\n",
              out);
        return false;
    }
    if (request.version) {
        fprintf(out, "%s %s\n", program->name, TELLERLINE_VERSION);
        return false;
    }
    if (first_operand >= 0 && first_operand < argc) {
        char quoted[QUOTED_SIZE];
        tl_quote(argv[first_operand], quoted, sizeof(quoted));
        tl_error_set(&err, TL_ERR_INVALID, "unexpected argument %s; --help lists the options",
                     quoted);
    }
    if (err.kind != TL_OK) {
        fprintf(program->errors, "%s: %s\n", program->name, err.text);
        *status = 2;
        return false;
    }
    request.config_path = tl_program_config_path(request.config_path);
    *config_path = request.config_path;
    if (!request.check && !request.healthcheck)
        return true;
    *status = run_check(&request);
    return false;
}

/* ---- a request ---- */

/* Makes the next blocking call on the socket end at the deadline. False when that has passed. */
static bool limit_wait(int fd, int64_t deadline_ms)
{
    int64_t left_ms = deadline_ms - tl_clock_ms();
    if (left_ms <= 0)
        return false;
    const struct timeval patience = {.tv_sec = left_ms / 1000, .tv_usec = left_ms % 1000 * 1000};
    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0 &&
           setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0;
}

static int connect_to(const char *host, int port, int64_t deadline_ms)
{
    char service[16];
    snprintf(service, sizeof(service), "%d", port);
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    if (getaddrinfo(host, service, &hints, &found) != 0)
        return -1;
    int fd = -1;
    for (const struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next) {
        fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 &&
            (!limit_wait(fd, deadline_ms) || connect(fd, at->ai_addr, at->ai_addrlen) != 0)) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    return fd;
}

/* Sends the request and reads the answer: at least `least` bytes, or to its end if it is shorter,
 * at most size - 1. Returns how many, -1 without an answer. */
static ssize_t ask(int fd, const char *path, int64_t deadline_ms, char *answer, size_t least,
                   size_t size)
{
    char request[256];
    int length = snprintf(request, sizeof(request),
                          "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    if (length < 0 || (size_t)length >= sizeof(request) ||
        send(fd, request, (size_t)length, MSG_NOSIGNAL) != length)
        return -1;
    size_t read = 0;
    ssize_t n = 1;
    while (read < least && n > 0) {
        n = limit_wait(fd, deadline_ms) ? recv(fd, answer + read, size - 1 - read, 0) : -1;
        if (n > 0)
            read += (size_t)n;
    }
    answer[read] = '\0';
    return n < 0 ? -1 : (ssize_t)read;
}

int tl_http_get(const char *host, int port, const char *path, int64_t timeout_ms, char *body,
                size_t size)
{
    char answer[16384];
    int64_t deadline_ms = tl_clock_ms() + timeout_ms;
    bool is_any6 = strcmp(host, "::") == 0;
    if (strcmp(host, "0.0.0.0") == 0)
        host = "127.0.0.1";
    int fd = connect_to(is_any6 ? "::1" : host, port, deadline_ms);
    if (fd < 0 && is_any6) /* :: accepts IPv4 too, and a container without IPv6 has no ::1. */
        fd = connect_to("127.0.0.1", port, deadline_ms);
    if (fd < 0)
        return -1;
    size_t least = body != NULL ? sizeof(answer) - 1 : STATUS_LINE_LEAST;
    ssize_t n = ask(fd, path, deadline_ms, answer, least, sizeof(answer));
    close(fd);
    const char *start = n > 0 ? strstr(answer, "\r\n\r\n") : NULL;
    if (n < STATUS_LINE_LEAST || strncmp(answer, "HTTP/1.", 7) != 0 || answer[8] != ' ' ||
        (body != NULL && (start == NULL || strlen(start + 4) >= size)))
        return -1;
    if (body != NULL)
        memcpy(body, start + 4, strlen(start + 4) + 1);
    int status = (int)strtol(answer + 9, NULL, 10);
    return status >= 100 && status <= 599 ? status : -1;
}

/* ---- the first steps ---- */

const struct tl_config *tl_program_start(const char *name, const char *role,
                                         const char *config_path)
{
    struct tl_mistakes mistakes = {0};
    const struct tl_config *config = tl_config_load_all(config_path, &mistakes);
    char prefix[TL_PROCESS_ID_SIZE + 64];
    snprintf(prefix, sizeof(prefix), "%s: ", name);
    if (config != NULL && sodium_init() < 0) {
        fprintf(stderr, "%slibsodium could not be initialised\n", prefix);
        tl_config_free(&config);
        return NULL;
    }
    if (config == NULL)
        tl_mistakes_write(&mistakes, prefix, stderr);
    else
        tl_program_log(config, role);
    return config;
}

void tl_program_log(const struct tl_config *config, const char *role)
{
    tl_log_init(&(struct tl_log_settings){
        .level = config->log.level, .format = config->log.format, .role = role});
}

void tl_program_id(const char *role, char id[TL_PROCESS_ID_SIZE])
{
    uint8_t random[8];
    char hex[2 * sizeof(random) + 1];
    randombytes_buf(random, sizeof(random));
    sodium_bin2hex(hex, sizeof(hex), random, sizeof(random));
    snprintf(id, TL_PROCESS_ID_SIZE, "%.14s-%s", role, hex);
}

/* ---- SIGHUP ---- */

void tl_reload(const struct tl_reload *reload)
{
    struct tl_error err = {0};
    const struct tl_config *config = tl_config_load(reload->config_path, &err);
    bool refused =
        config == NULL || (reload->take != NULL && !reload->take(reload->context, config, &err));
    if (reload->outcome != NULL) {
        atomic_fetch_add(&reload->outcome->refused, refused ? 1 : 0);
        atomic_store(&reload->outcome->failed, refused);
    }
    if (refused) {
        tl_log(TL_LOG_ERROR, &(struct tl_log_fields){.error = &err},
               "reload refused, the running configuration stays");
    } else {
        tl_program_log(config, reload->role);
        tl_info("configuration read again: %s%slog settings are in force, the rest at the next "
                "start; but `tellerline queue set` changes the settings of queues that exist",
                reload->taken != NULL ? reload->taken : "", reload->taken != NULL ? " and " : "");
    }
    tl_config_free(&config);
}

void tl_program_metrics(const char *label, bool ready, const struct tl_reload_outcome *outcome,
                        struct tl_text *out)
{
    tl_text_append(out,
                   "# HELP tellerline_build_info The running version.\n"
                   "# TYPE tellerline_build_info gauge\n"
                   "tellerline_build_info{%s,version=\"%s\"} 1\n"
                   "# HELP tellerline_ready 1 when /readyz answers 200.\n"
                   "# TYPE tellerline_ready gauge\n"
                   "tellerline_ready{%s} %d\n"
                   "# HELP tellerline_reloads_refused_total Reloads (SIGHUP) that changed nothing, "
                   "because the configuration is not valid.\n"
                   "# TYPE tellerline_reloads_refused_total counter\n"
                   "tellerline_reloads_refused_total{%s} %lld\n"
                   "# HELP tellerline_reload_failed 1 when the last reload was refused.\n"
                   "# TYPE tellerline_reload_failed gauge\n"
                   "tellerline_reload_failed{%s} %d\n",
                   label, TELLERLINE_VERSION, label, ready ? 1 : 0, label,
                   (long long)atomic_load(&outcome->refused), label,
                   atomic_load(&outcome->failed) ? 1 : 0);
}
