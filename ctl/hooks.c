#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "common/base/clock.h"
#include "common/base/units.h"
#include "common/config/hook_table.h"
#include "common/store/hooks.h"
#include "common/store/queue.h"

#include "ctl/command.h"
#include "ctl/json.h"
#include "ctl/session.h"
#include "ctl/table.h"

enum {
    TEST_WAIT_MS = 20000, /* for a notifier that looks once a second, and a slow hook */
    TEST_POLL_MS = 100,
};

/* The queues of the store, and for each hook those that it watches. */
struct listing {
    struct tl_ctl_session *session;
    char (*names)[TL_QUEUE_NAME_MAX + 1];
    size_t n;
};

static bool open_listing(struct listing *listing, struct tl_ctl_session *session,
                         struct tl_error *err)
{
    struct tl_redis *redis = tl_ctl_session_redis(session, NULL, err);
    *listing = (struct listing){.session = session};
    return redis != NULL && tl_queue_list(redis, session->config->redis.key_prefix, &listing->names,
                                          &listing->n, err);
}

static bool read_state(const struct listing *listing, const char *queue, const char *hook,
                       struct tl_hook_state *state, struct tl_error *err)
{
    struct tl_keys keys;
    struct tl_redis *redis = tl_ctl_session_redis(listing->session, queue, err);
    tl_keys_init(&keys, listing->session->config->redis.key_prefix, queue);
    return redis != NULL && tl_hook_state_read(redis, &keys, hook, state, err);
}

/* What shows one hook on one queue, in a table or as JSON. False when memory ran out. */
typedef bool show(void *context, const struct tl_hook_config *hook, const char *queue,
                  const struct tl_hook_state *state);

static bool each(const struct listing *listing, const struct tl_hook_config *hook, show *one,
                 void *context, struct tl_error *err)
{
    for (size_t i = 0; i < listing->n; i++) {
        struct tl_hook_state state;
        if (!tl_hook_watches(hook, listing->names[i]))
            continue;
        if (!read_state(listing, listing->names[i], hook->name, &state, err))
            return false;
        if (!one(context, hook, listing->names[i], &state))
            return tl_error_set(err, TL_ERR_NOMEM, "no memory to show the hooks");
    }
    return true;
}

static void describe(const struct tl_hook_state *state, char text[256])
{
    char since[40];
    if (!state->watched) {
        snprintf(text, 256, "no notifier watches the queue");
    } else if (state->since_ms != 0) {
        tl_time_format(state->since_ms, since, sizeof(since));
        snprintf(text, 256, "failing since %s: %s", since, state->problem);
    } else {
        snprintf(text, 256, "%s", state->at_ms != 0 ? "answers" : "nothing told yet");
    }
}

static bool add_row(void *context, const struct tl_hook_config *hook, const char *queue,
                    const struct tl_hook_state *state)
{
    struct tl_table *table = context;
    char text[256];
    describe(state, text);
    tl_table_text(table, hook->name);
    tl_table_text(table, queue);
    tl_table_number(table, state->told);
    tl_table_number(table, state->behind);
    tl_table_number(table, state->lost);
    tl_table_text(table, text);
    return true;
}

static bool write_table(const struct listing *listing, struct tl_error *err)
{
    static const struct tl_column columns[] = {{"HOOK", false}, {"QUEUE", false},
                                               {"TOLD", true},  {"BEHIND", true},
                                               {"LOST", true},  {"STATE", false}};
    const struct tl_config *config = listing->session->config;
    struct tl_table *table = tl_table_new(columns, sizeof(columns) / sizeof(columns[0]));
    struct tl_text out = {0};
    bool ok = table != NULL || tl_error_set(err, TL_ERR_NOMEM, "no memory to show the hooks");
    for (size_t i = 0; ok && i < config->n_hooks; i++)
        ok = each(listing, &config->hooks[i], add_row, table, err);
    if (ok) {
        tl_table_write(table, &out);
        ok = !out.failed || tl_error_set(err, TL_ERR_NOMEM, "no memory to show the hooks");
    }
    if (ok)
        fputs(out.data, stdout);
    tl_text_free(&out);
    tl_table_free(&table);
    return ok;
}

static bool add_object(void *context, const struct tl_hook_config *hook, const char *queue,
                       const struct tl_hook_state *state)
{
    json_t *failing = state->since_ms != 0 ? json_integer((json_int_t)state->since_ms) : NULL;
    json_t *object =
        json_pack("{s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:s*, s:o*}", "queue", queue, "watched",
                  state->watched, "told", (json_int_t)state->told, "behind",
                  (json_int_t)state->behind, "lost", (json_int_t)state->lost, "status",
                  (json_int_t)state->status, "last_request_ms", (json_int_t)state->at_ms, "problem",
                  state->problem[0] != '\0' ? state->problem : NULL, "failing_since_ms", failing);
    (void)hook;
    if (state->since_ms != 0 && failing == NULL) { /* json_pack left it out */
        json_decref(object);
        return false;
    }
    return json_array_append_new(context, object) == 0;
}

