/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "common/base/units.h"

#include "ctl/calls/hook_words.h"
#include "ctl/shell/json.h"
#include "ctl/shell/terminal.h"

static bool is(const json_t *hook, const char *state)
{
    return strcmp(tl_json_text(hook, "state"), state) == 0;
}

void tl_hook_words(const json_t *hook, char text[TL_HOOK_WORDS_MAX])
{
    char since[TL_UNITS_TEXT_MAX];
    tl_terminal_time_of(tl_json_text(hook, "failing_since"), since, sizeof(since));
    if (is(hook, "unwatched"))
        snprintf(text, TL_HOOK_WORDS_MAX, "no notifier watches the queue");
    else if (is(hook, "new"))
        snprintf(text, TL_HOOK_WORDS_MAX, "nothing told yet");
    else if (since[0] != '\0')
        snprintf(text, TL_HOOK_WORDS_MAX, "%s since %s: %s", tl_json_text(hook, "state"), since,
                 tl_json_text(hook, "problem"));
    else
        snprintf(text, TL_HOOK_WORDS_MAX, "%s", tl_json_text(hook, "state"));
}

enum tl_tint tl_hook_tint(const json_t *hook)
{
    if (is(hook, "dead") || is(hook, "unwatched"))
        return TL_TINT_TROUBLE;
    return is(hook, "failing") ? TL_TINT_CARE : TL_TINT_NONE;
}
