/* SPDX-License-Identifier: Apache-2.0 */
/* `tellerline manual`. */
#ifndef TL_CTL_MANUAL_H
#define TL_CTL_MANUAL_H

/* Writes the manual page to standard output, in the language of man(7). */
void tl_ctl_manual(void);

#endif
