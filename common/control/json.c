/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/control/call.h"
#include "common/wire/notice_text.h"

const char *tl_place_lane_name(const struct tl_queue_settings *settings, tl_place place)
{
    unsigned lane = tl_place_lane(place);
    return lane < settings->n_lanes ? settings->lanes[lane] : "";
}

bool tl_place_to_json(json_t *object, const struct tl_queue_settings *settings, tl_place place)
{
    return json_object_set_new(object, "lane", json_string(tl_place_lane_name(settings, place))) ==
               0 &&
           json_object_set_new(object, "seq", json_integer((json_int_t)tl_place_seq(place))) == 0;
}

json_t *tl_notice_value(const char *notice, size_t length)
{
    struct tl_notice_text texts[TL_NOTICE_LANGUAGES];
    size_t n = tl_notice_split(notice, length, texts);
    if (texts[0].language[0] == '\0')
        return json_stringn(texts[0].text, texts[0].length);
    json_t *all = json_object();
    for (size_t i = 0; all != NULL && i < n; i++) {
        if (json_object_set_new(all, texts[i].language,
                                json_stringn(texts[i].text, texts[i].length)) == 0)
            continue;
        json_decref(all);
        all = NULL;
    }
    return all;
}

bool tl_notice_to_json(json_t *object, const char *notice, size_t length)
{
    struct tl_notice_text texts[TL_NOTICE_LANGUAGES];
    size_t n = tl_notice_split(notice, length, texts);
    const struct tl_notice_text *main = &texts[tl_notice_pick(texts, n, NULL)];
    json_t *all = main->language[0] != '\0' ? tl_notice_value(notice, length) : json_null();
    return json_object_set_new(object, "notice", json_stringn(main->text, main->length)) == 0 &&
           json_object_set_new(object, "notices", all) == 0;
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
                     "texts: at most %d languages with a text each, by a code like en, ko or "
                     "zh-Hant",
                     TL_NOTICE_LANGUAGES);
    ok = ok && tl_notice_join(list, n, notice, err);
    json_decref(members);
    return ok;
}
