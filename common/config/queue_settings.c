/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/text.h"
#include "common/base/units.h"
#include "common/config/queue_settings.h"
#include "common/config/queue_table.h"
#include "common/config/value.h"

bool tl_queue_settings_set(struct tl_queue_settings *settings, const char *name, const char *value,
                           enum tl_setting_form form, struct tl_error *err)
{
    size_t n;
    char quoted[64];
    const struct tl_setting *rows = tl_queue_table(&n);
    const struct tl_setting *row = tl_setting_find(rows, n, name, NULL);
    if (row != NULL)
        return tl_setting_set(row, settings, value, form, err) || tl_error_prefix(err, "%s", name);
    tl_quote(name, quoted, sizeof(quoted));
    return tl_error_set(err, TL_ERR_INVALID, "%s is not a setting of a queue", quoted);
}

bool tl_queue_settings_get(const struct tl_queue_settings *settings, size_t i, const char **name,
                           char *value, size_t value_size)
{
    size_t n;
    const struct tl_setting *rows = tl_queue_table(&n);
    if (i >= n)
        return false;
    *name = rows[i].path;
    tl_setting_get(&rows[i], settings, TL_FORM_STORE, value, value_size);
    return true;
}

bool tl_queue_settings_same(const struct tl_queue_settings *a, const struct tl_queue_settings *b)
{
    char value_a[TL_QUEUE_VALUE_MAX], value_b[TL_QUEUE_VALUE_MAX];
    const char *name;
    bool same = a->now.capacity == b->now.capacity && a->now.stale == b->now.stale;
    for (size_t i = 0; same && tl_queue_settings_get(a, i, &name, value_a, sizeof(value_a)); i++)
        same = tl_queue_settings_get(b, i, &name, value_b, sizeof(value_b)) &&
               strcmp(value_a, value_b) == 0;
    return same;
}

const char *tl_queue_setting_show(const char *name, const char *value, char *text)
{
    size_t n;
    struct tl_queue_settings settings;
    const struct tl_setting *rows = tl_queue_table(&n);
    const struct tl_setting *row = tl_setting_find(rows, n, name, NULL);
    bool is_shown = row != NULL && row->type != TL_SETTING_LANE;
    memset(&settings, 0, sizeof(settings));
    if (!is_shown || !tl_setting_set(row, &settings, value, TL_FORM_STORE, NULL))
        return value;
    tl_setting_get(row, &settings, TL_FORM_FILE, text, TL_QUEUE_VALUE_MAX);
    return text;
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

const char *tl_queue_closed_texts(const struct tl_queue_settings *settings, enum tl_queue_mode mode)
{
    return mode == TL_MODE_SOLD_OUT ? settings->sold_out_text : settings->closed_text;
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

/* ---- the file beside the store ---- */

void tl_file_settings_compare(const struct tl_queue_config *file,
                              const struct tl_queue_settings *store, tl_file_difference *differs,
                              void *context)
{
    char of_file[TL_QUEUE_VALUE_MAX], of_store[TL_QUEUE_VALUE_MAX];
    size_t n;
    const struct tl_setting *rows = tl_queue_table(&n);
    for (size_t i = 0; i < n; i++) {
        /* `mode: passthrough` of a file is no setting, but a switch of the program that reads it.
         */
        bool is_switch = file->passthrough && strcmp(rows[i].path, "mode") == 0;
        if (file->places[i].line == 0 || is_switch)
            continue;
        tl_setting_get(&rows[i], &file->settings, TL_FORM_FILE, of_file, sizeof(of_file));
        tl_setting_get(&rows[i], store, TL_FORM_FILE, of_store, sizeof(of_store));
        if (strcmp(of_file, of_store) != 0)
            differs(context, &rows[i], of_file, of_store);
    }
}

static void log_difference(void *context, const struct tl_setting *row, const char *file,
                           const char *store)
{
    tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = context},
           "%s: the file says \"%s\", but \"%s\" of the store applies, as the queue exists; "
           "`tellerline apply` puts the file into force",
           row->path, file, store);
}

void tl_file_settings_log(const struct tl_queue_config *file, const struct tl_queue_settings *store)
{
    /* The callback only reads the name. */
    tl_file_settings_compare(file, store, log_difference, (void *)(uintptr_t)file->name);
}
