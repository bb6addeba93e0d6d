#include <stdarg.h>
#include <stdio.h>

#include "ctl/json.h"
#include "ctl/tell.h"

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
    return ok ? TL_EXIT_OK : TL_EXIT_FAILED;
}
