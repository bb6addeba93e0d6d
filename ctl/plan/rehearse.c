/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/units.h"
#include "common/client/http.h"
#include "common/store/queue.h"
#include "common/store/reply.h"

#include "lab/report.h"
#include "lab/visitors.h"

#include "ctl/plan/plan.h"

enum {
    LEAD_MS = 5000,         /* from the creation of a queue with an opening to that opening */
    READY_LIMIT_MS = 20000, /* for the worker to learn of the queue */
    READY_ALL_MS = 1500,    /* for its other processes, which look once a second */
    DESCRIPTORS_KEPT = 64,  /* for all that is no connection to the worker */
    OVERTIME_FACTOR = 2,    /* it may take this many times what is simulated... */
    OVERTIME_MS = 60000,    /* ...and that long */
};

struct rehearse {
    const struct tl_ctl_options *options;
    struct tl_ctl_session session;
    struct tl_signals signals;
    const char *queue;
    char local[TL_CTL_LOCAL_MAX];
    char scratch[TL_QUEUE_NAME_MAX + 1];
    bool stored; /* the settings are the store's */
    struct tl_queue_settings settings, scaled;
    struct tl_plan_crowd crowd;
    struct tl_simulation *simulation;
    struct tl_rehearsal rehearsal;
    struct tl_crowd_settings go; /* what its visitors need */
    bool created;
    int64_t opens_local_ms; /* when the queue opens; 0: is open */
};

/* ---- before anything is made ---- */

/* Where the visitors go: --target, else this machine's worker. */
static bool find_target(struct rehearse *rehearse, struct tl_error *err)
{
    const struct tl_listen *listen = &rehearse->session.config->http.listen;
    const char *given = rehearse->options->rehearse.target;
    if (given == NULL && listen->port <= 0)
        return tl_error_set(err, TL_ERR_INVALID,
                            "http.listen names no port: say with --target where the worker is");
    if (given == NULL)
        tl_ctl_local_url(listen, rehearse->local);
    rehearse->go.target = given != NULL ? given : rehearse->local;
    return true;
}

/* Does the limit of one address refuse any of them? A third of the minute's joins may come at once,
 * the others evenly (worker/http/limiter.c). */
static bool refuses(const struct rehearse *rehearse, uint64_t limit)
{
    enum { AT_ONCE = 3 };
    const struct tl_arrivals *arrivals = &rehearse->crowd.arrivals;
    const uint64_t at_once = limit > AT_ONCE ? limit / AT_ONCE : limit;
    const uint64_t evenly = at_once < limit ? limit - at_once : limit;
    const double one_ms = 60000.0 * (double)rehearse->go.speed / (double)evenly;
    double back_ms = 0; /* when the whole allowance is there again */
    for (size_t i = 0; i < arrivals->n; i++) {
        double at_ms = (double)arrivals->list[i].at_ms;
        back_ms = (back_ms > at_ms ? back_ms : at_ms) + one_ms;
        if (back_ms - at_ms > (double)at_once * one_ms + 1)
            return true;
    }
    return false;
}

/* Is anybody to come in another lane than that of everybody? */
static bool chooses_lane(const struct rehearse *rehearse)
{
    for (unsigned i = 0; i < rehearse->settings.n_lanes; i++) {
        if (i != rehearse->settings.default_lane && rehearse->crowd.visitors.lanes[i] > 0)
            return true;
    }
    return false;
}

/* Without a key the visitors join like anybody, all from this machine. */
static bool check_limits(const struct rehearse *rehearse, struct tl_error *err)
{
    const struct tl_queue_settings *settings = &rehearse->settings;
    uint64_t limit = rehearse->session.config->http.joins_per_minute;
    if (tl_door_trusted(rehearse->go.door))
        return true;
    if (chooses_lane(rehearse))
        return tl_error_set(err, TL_ERR_INVALID, "--lanes: %s", tl_rehearse_advice("lane"));
    if (settings->join == TL_JOIN_INVITED)
        return tl_error_set(err, TL_ERR_INVALID, "join: invited: %s",
                            tl_rehearse_advice("by-invitation"));
    if (settings->challenge != TL_CHALLENGE_NONE)
        return tl_error_set(err, TL_ERR_INVALID, "challenge: %s",
                            tl_rehearse_advice("challenge-required"));
    if (limit > 0 && refuses(rehearse, limit))
        return tl_error_set(err, TL_ERR_INVALID, "http.joins_per_minute is %" PRIu64 ": %s", limit,
                            tl_rehearse_advice("too-many-joins"));
    return true;
}

