/* SPDX-License-Identifier: Apache-2.0 */
#include "common/store/lease_plan.h"

void tl_lease_plan_round(struct tl_lease *leases, size_t n, const struct tl_lease_round *round,
                         size_t *next)
{
    size_t checks = 0;
    size_t first = *next;
    for (size_t k = 0; k < n; k++) {
        size_t at = (first + k) % n;
        struct tl_lease *lease = &leases[at];
        lease->free = false;
        lease->error.kind = TL_OK;
        lease->step = TL_LEASE_SKIP;
        if (lease->resting && !lease->held) {
            lease->left_ms = TL_LEASE_MS;
        } else if (round->take_all) {
            lease->step = TL_LEASE_TAKE;
        } else if (lease->held) {
            lease->step = round->renew ? TL_LEASE_RENEW : TL_LEASE_SKIP;
        } else if (round->check_all || checks < TL_LEASE_CHECKS_PER_ROUND) {
            lease->step = TL_LEASE_CHECK;
            checks++;
            *next = at + 1;
        }
    }
}

bool tl_lease_plan_checks(struct tl_lease *leases, size_t n)
{
    bool any_free = false;
    for (size_t i = 0; i < n; i++)
        any_free = any_free || (leases[i].step == TL_LEASE_CHECK && leases[i].free);
    if (!any_free)
        return false;
    for (size_t i = 0; i < n; i++) {
        struct tl_lease *lease = &leases[i];
        bool skipped = lease->step == TL_LEASE_SKIP && !lease->held && !lease->resting;
        lease->step = skipped ? TL_LEASE_CHECK : TL_LEASE_SKIP;
    }
    return true;
}

bool tl_lease_plan_take(struct tl_lease *leases, size_t n)
{
    bool any_free = false;
    for (size_t i = 0; i < n; i++) {
        leases[i].step = leases[i].free ? TL_LEASE_TAKE : TL_LEASE_SKIP;
        any_free = any_free || leases[i].free;
    }
    return any_free;
}

int64_t tl_lease_plan_length(int64_t length_ms, int64_t turn_ms)
{
    int64_t longest_ms = TL_LEASE_MAX_MS / 2;
    int64_t needed_ms = 2 * (turn_ms < longest_ms ? turn_ms : longest_ms);
    int64_t kept_ms = length_ms - length_ms / 4;
    int64_t most_ms = needed_ms > kept_ms ? needed_ms : kept_ms;
    return most_ms > TL_LEASE_MS ? most_ms : TL_LEASE_MS;
}

int64_t tl_lease_next_check_ms(const struct tl_lease *leases, size_t n, int64_t now_ms)
{
    int64_t left_ms = TL_LEASE_MS;
    for (size_t i = 0; i < n; i++)
        if (!leases[i].held && !leases[i].free && leases[i].left_ms < left_ms)
            left_ms = leases[i].left_ms;
    return now_ms + (left_ms < TL_LEASE_CHECK_MIN_MS ? TL_LEASE_CHECK_MIN_MS : left_ms + 1);
}
