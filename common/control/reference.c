/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "common/auth/reference.h"
#include "common/control/call.h"

#define AT_ONCE "250" /* visitors in each answer: 1,000 keep others waiting for 4 ms */

/* Whose code is looked for. */
struct wanted {
    const struct tl_keyring *keyring;
    const char *queue;
    uint64_t number;
};

/* Goes through the members of a sorted set, or the fields of a hash, which come in pairs. */
static bool look_through(struct tl_redis *redis, const char *scan, const char *key,
                         const struct wanted *wanted, char visitor[TL_VISITOR_MAX + 1],
                         struct tl_error *err)
{
    char cursor[24] = "0";
    do {
        struct tl_reply *reply = tl_ask(redis, err, scan, key, cursor, "COUNT", AT_ONCE, NULL);
        if (reply == NULL)
            return false;
        const struct tl_reply *page = tl_reply_at(reply, 1);
        for (size_t i = 0; i + 1 < tl_reply_count(page); i += 2) {
            const char *name = tl_reply_text(page, i);
            if (tl_reference_is_of(wanted->keyring, wanted->queue, name, wanted->number))
                snprintf(visitor, TL_VISITOR_MAX + 1, "%s", name);
        }
        snprintf(cursor, sizeof(cursor), "%s", tl_reply_text(reply, 0));
        tl_reply_free(reply);
    } while (visitor[0] == '\0' && strcmp(cursor, "0") != 0);
    return true;
}

bool tl_reference_find(struct tl_redis *redis, const struct tl_keys *keys,
                       const struct tl_config *config, const char *code,
                       char visitor[TL_VISITOR_MAX + 1], struct tl_error *err)
{
    /* In the order in which a visitor changes state, so that one who moves on meanwhile is found.
     */
    static const struct {
        const char *scan;
        enum tl_key key;
    } places[] = {{"ZSCAN", TL_KEY_WAITING}, {"HSCAN", TL_KEY_SESSIONS}, {"ZSCAN", TL_KEY_ENDED}};
    struct tl_error problem = {0};
    struct wanted wanted = {.queue = keys->queue};
    visitor[0] = '\0';
    if (!tl_reference_read(code, &wanted.number))
        return tl_error_set(err, TL_ERR_INVALID,
                            "a reference code has 8 letters and digits, like Q5T9-4XDR");
    struct tl_keyring *keyring = tl_keyring_load(config->secrets.ticket_keys, false, &problem);
    if (keyring == NULL) {
        tl_error_set(err, TL_ERR_INVALID, "%s", problem.text);
        return tl_error_prefix(err, "the code cannot be read, give the visitor's id instead");
    }
    wanted.keyring = keyring;
    bool ok = true;
    for (size_t i = 0; ok && visitor[0] == '\0' && i < sizeof(places) / sizeof(places[0]); i++)
        ok = look_through(redis, places[i].scan, keys->names[places[i].key], &wanted, visitor, err);
    tl_keyring_free(&keyring);
    return ok && visitor[0] != '\0';
}
