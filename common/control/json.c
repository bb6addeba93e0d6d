/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/base/units.h"
#include "common/control/call.h"
#include "common/wire/notice_text.h"

void tl_list_add(json_t **list, json_t *value)
{
    if (json_array_append_new(*list, value) == 0)
        return;
    json_decref(*list);
    *list = NULL;
}

void tl_object_set(json_t **object, const char *name, json_t *value)
{
    if (json_object_set_new(*object, name, value) == 0)
        return;
    json_decref(*object);
    *object = NULL;
}

json_t *tl_call_node(const struct tl_redis *redis)
{
    return tl_redis_is_node(redis) ? json_string(tl_redis_address(redis)) : json_null();
}

json_t *tl_call_time(int64_t unix_ms)
{
    char text[TL_UNITS_TEXT_MAX];
    if (unix_ms == 0)
        return json_null();
    tl_time_format(unix_ms, text, sizeof(text));
    return json_string(text);
}

const char *tl_place_lane_name(const struct tl_queue_settings *settings, tl_place place)
{
    unsigned lane = tl_place_lane(place);
    return lane < settings->n_lanes ? settings->lanes[lane] : "";
}

void tl_place_to_json(json_t **object, const struct tl_queue_settings *settings,
                      const tl_place *place)
{
    tl_object_set(object, "lane",
                  place != NULL ? json_string(tl_place_lane_name(settings, *place)) : json_null());
    tl_object_set(object, "seq",
                  place != NULL ? json_integer((json_int_t)tl_place_seq(*place)) : json_null());
}

bool tl_visitor_active(struct tl_visitor_facts *facts, const char *session, const char *deadline)
{
    struct tl_session_record record;
    uint64_t expires_ms = 0;
    (void)tl_record_score(deadline, &expires_ms);
    facts->status = "active";
    facts->expires_ms = (int64_t)expires_ms;
    facts->has_place = tl_record_session(session, &record);
    if (facts->has_place) {
        facts->place = record.place;
        facts->admitted_ms = record.admitted_ms;
        facts->claimed = record.claimed;
    }
    return facts->has_place;
}

void tl_visitor_ended(struct tl_visitor_facts *facts, const struct tl_end_record *end)
{
    static const struct {
        const char *status, *reason;
    } words[] = {
        [TL_REASON_COMPLETED] = {"completed", "completed"},
        [TL_REASON_LEFT] = {"left", "left"},
        [TL_REASON_EXPIRED] = {"expired", "expired"},
        [TL_REASON_UNCLAIMED] = {"expired", "unclaimed"},
        [TL_REASON_ABSENT] = {"expired", "absent"},
        [TL_REASON_REMOVED] = {"removed", "removed"},
    };
    facts->status = words[end->reason].status;
    facts->end_reason = words[end->reason].reason;
    facts->ended_ms = end->ended_ms;
}

json_t *tl_visitor_to_json(const struct tl_visitor_facts *facts,
                           const struct tl_queue_settings *settings)
{
    json_t *object = json_pack(
        "{s:s, s:s, s:s?, s:o, s:o, s:o, s:o, s:o, s:o}", "visitor", facts->visitor, "status",
        facts->status, "end_reason", facts->end_reason, "position",
        facts->position > 0 ? json_integer((json_int_t)facts->position) : json_null(), "joined_at",
        tl_call_time(facts->joined_ms), "admitted_at", tl_call_time(facts->admitted_ms), "claimed",
        facts->claimed >= 0 ? json_boolean(facts->claimed) : json_null(), "expires_at",
        tl_call_time(facts->expires_ms), "ended_at", tl_call_time(facts->ended_ms));
    tl_place_to_json(&object, settings, facts->has_place ? &facts->place : NULL);
    return object;
}

json_t *tl_notice_value(const char *notice, size_t length)
{
    struct tl_notice_text texts[TL_NOTICE_LANGUAGES];
    size_t n = tl_notice_split(notice, length, texts);
    if (texts[0].language[0] == '\0')
        return json_stringn(texts[0].text, texts[0].length);
    json_t *all = json_object();
    for (size_t i = 0; i < n; i++)
        tl_object_set(&all, texts[i].language, json_stringn(texts[i].text, texts[i].length));
    return all;
}

void tl_notice_to_json(json_t **object, const char *notice, size_t length)
{
    struct tl_notice_text texts[TL_NOTICE_LANGUAGES];
    size_t n = tl_notice_split(notice, length, texts);
    const struct tl_notice_text *main = &texts[tl_notice_pick(texts, n, NULL)];
    json_t *all = main->language[0] != '\0' ? tl_notice_value(notice, length) : json_null();
    tl_object_set(object, "notice", json_stringn(main->text, main->length));
    tl_object_set(object, "notices", all);
}

bool tl_notice_of_json(const json_t *texts, struct tl_text *notice, struct tl_error *err)
{
    struct tl_notice_text list[TL_NOTICE_LANGUAGES];
    size_t n = 0;
    const char *language;
    json_t *text, *members = json_incref((json_t *)texts);
    bool ok = json_is_object(members) && json_object_size(members) <= TL_NOTICE_LANGUAGES;
    json_object_foreach(members, language, text)
    {
        ok = ok && json_is_string(text) && tl_notice_language_valid(language, strlen(language));
        if (!ok)
            break;
        list[n] = (struct tl_notice_text){.text = json_string_value(text),
                                          .length = json_string_length(text)};
        memcpy(list[n++].language, language, strlen(language));
    }
    if (!ok)
        tl_error_set(err, TL_ERR_INVALID,
                     "texts: at most %d languages with a text each, by a code like "
                     "en, ko or "
                     "zh-Hant",
                     TL_NOTICE_LANGUAGES);
    ok = ok && tl_notice_join(list, n, notice, err);
    json_decref(members);
    return ok;
}
