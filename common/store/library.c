/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/store/library.h"
#include "common/store/reply.h"

#include "generated/library_text.h"

bool tl_library_load(struct tl_redis *redis, struct tl_error *err)
{
    struct tl_error refusal = {0};
    struct tl_reply *reply = tl_ask(redis, &refusal, "FUNCTION", "LOAD", library_text, NULL);
    tl_reply_free(reply);
    if (reply != NULL || strstr(refusal.text, "already exists") != NULL)
        return true;
    if (refusal.kind == TL_ERR_DENIED)
        return tl_error_set(err, TL_ERR_LOADING,
                            "the store does not have the functions of this release (" TL_LIBRARY
                            ") yet, and this program may not load them: a dispatcher, admitter or "
                            "expirer of this release does");
    *err = refusal;
    return tl_error_prefix(err, "loading the functions of this release (" TL_LIBRARY ")");
}

void tl_call_begin(struct tl_args *args, const char *function, const struct tl_keys *keys)
{
    tl_args_reset(args);
    tl_args_strs(args, "FCALL", function, "1", keys->names[TL_KEY_STATE], NULL);
}

void tl_call_begin_read(struct tl_args *args, const char *function, const struct tl_keys *keys)
{
    tl_args_reset(args);
    tl_args_strs(args, "FCALL_RO", function, "1", keys->names[TL_KEY_STATE], NULL);
}

void tl_call_begin_on(struct tl_args *args, const char *function, unsigned n)
{
    tl_args_reset(args);
    tl_args_strs(args, "FCALL", function, NULL);
    tl_args_uint(args, n);
}

struct tl_reply *tl_call(struct tl_redis *redis, const struct tl_args *args, struct tl_error *err)
{
    struct tl_error first = {0};
    struct tl_reply *reply = tl_redis_call(redis, args, &first);
    if (reply == NULL && first.kind == TL_ERR_NOFUNCTION)
        return tl_library_load(redis, err) ? tl_redis_call(redis, args, err) : NULL;
    if (reply == NULL && err != NULL)
        *err = first;
    return reply;
}

struct tl_reply *tl_call_once(struct tl_redis *redis, struct tl_args *args, struct tl_error *err)
{
    struct tl_reply *reply = tl_call(redis, args, err);
    tl_args_free(args);
    return reply;
}

struct tl_reply *tl_call_read(struct tl_redis *redis, const char *function,
                              const struct tl_keys *keys, struct tl_error *err)
{
    struct tl_args args = {0};
    tl_call_begin_read(&args, function, keys);
    return tl_call_once(redis, &args, err);
}

bool tl_call_do(struct tl_redis *redis, struct tl_args *args, struct tl_error *err)
{
    struct tl_reply *reply = tl_call_once(redis, args, err);
    tl_reply_free(reply);
    return reply != NULL;
}

/* ---- libraries that nobody uses now ---- */

enum { NOTE_MS = 3600000 };

bool tl_library_note(struct tl_redis *redis, const char *key_prefix, int64_t *due_ms,
                     int64_t now_ms, struct tl_error *err)
{
    char key[TL_KEY_MAX];
    struct tl_args args = {0};
    if (now_ms < *due_ms)
        return true;
    *due_ms = now_ms + NOTE_MS;
    tl_call_begin_on(&args, TL_FN_LIBRARIES, 1);
    tl_args_strs(&args, tl_key_common(key_prefix, TL_COMMON_LIBRARIES, key), TL_LIBRARY, NULL);
    return tl_call_do(redis, &args, err);
}

static bool names_library(const struct tl_reply *list, const char *name)
{
    bool found = false;
    for (size_t i = 0; !found && i < tl_reply_count(list); i++)
        found = strcmp(tl_reply_string(tl_reply_of(tl_reply_at(list, i), "library_name"), NULL),
                       name) == 0;
    return found;
}

/* Adds the libraries of the last of these lists that are in none before it. */
static void add_names(struct tl_args *args, struct tl_reply *const *lists, size_t n)
{
    const struct tl_reply *last = lists[n - 1];
    for (size_t i = 0; i < tl_reply_count(last); i++) {
        const char *name = tl_reply_string(tl_reply_of(tl_reply_at(last, i), "library_name"), NULL);
        bool known = false;
        for (size_t k = 0; k + 1 < n; k++)
            known = known || names_library(lists[k], name);
        if (!known)
            tl_args_str(args, name);
    }
}

bool tl_library_prune(struct tl_store *store, const char *key_prefix, unsigned *n,
                      struct tl_error *err)
{
    char key[TL_KEY_MAX];
    struct tl_args args = {0};
    struct tl_reply *lists[TL_STORE_NODES_MAX] = {NULL};
    size_t nodes = tl_store_nodes(store);
    bool ok = true;
    *n = 0;
    tl_call_begin_on(&args, TL_FN_LIBRARIES, 1);
    tl_args_strs(&args, tl_key_common(key_prefix, TL_COMMON_LIBRARIES, key), TL_LIBRARY, NULL);
    for (size_t i = 0; ok && i < nodes; i++) {
        lists[i] = tl_ask(tl_store_node(store, i), err, "FUNCTION", "LIST", "LIBRARYNAME",
                          "tellerline_*", NULL);
        ok = lists[i] != NULL;
        add_names(&args, lists, i + 1);
    }
    struct tl_reply *unused = ok ? tl_call(tl_store_common(store), &args, err) : NULL;
    tl_args_free(&args);
    ok = unused != NULL;
    for (size_t i = 0; ok && i < tl_reply_count(unused); i++, *n += ok) {
        const char *name = tl_reply_text(unused, i);
        for (size_t k = 0; ok && k < nodes; k++) {
            if (!names_library(lists[k], name))
                continue;
            struct tl_reply *deleted =
                tl_ask(tl_store_node(store, k), err, "FUNCTION", "DELETE", name, NULL);
            ok = deleted != NULL;
            tl_reply_free(deleted);
        }
    }
    tl_reply_free(unused);
    for (size_t i = 0; i < nodes; i++)
        tl_reply_free(lists[i]);
    return ok;
}
