/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/config/value.h"
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
    TEXT_MAX = 400,
};

enum { WAITING, ACTIVE, SIZES };

/* The sizes that the state has had. */
struct window {
    uint64_t least[SIZES], most[SIZES];
};

static bool widen(struct tl_redis *redis, const struct tl_keys *keys, struct window *window,
                  struct tl_error *err)
{
    struct tl_state now;
    if (!tl_state_read(redis, keys, TL_STATE_SIZES, &now, err))
        return false;
    const uint64_t sizes[SIZES] = {now.waiting, now.active};
    for (size_t i = 0; i < SIZES; i++) {
        window->least[i] = sizes[i] < window->least[i] ? sizes[i] : window->least[i];
        window->most[i] = sizes[i] > window->most[i] ? sizes[i] : window->most[i];
    }
    return true;
}

/* The public numbers of the queue, as visitors see them. */
static bool ask(const struct tl_listen *worker, const char *queue, uint64_t shown[SIZES],
                struct tl_error *err)
{
    char path[TL_QUEUE_NAME_MAX + 16];
    char body[BODY_MAX];
    snprintf(path, sizeof(path), "/v1/queues/%s", queue);
    int status = tl_http_get(worker->host, worker->port, path, ASK_MS, body, sizeof(body));
    json_t *root = status == 200 ? json_loads(body, 0, NULL) : NULL;
    json_int_t numbers[SIZES];
    bool ok = root != NULL && json_unpack(root, "{s:I, s:I}", "waiting", &numbers[WAITING],
                                          "active", &numbers[ACTIVE]) == 0;
    json_decref(root);
    if (ok) {
        shown[WAITING] = (uint64_t)numbers[WAITING];
        shown[ACTIVE] = (uint64_t)numbers[ACTIVE];
        return true;
    }
    if (status < 0)
        return tl_error_set(err, TL_ERR_CONNECT, "the worker at %s port %d does not answer",
                            worker->host, worker->port);
    return tl_error_set(err, TL_ERR_PROTOCOL,
                        "the worker at %s port %d answers %s with %d, without the numbers",
                        worker->host, worker->port, path, status);
}

/* One round: says in text which sample was never the state's within the window; "": none. */
static bool compare(struct tl_redis *redis, const struct tl_keys *keys,
                    const struct tl_listen *worker, char text[TEXT_MAX], struct tl_error *err)
{
    struct window window = {.least = {UINT64_MAX, UINT64_MAX}};
    int64_t until_ms = tl_clock_ms() + WINDOW_MS;
    text[0] = '\0';
    while (tl_clock_ms() < until_ms) {
        if (!widen(redis, keys, &window, err))
            return false;
        tl_ctl_pause(POLL_MS);
    }
    for (int i = 0; i < SAMPLES && text[0] == '\0'; i++) {
        uint64_t shown[SIZES];
        if (!widen(redis, keys, &window, err) || !ask(worker, keys->queue, shown, err) ||
            !widen(redis, keys, &window, err))
            return false;
        bool differs = false;
        for (size_t k = 0; k < SIZES; k++)
            differs = differs || shown[k] < window.least[k] || shown[k] > window.most[k];
        if (differs)
            snprintf(text, TEXT_MAX,
                     "the worker at %.200s port %d shows %" PRIu64 " waiting and %" PRIu64
                     " active; the state has %" PRIu64 " and %" PRIu64,
                     worker->host, worker->port, shown[WAITING], shown[ACTIVE],
                     window.most[WAITING], window.most[ACTIVE]);
    }
    return true;
}

static bool check_worker(struct tl_redis *redis, const struct tl_keys *keys,
                         const struct tl_listen *worker, struct tl_audit_report *report,
                         struct tl_error *err)
{
    char text[TEXT_MAX] = "?";
    for (int round = 0; round < ROUNDS && text[0] != '\0'; round++) {
        if (!compare(redis, keys, worker, text, err))
            return false;
    }
    if (text[0] != '\0')
        tl_audit_add(report, 11, text,
                     "look at the log of the worker and at tellerline_worker_gaps_total; a restart "
                     "reads the line again");
    return true;
}

bool tl_audit_workers(struct tl_redis *redis, const struct tl_keys *keys, const char *addresses,
                      struct tl_audit_report *report, struct tl_error *err)
{
    while (*addresses != '\0') {
        char text[ADDRESS_MAX];
        size_t length = strcspn(addresses, ",");
        struct tl_listen worker;
        snprintf(text, sizeof(text), "%.*s", (int)length, addresses);
        if (!tl_listen_parse(text, &worker) || worker.port == 0)
            return tl_error_set(
                err, TL_ERR_INVALID,
                "--worker: \"%.200s\" is not HOST:PORT, the visitors' port of a worker", text);
        if (!check_worker(redis, keys, &worker, report, err))
            return false;
        addresses += length + (addresses[length] == ',');
    }
    return true;
}
