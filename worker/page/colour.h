/* SPDX-License-Identifier: Apache-2.0 */
/* Colours written as #rrggbb, and the contrast between two of them. */
#ifndef TL_COLOUR_H
#define TL_COLOUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
