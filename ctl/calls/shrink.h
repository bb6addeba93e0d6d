/* SPDX-License-Identifier: Apache-2.0 */
/* Times that become much shorter: mostly a wrong unit, and those who wait or shop lose by it. */
#ifndef TL_CTL_CALLS_SHRINK_H
#define TL_CTL_CALLS_SHRINK_H

#include "common/base/text.h"

#include "ctl/shell/command.h"

/* Appends a sentence if the setting, by its name in the file or in the store, is a duration that
 * becomes less than a tenth of what it was. Values as people write them. */
void tl_shrink_note(struct tl_text *what, const char *queue, const char *name, const char *before,
                    const char *after);
/* Asks whether all of it is meant. TL_EXIT_OK: yes, or nothing was noted. Releases the text. */
int tl_shrink_confirm(const struct tl_ctl_options *options, struct tl_text *what);

#endif
