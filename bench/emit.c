/* SPDX-License-Identifier: Apache-2.0 */
#include "emit.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

static void string(const char *text)
{
    putchar('"');
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\')
            printf("\\%c", *p);
        else if (*p < 0x20)
            printf("\\u%04x", *p);
        else
            putchar(*p);
    }
    putchar('"');
}

static void text_member(const char *name, const char *text)
{
    if (text != NULL) {
        printf(",\"%s\":", name);
        string(text);
    }
}

static void number_member(const char *name, double value)
{
    if (!isnan(value) && !isinf(value))
        printf(",\"%s\":%.9g", name, value);
}

static void count_member(const char *name, uint64_t value)
{
    if (value > 0)
        printf(",\"%s\":%" PRIu64, name, value);
}

void tl_emit_figure(const struct tl_figure *figure)
{
    printf("{\"n\":%" PRIu64, figure->n);
    text_member("group", figure->group);
    text_member("metric", figure->metric);
    text_member("name", figure->name);
    text_member("unit", figure->unit);
    text_member("better", figure->lower_is_better ? "lower" : "higher");
    text_member("baseline", figure->baseline);
    text_member("note", figure->note);
    text_member("skip", figure->skip);
    if (figure->skip == NULL)
        number_member("value", figure->value);
    if (figure->target > 0)
        number_member("target", figure->target);
    if (figure->over_s > 0) {
        number_member("over", figure->over_s);
        printf(",\"done\":%" PRIu64 ",\"of\":%" PRIu64, figure->done, figure->of);
    }
    count_member("wrong", figure->wrong);
    if (figure->extrapolated)
        printf(",\"extrapolated\":true");
    if (figure->ours)
        printf(",\"ours\":true");
    puts("}");
    fflush(stdout);
}

void tl_emit_progress(uint64_t done, uint64_t of, const char *format, ...)
{
    char text[256];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    printf("{\"done\":%" PRIu64 ",\"of\":%" PRIu64, done, of);
    text_member("progress", text);
    puts("}");
    fflush(stdout);
}

void tl_emit_version(const char *name, const char *version)
{
    fputs("{\"versions\":{", stdout);
    string(name);
    putchar(':');
    string(version);
    puts("}}");
    fflush(stdout);
}

void tl_emit_about(const char *group, const char *name, const char *what, const char *source)
{
    fputs("{\"about\":", stdout);
    string(name);
    text_member("group", group);
    text_member("what", what);
    text_member("source", source);
    puts("}");
    fflush(stdout);
}
