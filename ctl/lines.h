/* What several programs print, on one output: whole lines, each with its program's name before it.
 */
#ifndef TL_CTL_LINES_H
#define TL_CTL_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define TL_LINE_BYTES_MAX 8192 /* a longer line is broken */

/* Where lines go. */
struct tl_lines_output {
    FILE *file; /* borrowed */
    bool colour;
};

/* The lines of one program. Zeroed but for role and colour, it is ready. */
struct tl_lines {
    const char *role; /* borrowed */
    int colour;       /* which of the few colours */
    size_t length;    /* bytes of a line whose end has not come yet */
    char bytes[TL_LINE_BYTES_MAX];
};

/* Colour only on a terminal that can, and unless NO_COLOR is set (no-color.org). */
struct tl_lines_output tl_lines_output(FILE *file);

/* Takes bytes as they came from a pipe and prints the lines they complete. Control characters but
 * tabs are printed as '?', so that a program cannot steer the terminal. */
void tl_lines_feed(struct tl_lines *lines, const struct tl_lines_output *output, const char *bytes,
                   size_t length);
/* Prints what is left without a line end: the program has closed its output. */
void tl_lines_end(struct tl_lines *lines, const struct tl_lines_output *output);

#endif
