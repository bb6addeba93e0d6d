/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/clock.h"
#include "common/store/memory.h"
#include "worker/process/board.h"

enum {
    STUCK_MS = 30000, /* without a turn of the parent */
    ALIGNMENT = 64,
    LOOKS = TL_HEARING_LOST_MS / 500,
    BEATS = 20, /* a loop that hardly turns is slow or stuck, not deaf */
};

static size_t round_up(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

bool tl_board_init(struct tl_board *board, unsigned n, uint64_t queues, struct tl_error *err)
{
    size_t head_size = round_up(sizeof(struct tl_board_head));
    size_t slots_size = round_up(n * sizeof(struct tl_slot));
    size_t block_size = round_up(tl_metrics_size(tl_worker_metrics, TL_WORKER_METRICS));
    *board = (struct tl_board){.n = n, .size = head_size + slots_size + n * block_size};
    board->metrics = calloc(n + 1, sizeof(struct tl_metrics *));
    if (board->metrics == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for %u processes", n);
    void *memory =
        mmap(NULL, board->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        free(board->metrics);
        return tl_error_set(err, TL_ERR_SYSTEM, "cannot map shared memory: %s", strerror(errno));
    }
    unsigned char *bytes = memory;
    board->memory = memory;
    board->queue_counts = tl_queue_counts_new(queues, err);
    if (board->queue_counts == NULL) {
        tl_board_deinit(board);
        return false;
    }
    board->head = memory;
    board->slots = (void *)(bytes + head_size);
    for (unsigned i = 0; i < n; i++)
        board->metrics[i] = tl_metrics_init(bytes + head_size + slots_size + i * block_size,
                                            tl_worker_metrics, TL_WORKER_METRICS);
    return true;
}

void tl_board_deinit(struct tl_board *board)
{
    free(board->metrics);
    tl_queue_counts_free(&board->queue_counts);
    munmap(board->memory, board->size);
    *board = (struct tl_board){0};
}

void tl_board_clear(struct tl_board *board, unsigned i)
{
    atomic_store(&board->slots[i].readiness, TL_NOT_STARTED);
    atomic_store(&board->slots[i].ticket_key, 0);
    atomic_store(&board->slots[i].accepts, false);
    atomic_store(&board->slots[i].accepted, 0);
    for (size_t metric = 0; metric < TL_WORKER_METRICS; metric++) {
        enum tl_metric_type type = tl_worker_metrics[metric].type;
        if (type == TL_GAUGE || type == TL_GAUGE_MAX)
            tl_metrics_set(board->metrics[i], metric, 0);
    }
}

/* ---- for the parent ---- */

bool tl_hearing_waits(int listen_fd)
{
    struct pollfd socket = {.fd = listen_fd, .events = POLLIN};
    return poll(&socket, 1, 0) == 1 && (socket.revents & POLLIN) != 0;
}

bool tl_hearing_lost(struct tl_hearing *hearing, bool waiting, int64_t accepted, int64_t beats)
{
    if (!waiting || hearing->looks == 0 || accepted != hearing->accepted) {
        *hearing =
            (struct tl_hearing){.accepted = accepted, .beats = beats, .looks = waiting ? 1 : 0};
        return false;
    }
    hearing->looks++;
    return hearing->looks > LOOKS && beats - hearing->beats >= BEATS;
}

/* ---- for the admin listener ---- */

static bool is_live(void *context)
{
    const struct tl_board *board = context;
    return tl_clock_ms() - atomic_load(&board->head->parent_ms) < STUCK_MS;
}

static unsigned count_ready(const struct tl_board *board)
{
    unsigned ready = 0;
    for (unsigned i = 0; i < board->n; i++)
        ready += atomic_load(&board->slots[i].readiness) == TL_READY;
    return ready;
}

/* What an operator should know although joins are served. */
static void note_memory(const struct tl_board *board, char reason[160])
{
    const struct tl_store_memory memory = {
        .used = (uint64_t)tl_metrics_get(board->metrics[0], TL_WORKER_STORE_USED),
        .limit = (uint64_t)tl_metrics_get(board->metrics[0], TL_WORKER_STORE_LIMIT)};
    size_t length = strlen(reason);
    if (tl_store_memory_level(&memory, TL_MEMORY_ROOM) != TL_MEMORY_ROOM)
        snprintf(reason + length, 160 - length, "; the store uses %u %% of its memory (maxmemory)",
                 tl_store_memory_percent(&memory));
}

/* Ready when at least one process is; without any, when the store answers the admin process. */
static bool is_ready(void *context, char reason[160])
{
    const struct tl_board *board = context;
    if (count_ready(board) > 0) {
        int64_t troubled = 0;
        for (unsigned i = 0; i < board->n; i++) {
            int64_t n = tl_metrics_get(board->metrics[i], TL_WORKER_TROUBLED);
            troubled = n > troubled ? n : troubled;
        }
        if (troubled > 0)
            snprintf(reason, 160, "ready; queues not served: %lld; see `tellerline queue list`",
                     (long long)troubled);
        else
            snprintf(reason, 160, "ready");
        note_memory(board, reason);
        return true;
    }
    int first = board->n == 0 ? atomic_load(&board->head->admin_readiness)
                              : atomic_load(&board->slots[0].readiness);
    snprintf(reason, 160, "%s", tl_readiness_text((enum tl_readiness)first));
    return first == TL_READY;
}

static void write_number(struct tl_text *out, const char *name, const char *type, const char *help,
                         int64_t value)
{
    tl_text_append(out, "# HELP %s %s\n# TYPE %s %s\n%s{role=\"worker\"} %lld\n", name, help, name,
                   type, name, (long long)value);
}

/* One line for each key that signs tickets, with the number of processes that use it. */
static void write_ticket_keys(const struct tl_board *board, struct tl_text *out)
{
    const char name[] = "tellerline_worker_ticket_key";
    tl_text_append(out,
                   "# HELP %s Processes that sign tickets with the key of this fingerprint.\n"
                   "# TYPE %s gauge\n",
                   name, name);
    for (unsigned i = 0; i < board->n; i++) {
        uint32_t key = atomic_load(&board->slots[i].ticket_key);
        unsigned before = 0, users = 0;
        for (unsigned other = 0; other < board->n; other++) {
            bool same = atomic_load(&board->slots[other].ticket_key) == key;
            before += same && other < i;
            users += same;
        }
        if (key != 0 && before == 0)
            tl_text_append(out, "%s{role=\"worker\",fingerprint=\"%08x\"} %u\n", name,
                           (unsigned)key, users);
    }
}

static void write_metrics(void *context, struct tl_text *out)
{
    const struct tl_board *board = context;
    char reason[160];
    tl_program_metrics("role=\"worker\"", is_ready(context, reason), &board->head->reload, out);
    write_number(out, "tellerline_worker_processes", "gauge", "Configured worker processes.",
                 board->n);
    write_number(out, "tellerline_worker_processes_ready", "gauge", "Ready worker processes.",
                 count_ready(board));
    write_number(out, "tellerline_worker_restarts_total", "counter",
                 "Processes restarted after they ended.", atomic_load(&board->head->restarts));
    write_number(out, "tellerline_worker_deaf_total", "counter",
                 "Processes killed because they accepted no connections.",
                 atomic_load(&board->head->deaf));
    write_ticket_keys(board, out);
    tl_metrics_write(board->metrics, board->n, "role=\"worker\"", out);
    tl_queue_counts_write(board->queue_counts, "role=\"worker\"", out);
}

struct tl_admin_source tl_board_source(struct tl_board *board)
{
    return (struct tl_admin_source){
        .context = board, .live = is_live, .ready = is_ready, .metrics = write_metrics};
}
