/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "common/base/units.h"

#include "ctl/calls/calls.h"

uint64_t tl_row_total(const json_t *stats, const char *name)
{
    return tl_json_count(json_object_get(stats, "totals"), name);
}

/* The ms from the numbers' own time until this one; 0 when it has passed. */
static int64_t until(const json_t *stats, const char *time)
{
    int64_t now_ms = 0, then_ms = 0;
    if (!tl_time_parse(tl_json_text(stats, "at"), &now_ms, NULL) ||
        !tl_time_parse(time, &then_ms, NULL))
        return 0;
    return then_ms > now_ms ? then_ms - now_ms : 0;
}

/* "away" with the node of a cluster that has the queue, or "damaged"; "" where all is well. */
static const char *trouble_of(const json_t *stats)
{
    return json_is_true(json_object_get(stats, "away")) ? "away"
           : *tl_json_text(stats, "trouble") != '\0'    ? "damaged"
                                                        : "";
}

void tl_row_phase(const json_t *stats, struct tl_text *out)
{
    const char *phase = tl_json_text(stats, "phase");
    const json_t *recovery = json_object_get(stats, "recovery");
    if (*trouble_of(stats) != '\0') {
        tl_text_append(out, "%s", trouble_of(stats));
    } else if (json_is_object(recovery)) {
        int64_t left_ms = until(stats, tl_json_text(recovery, "until"));
        tl_text_append(out, "recovers %" PRId64 " s: %" PRIu64, (left_ms + 999) / 1000,
                       tl_json_count(recovery, "restored"));
        if (tl_json_count(recovery, "lost") > 0)
            tl_text_append(out, " of %" PRIu64, tl_json_count(recovery, "lost"));
    } else if (strcmp(phase, "scheduled") == 0) {
        char opens[TL_UNITS_TEXT_MAX];
        tl_terminal_time_of(tl_json_text(stats, "opens_at"), opens, sizeof(opens));
        tl_text_append(out, "opens %s", opens);
    } else {
        tl_text_append(out, "%s", phase);
    }
}

const char *tl_row_state(const json_t *stats)
{
    const char *mode = tl_json_text(stats, "mode");
    if (*trouble_of(stats) != '\0')
        return trouble_of(stats);
    bool shows_phase =
        strcmp(mode, "open") == 0 || json_is_object(json_object_get(stats, "recovery"));
    return shows_phase ? tl_json_text(stats, "phase") : mode;
}

enum tl_tint tl_row_tint(const json_t *stats)
{
    return *trouble_of(stats) != '\0'                 ? TL_TINT_TROUBLE
           : strcmp(tl_row_state(stats), "open") != 0 ? TL_TINT_CARE
                                                      : TL_TINT_NONE;
}

void tl_row_limit(const json_t *stats, struct tl_text *out)
{
    char every[TL_UNITS_TEXT_MAX];
    const json_t *limit = json_object_get(stats, "capacity_now");
    const json_t *feedback = json_object_get(stats, "feedback");
    const json_t *rates = json_object_get(stats, "rate");
    if (json_is_integer(limit))
        tl_text_append(out, "%" PRIu64 "%s", (uint64_t)json_integer_value(limit),
                       json_is_true(feedback)           ? " auto"
                       : json_is_false(feedback)        ? " auto (no feedback)"
                       : json_integer_value(limit) == 0 ? ": no one"
                                                        : "");
    tl_duration_format(tl_json_number(rates, "every_ms"), every, sizeof(every));
    if (json_is_object(rates))
        tl_text_append(out, "%s%" PRIu64 "/%s", json_is_integer(limit) ? ", " : "",
                       tl_json_count(rates, "admit"), every);
}

void tl_row_per_minute(const json_t *stats, const char *name, char *text, size_t size)
{
    const json_t *rate = json_object_get(json_object_get(stats, "per_minute"), name);
    if (json_is_number(rate))
        snprintf(text, size, "%.0f", json_number_value(rate));
    else
        snprintf(text, size, "-");
}

void tl_webhook_words(const json_t *webhook, struct tl_text *out)
{
    char since[TL_UNITS_TEXT_MAX];
    const char *state = tl_json_text(webhook, "state");
    bool unwatched = strcmp(state, "unwatched") == 0, new = strcmp(state, "new") == 0;
    tl_terminal_time_of(tl_json_text(webhook, "failing_since"), since, sizeof(since));
    tl_text_append(out, "%s",
                   unwatched ? "no notifier watches the queue"
                   : new     ? "nothing told yet"
                             : state);
    if (!unwatched && !new &&since[0] != '\0')
        tl_text_append(out, " since %s: %s", since, tl_json_text(webhook, "problem"));
}

enum tl_tint tl_webhook_tint(const json_t *webhook)
{
    const char *state = tl_json_text(webhook, "state");
    if (strcmp(state, "dead") == 0 || strcmp(state, "unwatched") == 0)
        return TL_TINT_TROUBLE;
    return strcmp(state, "failing") == 0 ? TL_TINT_CARE : TL_TINT_NONE;
}

/* ---- signs of misuse ---- */

enum { MANY = 60 }; /* as in the log of the workers: offices put many people behind one address */

/* The line that is written now. */
struct line {
    struct tl_text *out;
    const char *queue;
    size_t length; /* 0: nothing is written yet */
};

static void add(struct line *line, const char *sign)
{
    const char *separator = line->length == 0 ? " " : ", ";
    if (line->length == 0) {
        tl_text_append(line->out, "! %s:", line->queue);
        line->length = strlen("! :") + strlen(line->queue);
    }
    if (line->length + strlen(separator) + strlen(sign) > TL_CTL_SIGNS_COLUMNS) {
        separator = "\n  ";
        line->length = 0;
    }
    tl_text_append(line->out, "%s%s", separator, sign);
    line->length += strlen(separator) + strlen(sign);
}

static void add_networks(struct line *line, const json_t *networks, const char *what)
{
    const char *network;
    json_t *count;
    json_object_foreach((json_t *)networks, network, count)
    {
        char sign[128];
        if (json_integer_value(count) <= MANY)
            continue;
        snprintf(sign, sizeof(sign), "%" JSON_INTEGER_FORMAT " %s from %.64s",
                 json_integer_value(count), what, network);
        add(line, sign);
    }
}

static void add_count(struct line *line, uint64_t count, const char *what)
{
    char sign[64];
    if (count == 0)
        return;
    snprintf(sign, sizeof(sign), "%" PRIu64 " %s", count, what);
    add(line, sign);
}

void tl_row_signs(const json_t *stats, struct tl_text *out)
{
    struct line line = {.out = out, .queue = tl_json_text(stats, "queue")};
    const json_t *signs = json_object_get(stats, "signs");
    if (json_is_null(signs))
        add(&line, "its signs of misuse cannot be read; see `tellerline audit`");
    add_networks(&line, json_object_get(signs, "joins"), "joins");
    add_networks(&line, json_object_get(signs, "failures"), "failed checks");
    add_count(&line, tl_json_count(signs, "sessions_shared"), "shared sessions");
    add_count(&line, tl_json_count(signs, "sessions_fast"), "fast sessions");
    if (line.length == 0)
        return; /* sessions that run out fail checks, too */
    add_count(&line, tl_json_count(signs, "checks_failed"), "failed checks in all");
    tl_text_append(out, "\n");
}
