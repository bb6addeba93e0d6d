#include <inttypes.h>
#include <stdio.h>

#include "common/base/units.h"
#include "common/store/forget.h"
#include "common/store/records.h"
#include "common/store/reply.h"
#include "common/store/script.h"

#include "ctl/command.h"
#include "ctl/session.h"
#include "ctl/visitor_find.h"
#include "generated/control_scripts.h"

/* Events that the script keeps in the stream; the programs trim to their own setting. */
#define EVENTS_KEPT "20000"

/* What remove.lua found. */
enum { FOUND_NONE, FOUND_WAITING, FOUND_ACTIVE, FOUND_ENDED };

/* *found gets FOUND_*; *end the end of a visitor who is gone already. */
static bool remove_visitor(struct tl_ctl_session *session, const struct tl_keys *keys,
                           const char *visitor, int64_t *found, struct tl_end_record *end,
                           struct tl_error *err)
{
    struct tl_redis *redis = tl_ctl_session_redis(session, keys->queue, err);
    if (redis == NULL)
        return false;
    struct tl_args args = {0};
    tl_args_strs(&args, EVENTS_KEPT, visitor, NULL);
    tl_actor_append(&session->actor, &args);
    struct tl_reply *reply = tl_script_run(redis, tl_script_remove, keys, &args, err);
    tl_args_free(&args);
    if (reply == NULL)
        return false;
    *found = tl_reply_integer(tl_reply_at(reply, 0));
    if (*found == FOUND_ENDED && !tl_record_end(tl_reply_string(tl_reply_at(reply, 1), NULL), end))
        *found = FOUND_NONE;
    tl_reply_free(reply);
    return true;
}

/* Returns the exit status. */
static int report(const char *queue, const char *visitor, int64_t found,
                  const struct tl_end_record *end)
{
    char time[TL_UNITS_TEXT_MAX];
    switch (found) {
    case FOUND_WAITING:
        printf("%s: visitor %s is removed from the line\n", queue, visitor);
        return TL_EXIT_OK;
    case FOUND_ACTIVE:
        printf("%s: the session of visitor %s is revoked\n", queue, visitor);
        return TL_EXIT_OK;
    case FOUND_ENDED:
        tl_time_format(end->ended_ms, time, sizeof(time));
        printf("%s: visitor %s is neither waiting nor active since %s%s; nothing was changed\n",
               queue, visitor, time, end->reason == TL_REASON_REMOVED ? " (removed)" : "");
        return TL_EXIT_PROBLEM;
    default:
        printf("%s: there is no visitor %s; nothing was changed\n", queue, visitor);
        return TL_EXIT_PROBLEM;
    }
}

int tl_command_visitor_remove(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    struct tl_ctl_session session;
    struct tl_keys keys;
    struct tl_end_record end = {0};
    char visitor[TL_VISITOR_MAX + 1] = "";
    int64_t found = FOUND_NONE;
    const char *queue = options->words[0];
    if (!tl_ctl_session_open(&session, options, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    bool ok = tl_ctl_session_keys(&session, queue, &keys, &err) &&
              tl_ctl_find_visitor(session.config, queue, options->words[1], visitor, &err) &&
              remove_visitor(&session, &keys, visitor, &found, &end, &err);
    tl_ctl_session_close(&session);
    if (!ok)
        return tl_ctl_fail(tl_ctl_status_of(&err), &err);
    return report(queue, visitor, found, &end);
}

int tl_command_visitor_forget(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    struct tl_ctl_session session;
    struct tl_keys keys;
    struct tl_end_record end = {0};
    char visitor[TL_VISITOR_MAX + 1] = "";
    int64_t found = FOUND_NONE;
    uint64_t places = 0;
    const char *queue = options->words[0];
    if (!tl_ctl_session_open(&session, options, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    struct tl_redis *redis = tl_ctl_session_redis(&session, queue, &err);
    bool ok = redis != NULL && tl_ctl_session_keys(&session, queue, &keys, &err) &&
              tl_ctl_find_visitor(session.config, queue, options->words[1], visitor, &err) &&
              remove_visitor(&session, &keys, visitor, &found, &end, &err) &&
              tl_forget(redis, &keys, visitor, &places, &err);
    tl_ctl_session_close(&session);
    if (!ok)
        return tl_ctl_fail(tl_ctl_status_of(&err), &err);
    if (places == 0) {
        printf("%s: nothing is kept of this visitor; nothing was changed\n", queue);
        return TL_EXIT_PROBLEM;
    }
    printf("%s: the visitor is forgotten: the id was erased in %" PRIu64 " places\n", queue,
           places);
    return TL_EXIT_OK;
}
