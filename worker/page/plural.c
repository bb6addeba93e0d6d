/* SPDX-License-Identifier: Apache-2.0 */
/* The plural forms of whole numbers (common/supplemental/plurals.xml of CLDR;
 * https://www.unicode.org/cldr/charts/latest/supplemental/language_plural_rules.html). The system
 * tests compare this table with the browser's Intl. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "worker/page/catalogue.h"

#define ALL UINT64_MAX /* what is left of a number by this is the number itself */

/* Cases of a rule: the number, or what is left of it by a divisor, is from..to; except when its
 * last two digits are but_from..but_to. */
#define IS(form, from, to)                                                                         \
    {                                                                                              \
        TL_PLURAL_##form, ALL, from, to, 0, 0                                                      \
    }
#define ENDS(form, divisor, from, to)                                                              \
    {                                                                                              \
        TL_PLURAL_##form, divisor, from, to, 0, 0                                                  \
    }
#define ENDS_BUT(form, divisor, from, to, but_from, but_to)                                        \
    {                                                                                              \
        TL_PLURAL_##form, divisor, from, to, but_from, but_to                                      \
    }
#define SLAVIC_FEW ENDS_BUT(FEW, 10, 2, 4, 12, 14)

static const struct tl_plural_rule rules[] = {
    {"id ja ko lo ms my th vi zh", TL_PLURAL_OTHER, {{0}}},
    {"bg da de el en et eu fi gl hu ka kk mn nb nl nn no sv sw tr ur uz",
     TL_PLURAL_OTHER,
     {IS(ONE, 1, 1)}},
    {"am bn fa gu hi zu", TL_PLURAL_OTHER, {IS(ONE, 0, 1)}},
    {"ca es it", TL_PLURAL_OTHER, {IS(ONE, 1, 1), IS(OTHER, 0, 0), ENDS(MANY, 1000000, 0, 0)}},
    {"fr pt", TL_PLURAL_OTHER, {IS(ONE, 0, 1), ENDS(MANY, 1000000, 0, 0)}},
    {"he", TL_PLURAL_OTHER, {IS(ONE, 1, 1), IS(TWO, 2, 2)}},
    {"ar",
     TL_PLURAL_OTHER,
     {IS(ZERO, 0, 0), IS(ONE, 1, 1), IS(TWO, 2, 2), ENDS(FEW, 100, 3, 10),
      ENDS(MANY, 100, 11, 99)}},
    {"pl", TL_PLURAL_MANY, {IS(ONE, 1, 1), SLAVIC_FEW}},
    {"be ru uk", TL_PLURAL_MANY, {ENDS_BUT(ONE, 10, 1, 1, 11, 11), SLAVIC_FEW}},
    {"bs hr sr", TL_PLURAL_OTHER, {ENDS_BUT(ONE, 10, 1, 1, 11, 11), SLAVIC_FEW}},
    {"cs sk", TL_PLURAL_OTHER, {IS(ONE, 1, 1), IS(FEW, 2, 4)}},
    {"sl", TL_PLURAL_OTHER, {ENDS(ONE, 100, 1, 1), ENDS(TWO, 100, 2, 2), ENDS(FEW, 100, 3, 4)}},
    {"ro", TL_PLURAL_OTHER, {IS(ONE, 1, 1), IS(FEW, 0, 0), ENDS(FEW, 100, 1, 19)}},
    {"lt", TL_PLURAL_OTHER, {ENDS_BUT(ONE, 10, 1, 1, 11, 19), ENDS_BUT(FEW, 10, 2, 9, 11, 19)}},
};

static bool fits(const struct tl_plural_case *known, uint64_t number)
{
    const uint64_t hundred = number % 100;
    const bool excepted =
        hundred >= known->but_from && hundred <= known->but_to && known->but_to > 0;
    const uint64_t left = known->divisor > 0 ? number % known->divisor : 0;
    return known->divisor > 0 && left >= known->from && left <= known->to && !excepted;
}

enum tl_plural tl_plural_of(const struct tl_plural_rule *rule, uint64_t number)
{
    for (size_t i = 0; i < TL_PLURAL_CASES; i++) {
        if (fits(&rule->cases[i], number))
            return rule->cases[i].form;
    }
    return rule->rest;
}

unsigned tl_plural_forms(const struct tl_plural_rule *rule)
{
    unsigned forms = 1U << rule->rest;
    for (size_t i = 0; i < TL_PLURAL_CASES; i++) {
        if (rule->cases[i].divisor > 0)
            forms |= 1U << rule->cases[i].form;
    }
    return forms;
}

const struct tl_plural_rule *tl_plural_rule_find(const char *code)
{
    const size_t length = strcspn(code, "-");
    for (size_t i = 0; length > 0 && i < sizeof(rules) / sizeof(rules[0]); i++) {
        for (const char *at = rules[i].codes; *at != '\0'; at += strspn(at, " ")) {
            const size_t n = strcspn(at, " ");
            if (n == length && memcmp(at, code, n) == 0)
                return &rules[i];
            at += n;
        }
    }
    return NULL;
}

const char *tl_plural_name(enum tl_plural plural)
{
    static const char *const names[TL_PLURALS] = {"zero", "one", "two", "few", "many", "other"};
    return names[plural];
}
