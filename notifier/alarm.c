/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include <jansson.h>
#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/units.h"
#include "common/config/webhook_table.h"
#include "notifier/alarm.h"

enum { BACKOFF_BASE_MS = 1000, BACKOFF_LIMIT_MS = 60000 };

void tl_alarm_init(struct tl_alarm *alarm, struct tl_webhook *webhook)
{
    *alarm = (struct tl_alarm){.webhook = webhook};
    tl_backoff_init(&alarm->backoff, BACKOFF_BASE_MS, BACKOFF_LIMIT_MS);
}

void tl_alarm_deinit(struct tl_alarm *alarm)
{
    tl_webhook_break_off(alarm->webhook, &alarm->post);
}

/* A store that goes and comes while a webhook does not answer: the first loss and the last return
 * are told. */
static void note(struct tl_alarm *alarms, size_t n, bool is_lost)
{
    for (size_t i = 0; i < n; i++) {
        const struct tl_webhook_config *config = alarms[i].webhook->config;
        if (is_lost && alarms[i].lost_ms == 0 && tl_webhook_wants(config, TL_WEBHOOK_STORE_LOST))
            alarms[i].lost_ms = tl_clock_wall_ms();
        else if (!is_lost && tl_webhook_wants(config, TL_WEBHOOK_STORE_BACK))
            alarms[i].back_ms = tl_clock_wall_ms();
    }
}

void tl_alarm_watch(struct tl_alarm *alarms, size_t n, struct tl_store_watch *watch, bool answered,
                    bool holds, int64_t now_ms)
{
    if (answered) {
        if (watch->told)
            note(alarms, n, false);
        *watch = (struct tl_store_watch){0};
        return;
    }
    if (watch->failed_ms == 0)
        watch->failed_ms = now_ms;
    if (!watch->told && holds && now_ms - watch->failed_ms >= TL_ALARM_LOST_MS) {
        watch->told = true;
        note(alarms, n, true);
    }
}

static bool add_event(json_t *events, const char *owner, enum tl_webhook_event event, int64_t at_ms)
{
    char id[TL_DELIVERY_ID_MAX];
    char at[TL_UNITS_TEXT_MAX];
    const char *type = tl_webhook_event_name(event);
    tl_time_format(at_ms, at, sizeof(at));
    snprintf(id, sizeof(id), "%s.%" PRId64 ".%s", owner, at_ms, type);
    return json_array_append_new(events,
                                 json_pack("{s:s, s:n, s:s, s:s, s:s}", "id", id, "queue", "type",
                                           type, "at", at, "reason", "unreachable")) == 0;
}

static void send_alarm(struct tl_alarm *alarm, const char *owner, int64_t now_ms)
{
    char id[TL_DELIVERY_ID_MAX];
    json_t *events = json_array();
    bool ok =
        events != NULL &&
        (alarm->lost_ms == 0 || add_event(events, owner, TL_WEBHOOK_STORE_LOST, alarm->lost_ms)) &&
        (alarm->back_ms == 0 || add_event(events, owner, TL_WEBHOOK_STORE_BACK, alarm->back_ms));
    snprintf(id, sizeof(id), "%s.%" PRId64 "_%" PRId64, owner, alarm->lost_ms, alarm->back_ms);
    alarm->sent_lost = alarm->lost_ms != 0;
    alarm->sent_back = alarm->back_ms != 0;
    if (ok)
        alarm->post = tl_webhook_post(alarm->webhook, id, events, NULL);
    if (alarm->post == NULL)
        alarm->due_ms = now_ms + BACKOFF_BASE_MS; /* memory may be free again */
    json_decref(events);
}

void tl_alarm_serve(struct tl_alarm *alarm, const char *owner, int64_t kept_ms, int64_t now_ms)
{
    struct tl_post_result result;
    if (tl_webhook_result(alarm->webhook, &alarm->post, now_ms, &result)) {
        if (result.accepted) {
            alarm->lost_ms = alarm->sent_lost ? 0 : alarm->lost_ms;
            alarm->back_ms = alarm->sent_back ? 0 : alarm->back_ms;
            tl_backoff_reset(&alarm->backoff);
        } else {
            alarm->due_ms = now_ms + tl_backoff_next(&alarm->backoff, randombytes_random());
        }
    }
    int64_t first_ms = alarm->lost_ms != 0 ? alarm->lost_ms : alarm->back_ms;
    if (first_ms == 0 || alarm->post != NULL || now_ms < alarm->due_ms)
        return;
    if (first_ms < tl_clock_wall_ms() - kept_ms)
        alarm->lost_ms = alarm->back_ms = 0;
    else
        send_alarm(alarm, owner, now_ms);
}