/* Each visitor in the line keeps a connection open. */
static bool check_descriptors(struct rehearse *rehearse, struct tl_error *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return tl_error_set(err, TL_ERR_SYSTEM, "getrlimit: %s", strerror(errno));
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return tl_error_set(err, TL_ERR_SYSTEM, "setrlimit: %s", strerror(errno));
    uint64_t kept = DESCRIPTORS_KEPT + TL_HTTP_SHORT_MOST;
    rehearse->go.streams_most = limit.rlim_max > kept ? (size_t)(limit.rlim_max - kept) : 0;
    if (rehearse->simulation->longest_line > rehearse->go.streams_most)
        return tl_error_set(err, TL_ERR_INVALID,
                            "%" PRIu64 " will wait at once, each with a connection, and this "
                            "process may have %zu (`ulimit -n` %" PRIu64
                            "): raise it, or choose fewer --visitors",
                            rehearse->simulation->longest_line, rehearse->go.streams_most,
                            (uint64_t)limit.rlim_max);
    uint64_t here = rehearse->session.config->http.streams_per_address;
    here *= here > 0 && rehearse->session.config->worker.processes > 0
                ? rehearse->session.config->worker.processes
                : 1;
    if (here > 0 && rehearse->simulation->longest_line > here)
        fprintf(stderr,
                "tellerline: warning: %" PRIu64 " will listen at once from one address, and "
                "http.streams_per_address allows %" PRIu64 ": the others come again and again "
                "instead; raise it while you rehearse\n",
                rehearse->simulation->longest_line, here);
    return true;
}

static bool check_speed(const struct rehearse *rehearse, struct tl_error *err)
{
    uint64_t most = tl_scratch_speed_most(&rehearse->settings);
    return rehearse->go.speed <= most ||
           tl_error_set(err, TL_ERR_INVALID,
                        "--speed: at most %" PRIu64 " with the settings of %s, or their times "
                        "would be too short to be kept over HTTP",
                        most, rehearse->queue);
}

/* Reads the settings, the crowd and the key, and simulates. */
static bool prepare(struct rehearse *rehearse, struct tl_error *err)
{
    const struct tl_plan_options *plan = &rehearse->options->plan;
    if (!find_target(rehearse, err) ||
        !tl_scratch_source(&rehearse->session, rehearse->queue, &rehearse->settings,
                           &rehearse->stored, err) ||
        !check_speed(rehearse, err) ||
        (rehearse->go.door = tl_door_new(rehearse->session.config, err)) == NULL ||
        !tl_plan_gather(plan, &rehearse->settings, &rehearse->crowd, err))
        return false;
    struct tl_queue_settings settings = rehearse->settings;
    settings.opens_at_ms = plan->opens_after_ms;
    rehearse->simulation =
        tl_simulation_run(&settings, &rehearse->crowd.visitors, &rehearse->crowd.arrivals);
    return check_limits(rehearse, err) && check_descriptors(rehearse, err);
}

/* ---- the scratch queue ---- */

/* Whatever happened before: nothing must stay in Redis. */
static bool clean_up(struct rehearse *rehearse)
{
    struct tl_error err = {0};
    if (!rehearse->created)
        return true;
    fprintf(stderr, "Removing queue %s\n", rehearse->scratch);
    if (tl_scratch_remove(&rehearse->session, rehearse->scratch, &err))
        return true;
    fprintf(stderr,
            "tellerline: %s\ntellerline: queue %s may still be in Redis: remove it with "
            "`tellerline queue delete %s`, with the same --config, --redis or --data\n",
            err.text, rehearse->scratch, rehearse->scratch);
    return false;
}

/* context: the rehearsal. */
static void clean_up_at_end(void *context)
{
    (void)clean_up(context);
}

