/* SPDX-License-Identifier: Apache-2.0 */
/* Merges the output of several programs: whole lines, each with the name of its program in front.
 */
#ifndef TL_CTL_SHELL_LINES_H
#define TL_CTL_SHELL_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define TL_LINE_BYTES_MAX 8192 /* a longer line is split */

/* Where lines go. */
struct tl_lines_output {
    FILE *file; /* borrowed */
    bool colour;
};

/* The lines of one program. Set role and colour, and zero the rest. */
struct tl_lines {
    const char *role; /* borrowed */
    int colour;       /* index of its colour */
    size_t length;    /* bytes of a line that is not complete yet */
    char bytes[TL_LINE_BYTES_MAX];
};

/* Colour only on a terminal that supports it, and unless NO_COLOR is set (no-color.org). */
struct tl_lines_output tl_lines_output(FILE *file);

/* Takes bytes from a pipe and prints the lines that they complete. Control characters other than
 * tabs are printed as '?', so that a program cannot control the terminal. */
void tl_lines_feed(struct tl_lines *lines, const struct tl_lines_output *output, const char *bytes,
                   size_t length);
/* The program has closed its output: prints a last line without a line end. */
void tl_lines_end(struct tl_lines *lines, const struct tl_lines_output *output);

#endif
