/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "worker/page/plural.h"

#define FORM(name) (1U << TL_PLURAL_##name)

static bool is_in(uint64_t number, uint64_t low, uint64_t high)
{
    return number >= low && number <= high;
}

static bool is_millions(uint64_t number)
{
    return number != 0 && number % 1000000 == 0;
}

static enum tl_plural none(uint64_t number)
{
    (void)number;
    return TL_PLURAL_OTHER;
}

static enum tl_plural one(uint64_t number)
{
    return number == 1 ? TL_PLURAL_ONE : TL_PLURAL_OTHER;
}

static enum tl_plural one_and_zero(uint64_t number)
{
    return number <= 1 ? TL_PLURAL_ONE : TL_PLURAL_OTHER;
}

static enum tl_plural one_millions(uint64_t number)
{
    return is_millions(number) ? TL_PLURAL_MANY : one(number);
}

static enum tl_plural one_and_zero_millions(uint64_t number)
{
    return is_millions(number) ? TL_PLURAL_MANY : one_and_zero(number);
}

static enum tl_plural hebrew(uint64_t number)
{
    return number == 2 ? TL_PLURAL_TWO : one(number);
}

static enum tl_plural arabic(uint64_t number)
{
    if (number <= 2)
        return (enum tl_plural)(TL_PLURAL_ZERO + number);
    if (is_in(number % 100, 3, 10))
        return TL_PLURAL_FEW;
    return number % 100 >= 11 ? TL_PLURAL_MANY : TL_PLURAL_OTHER;
}

static bool is_slavic_few(uint64_t number)
{
    return is_in(number % 10, 2, 4) && !is_in(number % 100, 12, 14);
}

static bool is_slavic_one(uint64_t number)
{
    return number % 10 == 1 && number % 100 != 11;
}

static enum tl_plural polish(uint64_t number)
{
    if (number == 1)
        return TL_PLURAL_ONE;
    return is_slavic_few(number) ? TL_PLURAL_FEW : TL_PLURAL_MANY;
}

static enum tl_plural russian(uint64_t number)
{
    if (is_slavic_one(number))
        return TL_PLURAL_ONE;
    return is_slavic_few(number) ? TL_PLURAL_FEW : TL_PLURAL_MANY;
}

static enum tl_plural croatian(uint64_t number)
{
    if (is_slavic_one(number))
        return TL_PLURAL_ONE;
    return is_slavic_few(number) ? TL_PLURAL_FEW : TL_PLURAL_OTHER;
}

static enum tl_plural czech(uint64_t number)
{
    return is_in(number, 2, 4) ? TL_PLURAL_FEW : one(number);
}

static enum tl_plural slovenian(uint64_t number)
{
    uint64_t rest = number % 100;
    if (rest == 1)
        return TL_PLURAL_ONE;
    if (rest == 2)
        return TL_PLURAL_TWO;
    return is_in(rest, 3, 4) ? TL_PLURAL_FEW : TL_PLURAL_OTHER;
}

static enum tl_plural romanian(uint64_t number)
{
    if (number == 1)
        return TL_PLURAL_ONE;
    return number == 0 || is_in(number % 100, 1, 19) ? TL_PLURAL_FEW : TL_PLURAL_OTHER;
}

static enum tl_plural lithuanian(uint64_t number)
{
    if (number % 10 == 0 || is_in(number % 100, 11, 19))
        return TL_PLURAL_OTHER;
    return number % 10 == 1 ? TL_PLURAL_ONE : TL_PLURAL_FEW;
}

static const struct tl_plural_rule rules[] = {
    {"id ja ko lo ms my th vi zh", FORM(OTHER), none},
    {"bg da de el en et eu fi gl hu ka kk mn nb nl nn no sv sw tr ur uz", FORM(ONE) | FORM(OTHER),
     one},
    {"am bn fa gu hi zu", FORM(ONE) | FORM(OTHER), one_and_zero},
    {"ca es it", FORM(ONE) | FORM(MANY) | FORM(OTHER), one_millions},
    {"fr pt", FORM(ONE) | FORM(MANY) | FORM(OTHER), one_and_zero_millions},
    {"he", FORM(ONE) | FORM(TWO) | FORM(OTHER), hebrew},
    {"ar", FORM(ZERO) | FORM(ONE) | FORM(TWO) | FORM(FEW) | FORM(MANY) | FORM(OTHER), arabic},
    {"pl", FORM(ONE) | FORM(FEW) | FORM(MANY), polish},
    {"be ru uk", FORM(ONE) | FORM(FEW) | FORM(MANY), russian},
    {"bs hr sr", FORM(ONE) | FORM(FEW) | FORM(OTHER), croatian},
    {"cs sk", FORM(ONE) | FORM(FEW) | FORM(OTHER), czech},
    {"sl", FORM(ONE) | FORM(TWO) | FORM(FEW) | FORM(OTHER), slovenian},
    {"ro", FORM(ONE) | FORM(FEW) | FORM(OTHER), romanian},
    {"lt", FORM(ONE) | FORM(FEW) | FORM(OTHER), lithuanian},
};

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
