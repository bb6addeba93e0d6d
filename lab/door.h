/* SPDX-License-Identifier: Apache-2.0 */
/* How the visitors of a rehearsal join: by an API key, by invites that it signs itself, or as
 * anybody does. */
#ifndef TL_LAB_DOOR_H
#define TL_LAB_DOOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/config/config.h"

enum { TL_DOOR_BODY_MAX = 2200 };

struct tl_door;

/* Reads the files of secrets.api_keys and secrets.invite_keys that there are. The first API key is
 * used; without one the first HS256 key signs invites. NULL on failure. */
struct tl_door *tl_door_new(const struct tl_config *config, struct tl_error *err);
void tl_door_free(struct tl_door **door); /* wipes the keys; NULL allowed */

/* Does it open what is closed to anybody: limits, challenges, invitations, the choice of a lane? */
bool tl_door_trusted(const struct tl_door *door);

/* The store's clock, for how long an invite is good: `store_s` (Unix time) at now_ms (tl_clock_ms).
 * To be set before the first join. */
void tl_door_set_clock(struct tl_door *door, int64_t store_s, int64_t now_ms);

/* The body of a join, "" for none, and what goes to Authorization, borrowed, NULL for none. lane:
 * the name; without trust everybody joins the default lane. */
bool tl_door_join(const struct tl_door *door, const char *queue, size_t visitor, const char *lane,
                  int64_t now_ms, char body[TL_DOOR_BODY_MAX], const char **bearer,
                  struct tl_error *err);

#endif
