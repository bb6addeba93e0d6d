/* SPDX-License-Identifier: Apache-2.0 */
/* The dispatcher: applies ingest batches to the lines and trims the ingest streams. */
#ifndef TL_DISPATCHER_H
#define TL_DISPATCHER_H

#include "common/role/role.h"

extern const struct tl_role tl_dispatcher;

#endif
