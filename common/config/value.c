/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/base/units.h"
#include "common/config/texts.h"
#include "common/config/value.h"

/* A choice is stored through `unsigned`, whatever its enum is called. */
_Static_assert(sizeof(enum tl_policy) == sizeof(unsigned) &&
                   sizeof(enum tl_rate_shape) == sizeof(unsigned) &&
                   sizeof(enum tl_join_mode) == sizeof(unsigned) &&
                   sizeof(enum tl_store_error_mode) == sizeof(unsigned) &&
                   sizeof(enum tl_sharing_mode) == sizeof(unsigned) &&
                   sizeof(enum tl_challenge_provider) == sizeof(unsigned) &&
                   sizeof(enum tl_unreachable_mode) == sizeof(unsigned) &&
                   sizeof(enum tl_log_level) == sizeof(unsigned) &&
                   sizeof(enum tl_log_format) == sizeof(unsigned),
               "enums of settings are as wide as unsigned");

/* A value on its way into the field of its setting. */
struct assignment {
    const struct tl_setting *row;
    void *base, *field;
    const char *value;
    enum tl_setting_form form;
    struct tl_error *err;
};

/* Appends the limits to a sentence about the value's form. */
static bool with_bounds(const struct assignment *set)
{
    char text[sizeof(set->err->text)], bounds[TL_SETTING_BOUNDS_MAX];
    if (set->err == NULL)
        return false;
    tl_setting_bounds(set->row, bounds);
    memcpy(text, set->err->text, sizeof(text));
    return tl_error_set(set->err, TL_ERR_INVALID, "%s (%s)", text, bounds);
}

/* Refuses a value, or a part of it of this length, which the sentence begins with. */
static bool refuse(const struct assignment *set, const char *value, size_t length, const char *why)
{
    char copy[64], quoted[64];
    snprintf(copy, sizeof(copy), "%.*s", (int)(length < 60 ? length : 60), value);
    tl_quote(copy, quoted, sizeof(quoted));
    return tl_error_set(set->err, TL_ERR_INVALID, "%s %s", quoted, why);
}

/* The same of the whole value. */
static bool refuse_value(const struct assignment *set, const char *why)
{
    return refuse(set, set->value, strlen(set->value), why);
}

static bool out_of_bounds(const struct assignment *set)
{
    refuse_value(set, "is out of bounds");
    return with_bounds(set);
}

static bool not_one_of(const struct assignment *set, const char *name, size_t length)
{
    char why[TL_SETTING_BOUNDS_MAX + 16], bounds[TL_SETTING_BOUNDS_MAX];
    tl_setting_bounds(set->row, bounds);
    snprintf(why, sizeof(why), "is not one of %s", bounds);
    return refuse(set, name, length, why);
}

static bool set_bool(const struct assignment *set)
{
    bool on = strcmp(set->value, "true") == 0;
    if (!on && strcmp(set->value, "false") != 0)
        return refuse_value(set, "is neither true nor false");
    memcpy(set->field, &on, sizeof(on));
    return true;
}

static bool parse_share(const struct assignment *set, uint64_t *percent)
{
    double share;
    if (!tl_decimal_parse(set->value, &share, set->err))
        return false;
    if (strpbrk(set->value, ".%") == NULL && share > 0) { /* per cent, or a hundred of them? */
        char why[64];
        snprintf(why, sizeof(why), "is not clear: write %.0f%% or %.2f", share, share / 100);
        return refuse_value(set, why);
    }
    share = share < 10 ? share * 100 : 1000; /* beyond all bounds */
    *percent = (uint64_t)(share + 0.5);
    return fabs(share - (double)*percent) < 1e-6 ||
           refuse_value(set, "is finer than a whole per cent");
}

/* What is a whole number of 64 bits: milliseconds, bytes, per cent. The store has them plain. */
static bool parse_whole(const struct assignment *set, uint64_t *number)
{
    int64_t ms = 0;
    enum tl_setting_type type = set->form == TL_FORM_STORE ? TL_SETTING_NUMBER : set->row->type;
    switch (type) {
    case TL_SETTING_SIZE:
        return tl_size_parse(set->value, number, set->err);
    case TL_SETTING_SHARE:
        return parse_share(set, number);
    case TL_SETTING_DURATION:
    case TL_SETTING_TIME:
        if (!(type == TL_SETTING_DURATION
                  ? tl_duration_parse(set->value, &ms, set->err)
                  : *set->value == '\0' || tl_time_parse(set->value, &ms, set->err)))
            return false;
        *number = ms < 0 ? UINT64_MAX : (uint64_t)ms; /* before 1970: out of bounds */
        return true;
    default:
        return tl_number_parse(set->value, number, set->err);
    }
}

