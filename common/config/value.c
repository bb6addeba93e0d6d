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
#include "common/config/table.h"
#include "common/config/value.h"
#include "common/config/words.h"

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
    void *field;
    const char *value;
    enum tl_setting_form form;
    struct tl_error *err;
};

/* Appends the limits to a sentence about the value's form. */
static bool with_bounds(const struct assignment *set)
{
    struct tl_error *err = set->err;
    if (err == NULL)
        return false;
    char text[sizeof(err->text)];
    char bounds[TL_SETTING_BOUNDS_MAX];
    tl_setting_bounds(set->row, bounds);
    memcpy(text, err->text, sizeof(text));
    return tl_error_set(err, TL_ERR_INVALID, "%s (%s)", text, bounds);
}

static bool out_of_bounds(const struct assignment *set)
{
    char bounds[TL_SETTING_BOUNDS_MAX];
    char quoted[64];
    tl_setting_bounds(set->row, bounds);
    tl_quote(set->value, quoted, sizeof(quoted));
    return tl_error_set(set->err, TL_ERR_INVALID, "%s is out of bounds (%s)", quoted, bounds);
}

static bool set_bool(const struct assignment *set)
{
    bool on = strcmp(set->value, "true") == 0;
    if (!on && strcmp(set->value, "false") != 0) {
        char quoted[64];
        tl_quote(set->value, quoted, sizeof(quoted));
        return tl_error_set(set->err, TL_ERR_INVALID, "%s is neither true nor false", quoted);
    }
    memcpy(set->field, &on, sizeof(on));
    return true;
}

static bool set_unsigned(const struct assignment *set)
{
    uint64_t number;
    bool good = set->row->type == TL_SETTING_SIZE ? tl_size_parse(set->value, &number, set->err)
                                                  : tl_number_parse(set->value, &number, set->err);
    if (!good)
        return with_bounds(set);
    if (number < (uint64_t)set->row->min || number > (uint64_t)set->row->max)
        return out_of_bounds(set);
    memcpy(set->field, &number, sizeof(number));
    return true;
}

