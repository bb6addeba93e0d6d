/* SPDX-License-Identifier: Apache-2.0 */
/* A place as calls show it. */
#ifndef TL_CONTROL_PLACE_JSON_H
#define TL_CONTROL_PLACE_JSON_H

#include <stdbool.h>

#include <jansson.h>

#include "common/config/settings.h"
#include "common/wire/place.h"

/* The name of the place's lane; "" for a lane that the queue has no longer. */
const char *tl_place_lane_name(const struct tl_queue_settings *settings, tl_place place);
/* Sets the members `lane` and `seq`. False: out of memory. */
bool tl_place_to_json(json_t *object, const struct tl_queue_settings *settings, tl_place place);

#endif
