#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "worker/page/language.h"

static const char *const codes[TL_LANGUAGES] = {[TL_LANGUAGE_EN] = "en", [TL_LANGUAGE_KO] = "ko"};

#define WEIGHT_ONE 1000 /* weights in thousandths, the precision of RFC 9110 */

const char *tl_language_code(enum tl_language language)
{
    return codes[language];
}

static bool from_code(const char *code, enum tl_language *language)
{
    if (code == NULL)
        return false;
    for (size_t i = 0; i < TL_LANGUAGES; i++) {
        if (strcmp(code, codes[i]) == 0) {
            *language = (enum tl_language)i;
            return true;
        }
    }
    return false;
}

/* "q=0.8" to 800; -1 when it is not a valid weight. */
static int parse_weight(const char *text, size_t length)
{
    if (length < 3 || (text[0] != 'q' && text[0] != 'Q') || text[1] != '=')
        return -1;
    if (text[2] != '0' && text[2] != '1')
        return -1;
    int weight = (text[2] - '0') * WEIGHT_ONE;
    if (length == 3)
        return weight;
    if (text[3] != '.' || length > 7)
        return -1;
    int digit_worth = WEIGHT_ONE / 10;
    for (size_t i = 4; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        weight += (text[i] - '0') * digit_worth;
        digit_worth /= 10;
    }
    return weight <= WEIGHT_ONE ? weight : -1;
}

static void trim(const char **text, size_t *length)
{
    while (*length > 0 && (**text == ' ' || **text == '\t')) {
        (*text)++;
        (*length)--;
    }
    while (*length > 0 && ((*text)[*length - 1] == ' ' || (*text)[*length - 1] == '\t'))
        (*length)--;
}

/* One member of the list, "ko-KR;q=0.9". Returns its weight, or 0 when it names none of our
 * languages. */
static int weigh(const char *member, size_t length, enum tl_language *language)
{
    int weight = WEIGHT_ONE;
    const char *semicolon = memchr(member, ';', length);
    if (semicolon != NULL) {
        const char *text = semicolon + 1;
        size_t n = length - (size_t)(text - member);
        trim(&text, &n);
        weight = parse_weight(text, n);
        length = (size_t)(semicolon - member);
    }
    trim(&member, &length);
    for (size_t i = 0; i < TL_LANGUAGES; i++) {
        size_t n = strlen(codes[i]);
        if (length >= n && strncasecmp(member, codes[i], n) == 0 &&
            (length == n || member[n] == '-')) {
            *language = (enum tl_language)i;
            return weight > 0 ? weight : 0;
        }
    }
    return 0;
}

enum tl_language tl_language_choose(const char *query, const char *cookie, const char *accept)
{
    enum tl_language best = TL_LANGUAGE_EN;
    int best_weight = 0;
    if (from_code(query, &best) || from_code(cookie, &best))
        return best;
    while (accept != NULL && *accept != '\0') {
        size_t length = strcspn(accept, ",");
        enum tl_language language = TL_LANGUAGE_EN;
        int weight = weigh(accept, length, &language);
        if (weight > best_weight) {
            best = language;
            best_weight = weight;
        }
        accept += length;
        if (*accept == ',')
            accept++;
    }
    return best;
}
