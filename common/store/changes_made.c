/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/store/changes_made.h"

void tl_changes_made_free(struct tl_changes_made *made)
{
    free(made->before);
    free(made->after);
    *made = (struct tl_changes_made){0};
}
