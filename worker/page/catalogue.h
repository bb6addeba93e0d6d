/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of the pages in one language, and how this language writes numbers and dates: read from
 * a YAML file of `language:` and `texts:`. docs/integrators/waiting-page.md describes it.
 *
 * English is the source: its file says which texts there are, which of them depend on a number (a
 * mapping of plural forms instead of a text) and which values each holds ("{0}" and "{1}").
 */
#ifndef TL_CATALOGUE_H
#define TL_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/page/plural.h"

#include "common/base/error.h"

#define TL_CATALOGUE_TEXT_MAX  1024 /* bytes of any text */
#define TL_CATALOGUE_BYTES_MAX ((size_t)128 * 1024)

struct tl_catalogue;

/* The source, from its file. `label` stands for the file in errors: `label:line:column: what`. NULL
 * on failure; freed with tl_catalogue_free, after all that were made from it. */
struct tl_catalogue *tl_catalogue_source(const char *label, const void *bytes, size_t length,
                                         struct tl_error *err);
/* A language without texts of its own: each is the source's until it is read. NULL: no memory. */
struct tl_catalogue *tl_catalogue_new(const struct tl_catalogue *source, struct tl_error *err);
void tl_catalogue_free(struct tl_catalogue **catalogue);

/* Reads the code of a catalogue's file, to find the language that it is for. */
bool tl_catalogue_read_code(const char *label, const void *bytes, size_t length,
                            char code[TL_LANGUAGE_CODE_MAX + 1], struct tl_error *err);
/* Reads a file into a catalogue. What was read before stays where this file has nothing. Unknown
 * names, wrong values and missing plural forms are errors; after one the catalogue is half changed
 * and fit only for freeing. */
bool tl_catalogue_read(struct tl_catalogue *catalogue, const char *label, const void *bytes,
                       size_t length, struct tl_error *err);
/* The first text that is still the source's, or NULL: there is none. */
const char *tl_catalogue_missing(const struct tl_catalogue *catalogue);

/* "zh-Hant": for the lang attribute, `?lang=` and the cookie. */
const char *tl_catalogue_code(const struct tl_catalogue *catalogue);
/* As the speakers of the language call it. */
const char *tl_catalogue_name(const struct tl_catalogue *catalogue);
/* What a browser's Intl is asked for: "ar-u-nu-latn". */
const char *tl_catalogue_locale(const struct tl_catalogue *catalogue);
bool tl_catalogue_right_to_left(const struct tl_catalogue *catalogue);
/* How well a language range of length bytes ("zh-TW") asks for this language: the bytes of it that
 * count; 0: it asks for another. */
size_t tl_catalogue_match(const struct tl_catalogue *catalogue, const char *range, size_t length);

size_t tl_catalogue_texts(const struct tl_catalogue *catalogue);
/* The number of the text with this name of length bytes; -1: there is none. */
int tl_catalogue_find(const struct tl_catalogue *catalogue, const char *name, size_t length);
const char *tl_catalogue_text_name(const struct tl_catalogue *catalogue, int text);
/* The text; of one with plural forms, all forms in the order of enum tl_plural, with "|" between
 * them. */
const char *tl_catalogue_text(const struct tl_catalogue *catalogue, int text);
/* The form of the text for this number. */
const char *tl_catalogue_form(const struct tl_catalogue *catalogue, int text, uint64_t number);
/* The names of the forms, as tl_catalogue_text joins them: "one|few|many". */
const char *tl_catalogue_forms(const struct tl_catalogue *catalogue);

/* What stands between groups of three digits, and the digits that a number has at least to be
 * divided into groups. */
const char *tl_catalogue_group(const struct tl_catalogue *catalogue);
size_t tl_catalogue_group_from(const struct tl_catalogue *catalogue);
/* "{day} {month} {year}, {time} UTC". */
const char *tl_catalogue_date(const struct tl_catalogue *catalogue);
/* The name of the month (0 to 11) in a date; NULL: its number stands there. */
const char *tl_catalogue_month(const struct tl_catalogue *catalogue, unsigned month);
/* Added to the year of the Gregorian calendar. */
int tl_catalogue_year_add(const struct tl_catalogue *catalogue);

#endif
