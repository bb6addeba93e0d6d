/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/role/program.h"
#include "common/store/queue.h"

#include "ctl/audit/audit.h"

enum {
    WINDOW_MS = 1000, /* a worker is at most so far behind */
    POLL_MS = 50,
    SAMPLES = 24, /* each meets any of the processes that share the port */
    ASK_MS = 3000,
    ROUNDS = 5, /* a busy line has sizes between two polls; a worker that is wrong is so in each */
    BODY_MAX = 8192,
    ADDRESS_MAX = 280,
};

/* The sizes that the state has had. */
struct window {
    uint64_t waiting_least, waiting_most;
    uint64_t active_least, active_most;
};

struct worker {
    char host[ADDRESS_MAX];
    int port;
};

static bool widen(struct tl_redis *redis, const struct tl_keys *keys, struct window *window,
                  struct tl_error *err)
{
    struct tl_state now;
    if (!tl_state_read(redis, keys, TL_STATE_SIZES, &now, err))
        return false;
    if (now.waiting < window->waiting_least)
        window->waiting_least = now.waiting;
    if (now.waiting > window->waiting_most)
        window->waiting_most = now.waiting;
    if (now.active < window->active_least)
        window->active_least = now.active;
    if (now.active > window->active_most)
        window->active_most = now.active;
    return true;
}

/* The public numbers of the queue, as visitors see them. */
static bool ask(const struct worker *worker, const char *queue, uint64_t *waiting, uint64_t *active,
                struct tl_error *err)
{
    char path[TL_QUEUE_NAME_MAX + 16];
    char body[BODY_MAX];
    snprintf(path, sizeof(path), "/v1/queues/%s", queue);
    int status = tl_http_get(worker->host, worker->port, path, ASK_MS, body, sizeof(body));
    json_t *root = status == 200 ? json_loads(body, 0, NULL) : NULL;
    json_int_t numbers[2];
    bool ok = root != NULL &&
              json_unpack(root, "{s:I, s:I}", "waiting", &numbers[0], "active", &numbers[1]) == 0;
    json_decref(root);
    if (ok) {
        *waiting = (uint64_t)numbers[0];
        *active = (uint64_t)numbers[1];
        return true;
    }
    if (status < 0)
        return tl_error_set(err, TL_ERR_CONNECT, "the worker at %s port %d does not answer",
                            worker->host, worker->port);
    return tl_error_set(err, TL_ERR_PROTOCOL,
                        "the worker at %s port %d answers %s with %d, without the numbers",
                        worker->host, worker->port, path, status);
}

/* One round: *differs, with text, when a sample was never the state's within the window. */
static bool compare(struct tl_redis *redis, const struct tl_keys *keys, const struct worker *worker,
                    bool *differs, char *text, size_t size, struct tl_error *err)
{
    struct window window = {.waiting_least = UINT64_MAX, .active_least = UINT64_MAX};
    int64_t until_ms = tl_clock_ms() + WINDOW_MS;
    *differs = false;
    while (tl_clock_ms() < until_ms) {
        if (!widen(redis, keys, &window, err))
            return false;
        tl_ctl_pause(POLL_MS);
    }
    for (int i = 0; i < SAMPLES && !*differs; i++) {
        uint64_t waiting;
        uint64_t active;
        if (!widen(redis, keys, &window, err) ||
            !ask(worker, keys->queue, &waiting, &active, err) || !widen(redis, keys, &window, err))
            return false;
        *differs = waiting < window.waiting_least || waiting > window.waiting_most ||
                   active < window.active_least || active > window.active_most;
        if (*differs)
            snprintf(text, size,
                     "the worker at %.200s port %d shows %" PRIu64 " waiting and %" PRIu64
                     " active; the state has %" PRIu64 " and %" PRIu64,
                     worker->host, worker->port, waiting, active, window.waiting_most,
                     window.active_most);
    }
    return true;
}

static bool check_worker(struct tl_redis *redis, const struct tl_keys *keys,
                         const struct worker *worker, struct tl_audit_report *report,
                         struct tl_error *err)
{
    char text[400];
    bool differs = true;
    for (int round = 0; round < ROUNDS && differs; round++) {
        if (!compare(redis, keys, worker, &differs, text, sizeof(text), err))
            return false;
    }
    if (differs)
        tl_audit_add(report, 11, text,
                     "look at the log of the worker and at tellerline_worker_gaps_total; a restart "
                     "reads the line again");
    return true;
}

/* Reads "host:port" or "[address]:port" up to a comma; *rest goes on behind it. */
static bool read_address(const char **rest, struct worker *worker, struct tl_error *err)
{
    char text[ADDRESS_MAX];
    size_t length = strcspn(*rest, ",");
    snprintf(text, sizeof(text), "%.*s", (int)length, *rest);
    *rest += length + ((*rest)[length] == ',');
    char *colon = strrchr(text, ':');
    char *end = NULL;
    long port = colon != NULL ? strtol(colon + 1, &end, 10) : 0;
    if (port < 1 || port > 65535 || *end != '\0' || colon == text)
        return tl_error_set(err, TL_ERR_INVALID,
                            "--worker: \"%.200s\" is not HOST:PORT, the visitors' port of a worker",
                            text);
    *colon = '\0';
    bool bracketed = text[0] == '[' && colon[-1] == ']';
    if (bracketed)
        colon[-1] = '\0';
    snprintf(worker->host, sizeof(worker->host), "%s", text + bracketed);
    worker->port = (int)port;
    return true;
}

bool tl_audit_workers(struct tl_redis *redis, const struct tl_keys *keys, const char *addresses,
                      struct tl_audit_report *report, struct tl_error *err)
{
    while (*addresses != '\0') {
        struct worker worker = {0};
        if (!read_address(&addresses, &worker, err) ||
            !check_worker(redis, keys, &worker, report, err))
            return false;
    }
    return true;
}
