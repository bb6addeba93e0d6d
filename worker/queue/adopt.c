/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/queue/adopt.h"

bool tl_adopt(const struct tl_line *line, const struct tl_lost *lost, struct tl_ticket *ticket)
{
    const uint64_t present = tl_line_generation(line);
    if (tl_place_seq(ticket->place) == 0 ||
        (ticket->generation != present && !tl_lost_is(lost, ticket->generation)))
        return false;
    const bool elsewhere = tl_lost_follow(lost, ticket);
    const tl_place place = tl_line_find(line, ticket->place);
    const bool is_present = ticket->generation == present && !elsewhere;
    if (is_present ? place == ticket->place : tl_line_look(line, place).status == TL_LINE_UNKNOWN)
        return false;
    ticket->generation = present;
    ticket->place = place;
    ticket->outdated = true;
    return true;
}
