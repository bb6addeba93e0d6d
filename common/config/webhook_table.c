/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/config/checks.h"
#include "common/config/rows.h"
#include "common/config/webhook_table.h"
#include "common/wire/names.h"

#define OWNER struct tl_webhook_config

static const char *const event_names[] = {
    [TL_WEBHOOK_OPENED] = "opened",           [TL_WEBHOOK_DRAWN] = "drawn",
    [TL_WEBHOOK_PAUSED] = "paused",           [TL_WEBHOOK_RESUMED] = "resumed",
    [TL_WEBHOOK_DRAINING] = "draining",       [TL_WEBHOOK_DRAINED] = "drained",
    [TL_WEBHOOK_CLOSED] = "closed",           [TL_WEBHOOK_SOLD_OUT] = "sold_out",
    [TL_WEBHOOK_PASSTHROUGH] = "passthrough", [TL_WEBHOOK_THRESHOLD] = "threshold",
    [TL_WEBHOOK_STORE_LOST] = "store_lost",   [TL_WEBHOOK_STORE_BACK] = "store_back",
    [TL_WEBHOOK_ADMITTED] = "admitted",       [TL_WEBHOOK_EVENTS] = NULL,
};

static const struct tl_setting rows[] = {
    TEXT(name, "",
         "Its name in messages and commands. Under another name it is another webhook, which is "
         "told what happens from then on.",
         .characters = LETTERS_AND_DIGITS "-_.",
         .form = "a name of letters, digits, \"-\", \"_\" and \".\""),
    TEXT(url, "",
         "Where the notifier posts: `https://`, or `http://` on this machine and the hosts of "
         "`notifier.http_hosts`. Redirects are not followed.",
         .check = tl_check_webhook_url),
    PATH(secret_file, "",
         "File with the secret that signs, in one line. While you change it, a second line signs "
         "as well. Made if missing."),
    NAMES(events, event_names,
          "Which [events](../integrators/webhooks.md) it is told of: `opened`, `drawn`, `paused`, "
          "`resumed`, `draining`, `drained`, `closed`, `sold_out`, `passthrough`, `threshold`, "
          "`store_lost`, `store_back`, `admitted`."),
    LIST(queues, "*",
         "Names of queues; `*` stands for any characters. Rehearsals (`rehearsal-QUEUE-RANDOM`) "
         "only where a pattern begins with `rehearsal-`.",
         .characters = LETTERS_AND_DIGITS "-_.* ",
         .form = "names of queues, in which \"*\" stands for any characters", .min = 1),
    NUMBER(threshold, "0", 0, 100000000,
           "For `threshold`: told when more visitors than this wait, and when fewer than nine "
           "tenths of it do again."),
    DURATION(timeout, "10s", MILLISECONDS(100), SECONDS(60),
             "How long an answer may take. Any 2xx is good; anything else is tried again."),
};

const struct tl_setting *tl_webhook_table(size_t *n)
{
    *n = sizeof(rows) / sizeof(rows[0]);
    return rows;
}

const char *tl_webhook_event_name(enum tl_webhook_event event)
{
    return event_names[event];
}

enum tl_webhook_event tl_webhook_event_find(const char *name)
{
    enum tl_webhook_event event = TL_WEBHOOK_OPENED;
    while (event < TL_WEBHOOK_EVENTS && strcmp(event_names[event], name) != 0)
        event++;
    return event;
}

bool tl_webhook_wants(const struct tl_webhook_config *webhook, enum tl_webhook_event event)
{
    return (webhook->events & (UINT64_C(1) << event)) != 0;
}

/* Does the text match the pattern of this length? Goes back to the last star only, so it takes at
 * most the product of both lengths. */
static bool matches(const char *pattern, size_t length, const char *text)
{
    size_t at = 0, star = SIZE_MAX;
    const char *retry = text;
    while (*text != '\0') {
        if (at < length && pattern[at] == '*') {
            star = at++;
            retry = text;
        } else if (at < length && pattern[at] == *text) {
            at++;
            text++;
        } else if (star != SIZE_MAX) {
            at = star + 1;
            text = ++retry;
        } else {
            return false;
        }
    }
    while (at < length && pattern[at] == '*')
        at++;
    return at == length;
}

bool tl_webhook_watches(const struct tl_webhook_config *webhook, const char *queue)
{
    const char *prefix = tl_queue_is_rehearsal(queue) ? TL_REHEARSAL_PREFIX : "";
    for (const char *at = webhook->queues; *at != '\0';) {
        size_t length = strcspn(at, " ");
        if (length > 0 && strncmp(at, prefix, strlen(prefix)) == 0 && matches(at, length, queue))
            return true;
        at += length + strspn(at + length, " ");
    }
    return false;
}
