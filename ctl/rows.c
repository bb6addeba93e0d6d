#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/units.h"
#include "common/config/queue_settings.h"
#include "common/store/mend.h"
#include "common/store/reply.h"

#include "ctl/rows.h"

/* A queue whose data is damaged has a trouble, and maybe nothing else. */
static bool read_row(struct tl_ctl_session *session, struct tl_queue_row *row, struct tl_error *err)
{
    struct tl_keys keys;
    struct tl_redis *redis = tl_ctl_session_redis(session, row->name, err);
    if (redis == NULL || !tl_ctl_session_keys(session, row->name, &keys, err) ||
        !tl_queue_examine(redis, &keys, row->trouble, err))
        return false;
    return (tl_queue_load(redis, &keys, &row->settings, err) &&
            tl_queue_numbers(redis, &keys, &row->numbers, err) &&
            tl_recovery_read(redis, &keys, &row->recovery, err)) ||
           (row->trouble[0] != '\0' && tl_error_is_of_queue(err, redis));
}

bool tl_queue_rows_read(struct tl_ctl_session *session, struct tl_queue_rows *rows,
                        struct tl_error *err)
{
    *rows = (struct tl_queue_rows){0};
    struct tl_redis *redis = tl_ctl_session_redis(session, NULL, err);
    char(*names)[TL_QUEUE_NAME_MAX + 1] = NULL;
    size_t n = 0;
    int64_t now_us;
    if (redis == NULL || !tl_redis_time(redis, &now_us, err) ||
        !tl_queue_list(redis, session->config->redis.key_prefix, &names, &n, err))
        return false;
    rows->now_ms = now_us / 1000;
    rows->rows = calloc(n + 1, sizeof(*rows->rows));
    bool ok = rows->rows != NULL || tl_error_set(err, TL_ERR_NOMEM, "no memory for %zu queues", n);
    for (size_t i = 0; ok && i < n; i++) {
        struct tl_queue_row *row = &rows->rows[rows->n];
        struct tl_error row_err = {0};
        memcpy(row->name, names[i], sizeof(row->name));
        if (read_row(session, row, &row_err))
            rows->n++;
        else if (row_err.kind != TL_ERR_NOQUEUE) /* NOQUEUE: deleted meanwhile */
            ok = tl_error_set(err, row_err.kind, "queue %s: %s", names[i], row_err.text);
    }
    free(names);
    if (!ok)
        tl_queue_rows_free(rows);
    return ok;
}

void tl_queue_rows_free(struct tl_queue_rows *rows)
{
    free(rows->rows);
    *rows = (struct tl_queue_rows){0};
}

enum tl_phase tl_queue_row_phase_of(const struct tl_queue_row *row, int64_t now_ms)
{
    const struct tl_phase_facts facts = {.now_ms = now_ms,
                                         .waiting = row->numbers.waiting,
                                         .full_since_ms = row->recovery.full_since_ms,
                                         .drawing = row->settings.opening == TL_OPENING_DRAW &&
                                                    row->recovery.draw.phase != TL_DRAW_DONE,
                                         .recovering = row->recovery.until_ms != 0};
    return tl_phase_of(&row->settings, &facts);
}

void tl_queue_row_phase(const struct tl_queue_row *row, int64_t now_ms, char *text, size_t size)
{
    enum tl_phase phase = tl_queue_row_phase_of(row, now_ms);
    if (row->trouble[0] != '\0') {
        snprintf(text, size, "damaged");
    } else if (phase == TL_PHASE_RECOVERING) {
        const struct tl_recovery *recovery = &row->recovery;
        int64_t left_ms = recovery->until_ms > now_ms ? recovery->until_ms - now_ms : 0;
        int n = snprintf(text, size, "recovers %" PRId64 " s: %" PRIu64, (left_ms + 999) / 1000,
                         recovery->restored);
        if (recovery->lost_size > 0 && n > 0 && (size_t)n < size)
            snprintf(text + n, size - (size_t)n, " of %" PRIu64, recovery->lost_size);
    } else if (phase == TL_PHASE_SCHEDULED) {
        char opens[TL_UNITS_TEXT_MAX];
        tl_time_format(row->settings.opens_at_ms, opens, sizeof(opens));
        snprintf(text, size, "opens %s", opens);
    } else {
        snprintf(text, size, "%s", tl_phase_name(phase));
    }
}

void tl_queue_row_state(const struct tl_queue_row *row, int64_t now_ms, char *text, size_t size)
{
    if (row->settings.mode == TL_MODE_OPEN || row->trouble[0] != '\0' ||
        row->recovery.until_ms != 0)
        tl_queue_row_phase(row, now_ms, text, size);
    else
        snprintf(text, size, "%s", tl_mode_name(row->settings.mode));
}

void tl_queue_row_limit(const struct tl_queue_row *row, char *text, size_t size)
{
    const struct tl_queue_settings *settings = &row->settings;
    char capacity[48] = "", rate[64] = "", every[TL_UNITS_TEXT_MAX];
    if (settings->policy != TL_POLICY_RATE)
        snprintf(capacity, sizeof(capacity), "%" PRIu64 "%s", tl_queue_capacity(settings),
                 settings->capacity_mode == TL_CAPACITY_FIXED
                     ? (settings->capacity == 0 ? ": no one" : "")
                 : settings->now.stale ? " auto (no feedback)"
                                       : " auto");
    if (settings->policy != TL_POLICY_COUNTER) {
        tl_duration_format(settings->rate_every_ms, every, sizeof(every));
        snprintf(rate, sizeof(rate), "%" PRIu64 "/%s", settings->rate_admit, every);
    }
    snprintf(text, size, "%s%s%s", capacity, settings->policy == TL_POLICY_BOTH ? ", " : "", rate);
}
