/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/store/library.h"
#include "common/store/reply.h"
#include "ctl/up/up.h"

enum {
    LOOK_MS = 300,
    BEGIN_LIMIT_MS = 30000, /* an archiver looks every two seconds, and takes over within two */
};

/* The words after `none` in the field `restore` (archiver/restore.lua). */
static const char *why_not(const char *word)
{
    static const char *const words[][2] = {
        {"unknown", "the archive knows no earlier generation of this queue"},
        {"deleted", "an operator deleted the queue: its places do not come back"},
        {"pseudonyms", "the archive has pseudonyms instead of the ids of visitors: they come back "
                       "by their tickets"},
        {"ended", "the recovery has ended meanwhile"},
        {"database", "PostgreSQL refused; the log of the archiver says why"},
        {"whole", "the archive knows nothing that the store does not know"},
        {"recent", "the store lost its last seconds alone: visitors come back by their tickets"},
        {"lost", "the archive does not know the generation that was lost"}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(word, words[i][0]) == 0)
            return words[i][1];
    return word;
}

static bool ask(struct tl_redis *redis, const struct tl_keys *keys, const struct tl_actor *actor,
                struct tl_error *err)
{
    struct tl_args args = {0};
    tl_call_begin(&args, TL_FN_RESTORE, keys);
    tl_args_strs(&args, TL_EVENTS_KEPT, "ask", NULL);
    tl_actor_append(actor, &args);
    return tl_call_do(redis, &args, err);
}

/* The n-th number behind the first word of the field. */
static uint64_t number_of(const char *text, int n)
{
    for (; text != NULL && n > 0; n--)
        text = strchr(text + 1, ':');
    return text != NULL ? strtoull(text + 1, NULL, 10) : 0;
}

/* Waits until it is done, and shows how far it is. */
static bool follow(struct tl_redis *redis, const struct tl_keys *keys, uint64_t *returned,
                   struct tl_error *err)
{
    struct tl_progress progress;
    const int64_t began_ms = tl_clock_ms();
    bool ok = true, done = false;
    tl_progress_begin(&progress, "restore", began_ms);
    while (ok && !done) {
        struct tl_reply *reply =
            tl_ask(redis, err, "HGET", keys->names[TL_KEY_STATE], "restore", NULL);
        const char *text = tl_reply_string(reply, NULL);
        ok = reply != NULL;
        done = strncmp(text, "done:", 5) == 0;
        if (done)
            *returned = number_of(text, 2);
        else if (strncmp(text, "running:", 8) == 0)
            tl_progress_at(&progress, number_of(text, 4), number_of(text, 5), tl_clock_ms());
        else if (strncmp(text, "none:", 5) == 0)
            ok = tl_error_set(err, TL_ERR_INVALID, "%s", why_not(text + 5));
        else if (strncmp(text, "newer:", 6) == 0)
            ok = tl_error_set(
                err, TL_ERR_INVALID,
                "the line that is here is an old copy, which can only be replaced as a "
                "whole: ask again to replace it by the line that the archive knows");
        else if (tl_clock_ms() > began_ms + BEGIN_LIMIT_MS)
            ok = ok && tl_error_set(err, TL_ERR_STORE,
                                    "no archiver has begun yet: does one run, and can it use "
                                    "PostgreSQL? It begins as soon as it can");
        tl_reply_free(reply);
        if (ok && !done)
            tl_ctl_pause(LOOK_MS);
    }
    tl_progress_end(&progress);
    return ok;
}

int tl_command_restore(const struct tl_ctl_options *options)
{
    struct tl_ctl_session session;
    struct tl_error err = {0};
    struct tl_keys keys;
    uint64_t returned = 0;
    const char *queue = options->words[0];
    if (!tl_ctl_session_open(&session, options, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    struct tl_redis *redis = NULL;
    bool ok = tl_keys_of(&keys, session.config->redis.key_prefix, queue, &err) &&
              (redis = tl_store_reach(session.store, queue, &err)) != NULL &&
              ask(redis, &keys, &session.actor, &err) && follow(redis, &keys, &returned, &err);
    if (ok)
        printf("%s: %" PRIu64 " visitors came back from the archive\n", queue, returned);
    tl_ctl_session_close(&session);
    return ok ? TL_EXIT_OK : tl_ctl_fail(tl_ctl_status_of(&err), &err);
}
