/*
 * The texts of the pages in every language, and how numbers, durations and times are written in
 * them. "{0}" and "{1}" in a message stand for values.
 */
#ifndef TL_PAGE_TEXT_H
#define TL_PAGE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "worker/page/language.h"

#define TL_PAGE_TEXT_MAX 512 /* bytes of any text made here, with the terminating zero */

struct tl_page_message {
    const char *name; /* by which the template refers to it */
    const char *in[TL_LANGUAGES];
};

/* All n messages. Static storage. */
const struct tl_page_message *tl_page_messages(size_t *n);
/* The message with this name; "" when there is none. Static storage. */
const char *tl_page_message(const char *name, enum tl_language language);
/* The message with {0} and {1} replaced; second may be NULL. Cut when it does not fit. */
void tl_page_message_format(const char *name, enum tl_language language, const char *first,
                            const char *second, char *text, size_t size);

/* 1234567 is "1,234,567". */
void tl_write_number(uint64_t number, char *text, size_t size);

/* The two largest units: 5400 s is "1 hour 30 minutes"; 0 is "0 seconds". */
void tl_write_duration(int64_t seconds, enum tl_language language, char *text, size_t size);

/* The range of a wait, no more precise than an estimate can be: "about 4 to 7 minutes", "about 50
 * minutes to 1 hour 20 minutes", "less than a minute". Rounded outwards to steps that grow with the
 * wait: 1 minute up to 10, 5 up to an hour, 10 up to three hours, 30 up to twelve, then whole
 * hours. */
void tl_write_range(int64_t low_s, int64_t high_s, enum tl_language language, char *text,
                    size_t size);

/* "1 Dec 2026, 11:00 UTC"; the page's script shows the visitor's own time instead. */
void tl_write_time(int64_t unix_ms, enum tl_language language, char *text, size_t size);

#endif
