/* SPDX-License-Identifier: Apache-2.0 */
/* Accent colours: those of buttons, links and progress, on a light and on a dark page. */
#ifndef TL_ACCENT_H
#define TL_ACCENT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/text.h"

enum tl_accent { TL_ACCENT_LIGHT, TL_ACCENT_DARK, TL_ACCENTS };

/* Reads "#rrggbb" and checks that it is readable on the card and on the page behind it (WCAG AA);
 * the message has a colour that is. `setting` names it in messages. */
bool tl_accent_parse(enum tl_accent accent, const char *setting, const char *text, uint32_t *colour,
                     struct tl_error *err);
/* The colour, made as much lighter (dark page) or darker (light page) as it takes to be readable.
 */
uint32_t tl_accent_adjusted(enum tl_accent accent, uint32_t colour);
/* Appends the rule for a style sheet. */
void tl_accent_write(enum tl_accent accent, uint32_t colour, struct tl_text *out);

#endif
