/* `visitor move QUEUE VISITOR LANE`. */
#ifndef TL_CTL_VISITOR_MOVE_H
#define TL_CTL_VISITOR_MOVE_H

#include "ctl/command.h"

/* Returns the exit status. */
int tl_ctl_move_visitor(const struct tl_ctl_options *options);

#endif
