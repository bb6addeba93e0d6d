/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "ctl/up/up.h"

enum { ROLE_WIDTH = 10 }; /* "dispatcher" */

static void print_line(struct tl_lines *lines, const struct tl_lines_output *output)
{
    /* cyan, yellow, green, magenta, blue, bright cyan */
    static const char *const colours[] = {"36", "33", "32", "35", "34", "96"};
    const char *colour = colours[(size_t)lines->colour % (sizeof(colours) / sizeof(colours[0]))];
    for (size_t i = 0; i < lines->length; i++) {
        unsigned char byte = (unsigned char)lines->bytes[i];
        if ((byte < 0x20 && byte != '\t') || byte == 0x7F)
            lines->bytes[i] = '?';
    }
    if (output->colour)
        fprintf(output->file, "\033[%sm%-*s |\033[0m %.*s\n", colour, ROLE_WIDTH, lines->role,
                (int)lines->length, lines->bytes);
    else
        fprintf(output->file, "%-*s | %.*s\n", ROLE_WIDTH, lines->role, (int)lines->length,
                lines->bytes);
    fflush(output->file);
    lines->length = 0;
}

void tl_lines_feed(struct tl_lines *lines, const struct tl_lines_output *output, const char *bytes,
                   size_t length)
{
    while (length > 0) {
        size_t space = sizeof(lines->bytes) - lines->length;
        size_t taken = 0;
        while (taken < length && taken < space && bytes[taken] != '\n')
            taken++;
        memcpy(lines->bytes + lines->length, bytes, taken);
        lines->length += taken;
        bool ended = taken < length && bytes[taken] == '\n';
        if (ended || lines->length == sizeof(lines->bytes))
            print_line(lines, output);
        taken += ended ? 1 : 0;
        bytes += taken;
        length -= taken;
    }
}

void tl_lines_end(struct tl_lines *lines, const struct tl_lines_output *output)
{
    if (lines->length > 0)
        print_line(lines, output);
}
