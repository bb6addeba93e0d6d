/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which plural form a whole number has in a language, by the rules of CLDR
 * (common/supplemental/plurals.xml; https://www.unicode.org/cldr/charts/latest/supplemental/
 * language_plural_rules.html). The system tests compare this table with the browser's Intl.
 */
#ifndef TL_PLURAL_H
#define TL_PLURAL_H

#include <stdint.h>

#define TL_LANGUAGE_CODE_MAX 35 /* bytes of the code of a language (BCP 47): "zh-Hant" */

enum tl_plural {
    TL_PLURAL_ZERO,
    TL_PLURAL_ONE,
    TL_PLURAL_TWO,
    TL_PLURAL_FEW,
    TL_PLURAL_MANY,
    TL_PLURAL_OTHER,
    TL_PLURALS
};

struct tl_plural_rule {
    const char *codes; /* separated by spaces */
    unsigned forms;    /* a bit for each enum tl_plural that whole numbers have */
    enum tl_plural (*of)(uint64_t number);
};

/* The rule of a language ("pl", "zh-Hant": what follows the first part does not count). NULL: this
 * table does not have it. Static storage. */
const struct tl_plural_rule *tl_plural_rule_find(const char *code);
/* "zero", "one", "two", "few", "many", "other". */
const char *tl_plural_name(enum tl_plural plural);

#endif
