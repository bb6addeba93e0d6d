/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>

#include "worker/http/refusal.h"

bool tl_refuse(struct tl_refusal *refusal, enum tl_refusal_kind kind, const char *detail, ...)
{
    va_list args;
    refusal->kind = kind;
    refusal->allowed = NULL;
    refusal->puzzle.text[0] = '\0';
    refusal->service.provider = NULL;
    va_start(args, detail);
    if (vsnprintf(refusal->detail, sizeof(refusal->detail), detail, args) < 0)
        refusal->detail[0] = '\0';
    va_end(args);
    return false;
}