/* May this user of the store take a queue off the list? Asked before one is made. */
static bool may_remove(struct rehearse *rehearse, struct tl_error *err)
{
    char queues[TL_KEY_MAX];
    struct tl_redis *redis = tl_store_reach(rehearse->session.store, NULL, err);
    tl_key_common(rehearse->session.config->redis.key_prefix, TL_COMMON_QUEUES, queues);
    struct tl_reply *reply =
        redis != NULL ? tl_ask(redis, err, "SREM", queues, rehearse->scratch, NULL) : NULL;
    tl_reply_free(reply);
    return reply != NULL;
}

static bool create(struct rehearse *rehearse, struct tl_error *err)
{
    const struct tl_plan_options *plan = &rehearse->options->plan;
    const char *prefix = rehearse->session.config->redis.key_prefix;
    struct tl_redis *redis = tl_store_reach(rehearse->session.store, rehearse->scratch, err);
    int64_t now_us;
    if (redis == NULL || !tl_redis_time(redis, &now_us, err) || !may_remove(rehearse, err))
        return false;
    int64_t now_ms = now_us / 1000;
    tl_door_set_clock(rehearse->go.door, now_ms / 1000, tl_clock_ms());
    bool opens = rehearse->settings.opens_at_ms > 0 || plan->opens_after_ms > 0;
    int64_t lead_ms = LEAD_MS + plan->opens_after_ms / (int64_t)rehearse->go.speed;
    rehearse->scaled = rehearse->settings;
    tl_scratch_settings(&rehearse->scaled, rehearse->go.speed, now_ms,
                        opens ? now_ms + lead_ms : 0);
    rehearse->opens_local_ms = opens ? tl_clock_ms() + lead_ms : 0;
    rehearse->created = true; /* also when its outcome is not known */
    tl_memory_last(clean_up_at_end, rehearse);
    return tl_queue_ensure(tl_queue_site(rehearse->session.store, rehearse->scratch), prefix,
                           rehearse->scratch, &rehearse->scaled, &rehearse->session.actor, NULL,
                           err);
}

struct look {
    unsigned status;
    char why[160];
};

static void looked(void *context, const struct tl_http_answer *answer)
{
    struct look *look = context;
    look->status = answer->status;
    snprintf(look->why, sizeof(look->why), "%.150s", answer->problem);
}

/* Waits until the worker serves the queue, and until the crowd may come: as long before the opening
 * as it comes in the sale. False without an error when the operator stops. */
static bool wait_ready(struct rehearse *rehearse, struct tl_error *err)
{
    struct tl_http *http = tl_http_new(rehearse->go.target, -1, err);
    struct look look = {0};
    char path[128];
    int64_t limit_ms = tl_clock_ms() + READY_LIMIT_MS;
    bool ok = http != NULL;
    bool stopped = false;
    snprintf(path, sizeof(path), "/v1/queues/%s", rehearse->scratch);
    while (ok && !stopped && look.status != 200) {
        const struct tl_http_call call = {.path = path, .context = &look, .done = looked};
        ok = tl_http_ask(http, &call, err);
        if (ok && look.status != 200 && tl_clock_ms() >= limit_ms)
            ok = look.status == 0
                     ? tl_error_set(err, TL_ERR_CONNECT, "%s: %s", rehearse->go.target, look.why)
                     : tl_error_set(err, TL_ERR_TIMEOUT,
                                    "%s does not serve queue %s (status %u): does it use the same "
                                    "Redis?",
                                    rehearse->go.target, rehearse->scratch, look.status);
        stopped = ok && look.status != 200 && tl_signals_wait(&rehearse->signals, 100);
    }
    tl_http_free(&http);
    int64_t lead_ms = rehearse->opens_local_ms -
                      rehearse->options->plan.opens_after_ms / (int64_t)rehearse->go.speed;
    int64_t wait_ms = lead_ms - tl_clock_ms();
    if (ok && !stopped)
        stopped =
            tl_signals_wait(&rehearse->signals, wait_ms > READY_ALL_MS ? wait_ms : READY_ALL_MS);
    rehearse->rehearsal.stopped = stopped;
    return ok && !stopped;
}

