/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/base/clock.h"
#include "common/config/queue_settings.h"
#include "worker/api/navigation.h"
#include "worker/api/standing.h"

/* Why no one can join; false: someone can. */
static bool refuse(const struct tl_api *api, const struct tl_request *request,
                   const struct tl_queue *queue, struct tl_refusal *refusal)
{
    static const enum tl_refusal_kind of_mode[TL_MODES] = {[TL_MODE_DRAINING] = TL_REFUSAL_DRAINING,
                                                           [TL_MODE_CLOSED] = TL_REFUSAL_CLOSED,
                                                           [TL_MODE_SOLD_OUT] = TL_REFUSAL_SOLD_OUT,
                                                           [TL_MODE_PASSTHROUGH] =
                                                               TL_REFUSAL_UNKNOWN_OUTCOME};
    const struct tl_queue_settings *settings = &queue->settings;
    enum tl_phase phase = tl_queue_weather(queue, tl_clock_ms()).phase;
    enum tl_refusal_kind kind = of_mode[settings->mode];
    const char *language = tl_catalogue_code(tl_language_of(api->languages, request));
    if (tl_phase_joins(settings, phase))
        return false;
    if (settings->mode == TL_MODE_PASSTHROUGH)
        (void)tl_refuse(refusal, kind, "Everyone gets in now; try again");
    else if (settings->mode != TL_MODE_OPEN && settings->mode != TL_MODE_PAUSED)
        (void)tl_refuse(refusal, kind, "%s",
                        tl_queue_closed_text(settings, settings->mode, language));
    else if (phase == TL_PHASE_OVER)
        (void)tl_refuse(refusal, TL_REFUSAL_OVER, "%s",
                        tl_queue_closed_text(settings, settings->mode, language));
    else
        (void)tl_refuse(refusal, TL_REFUSAL_FULL, "As many wait as may; try again later");
    return true;
}

bool tl_standing_joins(const struct tl_api *api, const struct tl_request *request,
                       const struct tl_queue *queue, struct tl_refusal *refusal)
{
    return !refuse(api, request, queue, refusal);
}

void tl_standing_no_place(const struct tl_api *api, const struct tl_request *request,
                          const struct tl_queue *queue, struct tl_refusal *refusal)
{
    if (!refuse(api, request, queue, refusal)) /* the news of it is on its way here */
        (void)tl_refuse(refusal, TL_REFUSAL_FULL, "As many wait as may; try again later");
}
