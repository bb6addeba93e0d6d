/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/units.h"
#include "common/control/call.h"

enum {
    QUOTED_MAX = 96,
    MEMBER_MAX = 32,
    SECONDS_MAX = 315360000, /* ten years */
};

/* Behind the name of a member (tl_call_body): it may be missing, or is no text. */
#define MARKS "?#*"

struct tl_redis *tl_control_redis(struct tl_control *control, const char *queue,
                                  struct tl_error *err)
{
    return tl_store_reach(control->store, queue, err);
}

struct tl_store *tl_control_store(const struct tl_control *control)
{
    return control->store;
}

bool tl_call_keys(const struct tl_control *control, const char *queue, struct tl_keys *keys,
                  struct tl_error *err)
{
    return tl_keys_of(keys, control->config->redis.key_prefix, queue, err);
}

void *tl_call_refuse_listed(struct tl_control_call *call, json_t *errors, const char *detail)
{
    tl_call_refuse(call, TL_REFUSAL_INVALID, "%s", detail);
    tl_object_set(&call->answer->body, "errors", json_incref(errors));
    return NULL;
}

/* Is this one of the members that tl_call_body was given? */
static bool is_one_of(const char *name, va_list members)
{
    const char *each;
    size_t length = strlen(name);
    while ((each = va_arg(members, const char *)) != NULL) {
        (void)va_arg(members, void *);
        if (strcspn(each, MARKS) == length && memcmp(each, name, length) == 0)
            return true;
    }
    return false;
}

/* Takes the next member of the arguments and reads it. */
static bool read_member(struct tl_control_call *call, const char *member, va_list *members)
{
    char name[MEMBER_MAX];
    size_t length = strcspn(member, MARKS);
    snprintf(name, sizeof(name), "%.*s", (int)length, member);
    const json_t *value = json_object_get(call->request->body, name);
    if (member[length] == '*') {
        *va_arg(*members, const json_t **) = value;
        return true;
    }
    if (member[length] == '#') {
        int64_t *seconds = va_arg(*members, int64_t *);
        json_int_t number = json_integer_value(value);
        if (value == NULL || json_is_null(value))
            return true;
        if (!json_is_integer(value) || number < 0 || number > SECONDS_MAX)
            return tl_call_refuse(call, TL_REFUSAL_BAD_BODY,
                                  "\"%s\" must be a whole number of seconds, at most %d", name,
                                  SECONDS_MAX);
        *seconds = number;
        return true;
    }
    const char **text = va_arg(*members, const char **);
    if (value == NULL && member[length] == '?')
        return true;
    if (!json_is_string(value))
        return tl_call_refuse(
            call, TL_REFUSAL_BAD_BODY,
            value == NULL ? "the body needs a text \"%s\"" : "\"%s\" must be a text", name);
    *text = json_string_value(value);
    return true;
}

bool tl_call_body(struct tl_control_call *call, ...)
{
    const char *name;
    json_t *value;
    json_t *body = (json_t *)call->request->body; /* jansson's loops take no const */
    va_list members;
    bool ok = true;
    json_object_foreach(body, name, value)
    {
        char quoted[QUOTED_MAX];
        va_start(members, call);
        bool known = is_one_of(name, members);
        va_end(members);
        tl_quote(name, quoted, sizeof(quoted));
        if (!known)
            return tl_call_refuse(call, TL_REFUSAL_BAD_BODY, "%s is not a member of this request",
                                  quoted);
    }
    va_start(members, call);
    while (ok && (name = va_arg(members, const char *)) != NULL)
        ok = read_member(call, name, &members);
    va_end(members);
    return ok;
}

bool tl_call_has_word(const char *list, const char *separators, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; *at != '\0';) {
        at += strspn(at, separators);
        size_t n = strcspn(at, separators);
        if (n == length && n > 0 && memcmp(at, word, n) == 0)
            return true;
        at += n;
    }
    return false;
}

bool tl_call_number(struct tl_control_call *call, const char *name, uint64_t least, uint64_t most,
                    uint64_t *number)
{
    const char *text = tl_target_parameter(&call->target, name);
    uint64_t value;
    if (text == NULL)
        return true;
    if (!tl_number_parse(text, &value, NULL) || value < least || value > most)
        return tl_call_refuse(call, TL_REFUSAL_BAD_QUERY,
                              "%s must be a whole number from %" PRIu64 " to %" PRIu64, name, least,
                              most);
    *number = value;
    return true;
}

/* ---- pages of a list ---- */

bool tl_list_page_read(struct tl_control_call *call, struct tl_list_page *page)
{
    *page = (struct tl_list_page){.limit = 100,
                                  .after = tl_target_parameter(&call->target, "starting_after")};
    return tl_call_number(call, "limit", 1, TL_CONTROL_PAGE_MAX, &page->limit);
}

static int rank_of(char c)
{
    return c == '/' || c == ' ' ? 1 : (unsigned char)c;
}

static bool is_behind(const char *key, const char *other)
{
    while (*key != '\0' && *key == *other) {
        key++;
        other++;
    }
    return rank_of(*key) > rank_of(*other);
}

bool tl_list_page_takes(struct tl_list_page *page, const char *key)
{
    if (page->after != NULL && !is_behind(key, page->after))
        return false;
    page->has_more = page->n == page->limit;
    page->n += !page->has_more;
    return !page->has_more;
}

json_t *tl_list_page_to_json(const struct tl_list_page *page, bool is_whole, const char *name,
                             json_t *list)
{
    if (is_whole)
        return json_pack("{s:o, s:b}", name, list, "has_more", page->has_more);
    json_decref(list);
    return NULL;
}
