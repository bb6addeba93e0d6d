/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/base/units.h"
#include "common/config/queue_table.h"

#include "ctl/calls/shrink.h"
#include "ctl/shell/confirm.h"

enum { FEWER_TIMES = 10 };

static bool is_duration(const char *name)
{
    size_t n;
    const struct tl_setting *rows = tl_queue_table(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(rows[i].path, name) == 0)
            return rows[i].type == TL_SETTING_DURATION;
    return false;
}

void tl_shrink_note(struct tl_text *what, const char *queue, const char *name, const char *before,
                    const char *after)
{
    int64_t before_ms, after_ms;
    if (is_duration(name) && tl_duration_parse(before, &before_ms, NULL) &&
        tl_duration_parse(after, &after_ms, NULL) && after_ms < before_ms / FEWER_TIMES)
        tl_text_append(what, "%s%s: %s becomes %s, less than a tenth of what it was (%s).",
                       what->length > 0 ? " " : "", queue, name, after, before);
}

int tl_shrink_confirm(const struct tl_ctl_options *options, struct tl_text *what)
{
    int status = TL_EXIT_OK;
    struct tl_error err = {0};
    if (what->failed) {
        tl_error_set(&err, TL_ERR_NOMEM, "no memory to ask whether the shorter times are meant");
        status = tl_ctl_fail(TL_EXIT_FAILED, &err);
    } else if (what->length > 0) {
        status = tl_ctl_confirm(options, what->data, NULL);
    }
    tl_text_free(what);
    return status;
}
