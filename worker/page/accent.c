/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/page/accent.h"
#include "worker/page/colour.h"

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
