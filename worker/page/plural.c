/* SPDX-License-Identifier: Apache-2.0 */
/* The plural forms of whole numbers (common/supplemental/plurals.xml of CLDR;
 * https://www.unicode.org/cldr/charts/latest/supplemental/language_plural_rules.html). The system
 * tests compare this table with the browser's Intl. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "worker/page/catalogue.h"

#define FORM(name) (1U << TL_PLURAL_##name)

enum family {
    NONE,
    ONE,
    ONE_AND_ZERO,
    HEBREW,
    ARABIC,
    POLISH,
    RUSSIAN,
    CROATIAN,
    CZECH,
    SLOVENIAN,
    ROMANIAN,
    LITHUANIAN,
};

static const struct tl_plural_rule rules[] = {
    {"id ja ko lo ms my th vi zh", FORM(OTHER), NONE},
    {"bg da de el en et eu fi gl hu ka kk mn nb nl nn no sv sw tr ur uz", FORM(ONE) | FORM(OTHER),
     ONE},
    {"am bn fa gu hi zu", FORM(ONE) | FORM(OTHER), ONE_AND_ZERO},
    {"ca es it", FORM(ONE) | FORM(MANY) | FORM(OTHER), ONE},
    {"fr pt", FORM(ONE) | FORM(MANY) | FORM(OTHER), ONE_AND_ZERO},
    {"he", FORM(ONE) | FORM(TWO) | FORM(OTHER), HEBREW},
    {"ar", FORM(ZERO) | FORM(ONE) | FORM(TWO) | FORM(FEW) | FORM(MANY) | FORM(OTHER), ARABIC},
    {"pl", FORM(ONE) | FORM(FEW) | FORM(MANY), POLISH},
    {"be ru uk", FORM(ONE) | FORM(FEW) | FORM(MANY), RUSSIAN},
    {"bs hr sr", FORM(ONE) | FORM(FEW) | FORM(OTHER), CROATIAN},
    {"cs sk", FORM(ONE) | FORM(FEW) | FORM(OTHER), CZECH},
    {"sl", FORM(ONE) | FORM(TWO) | FORM(FEW) | FORM(OTHER), SLOVENIAN},
    {"ro", FORM(ONE) | FORM(FEW) | FORM(OTHER), ROMANIAN},
    {"lt", FORM(ONE) | FORM(FEW) | FORM(OTHER), LITHUANIAN},
};

static bool is_in(uint64_t number, uint64_t low, uint64_t high)
{
    return number >= low && number <= high;
}

enum tl_plural tl_plural_of(const struct tl_plural_rule *rule, uint64_t number)
{
    const uint64_t ten = number % 10;
    const uint64_t hundred = number % 100;
    const bool millions = number != 0 && number % 1000000 == 0 && (rule->forms & FORM(MANY)) != 0;
    const bool slavic_one = ten == 1 && hundred != 11;
    const bool slavic_few = is_in(ten, 2, 4) && !is_in(hundred, 12, 14);
    switch ((enum family)rule->family) {
    case NONE:
        return TL_PLURAL_OTHER;
    case ONE:
    case ONE_AND_ZERO:
        if (number == 1 || (number == 0 && rule->family == ONE_AND_ZERO))
            return TL_PLURAL_ONE;
        return millions ? TL_PLURAL_MANY : TL_PLURAL_OTHER;
    case HEBREW:
        return number == 1 ? TL_PLURAL_ONE : number == 2 ? TL_PLURAL_TWO : TL_PLURAL_OTHER;
    case ARABIC:
        if (number <= 2)
            return (enum tl_plural)(TL_PLURAL_ZERO + number);
        return is_in(hundred, 3, 10) ? TL_PLURAL_FEW
               : hundred >= 11       ? TL_PLURAL_MANY
                                     : TL_PLURAL_OTHER;
    case POLISH:
        return number == 1 ? TL_PLURAL_ONE : slavic_few ? TL_PLURAL_FEW : TL_PLURAL_MANY;
    case RUSSIAN:
        return slavic_one ? TL_PLURAL_ONE : slavic_few ? TL_PLURAL_FEW : TL_PLURAL_MANY;
    case CROATIAN:
        return slavic_one ? TL_PLURAL_ONE : slavic_few ? TL_PLURAL_FEW : TL_PLURAL_OTHER;
    case CZECH:
        return number == 1 ? TL_PLURAL_ONE : is_in(number, 2, 4) ? TL_PLURAL_FEW : TL_PLURAL_OTHER;
    case SLOVENIAN:
        return hundred == 1           ? TL_PLURAL_ONE
               : hundred == 2         ? TL_PLURAL_TWO
               : is_in(hundred, 3, 4) ? TL_PLURAL_FEW
                                      : TL_PLURAL_OTHER;
    case ROMANIAN:
        if (number == 1)
            return TL_PLURAL_ONE;
        return number == 0 || is_in(hundred, 1, 19) ? TL_PLURAL_FEW : TL_PLURAL_OTHER;
    case LITHUANIAN:
        if (ten == 0 || is_in(hundred, 11, 19))
            return TL_PLURAL_OTHER;
        return ten == 1 ? TL_PLURAL_ONE : TL_PLURAL_FEW;
    }
    return TL_PLURAL_OTHER;
}

static bool lists(const char *codes, const char *code, size_t length)
{
    for (const char *at = codes; *at != '\0'; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        if (n == length && memcmp(at, code, n) == 0)
            return true;
        at += n;
    }
    return false;
}

const struct tl_plural_rule *tl_plural_rule_find(const char *code)
{
    size_t length = strcspn(code, "-");
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        if (lists(rules[i].codes, code, length))
            return &rules[i];
    }
    return NULL;
}

const char *tl_plural_name(enum tl_plural plural)
{
    static const char *const names[TL_PLURALS] = {"zero", "one", "two", "few", "many", "other"};
    return names[plural];
}