/* ---- the run ---- */

static bool run(struct rehearse *rehearse, struct tl_error *err)
{
    struct tl_crowd_settings *go = &rehearse->go;
    if (rehearse->opens_local_ms > 0)
        go->opens_in_ms = rehearse->opens_local_ms - tl_clock_ms();
    go->limit_ms =
        OVERTIME_MS + OVERTIME_FACTOR * (rehearse->simulation->end_ms / (int64_t)go->speed);
    fprintf(stderr, "Rehearsing %s on queue %s of %s, %" PRIu64 " times as fast; Ctrl-C ends it\n",
            rehearse->queue, rehearse->scratch, go->target, go->speed);
    return tl_crowd_run(go, &rehearse->rehearsal, err);
}

/* Returns the exit status. */
static int report(const struct rehearse *rehearse)
{
    struct tl_figures figures;
    struct tl_sentences broken;
    tl_figures_compute(&rehearse->rehearsal, &rehearse->scaled, &figures);
    tl_figures_judge(&rehearse->rehearsal, &rehearse->scaled, &figures, &broken);
    const struct tl_rehearse_report whole = {
        .queue = rehearse->queue,
        .scratch = rehearse->scratch,
        .target = rehearse->go.target,
        .source = rehearse->stored ? "it has in the store" : "of the configuration",
        .visitors = rehearse->crowd.words,
        .speed = rehearse->go.speed,
        .settings = &rehearse->settings,
        .rehearsal = &rehearse->rehearsal,
        .figures = &figures,
        .broken = &broken,
        .simulation = rehearse->simulation,
    };
    struct tl_text out = {0};
    json_t *json = tl_rehearse_report_json(&whole);
    if (rehearse->options->output != TL_OUTPUT_TABLE)
        tl_data_write(rehearse->options->output, json_incref(json));
    else
        tl_rehearse_report_text(&whole, json, &out);
    json_decref(json);
    tl_text_print(&out);
    return broken.n == 0 && !rehearse->rehearsal.stopped ? TL_EXIT_OK : TL_EXIT_PROBLEM;
}

static int rehearse_queue(struct rehearse *rehearse, struct tl_error *err)
{
    bool ran = prepare(rehearse, err) && tl_signals_open(&rehearse->signals, err) &&
               create(rehearse, err) && wait_ready(rehearse, err) && run(rehearse, err);
    tl_memory_last(NULL, NULL);
    bool clean = clean_up(rehearse);
    int status = TL_EXIT_PROBLEM;
    if (ran)
        status = report(rehearse);
    else if (rehearse->rehearsal.stopped)
        tl_error_set(err, TL_ERR_INVALID, "stopped before anybody came");
    free(rehearse->rehearsal.visitors);
    tl_simulation_free(&rehearse->simulation);
    tl_arrivals_free(&rehearse->crowd.arrivals);
    tl_door_free(&rehearse->go.door);
    tl_signals_close(&rehearse->signals);
    return clean ? status : TL_EXIT_PROBLEM;
}

int tl_command_rehearse(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    struct rehearse rehearse = {
        .options = options, .queue = options->words[0], .signals = {.fd = -1}};
    rehearse.go = (struct tl_crowd_settings){.queue = rehearse.scratch,
                                             .settings = &rehearse.scaled,
                                             .arrivals = &rehearse.crowd.arrivals,
                                             .visitors = &rehearse.crowd.visitors,
                                             .leaving = options->rehearse.leaving,
                                             .speed = options->rehearse.speed,
                                             .signals = &rehearse.signals,
                                             .terminal = isatty(STDERR_FILENO) == 1};
    if (!tl_crowd_options_check(&options->plan, true, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    if (!tl_ctl_session_open(&rehearse.session, options, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    tl_scratch_name(rehearse.queue, rehearse.scratch);
    int status = rehearse_queue(&rehearse, &err);
    if (err.kind != TL_OK)
        tl_ctl_fail(status, &err);
    if (err.kind == TL_ERR_NOQUEUE)
        tl_ctl_session_propose(&rehearse.session, rehearse.queue);
    tl_ctl_session_close(&rehearse.session);
    return status;
}
