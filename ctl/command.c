#include <stdio.h>

#include "ctl/command.h"

int tl_ctl_fail(int status, const struct tl_error *err)
{
    fprintf(stderr, "tellerline: %s\n", err->text);
    return status;
}
