/* Colours written as #rrggbb, and the contrast between two of them. */
#ifndef TL_COLOUR_H
#define TL_COLOUR_H

#include <stdbool.h>
#include <stdint.h>

/* "#1a5fb4" to 0x1a5fb4. */
bool tl_colour_parse(const char *text, uint32_t *colour);

/* The contrast ratio of WCAG 2.2, from 1 to 21. Level AA requires 4.5 for text of normal size. */
double tl_colour_contrast(uint32_t a, uint32_t b);

#endif
