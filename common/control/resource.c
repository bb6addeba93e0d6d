/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "common/config/queue_settings.h"
#include "common/control/resource.h"
#include "common/control/settings_json.h"
#include "common/store/queue.h"

enum { DIGEST_BYTES = 16 };

void tl_resource_etag(uint64_t generation, const struct tl_queue_settings *settings,
                      char etag[TL_CONTROL_ETAG_MAX])
{
    unsigned char digest[DIGEST_BYTES];
    char value[TL_QUEUE_VALUE_MAX];
    char hex[2 * DIGEST_BYTES + 1];
    const char *name;
    crypto_generichash_state hash;
    crypto_generichash_init(&hash, NULL, 0, sizeof(digest));
    crypto_generichash_update(&hash, (const unsigned char *)&generation, sizeof(generation));
    for (size_t i = 0; tl_queue_settings_get(settings, i, &name, value, sizeof(value)); i++) {
        /* With the terminating zeros, so that no two lists of texts run into each other. */
        crypto_generichash_update(&hash, (const unsigned char *)name, strlen(name) + 1);
        crypto_generichash_update(&hash, (const unsigned char *)value, strlen(value) + 1);
    }
    crypto_generichash_final(&hash, digest, sizeof(digest));
    sodium_bin2hex(hex, sizeof(hex), digest, sizeof(digest));
    snprintf(etag, TL_CONTROL_ETAG_MAX, "\"%s\"", hex);
}

bool tl_resource_matches(const char *if_match, const char *etag)
{
    size_t length = strlen(etag);
    if (if_match == NULL || strcmp(if_match, "*") == 0)
        return true;
    for (const char *at = if_match; *at != '\0';) {
        at += strspn(at, ", \t");
        size_t word = strcspn(at, ", \t");
        if (word == length && memcmp(at, etag, length) == 0)
            return true;
        at += word;
    }
    return false;
}

/* What If-Match is compared with. */
struct condition {
    const char *if_match;
    uint64_t generation;
    bool failed;
};

static bool check(void *context, const struct tl_queue_settings *before, struct tl_error *err)
{
    struct condition *condition = context;
    char etag[TL_CONTROL_ETAG_MAX];
    tl_resource_etag(condition->generation, before, etag);
    condition->failed = !tl_resource_matches(condition->if_match, etag);
    return !condition->failed || tl_error_set(err, TL_ERR_INVALID,
                                              "the settings are no longer those that If-Match "
                                              "names: read them again");
}

bool tl_resource_change(struct tl_control_call *call, const struct tl_queue_changes *changes,
                        struct tl_changes_made *made)
{
    struct tl_error err = {0};
    struct tl_state state;
    struct condition condition = {.if_match = call->request->if_match};
    struct tl_queue_changes checked = *changes;
    if (condition.if_match != NULL) {
        if (!tl_state_read(call->redis, &call->keys, 0, &state, &err))
            return tl_call_fail(call, &err);
        condition.generation = state.generation;
        checked.check = check;
        checked.context = &condition;
    }
    if (tl_queue_configure_all(call->redis, &call->keys, &checked, call->request->actor, made,
                               &err))
        return true;
    if (condition.failed)
        return tl_call_refuse(call, 412, "%s", err.text);
    if (err.kind == TL_ERR_INVALID)
        return tl_call_refuse(call, 422, "%s", err.text);
    return tl_call_fail(call, &err);
}

/* {"before": {...}, "after": {...}} */
static json_t *changed_of(const struct tl_changes_made *made)
{
    return json_pack("{s:o, s:o}", "before", tl_settings_record_to_json(made->before), "after",
                     tl_settings_record_to_json(made->after));
}

void tl_resource_answer(struct tl_control_call *call, int status,
                        const struct tl_changes_made *made)
{
    struct tl_error err = {0};
    struct tl_queue_info info;
    if (!tl_queue_info_send(call->redis, &call->keys, &err) ||
        !tl_queue_info_receive(call->redis, &call->keys, &info, &err)) {
        tl_call_fail(call, &err);
        return;
    }
    json_t *body = json_pack("{s:s, s:I, s:o, s:o}", "name", call->keys.queue, "generation",
                             (json_int_t)info.generation, "created_at",
                             tl_call_time((int64_t)(info.generation / 1000)), "settings",
                             tl_settings_to_json(&info.settings));
    if (body != NULL && made != NULL && made->before != NULL &&
        json_object_set_new(body, "changed", changed_of(made)) != 0) {
        json_decref(body);
        body = NULL;
    }
    tl_call_answer(call, status, body);
    if (tl_control_succeeded(call->answer))
        tl_resource_etag(info.generation, &info.settings, call->answer->etag);
}
