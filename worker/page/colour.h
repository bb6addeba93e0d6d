/* SPDX-License-Identifier: Apache-2.0 */
/* Colours written as #rrggbb, the contrast between two of them; and accent colours: those of
 * buttons, links and progress, on a light and on a dark page. */
#ifndef TL_COLOUR_H
#define TL_COLOUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/text.h"

#define TL_COLOUR_AA 4.5 /* the contrast that level AA requires of text of normal size */

/* "#1a5fb4" to 0x1a5fb4. */
bool tl_colour_parse(const char *text, uint32_t *colour);

/* The contrast ratio of WCAG 2.2, from 1 to 21. */
double tl_colour_contrast(uint32_t a, uint32_t b);
/* The colour, mixed with as little white or black as makes it readable text on the background. It
 * stays as it is when it is readable. */
uint32_t tl_colour_readable(uint32_t colour, uint32_t background);
/* The least contrast that text of this colour has on a gradient of n colours. */
double tl_colour_gradient_contrast(uint32_t text, const uint32_t *colours, size_t n);

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
