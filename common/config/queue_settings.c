/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/text.h"
#include "common/base/units.h"
#include "common/config/queue_settings.h"
#include "common/config/queue_table.h"
#include "common/config/value.h"
#include "common/config/words.h"

/* Names the setting that was probably meant. To look for it takes longer than to read all settings
 * of a queue, which every program does once a second. */
static bool fail_unknown(const char *name, struct tl_error *err)
{
    const char *best = "";
    char quoted[64];
    size_t steps = SIZE_MAX;
    size_t n;
    const struct tl_setting *rows = tl_queue_table(&n);
    for (size_t i = 0; err != NULL && i < n; i++)
        if (tl_spelling_closer(name, rows[i].path, &steps))
            best = rows[i].path;
    tl_quote(name, quoted, sizeof(quoted));
    return tl_error_set(err, TL_ERR_INVALID, "%s is not a setting of a queue%s%s%s", quoted,
                        *best != '\0' ? "; did you mean \"" : "", best, *best != '\0' ? "\"?" : "");
}

bool tl_queue_settings_set(struct tl_queue_settings *settings, const char *name, const char *value,
                           enum tl_setting_form form, struct tl_error *err)
{
    size_t n;
    const struct tl_setting *rows = tl_queue_table(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(rows[i].path, name) == 0)
            return tl_setting_set(&rows[i], settings, value, form, err) ||
                   tl_error_prefix(err, "%s", name);
    return fail_unknown(name, err);
}

bool tl_queue_settings_get(const struct tl_queue_settings *settings, size_t i, const char **name,
                           char *value, size_t value_size)
{
    size_t n;
    const struct tl_setting *rows = tl_queue_table(&n);
    if (i >= n)
        return false;
    *name = rows[i].path;
    tl_setting_get(&rows[i], settings, value, value_size);
    return true;
}

const char *tl_queue_setting_show(const char *name, const char *value, char *text)
{
    size_t n;
    uint64_t number;
    const struct tl_setting *rows = tl_queue_table(&n);
    for (size_t i = 0; i < n; i++) {
        bool is_time = rows[i].type == TL_SETTING_TIME;
        if (strcmp(rows[i].path, name) != 0)
            continue;
        if (rows[i].type == TL_SETTING_SHARE) {
            snprintf(text, TL_UNITS_TEXT_MAX, "%.30s%%", value);
            return text;
        }
        if ((!is_time && rows[i].type != TL_SETTING_DURATION) ||
            !tl_number_parse(value, &number, NULL) || number > INT64_MAX)
            break;
        if (!is_time)
            tl_duration_format((int64_t)number, text, TL_UNITS_TEXT_MAX);
        else if (number == 0)
            text[0] = '\0';
        else
            tl_time_format((int64_t)number, text, TL_UNITS_TEXT_MAX);
        return text;
    }
    return value;
}

uint64_t tl_queue_capacity(const struct tl_queue_settings *settings)
{
    uint64_t most = settings->capacity;
    uint64_t least = settings->capacity_min < most ? settings->capacity_min : most;
    uint64_t now = settings->now.capacity;
    if (settings->capacity_min == 0)
        return most;
    return now < least ? least : now > most ? most : now;
}

int64_t tl_queue_session_longest_ms(const struct tl_queue_settings *settings)
{
    return settings->session_sliding ? settings->session_max_ms : settings->session_ttl_ms;
}

const char *tl_queue_closed_text(const struct tl_queue_settings *settings, enum tl_queue_mode mode,
                                 const char *language)
{
    bool korean = strcmp(language, "ko") == 0;
    if (mode == TL_MODE_SOLD_OUT)
        return korean ? settings->sold_out_text_ko : settings->sold_out_text_en;
    return korean ? settings->closed_text_ko : settings->closed_text_en;
}

void tl_queue_settings_defaults(struct tl_queue_settings *settings)
{
    size_t n;
    const struct tl_setting *rows = tl_queue_table(&n);
    memset(settings, 0, sizeof(*settings));
    tl_settings_default(rows, n, settings);
}

bool tl_queue_settings_validate(const struct tl_queue_settings *settings, struct tl_error *err)
{
    if (settings->policy != TL_POLICY_COUNTER && settings->rate.admit == 0)
        return tl_error_set(
            err, TL_ERR_INVALID,
            "policy \"%s\" needs a rate: set rate.admit, and rate.every (10s unless "
            "set)",
            settings->policy == TL_POLICY_RATE ? "rate" : "both");
    if (settings->rate.shape == TL_RATE_BATCHES && settings->rate.burst > 0)
        return tl_error_set(err, TL_ERR_INVALID,
                            "rate.burst (%" PRIu64
                            ") is for the shape \"smooth\": a batch is never "
                            "larger than rate.admit",
                            settings->rate.burst);
    if (settings->capacity_min > settings->capacity)
        return tl_error_set(err, TL_ERR_INVALID,
                            "capacity.min (%" PRIu64 ") must not be above capacity.max (%" PRIu64
                            "), the most that the capacity may become",
                            settings->capacity_min, settings->capacity);
    if (settings->overbook > settings->capacity)
        return tl_error_set(err, TL_ERR_INVALID,
                            "overbook (%" PRIu64 ") must not be above capacity (%" PRIu64 ")",
                            settings->overbook, settings->capacity);
    if (settings->session_sliding && settings->session_max_ms < settings->session_ttl_ms) {
        char max[TL_UNITS_TEXT_MAX];
        char ttl[TL_UNITS_TEXT_MAX];
        tl_duration_format(settings->session_max_ms, max, sizeof(max));
        tl_duration_format(settings->session_ttl_ms, ttl, sizeof(ttl));
        return tl_error_set(err, TL_ERR_INVALID,
                            "session_max (%s) must not be shorter than session_ttl (%s) with "
                            "session_sliding",
                            max, ttl);
    }
    if (settings->closes_at_ms != 0 && settings->closes_at_ms <= settings->opens_at_ms)
        return tl_error_set(err, TL_ERR_INVALID, "closes_at must be after opens_at");
    if (settings->order == TL_ORDER_DRAW && settings->opens_at_ms == 0)
        return tl_error_set(err, TL_ERR_INVALID,
                            "order \"draw\" needs opens_at: the draw is held then");
    if (settings->n_lanes < 1 || settings->n_lanes > TL_LANES_MAX)
        return tl_error_set(err, TL_ERR_INVALID, "a queue has 1 to %d lanes, not %zu", TL_LANES_MAX,
                            settings->n_lanes);
    if (settings->default_lane >= settings->n_lanes)
        return tl_error_set(err, TL_ERR_INVALID, "default_lane is not one of the lanes");
    if (settings->lane_weights.n > 0 && settings->lane_weights.n != settings->n_lanes)
        return tl_error_set(err, TL_ERR_INVALID,
                            "lane_weights has %zu numbers for %zu lanes: set one for each lane, in "
                            "one step with lanes, or none",
                            settings->lane_weights.n, settings->n_lanes);
    return true;
}
