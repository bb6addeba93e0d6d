#include "worker/queue/adopt.h"

bool tl_adopt(const struct tl_line *line, const struct tl_lost *lost, struct tl_ticket *ticket)
{
    if (tl_place_seq(ticket->place) == 0 || !tl_lost_is(lost, ticket->generation) ||
        tl_line_look(line, ticket->place).status == TL_LINE_UNKNOWN)
        return false;
    ticket->generation = tl_line_generation(line);
    ticket->outdated = true;
    return true;
}
