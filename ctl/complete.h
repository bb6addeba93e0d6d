/* SPDX-License-Identifier: Apache-2.0 */
/* `tellerline complete -- WORD...`: what the completions of the shells ask (ctl/completion/). */
#ifndef TL_CTL_COMPLETE_H
#define TL_CTL_COMPLETE_H

/* Writes what the last of the words, which follow `tellerline`, can become: a line for each,
 * "WORD<tab>DESCRIPTION"; or the line ":files" or ":folders", when it is the name of one. The words
 * are reordered. */
void tl_ctl_complete(int n, char **words);

#endif
