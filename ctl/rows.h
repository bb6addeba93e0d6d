/* All queues with their settings and numbers, for `queues` and `top`. */
#ifndef TL_CTL_ROWS_H
#define TL_CTL_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/config/mode.h"
#include "common/store/queue.h"
#include "common/store/recovery.h"

#include "ctl/session.h"

struct tl_queue_row {
    char name[TL_QUEUE_NAME_MAX + 1];
    struct tl_queue_settings settings;
    struct tl_queue_numbers numbers;
    struct tl_recovery recovery;
    char trouble[320]; /* what is wrong with its data, and what to do; "" for a sound queue */
};

struct tl_queue_rows {
    size_t n;
    struct tl_queue_row *rows; /* by name; owned, freed with tl_queue_rows_free */
    int64_t now_ms;            /* when they were read, by the clock of the store */
};

/* Reads all queues, except those that are deleted meanwhile. */
bool tl_queue_rows_read(struct tl_ctl_session *session, struct tl_queue_rows *rows,
                        struct tl_error *err);
void tl_queue_rows_free(struct tl_queue_rows *rows);

/* What is so: the phase, or "damaged"; in recovery "recovers 12 s: 8 of 10" (places that came
 * back), before the opening "opens 2026-12-01T11:00:00Z". */
void tl_queue_row_phase(const struct tl_queue_row *row, int64_t now_ms, char *text, size_t size);
/* Its word of enum tl_phase. */
enum tl_phase tl_queue_row_phase_of(const struct tl_queue_row *row, int64_t now_ms);
/* Mode and phase in one: the phase where the mode is open, else the mode. */
void tl_queue_row_state(const struct tl_queue_row *row, int64_t now_ms, char *text, size_t size);
/* What limits admission: the capacity ("300"; "0: no one"; "140 auto" where the site's reports
 * steer it, "120 auto (no feedback)" while there are none), the rate ("1400/10s"), or both. */
void tl_queue_row_limit(const struct tl_queue_row *row, char *text, size_t size);

#endif
