/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "common/base/units.h"

#include "ctl/calls/call.h"
#include "ctl/calls/tell.h"
#include "ctl/shell/json.h"

static int report(const struct tl_ctl_options *options, json_t *answer)
{
    const char *queue = options->words[0];
    json_int_t restored = tl_json_number(answer, "restored");
    if (options->now && !json_is_true(json_object_get(answer, "was_recovering")))
        return tl_ctl_tell(options, answer,
                           "%s: no recovery is under way; none begins by itself any more", queue);
    if (options->now)
        return tl_ctl_tell(options, answer, "%s: the recovery ends; %lld places came back", queue,
                           (long long)restored);
    return tl_ctl_tell(options, answer,
                       "%s: no one is admitted for %" PRId64 " s; %lld places came back so far",
                       queue, options->wait_ms / 1000, (long long)restored);
}

int tl_command_recover(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    char target[TL_CTL_TARGET_MAX], wait[TL_UNITS_TEXT_MAX];
    json_t *answer;
    if (options->now == (options->wait_ms > 0)) {
        tl_error_set(&err, TL_ERR_INVALID, "recover takes one of --now and --wait TIME");
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    }
    if (!tl_ctl_target(target, "queues", options->words[0], "recover", NULL))
        return TL_EXIT_PROBLEM;
    tl_duration_format(options->wait_ms, wait, sizeof(wait));
    json_t *body = options->now ? json_pack("{s:b}", "now", 1) : json_pack("{s:s}", "wait", wait);
    const struct tl_ctl_ask ask = {.method = "POST", .target = target, .body = body, .sends = true};
    int status = tl_ctl_call_once(options, &ask, &answer);
    json_decref(body);
    return status == TL_EXIT_OK ? report(options, answer) : status;
}