static bool write_json(const struct listing *listing, struct tl_error *err)
{
    const struct tl_config *config = listing->session->config;
    json_t *hooks = json_array();
    bool ok = hooks != NULL || tl_error_set(err, TL_ERR_NOMEM, "no memory to show the hooks");
    for (size_t i = 0; ok && i < config->n_hooks; i++) {
        json_t *queues = json_array();
        ok = queues != NULL && each(listing, &config->hooks[i], add_object, queues, err);
        json_t *hook = json_pack("{s:s, s:s, s:o}", "hook", config->hooks[i].name, "url",
                                 config->hooks[i].url, "queues", queues);
        if (json_array_append_new(hooks, hook) != 0)
            ok = tl_error_set(err, TL_ERR_NOMEM, "no memory to show the hooks");
    }
    if (!ok) {
        json_decref(hooks);
        return false;
    }
    return tl_json_write(json_pack("{s:o}", "hooks", hooks)) ||
           tl_error_set(err, TL_ERR_SYSTEM, "cannot write the hooks");
}

int tl_command_hooks_list(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    struct tl_ctl_session session;
    struct listing listing = {0};
    if (!tl_ctl_session_open(&session, options, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    bool ok = open_listing(&listing, &session, &err);
    if (ok && session.config->n_hooks == 0 && !options->json)
        printf("no hooks are configured; list some under `hooks` in the configuration file\n");
    else if (ok)
        ok = options->json ? write_json(&listing, &err) : write_table(&listing, &err);
    free(listing.names);
    tl_ctl_session_close(&session);
    return ok ? TL_EXIT_OK : tl_ctl_fail(TL_EXIT_FAILED, &err);
}

/* ---- test ---- */

static const struct tl_hook_config *find_hook(const struct tl_config *config, const char *name,
                                              struct tl_error *err)
{
    for (size_t i = 0; i < config->n_hooks; i++)
        if (strcmp(config->hooks[i].name, name) == 0)
            return &config->hooks[i];
    tl_error_set(err, TL_ERR_INVALID, "there is no hook of this name in the configuration");
    return NULL;
}

/* The queue through which the test goes; NULL with err. */
static const char *choose_queue(const struct listing *listing, const struct tl_hook_config *hook,
                                const char *asked, struct tl_error *err)
{
    for (size_t i = 0; i < listing->n; i++)
        if (tl_hook_watches(hook, listing->names[i]) &&
            (asked == NULL || strcmp(asked, listing->names[i]) == 0))
            return listing->names[i];
    tl_error_set(err, TL_ERR_INVALID, "hook %s watches no such queue", hook->name);
    return NULL;
}

/* Waits until the hook was told of the event, or a request after it began has failed. */
static bool wait_for(const struct listing *listing, const char *queue, const char *hook,
                     uint64_t event, struct tl_hook_state *state, struct tl_error *err)
{
    struct tl_hook_state before;
    if (!read_state(listing, queue, hook, &before, err))
        return false;
    *state = before;
    for (int64_t end_ms = tl_clock_ms() + TEST_WAIT_MS; tl_clock_ms() < end_ms;) {
        const struct timespec pause = {.tv_nsec = TEST_POLL_MS * 1000000L};
        if (state->event >= event || (state->problem[0] != '\0' && state->at_ms > before.at_ms))
            return true;
        (void)nanosleep(&pause, NULL); /* a signal ends it early, which does no harm */
        if (!read_state(listing, queue, hook, state, err))
            return false;
    }
    return true;
}

static bool try_hook(const struct listing *listing, const struct tl_ctl_options *options,
                     int *status, struct tl_error *err)
{
    const char *name = options->words[0];
    const struct tl_hook_config *hook = find_hook(listing->session->config, name, err);
    const char *queue = hook != NULL ? choose_queue(listing, hook, options->queue, err) : NULL;
    struct tl_keys keys;
    uint64_t event = 0;
    struct tl_hook_state state = {0};
    if (queue == NULL)
        return false;
    struct tl_redis *redis = tl_ctl_session_redis(listing->session, queue, err);
    tl_keys_init(&keys, listing->session->config->redis.key_prefix, queue);
    if (redis == NULL || !tl_hook_test(redis, &keys, name, &event, err) ||
        (event != 0 && !wait_for(listing, queue, name, event, &state, err)))
        return false;
    *status = TL_EXIT_PROBLEM;
    if (event == 0) {
        printf("%s: no notifier watches queue %s for it: is tellerline-notifier running, with this "
               "configuration?\n",
               name, queue);
    } else if (state.event >= event) {
        printf("%s: told, it answers %" PRId64 "\n", name, state.status);
        *status = TL_EXIT_OK;
    } else if (state.problem[0] != '\0') {
        printf("%s: %s. It is tried again\n", name, state.problem);
    } else {
        printf("%s: not told within %d s; %" PRIu64 " entries wait for it\n", name,
               TEST_WAIT_MS / 1000, state.behind);
    }
    return true;
}

int tl_command_hooks_test(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    struct tl_ctl_session session;
    struct listing listing = {0};
    int status = TL_EXIT_OK;
    if (!tl_ctl_session_open(&session, options, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    bool ok = open_listing(&listing, &session, &err) && try_hook(&listing, options, &status, &err);
    free(listing.names);
    tl_ctl_session_close(&session);
    return ok ? status : tl_ctl_fail(TL_EXIT_FAILED, &err);
}
