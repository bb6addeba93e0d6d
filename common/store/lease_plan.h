/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a round asks about each lease. Pure decisions: they read and write the leases alone.
 *
 * A round has up to three steps. First it renews what is held and checks some or all leases of
 * other replicas. When one of the few is free, its holder has released its leases, so the second
 * step checks the rest. The last step takes what is free.
 */
#ifndef TL_LEASE_PLAN_H
#define TL_LEASE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/store/lease.h"

/* Leases of other replicas checked in every round, so that released ones are found early. */
#define TL_LEASE_CHECKS_PER_ROUND 16
/* The least time between two checks of leases that are about to run out. */
#define TL_LEASE_CHECK_MIN_MS 20

struct tl_lease_round {
    bool take_all;  /* ask for all leases by function: what we know may be out of date */
    bool renew;     /* renew the leases held */
    bool check_all; /* check all leases of other replicas, not only some */
};

/* The first step. `held` of each lease says what is known. The few checks go round the list: *next
 * is where they start and is moved behind them. */
void tl_lease_plan_round(struct tl_lease *leases, size_t n, const struct tl_lease_round *round,
                         size_t *next);
/* The second step: checks the leases of other replicas that the first one skipped. False when none
 * of the checked ones was free: then there is nothing to do. */
bool tl_lease_plan_checks(struct tl_lease *leases, size_t n);
/* The last step: takes free leases. False when there are none. */
bool tl_lease_plan_take(struct tl_lease *leases, size_t n);

/* The next length of the leases: twice the longest recent turn. length_ms is their length now,
 * turn_ms the time since they were renewed. A long turn is forgotten by
 * a quarter in each renewal. */
int64_t tl_lease_plan_length(int64_t length_ms, int64_t turn_ms);

/* When the first lease of another replica runs out, given that all were checked. */
int64_t tl_lease_next_check_ms(const struct tl_lease *leases, size_t n, int64_t now_ms);

#endif
