/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "worker/page/colour.h"

bool tl_colour_parse(const char *text, uint32_t *colour)
{
    if (text[0] != '#' || strspn(text + 1, "0123456789abcdefABCDEF") != 6 || text[7] != '\0')
        return false;
    *colour = (uint32_t)strtoul(text + 1, NULL, 16);
    return true;
}

/* One channel of sRGB made linear (WCAG 2.2, "relative luminance"). */
static double linear(uint32_t channel)
{
    double value = channel / 255.0;
    return value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4);
}

static double luminance(uint32_t colour)
{
    return 0.2126 * linear(colour >> 16 & 0xFF) + 0.7152 * linear(colour >> 8 & 0xFF) +
           0.0722 * linear(colour & 0xFF);
}

double tl_colour_contrast(uint32_t a, uint32_t b)
{
    double light = luminance(a);
    double dark = luminance(b);
    if (light < dark) {
        double swap = light;
        light = dark;
        dark = swap;
    }
    return (light + 0.05) / (dark + 0.05);
}

/* What a browser shows between two colours of a gradient: `share` of b, from 0 to 1. */
static uint32_t mix(uint32_t a, uint32_t b, double share)
{
    uint32_t mixed = 0;
    for (int shift = 16; shift >= 0; shift -= 8) {
        double of_a = a >> shift & 0xFF;
        double of_b = b >> shift & 0xFF;
        mixed = mixed << 8 | (uint32_t)lround(of_a + (of_b - of_a) * share);
    }
    return mixed;
}

uint32_t tl_colour_readable(uint32_t colour, uint32_t background)
{
    const int steps = 100;
    uint32_t white = 0xffffff;
    uint32_t end =
        tl_colour_contrast(white, background) > tl_colour_contrast(0, background) ? white : 0;
    uint32_t mixed = colour;
    for (int i = 1; i <= steps && tl_colour_contrast(mixed, background) < TL_COLOUR_AA; i++)
        mixed = mix(colour, end, (double)i / steps);
    return mixed;
}

double tl_colour_gradient_contrast(uint32_t text, const uint32_t *colours, size_t n)
{
    const int steps = 64;
    double least = tl_colour_contrast(text, colours[0]);
    for (size_t i = 1; i < n; i++) {
        for (int step = 1; step <= steps; step++) {
            uint32_t colour = mix(colours[i - 1], colours[i], (double)step / steps);
            least = fmin(least, tl_colour_contrast(text, colour));
        }
    }
    return least;
}

/* ---- accents ---- */

/* How a page looks on a light or a dark screen. */
struct scheme {
    const char *media;
    uint32_t backgrounds[2]; /* of page.css: the card and the page behind it */
};

static const struct scheme schemes[TL_ACCENTS] = {
    [TL_ACCENT_LIGHT] = {"not all and (prefers-color-scheme: dark)", {0xffffff, 0xf5f4fa}},
    [TL_ACCENT_DARK] = {"(prefers-color-scheme: dark)", {0x1d1a28, 0x13111b}},
};

uint32_t tl_accent_adjusted(enum tl_accent accent, uint32_t colour)
{
    const struct scheme *scheme = &schemes[accent];
    for (size_t i = 0; i < 2; i++)
        colour = tl_colour_readable(colour, scheme->backgrounds[i]);
    return colour;
}

bool tl_accent_parse(enum tl_accent accent, const char *setting, const char *text, uint32_t *colour,
                     struct tl_error *err)
{
    if (!tl_colour_parse(text, colour))
        return tl_error_set(err, TL_ERR_INVALID, "%s: not a colour such as #1a5fb4", setting);
    for (size_t i = 0; i < 2; i++) {
        uint32_t background = schemes[accent].backgrounds[i];
        double contrast = tl_colour_contrast(*colour, background);
        if (contrast < TL_COLOUR_AA)
            return tl_error_set(
                err, TL_ERR_INVALID,
                "%s: #%06x on #%06x has a contrast of %.2f to 1; readable text needs %.1f to 1 "
                "(WCAG AA): choose a %s colour, such as #%06x",
                setting, *colour, background, contrast, TL_COLOUR_AA,
                accent == TL_ACCENT_LIGHT ? "darker" : "lighter",
                tl_accent_adjusted(accent, *colour));
    }
    return true;
}

void tl_accent_write(enum tl_accent accent, uint32_t colour, struct tl_text *out)
{
    tl_text_append(out, "@media %s { :root { --accent: #%06x } }\n", schemes[accent].media, colour);
}
