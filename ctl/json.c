#include <stdio.h>

#include "ctl/json.h"

bool tl_json_write(json_t *value)
{
    if (value == NULL)
        return false;
    bool ok = json_dumpf(value, stdout, JSON_INDENT(2)) == 0 && putchar('\n') != EOF &&
              fflush(stdout) == 0;
    json_decref(value);
    return ok;
}
