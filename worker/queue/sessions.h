/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long sessions last, learned from the admissions and ends that were seen: a life table.
 *
 * The hazard of a session at each age is the number of ends seen at that age over the time that
 * sessions were seen at that age (E. Kaplan, P. Meier, "Nonparametric estimation from incomplete
 * observations", 1958; with delayed entry). So sessions that still run count for the time they have
 * run, and ends older than the window count neither as ends nor as time. Ages with few ends are
 * taken together. When sessions become clearly shorter or longer, those before are forgotten.
 *
 * Memory and time are bounded: of a large queue, one in 2^n sessions is followed.
 */
#ifndef TL_SESSIONS_H
#define TL_SESSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/wire/place.h"

enum {
    TL_LIFETIME_BINS = 64,      /* ages, and as many steps ahead */
    TL_LIFETIME_PER_MEAN = 8,   /* so many steps make one mean session */
    TL_SESSIONS_ENDED_MIN = 5,  /* fewer ends are too few to say anything */
    TL_SESSIONS_ENDED_MAX = 512 /* ends remembered */
};

struct tl_sessions;

struct tl_sessions *tl_sessions_new(void); /* NULL when out of memory */
void tl_sessions_free(struct tl_sessions **sessions);

/* A session that began at an unknown time, before we looked. */
void tl_sessions_found(struct tl_sessions *sessions, tl_place place);
/* now_ms is local monotonic time everywhere. */
void tl_sessions_started(struct tl_sessions *sessions, tl_place place, int64_t now_ms);
void tl_sessions_ended(struct tl_sessions *sessions, tl_place place, int64_t now_ms);
/* Forgets which sessions run, but not how long sessions last. */
void tl_sessions_lose(struct tl_sessions *sessions);

struct tl_lifetimes {
    double step_ms;                            /* width of a bin */
    double mean_ms, spread;                    /* of a session; variance over squared mean */
    double ended;                              /* ends that this rests on */
    double survival[2 * TL_LIFETIME_BINS + 1]; /* is a session older than i steps? survival[0]: 1 */
    double ages[TL_LIFETIME_BINS + 1]; /* share of the running sessions that is i steps old */
    double unknown;                    /* share whose age is not known */
};

/* Computes the life table. False while fewer than TL_SESSIONS_ENDED_MIN ends were seen, or fewer
 * than a fifth of those that run. */
bool tl_sessions_look(const struct tl_sessions *sessions, int64_t now_ms,
                      struct tl_lifetimes *lifetimes);
size_t tl_sessions_bytes(const struct tl_sessions *sessions);

#endif
