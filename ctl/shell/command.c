/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "ctl/shell/command.h"

int tl_ctl_fail(int status, const struct tl_error *err)
{
    fprintf(stderr, "tellerline: %s\n", err->text);
    return status;
}

int tl_ctl_file_status(const struct tl_error *err)
{
    return err->kind == TL_ERR_NOMEM ? TL_EXIT_FAILED : TL_EXIT_PROBLEM;
}

int tl_ctl_status_of(const struct tl_error *err)
{
    return err->kind == TL_ERR_INVALID || err->kind == TL_ERR_NOQUEUE ? TL_EXIT_PROBLEM
                                                                      : TL_EXIT_FAILED;
}
