/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/error.h"

bool tl_error_set(struct tl_error *err, enum tl_error_kind kind, const char *format, ...)
{
    if (err == NULL)
        return false;
    err->kind = kind;
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof(err->text), format, args);
    va_end(args);
    return false;
}

bool tl_error_prefix(struct tl_error *err, const char *format, ...)
{
    if (err == NULL)
        return false;
    char sentence[sizeof(err->text)];
    memcpy(sentence, err->text, sizeof(sentence));
    va_list args;
    va_start(args, format);
    int used = vsnprintf(err->text, sizeof(err->text), format, args);
    va_end(args);
    if (used < 0 || (size_t)used >= sizeof(err->text))
        return false;
    size_t room = sizeof(err->text) - (size_t)used;
    if (snprintf(err->text + used, room, ": %s", sentence) >= (int)room)
        memcpy(err->text + sizeof(err->text) - 4, "...", 4); /* cut, and says so */
    return false;
}

const char *tl_error_kind_name(enum tl_error_kind kind)
{
    static const char *const names[] = {
        [TL_OK] = "ok",
        [TL_ERR_INVALID] = "invalid",
        [TL_ERR_SYSTEM] = "system",
        [TL_ERR_NOMEM] = "nomem",
        [TL_ERR_CONNECT] = "connect",
        [TL_ERR_TIMEOUT] = "timeout",
        [TL_ERR_LOADING] = "loading",
        [TL_ERR_READONLY] = "readonly",
        [TL_ERR_MOVED] = "moved",
        [TL_ERR_MISCONF] = "misconf",
        [TL_ERR_OOM] = "oom",
        [TL_ERR_NOGROUP] = "nogroup",
        [TL_ERR_NOFUNCTION] = "nofunction",
        [TL_ERR_STALE] = "stale",
        [TL_ERR_ORDER] = "order",
        [TL_ERR_NOQUEUE] = "noqueue",
        [TL_ERR_RETIRED] = "retired",
        [TL_ERR_DENIED] = "denied",
        [TL_ERR_PROTOCOL] = "protocol",
        [TL_ERR_STORE] = "store",
    };
    if ((size_t)kind >= sizeof(names) / sizeof(names[0]) || names[kind] == NULL)
        return "unknown";
    return names[kind];
}
