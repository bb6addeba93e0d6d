/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The states of a queue: what the operator wants (a mode) and what is so (a phase).
 *
 * The mode is the setting `mode`. The phase follows from the settings, the line and the clock;
 * nobody sets it. docs/operators/states.md shows both to operators.
 */
#ifndef TL_MODE_H
#define TL_MODE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/config/settings.h"

enum tl_phase {
    TL_PHASE_OPEN,
    TL_PHASE_SCHEDULED,  /* before opens_at: visitors join, no one is admitted */
    TL_PHASE_DRAWING,    /* after opens_at, until the order of those who came before is drawn */
    TL_PHASE_FULL,       /* max_waiting was reached: no one joins for a while */
    TL_PHASE_OVER,       /* after closes_at: no one joins */
    TL_PHASE_RECOVERING, /* the store lost the line, and visitors come back to their places */
    TL_PHASES
};

/* "open", "paused", "draining", "closed", "sold_out", "passthrough". */
const char *tl_mode_name(enum tl_queue_mode mode);
/* "open", "scheduled", "drawing", "full", "over", "recovering". */
const char *tl_phase_name(enum tl_phase phase);

/* May the mode of `after` follow that of `before`? TL_ERR_INVALID: no; says what may. */
bool tl_mode_change(const struct tl_queue_settings *before, const struct tl_queue_settings *after,
                    struct tl_error *err);

/* Does no one get in from the line in this mode? (Passthrough lets everyone in past the line.) */
bool tl_mode_holds(enum tl_queue_mode mode);
/* May the line move, as far as the mode and the times of opening and closing say? now_ms: Unix
 * time by the store's clock. */
bool tl_mode_admits(const struct tl_queue_settings *settings, int64_t now_ms);

/* What the phase follows from, besides the settings. */
struct tl_phase_facts {
    int64_t now_ms; /* Unix time by the store's clock */
    uint64_t waiting;
    int64_t full_since_ms; /* `full_since` of the state; 0: it is not full */
    bool drawing;          /* the order of those who came before the opening is being drawn */
    bool recovering;
};
enum tl_phase tl_phase_of(const struct tl_queue_settings *settings,
                          const struct tl_phase_facts *facts);
/* May a visitor join who has no place yet? */
bool tl_phase_joins(const struct tl_queue_settings *settings, enum tl_phase phase);

#endif