static bool set_whole(const struct assignment *set)
{
    bool is_time = set->row->type == TL_SETTING_DURATION || set->row->type == TL_SETTING_TIME;
    uint64_t number = 0;
    if (!parse_whole(set, &number))
        return is_time && set->form == TL_FORM_STORE ? false : with_bounds(set);
    if (number < (uint64_t)set->row->min || number > (uint64_t)set->row->max)
        return out_of_bounds(set);
    memcpy(set->field, &number, sizeof(number));
    return true;
}

static bool set_decimal(const struct assignment *set)
{
    double number;
    if (!tl_decimal_parse(set->value, &number, set->err))
        return with_bounds(set);
    if (number < (double)set->row->min || number > (double)set->row->max)
        return out_of_bounds(set);
    memcpy(set->field, &number, sizeof(number));
    return true;
}

/* Is the text of a good length, and without control characters? */
static bool check_text(const struct tl_setting *row, const char *value, size_t max,
                       struct tl_error *err)
{
    size_t length = strlen(value);
    if (length < (size_t)row->min)
        return tl_error_set(err, TL_ERR_INVALID, "must not be empty (1 to %zu bytes)", max);
    if (length > max)
        return tl_error_set(err, TL_ERR_INVALID, "is %zu bytes long; at most %zu fit", length, max);
    for (size_t i = 0; i < length; i++)
        if (iscntrl((unsigned char)value[i]) && !(row->lines && value[i] == '\n'))
            return tl_error_set(err, TL_ERR_INVALID,
                                "holds a control character, which is not allowed");
    return true;
}

static bool set_string(const struct assignment *set)
{
    const struct tl_setting *row = set->row;
    if (!check_text(row, set->value, row->size - 1, set->err) ||
        (row->check != NULL && !row->check(set->value, set->err)))
        return false;
    memcpy(set->field, set->value, strlen(set->value) + 1);
    return true;
}

bool tl_setting_set_text(const struct tl_setting *row, void *base, const char *language,
                         const char *text, struct tl_error *err)
{
    char *field = (char *)base + row->offset;
    char quoted[64];
    tl_quote(language, quoted, sizeof(quoted));
    if (!tl_texts_language_valid(language))
        return tl_error_set(err, TL_ERR_INVALID,
                            "%s is not the code of a language, such as en, ko or zh-Hant", quoted);
    return check_text(row, text, (size_t)row->max, err) &&
           (tl_texts_put(field, row->size, language, text, strlen(text)) ||
            tl_error_set(err, TL_ERR_INVALID, "at most %d languages and %zu bytes fit",
                         TL_TEXTS_LANGUAGES, row->size - 1));
}

/* One text for everyone, or all that the store has. */
static bool set_texts(const struct assignment *set)
{
    char *field = set->field;
    if (set->form == TL_FORM_STORE)
        return tl_texts_read(set->value, field, set->row->size) ||
               tl_error_set(set->err, TL_ERR_INVALID, "these are no texts by language");
    if (!check_text(set->row, set->value, (size_t)set->row->max, set->err))
        return false;
    field[0] = '\0';
    (void)tl_texts_put(field, set->row->size, TL_TEXTS_EVERYONE, set->value, strlen(set->value));
    return true;
}

