#include <stdio.h>

#include "common/base/quote.h"
#include "common/base/units.h"
#include "common/store/records.h"
#include "common/store/reply.h"
#include "common/store/script.h"

#include "ctl/command.h"
#include "ctl/session.h"
#include "ctl/visitor_find.h"
#include "generated/control_scripts.h"

/* Events that the script keeps in the stream; the programs trim to their own setting. */
#define EVENTS_KEPT "20000"

/* What move.lua found. */
enum { FOUND_NONE, FOUND_MOVED, FOUND_ACTIVE, FOUND_ENDED, FOUND_THERE, FOUND_NO_LANE };

struct move {
    const char *queue, *lane;
    char visitor[TL_VISITOR_MAX + 1];
};

static int report(const struct move *move, const struct tl_reply *found)
{
    const char *text = tl_reply_string(tl_reply_at(found, 1), NULL);
    char time[TL_UNITS_TEXT_MAX], quoted[80];
    struct tl_end_record end;
    switch (tl_reply_integer(tl_reply_at(found, 0))) {
    case FOUND_MOVED:
        printf("%s: visitor %s is moved from lane %s to %s\n", move->queue, move->visitor,
               *text != '\0' ? text : "(none)", move->lane);
        return TL_EXIT_OK;
    case FOUND_THERE:
        printf("%s: visitor %s waits in lane %s already; nothing was changed\n", move->queue,
               move->visitor, move->lane);
        return TL_EXIT_OK;
    case FOUND_NO_LANE:
        tl_quote(move->lane, quoted, sizeof(quoted));
        printf("%s: %s is not one of the lanes; nothing was changed\n", move->queue, quoted);
        return TL_EXIT_PROBLEM;
    case FOUND_ACTIVE:
        printf("%s: visitor %s is active already; nothing was changed\n", move->queue,
               move->visitor);
        return TL_EXIT_PROBLEM;
    case FOUND_ENDED:
        if (tl_record_end(text, &end)) {
            tl_time_format(end.ended_ms, time, sizeof(time));
            printf("%s: visitor %s is neither waiting nor active since %s; nothing was changed\n",
                   move->queue, move->visitor, time);
            return TL_EXIT_PROBLEM;
        }
        break;
    default:
        break;
    }
    printf("%s: there is no visitor %s; nothing was changed\n", move->queue, move->visitor);
    return TL_EXIT_PROBLEM;
}

int tl_command_visitor_move(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    struct tl_ctl_session session;
    struct tl_keys keys;
    struct tl_reply *found = NULL;
    struct move move = {.queue = options->words[0], .lane = options->words[2]};
    if (!tl_ctl_session_open(&session, options, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    struct tl_redis *redis = tl_ctl_session_redis(&session, move.queue, &err);
    if (redis != NULL && tl_ctl_session_keys(&session, move.queue, &keys, &err) &&
        tl_ctl_find_visitor(session.config, move.queue, options->words[1], move.visitor, &err)) {
        struct tl_args args = {0};
        tl_args_strs(&args, EVENTS_KEPT, move.visitor, move.lane, NULL);
        tl_actor_append(&session.actor, &args);
        found = tl_script_run(redis, tl_script_move, &keys, &args, &err);
        tl_args_free(&args);
    }
    tl_ctl_session_close(&session);
    if (found == NULL)
        return tl_ctl_fail(tl_ctl_status_of(&err), &err);
    int status = report(&move, found);
    tl_reply_free(found);
    return status;
}
