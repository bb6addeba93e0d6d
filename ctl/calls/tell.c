/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>

#include "ctl/calls/call.h"
#include "ctl/calls/tell.h"
#include "ctl/shell/json.h"

int tl_ctl_tell(const struct tl_ctl_options *options, json_t *answer, const char *format, ...)
{
    va_list arguments;
    bool ok;
    if (options->json) {
        ok = tl_json_write(answer);
    } else {
        va_start(arguments, format);
        ok = vprintf(format, arguments) >= 0 && putchar('\n') != EOF;
        va_end(arguments);
        json_decref(answer);
    }
    return tl_ctl_written(ok);
}

int tl_ctl_show(const struct tl_ctl_options *options, const char *target,
                bool (*write_answer)(const json_t *answer))
{
    const struct tl_ctl_ask ask = {.method = "GET", .target = target};
    json_t *answer;
    int status = tl_ctl_call_once(options, &ask, &answer);
    if (status != TL_EXIT_OK)
        return status;
    bool ok = options->json ? tl_json_write(json_incref(answer)) : write_answer(answer);
    json_decref(answer);
    return tl_ctl_written(ok);
}

int tl_ctl_written(bool ok)
{
    if (!ok)
        fputs("tellerline: there is no memory to show the answer, or it cannot be written\n",
              stderr);
    return ok ? TL_EXIT_OK : TL_EXIT_FAILED;
}