bool tl_listen_parse(const char *value, struct tl_listen *listen)
{
    const char *colon = strrchr(value, ':');
    uint64_t port;
    if (colon == NULL || !tl_number_parse(colon + 1, &port, NULL) || port > 65535)
        return false;
    size_t length = (size_t)(colon - value);
    bool bracketed = length >= 2 && value[0] == '[' && colon[-1] == ']';
    if (bracketed) {
        value++;
        length -= 2;
    }
    if (length >= sizeof(listen->host))
        return false;
    memcpy(listen->host, value, length);
    listen->host[length] = '\0';
    listen->port = (int)port;
    struct in6_addr address;
    if (bracketed)
        return inet_pton(AF_INET6, listen->host, &address) == 1;
    return length > 0 && strspn(listen->host, "abcdefghijklmnopqrstuvwxyz"
                                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") == length;
}

static bool set_listen(const struct assignment *set)
{
    struct tl_listen listen = {.host = "", .port = -1};
    bool none = *set->value == '\0' && set->row->min == 0;
    if (!none && !tl_listen_parse(set->value, &listen)) {
        refuse_value(set, "is not a listening address");
        return with_bounds(set);
    }
    memcpy(set->field, &listen, sizeof(listen));
    return true;
}

static bool set_choice(const struct assignment *set)
{
    for (unsigned i = 0; set->row->names[i] != NULL; i++) {
        if (strcmp(set->value, set->row->names[i]) == 0) {
            memcpy(set->field, &i, sizeof(i));
            return true;
        }
    }
    return not_one_of(set, set->value, strlen(set->value));
}

/* The next item of a list at *at, of this length, or 0 at its end. Moves *at behind it. */
static size_t next_item(const char **at, const char **item)
{
    static const char separators[] = ", ";
    *item = *at + strspn(*at, separators);
    size_t length = strcspn(*item, separators);
    *at = *item + length;
    return length;
}

static bool set_names(const struct assignment *set)
{
    const char *const *names = set->row->names;
    const char *item, *at = set->value;
    uint64_t bits = 0;
    for (size_t length; (length = next_item(&at, &item)) > 0;) {
        unsigned i = 0;
        while (names[i] != NULL &&
               (strncmp(item, names[i], length) != 0 || names[i][length] != '\0'))
            i++;
        if (names[i] == NULL)
            return not_one_of(set, item, length);
        bits |= UINT64_C(1) << i;
    }
    if (bits == 0 && set->row->min > 0)
        return tl_error_set(set->err, TL_ERR_INVALID, "must not be empty");
    memcpy(set->field, &bits, sizeof(bits));
    return true;
}

/* Words, with a space between them. */
static bool set_list(const struct assignment *set)
{
    struct tl_text words = {0};
    const char *item, *at = set->value;
    for (size_t length; (length = next_item(&at, &item)) > 0;)
        tl_text_append(&words, "%s%.*s", words.length > 0 ? " " : "", (int)length, item);
    struct assignment joined = *set;
    joined.value = words.data != NULL ? words.data : "";
    bool good = words.failed ? tl_error_set(set->err, TL_ERR_NOMEM, "out of memory for a list")
                             : set_string(&joined);
    tl_text_free(&words);
    return good;
}

static bool lane_name_valid(const char *name, size_t length)
{
    if (length == 0 || length > TL_LANE_NAME_MAX)
        return false;
    for (size_t i = 0; i < length; i++) {
        bool alphanumeric =
            (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9');
        if (!alphanumeric && (i == 0 || (name[i] != '_' && name[i] != '-')))
            return false;
    }
    return true;
}

bool tl_lane_find(const struct tl_queue_settings *settings, const char *name, unsigned *lane)
{
    for (unsigned i = 0; i < settings->n_lanes; i++) {
        if (strcmp(settings->lanes[i], name) == 0) {
            *lane = i;
            return true;
        }
    }
    return false;
}

/* The default lane keeps its name. If that name is gone, the last lane becomes the default, so that
 * visitors do not move to a better lane by accident. */
static bool set_lanes(const struct assignment *set)
{
    struct tl_queue_settings *settings = set->base, next = *settings;
    const char *item, *at = set->value;
    memset(next.lanes, 0, sizeof(next.lanes));
    next.n_lanes = 0;
    for (size_t length; (length = next_item(&at, &item)) > 0;) {
        char name[TL_LANE_NAME_MAX + 1];
        unsigned twin;
        if (next.n_lanes == TL_LANES_MAX)
            return tl_error_set(set->err, TL_ERR_INVALID, "more than %d lanes", TL_LANES_MAX);
        if (!lane_name_valid(item, length)) {
            refuse(set, item, length, "is not a lane's name");
            return with_bounds(set);
        }
        snprintf(name, sizeof(name), "%.*s", (int)length, item);
        if (tl_lane_find(&next, name, &twin))
            return tl_error_set(set->err, TL_ERR_INVALID, "lane \"%s\" is named twice", name);
        memcpy(next.lanes[next.n_lanes++], name, length + 1);
    }
    if (next.n_lanes == 0) {
        tl_error_set(set->err, TL_ERR_INVALID, "must not be empty");
        return with_bounds(set);
    }
    bool kept = settings->default_lane < settings->n_lanes &&
                tl_lane_find(&next, settings->lanes[settings->default_lane], &next.default_lane);
    if (!kept)
        next.default_lane = (unsigned)next.n_lanes - 1;
    *settings = next;
    return true;
}

static void append_lanes(const struct tl_queue_settings *settings, const char *separator,
                         char *text, size_t size)
{
    for (size_t i = 0; i < settings->n_lanes; i++)
        tl_words_append(text, size, separator, settings->lanes[i], strlen(settings->lanes[i]));
}

static bool set_lane(const struct assignment *set)
{
    struct tl_queue_settings *settings = set->base;
    char why[192] = "is not one of the lanes: ", names[160] = "";
    if (tl_lane_find(settings, set->value, &settings->default_lane))
        return true;
    append_lanes(settings, ", ", names, sizeof(names));
    snprintf(why + strlen(why), sizeof(why) - strlen(why), "%s", names);
    return refuse_value(set, why);
}

static bool set_weights(const struct assignment *set)
{
    struct tl_weights weights;
    char text[TL_WEIGHTS_TEXT_MAX + 1] = "";
    const char *item, *at = set->value;
    for (size_t length; (length = next_item(&at, &item)) > 0;)
        tl_words_append(text, sizeof(text), ",", item, length);
    switch (tl_weights_parse(text, strlen(text), &weights)) {
    case TL_WEIGHTS_GOOD:
        memcpy(set->field, &weights, sizeof(weights));
        return true;
    case TL_WEIGHTS_MANY:
        return tl_error_set(set->err, TL_ERR_INVALID, "more than %d lanes", TL_LANES_MAX);
    case TL_WEIGHTS_PERIOD:
        return tl_error_set(set->err, TL_ERR_INVALID,
                            "the least common multiple of these weights is above %d: choose "
                            "weights with common factors",
                            TL_PERIOD_MAX);
    case TL_WEIGHTS_NUMBER:
        break;
    }
    refuse_value(set, "is not a list of weights");
    return with_bounds(set);
}

/* ---- the types ---- */

static const struct {
    const char *name;
    bool (*set)(const struct assignment *set);
    bool is_list;
} types[] = {
    [TL_SETTING_BOOL] = {"boolean", set_bool, false},
    [TL_SETTING_NUMBER] = {"number", set_whole, false},
    [TL_SETTING_SHARE] = {"share", set_whole, false},
    [TL_SETTING_DECIMAL] = {"decimal", set_decimal, false},
    [TL_SETTING_SIZE] = {"size", set_whole, false},
    [TL_SETTING_DURATION] = {"duration", set_whole, false},
    [TL_SETTING_TIME] = {"time", set_whole, false},
    [TL_SETTING_STRING] = {"text", set_string, false},
    [TL_SETTING_LISTEN] = {"address", set_listen, false},
    [TL_SETTING_CHOICE] = {"choice", set_choice, false},
    [TL_SETTING_LANES] = {"list", set_lanes, true},
    [TL_SETTING_LANE] = {"lane", set_lane, false},
    [TL_SETTING_NAMES] = {"list", set_names, true},
    [TL_SETTING_LIST] = {"list", set_list, true},
    [TL_SETTING_TEXTS] = {"texts", set_texts, false},
    [TL_SETTING_WEIGHTS] = {"list", set_weights, true},
};

bool tl_setting_set(const struct tl_setting *row, void *base, const char *value,
                    enum tl_setting_form form, struct tl_error *err)
{
    const struct assignment set = {row, base, (char *)base + row->offset, value, form, err};
    return types[row->type].set(&set);
}

const char *tl_setting_type_name(const struct tl_setting *row)
{
    return types[row->type].name;
}

bool tl_setting_is_list(const struct tl_setting *row)
{
    return types[row->type].is_list;
}

/* ---- back to text ---- */

static void get_listen(const struct tl_listen *listen, char *value, size_t size)
{
    bool ipv6 = strchr(listen->host, ':') != NULL;
    if (listen->port >= 0)
        snprintf(value, size, ipv6 ? "[%s]:%d" : "%s:%d", listen->host, listen->port);
}

static void get_names(const struct tl_setting *row, uint64_t bits, char *value, size_t size)
{
    for (unsigned i = 0; row->names[i] != NULL; i++)
        if ((bits & (UINT64_C(1) << i)) != 0)
            tl_words_append(value, size, ",", row->names[i], strlen(row->names[i]));
}

/* "en: Closed, ko: ..."; a text for everyone as it is. */
static void show_texts(const char *texts, char *value, size_t size)
{
    const char *language, *text = NULL;
    while ((text = tl_texts_next(texts, text, &language)) != NULL) {
        bool several = *value != '\0' || strcmp(language, TL_TEXTS_EVERYONE) != 0;
        tl_words_append(value, size, ", ", language, several ? strlen(language) : 0);
        size_t used = strlen(value);
        snprintf(value + used, size - used, "%s%s", several ? ": " : "", text);
    }
}

/* A whole number as people read it. */
static void show_whole(const struct tl_setting *row, uint64_t number, char *value, size_t size)
{
    if (row->type == TL_SETTING_DURATION)
        tl_duration_format((int64_t)number, value, size);
    else if (row->type == TL_SETTING_TIME && number != 0)
        tl_time_format((int64_t)number, value, size);
    else if (row->type != TL_SETTING_TIME)
        snprintf(value, size, row->type == TL_SETTING_SHARE ? "%" PRIu64 "%%" : "%" PRIu64, number);
}

void tl_setting_get(const struct tl_setting *row, const void *base, enum tl_setting_form form,
                    char *value, size_t size)
{
    const void *from = (const char *)base + row->offset;
    char text[TL_WEIGHTS_TEXT_MAX];
    value[0] = '\0';
    switch (row->type) {
    case TL_SETTING_BOOL:
        snprintf(value, size, "%s", *(const bool *)from ? "true" : "false");
        break;
    case TL_SETTING_NUMBER:
    case TL_SETTING_SHARE:
    case TL_SETTING_SIZE:
    case TL_SETTING_DURATION:
    case TL_SETTING_TIME:
        if (form == TL_FORM_FILE)
            show_whole(row, *(const uint64_t *)from, value, size);
        else
            snprintf(value, size, "%" PRIu64, *(const uint64_t *)from);
        break;
    case TL_SETTING_DECIMAL:
        snprintf(value, size, "%.15g", *(const double *)from);
        break;
    case TL_SETTING_STRING:
    case TL_SETTING_LIST:
        snprintf(value, size, "%s", (const char *)from);
        break;
    case TL_SETTING_TEXTS:
        (form == TL_FORM_FILE ? show_texts : tl_texts_write)(from, value, size);
        break;
    case TL_SETTING_LISTEN:
        get_listen(from, value, size);
        break;
    case TL_SETTING_CHOICE:
        snprintf(value, size, "%s", row->names[*(const unsigned *)from]);
        break;
    case TL_SETTING_NAMES:
        get_names(row, *(const uint64_t *)from, value, size);
        break;
    case TL_SETTING_LANES:
        append_lanes(base, ",", value, size);
        break;
    case TL_SETTING_LANE: {
        const struct tl_queue_settings *queue = base;
        snprintf(value, size, "%s", queue->lanes[queue->default_lane]);
        break;
    }
    case TL_SETTING_WEIGHTS:
        tl_weights_format(from, text);
        snprintf(value, size, "%s", text);
        break;
    }
}

void tl_settings_default(const struct tl_setting *rows, size_t n, void *base)
{
    for (size_t i = 0; i < n; i++)
        if (!tl_setting_set(&rows[i], base, rows[i].fallback, TL_FORM_FILE, NULL))
            abort(); /* the table contradicts itself */
}

const struct tl_setting *tl_setting_find(const struct tl_setting *rows, size_t n, const char *path,
                                         const char **language)
{
    if (language != NULL)
        *language = NULL;
    for (const struct tl_setting *row = rows; row < rows + n; row++) {
        size_t length = strlen(row->path);
        if (strncmp(path, row->path, length) != 0)
            continue;
        const char *rest = path + length;
        if (*rest == '\0')
            return row;
        if (*rest != '.')
            continue;
        if (row->self != NULL && strcmp(rest + 1, row->self) == 0)
            return row;
        if (row->type == TL_SETTING_TEXTS && language != NULL) {
            *language = rest + 1;
            return row;
        }
    }
    return NULL;
}
