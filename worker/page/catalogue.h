/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of the pages in one language, and how this language writes numbers and dates: read from
 * a YAML file of `language:` and `texts:` (docs/integrators/waiting-page-developers.md).
 *
 * English is the source: its file says which texts there are, which of them depend on a number (a
 * mapping of plural forms instead of a text) and which values each holds ("{0}" and "{1}").
 */
#ifndef TL_CATALOGUE_H
#define TL_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/config/yaml.h"

#define TL_LANGUAGE_CODE_MAX 35 /* bytes of the code of a language (BCP 47): "zh-Hant" */

/* ---- which plural form a whole number has, by the rules of CLDR: plural.c ---- */

enum tl_plural {
    TL_PLURAL_ZERO,
    TL_PLURAL_ONE,
    TL_PLURAL_TWO,
    TL_PLURAL_FEW,
    TL_PLURAL_MANY,
    TL_PLURAL_OTHER,
    TL_PLURALS
};

enum { TL_PLURAL_CASES = 5 };

struct tl_plural_rule {
    const char *codes;   /* separated by spaces */
    enum tl_plural rest; /* of the numbers that no case has */
    struct tl_plural_case {
        enum tl_plural form;
        uint64_t divisor, from, to; /* see plural.c; divisor 0: there is no such case */
        uint64_t but_from, but_to;
    } cases[TL_PLURAL_CASES]; /* the first that has the number counts */
};

/* The rule of a language ("pl", "zh-Hant": what follows the first part does not count). NULL: the
 * table does not have it. Static storage. */
const struct tl_plural_rule *tl_plural_rule_find(const char *code);
enum tl_plural tl_plural_of(const struct tl_plural_rule *rule, uint64_t number);
/* A bit for each form that whole numbers have. */
unsigned tl_plural_forms(const struct tl_plural_rule *rule);
/* "zero", "one", "two", "few", "many", "other". */
const char *tl_plural_name(enum tl_plural plural);

/* ---- catalogues ---- */

#define TL_CATALOGUE_TEXT_MAX  1024 /* bytes of any text */
#define TL_CATALOGUE_BYTES_MAX ((size_t)128 * 1024)

enum { TL_CATALOGUE_TEXTS_MAX = 512, TL_CATALOGUE_ALSO_MAX = 8, TL_CATALOGUE_MONTHS = 12 };

struct tl_catalogue_text {
    char *name;              /* owned; only of the source */
    char *forms[TL_PLURALS]; /* owned; a text without plural forms has `other` only */
    bool own;                /* has been read; else it is the source's */
    bool plural;             /* only of the source... */
    int values;              /* ...and so are the values that its forms hold, as bits */
    char *joined;            /* owned: its forms; NULL: it has none */
};

/* Written by the functions below, and read by everyone. */
struct tl_catalogue {
    char code[TL_LANGUAGE_CODE_MAX + 1]; /* "zh-Hant": for the lang attribute, `?lang=`, cookie */
    char name[64];                       /* as the speakers of the language call it */
    char locale[48];                     /* what a browser's Intl is asked for: "ar-u-nu-latn" */
    char direction[4];                   /* of the writing: "ltr" or "rtl" */
    char plurals[TL_LANGUAGE_CODE_MAX + 1]; /* the language with the rule; "": this one */
    char forms[40]; /* the names of the forms, as tl_catalogue_text joins them: "one|few|many" */
    char group[8];  /* what stands between groups of three digits... */
    int64_t group_from;                   /* ...of a number of at least this many digits */
    char date[128];                       /* "{day} {month} {year}, {time} UTC" */
    char months[TL_CATALOGUE_MONTHS][32]; /* in a date; "": its number stands there */
    int64_t year_add;                     /* added to the year of the Gregorian calendar */
    char also[TL_CATALOGUE_ALSO_MAX][TL_LANGUAGE_CODE_MAX + 1]; /* ranges that ask for it, too */
    const struct tl_plural_rule *rule;
    const struct tl_catalogue *source; /* itself, for the source */
    struct tl_catalogue_text *texts;
    size_t n_texts;
    bool complete; /* no file can add a text: all but the source while its own is read */
};

/* A language without texts of its own: each is the source's until it is read. source NULL: the
 * source itself, whose first file adds the texts; it is freed after all that were made from it.
 * NULL: no memory; freed with tl_catalogue_free. */
struct tl_catalogue *tl_catalogue_new(const struct tl_catalogue *source, struct tl_error *err);
void tl_catalogue_free(struct tl_catalogue **catalogue);

/* Parses a catalogue's file. *code: that of its language, borrowed from the result. NULL on
 * failure, with an error that begins with `label:line:column: `; freed with tl_yaml_free. */
struct tl_yaml *tl_catalogue_parse(const char *label, const void *bytes, size_t length,
                                   const char **code, struct tl_error *err);
/* Reads a parsed file into a catalogue; errors begin likewise. What was read before stays where
 * this file has nothing. Unknown names, wrong values and missing plural forms are errors; after one
 * the catalogue is half changed and fit only for freeing. */
bool tl_catalogue_read(struct tl_catalogue *catalogue, const char *label,
                       const struct tl_yaml *root, struct tl_error *err);
/* The first text that is still the source's, or NULL: there is none. */
const char *tl_catalogue_missing(const struct tl_catalogue *catalogue);

/* How well a language range of length bytes ("zh-TW") asks for this language: the bytes of it that
 * count; 0: it asks for another. */
size_t tl_catalogue_match(const struct tl_catalogue *catalogue, const char *range, size_t length);

/* The number of the text with this name of length bytes; -1: there is none. */
int tl_catalogue_find(const struct tl_catalogue *catalogue, const char *name, size_t length);
/* The text; of one with plural forms, all forms in the order of enum tl_plural, with "|" between
 * them. */
const char *tl_catalogue_text(const struct tl_catalogue *catalogue, int text);
/* The form of the text for this number. */
const char *tl_catalogue_form(const struct tl_catalogue *catalogue, int text, uint64_t number);

#endif