/* In whole per cent, as the store has it. */
static bool set_share(const struct assignment *set)
{
    uint64_t percent;
    double share;
    if (set->form == TL_FORM_STORE) {
        if (!tl_number_parse(set->value, &percent, set->err))
            return false;
    } else {
        if (!tl_decimal_parse(set->value, &share, set->err))
            return with_bounds(set);
        share = share < 10 ? share * 100 : 1000; /* beyond all bounds */
        percent = (uint64_t)(share + 0.5);
        if (fabs(share - (double)percent) > 1e-6) {
            char quoted[64];
            tl_quote(set->value, quoted, sizeof(quoted));
            tl_error_set(set->err, TL_ERR_INVALID, "%s is finer than a whole per cent", quoted);
            return with_bounds(set);
        }
    }
    if (percent < (uint64_t)set->row->min || percent > (uint64_t)set->row->max)
        return out_of_bounds(set);
    memcpy(set->field, &percent, sizeof(percent));
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

/* Durations and times; in the store's form their plain milliseconds. */
static bool set_ms(const struct assignment *set)
{
    uint64_t plain;
    int64_t ms = 0;
    if (set->form == TL_FORM_STORE) {
        if (!tl_number_parse(set->value, &plain, set->err))
            return false;
        if (plain > INT64_MAX)
            return out_of_bounds(set);
        ms = (int64_t)plain;
    } else if (set->row->type == TL_SETTING_DURATION) {
        if (!tl_duration_parse(set->value, &ms, set->err))
            return with_bounds(set);
    } else if (*set->value != '\0' && !tl_time_parse(set->value, &ms, set->err)) {
        return with_bounds(set);
    }
    if (ms < set->row->min || ms > set->row->max)
        return out_of_bounds(set);
    memcpy(set->field, &ms, sizeof(ms));
    return true;
}

static bool set_string(const struct assignment *set)
{
    const struct tl_setting *row = set->row;
    const char *value = set->value;
    size_t length = strlen(value);
    size_t max = row->max > 0 ? (size_t)row->max : row->size - 1;
    if (length < (size_t)row->min)
        return tl_error_set(set->err, TL_ERR_INVALID, "must not be empty (1 to %zu bytes)", max);
    if (length > max)
        return tl_error_set(set->err, TL_ERR_INVALID, "is %zu bytes long; at most %zu fit", length,
                            max);
    for (size_t i = 0; i < length; i++)
        if (iscntrl((unsigned char)value[i]))
            return tl_error_set(set->err, TL_ERR_INVALID,
                                "holds a control character, which is not allowed");
    if (row->check != NULL && !row->check(value, set->err))
        return false;
    memcpy(set->field, value, length + 1);
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
        char quoted[64];
        tl_quote(set->value, quoted, sizeof(quoted));
        tl_error_set(set->err, TL_ERR_INVALID, "%s is not a listening address", quoted);
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
    char quoted[64];
    char bounds[TL_SETTING_BOUNDS_MAX];
    tl_quote(set->value, quoted, sizeof(quoted));
    tl_setting_bounds(set->row, bounds);
    return tl_error_set(set->err, TL_ERR_INVALID, "%s is not one of %s", quoted, bounds);
}

/* Commas between the names. An empty text is no name at all. */
static bool set_names(const struct assignment *set)
{
    uint64_t bits = 0;
    const char *at = set->value;
    while (*at != '\0') {
        size_t length = strcspn(at, ",");
        unsigned i = 0;
        while (set->row->names[i] != NULL &&
               (strncmp(at, set->row->names[i], length) != 0 || set->row->names[i][length] != '\0'))
            i++;
        if (set->row->names[i] == NULL) {
            char name[64];
            char quoted[64];
            char bounds[TL_SETTING_BOUNDS_MAX];
            snprintf(name, sizeof(name), "%.*s", (int)(length < 40 ? length : 40), at);
            tl_quote(name, quoted, sizeof(quoted));
            tl_setting_bounds(set->row, bounds);
            return tl_error_set(set->err, TL_ERR_INVALID, "%s is not one of %s", quoted, bounds);
        }
        bits |= UINT64_C(1) << i;
        at += length + (at[length] == ',');
    }
    if (bits == 0 && set->row->min > 0)
        return tl_error_set(set->err, TL_ERR_INVALID, "must not be empty");
    memcpy(set->field, &bits, sizeof(bits));
    return true;
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

static bool find_lane(const struct tl_queue_settings *settings, const char *name, unsigned *lane)
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
static bool set_lanes(const struct assignment *set, struct tl_queue_settings *settings)
{
    struct tl_queue_settings next = *settings;
    memset(next.lanes, 0, sizeof(next.lanes));
    next.n_lanes = 0;
    for (const char *at = set->value;;) {
        size_t length = strcspn(at, ",");
        char name[64];
        char quoted[64];
        unsigned twin;
        if (next.n_lanes == TL_LANES_MAX)
            return tl_error_set(set->err, TL_ERR_INVALID, "more than %d lanes", TL_LANES_MAX);
        snprintf(name, sizeof(name), "%.*s", (int)(length < sizeof(name) ? length : sizeof(name)),
                 at);
        tl_quote(name, quoted, sizeof(quoted));
        if (!lane_name_valid(at, length)) {
            tl_error_set(set->err, TL_ERR_INVALID, "%s is not a lane's name", quoted);
            return with_bounds(set);
        }
        if (find_lane(&next, name, &twin))
            return tl_error_set(set->err, TL_ERR_INVALID, "lane %s is named twice", quoted);
        memcpy(next.lanes[next.n_lanes++], name, length + 1);
        if (at[length] == '\0')
            break;
        at += length + 1;
    }
    bool kept = settings->default_lane < settings->n_lanes &&
                find_lane(&next, settings->lanes[settings->default_lane], &next.default_lane);
    if (!kept)
        next.default_lane = (unsigned)next.n_lanes - 1;
    *settings = next;
    return true;
}

static bool set_lane(const struct assignment *set, struct tl_queue_settings *settings)
{
    if (find_lane(settings, set->value, &settings->default_lane))
        return true;
    char quoted[64];
    char names[160] = "";
    tl_quote(set->value, quoted, sizeof(quoted));
    for (size_t i = 0, used = 0; i < settings->n_lanes && used < sizeof(names); i++)
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i == 0 ? "" : ", ",
                                 settings->lanes[i]);
    return tl_error_set(set->err, TL_ERR_INVALID, "%s is not one of the lanes: %s", quoted, names);
}

static bool set_weights(const struct assignment *set)
{
    struct tl_weights weights;
    char quoted[64];
    switch (tl_weights_parse(set->value, strlen(set->value), &weights)) {
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
    tl_quote(set->value, quoted, sizeof(quoted));
    tl_error_set(set->err, TL_ERR_INVALID, "%s is not a list of weights", quoted);
    return with_bounds(set);
}

bool tl_setting_set(const struct tl_setting *row, void *base, const char *value,
                    enum tl_setting_form form, struct tl_error *err)
{
    const struct assignment set = {row, (char *)base + row->offset, value, form, err};
    switch (row->type) {
    case TL_SETTING_BOOL:
        return set_bool(&set);
    case TL_SETTING_NUMBER:
    case TL_SETTING_SIZE:
        return set_unsigned(&set);
    case TL_SETTING_SHARE:
        return set_share(&set);
    case TL_SETTING_DECIMAL:
        return set_decimal(&set);
    case TL_SETTING_DURATION:
    case TL_SETTING_TIME:
        return set_ms(&set);
    case TL_SETTING_STRING:
        return set_string(&set);
    case TL_SETTING_LISTEN:
        return set_listen(&set);
    case TL_SETTING_CHOICE:
        return set_choice(&set);
    case TL_SETTING_NAMES:
        return set_names(&set);
    case TL_SETTING_LANES:
        return set_lanes(&set, base);
    case TL_SETTING_LANE:
        return set_lane(&set, base);
    case TL_SETTING_WEIGHTS:
        return set_weights(&set);
    }
    return tl_error_set(err, TL_ERR_INVALID, "a setting of an unknown type");
}

static void get_listen(const struct tl_listen *listen, char *value, size_t size)
{
    bool ipv6 = strchr(listen->host, ':') != NULL;
    if (listen->port < 0)
        snprintf(value, size, "%s", "");
    else
        snprintf(value, size, ipv6 ? "[%s]:%d" : "%s:%d", listen->host, listen->port);
}

static void get_names(const struct tl_setting *row, uint64_t bits, char *value, size_t size)
{
    size_t used = 0;
    value[0] = '\0';
    for (unsigned i = 0; row->names[i] != NULL && used < size; i++)
        if ((bits & (UINT64_C(1) << i)) != 0)
            used += (size_t)snprintf(value + used, size - used, "%s%s", used == 0 ? "" : ",",
                                     row->names[i]);
}

static void get_lanes(const struct tl_queue_settings *settings, char *value, size_t size)
{
    size_t used = 0;
    value[0] = '\0';
    for (size_t i = 0; i < settings->n_lanes && used < size; i++)
        used += (size_t)snprintf(value + used, size - used, "%s%s", i == 0 ? "" : ",",
                                 settings->lanes[i]);
}

void tl_setting_get(const struct tl_setting *row, const void *base, char *value, size_t size)
{
    const void *from = (const char *)base + row->offset;
    const struct tl_queue_settings *queue = base;
    switch (row->type) {
    case TL_SETTING_BOOL:
        snprintf(value, size, "%s", *(const bool *)from ? "true" : "false");
        break;
    case TL_SETTING_NUMBER:
    case TL_SETTING_SIZE:
    case TL_SETTING_SHARE:
        snprintf(value, size, "%" PRIu64, *(const uint64_t *)from);
        break;
    case TL_SETTING_DECIMAL:
        snprintf(value, size, "%.15g", *(const double *)from);
        break;
    case TL_SETTING_DURATION:
    case TL_SETTING_TIME:
        snprintf(value, size, "%" PRId64, *(const int64_t *)from);
        break;
    case TL_SETTING_STRING:
        snprintf(value, size, "%s", (const char *)from);
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
        get_lanes(queue, value, size);
        break;
    case TL_SETTING_LANE:
        snprintf(value, size, "%s", queue->lanes[queue->default_lane]);
        break;
    case TL_SETTING_WEIGHTS: {
        char text[TL_WEIGHTS_TEXT_MAX];
        tl_weights_format(from, text);
        snprintf(value, size, "%s", text);
        break;
    }
    }
}

void tl_setting_show(const struct tl_setting *row, const void *base, char *value, size_t size)
{
    const void *field = (const char *)base + row->offset;
    int64_t ms = 0;
    if (row->type == TL_SETTING_DURATION || row->type == TL_SETTING_TIME)
        memcpy(&ms, field, sizeof(ms));
    if (row->type == TL_SETTING_DURATION)
        tl_duration_format(ms, value, size);
    else if (row->type == TL_SETTING_TIME && ms != 0)
        tl_time_format(ms, value, size);
    else if (row->type == TL_SETTING_TIME)
        snprintf(value, size, "%s", "");
    else if (row->type == TL_SETTING_SHARE)
        snprintf(value, size, "%" PRIu64 "%%", *(const uint64_t *)field);
    else
        tl_setting_get(row, base, value, size);
}

void tl_settings_default(const struct tl_setting *rows, size_t n, void *base)
{
    for (size_t i = 0; i < n; i++)
        if (!tl_setting_set(&rows[i], base, rows[i].fallback, TL_FORM_FILE, NULL))
            abort(); /* the table contradicts itself */
}
