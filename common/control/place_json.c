/* SPDX-License-Identifier: Apache-2.0 */
#include "common/control/place_json.h"

const char *tl_place_lane_name(const struct tl_queue_settings *settings, tl_place place)
{
    unsigned lane = tl_place_lane(place);
    return lane < settings->n_lanes ? settings->lanes[lane] : "";
}

bool tl_place_to_json(json_t *object, const struct tl_queue_settings *settings, tl_place place)
{
    return json_object_set_new(object, "lane", json_string(tl_place_lane_name(settings, place))) ==
               0 &&
           json_object_set_new(object, "seq", json_integer((json_int_t)tl_place_seq(place))) == 0;
}
