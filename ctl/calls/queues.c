/* SPDX-License-Identifier: Apache-2.0 */
/* `queue list`, `show`, `create`, `delete`, `line`, the modes, and `recover`. */
#include <inttypes.h>
#include <string.h>

#include "common/base/units.h"
#include "common/config/mode.h"

#include "ctl/calls/calls.h"

enum { VALUE_MAX = 1200 };

/* ---- list ---- */

static const struct tl_column queue_columns[] = {
    {"QUEUE", false},    {"MODE", false},   {"PHASE", false}, {"WAITING", true},
    {"ACTIVE", true},    {"LIMIT", true},   {"JOINED", true}, {"ADMITTED", true},
    {"COMPLETED", true}, {"EXPIRED", true}, {"LEFT", true},
};

static void add_row(struct tl_table *table, const json_t *stats)
{
    static const char *const totals[] = {"joined", "admitted", "completed", "expired", "left"};
    char text[128];
    tl_table_text(table, tl_json_text(stats, "queue"));
    tl_table_text(table, tl_json_text(stats, "mode"));
    tl_row_phase(stats, text, sizeof(text));
    tl_row_add_state(table, stats, text);
    tl_table_number(table, tl_json_count(stats, "waiting"));
    tl_table_number(table, tl_json_count(stats, "active"));
    tl_row_limit(stats, text, sizeof(text));
    tl_table_text(table, text);
    for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++)
        tl_table_number(table, tl_row_total(stats, totals[i]));
}

static void write_queues(const json_t *list)
{
    size_t i;
    json_t *stats;
    if (json_array_size(list) == 0) {
        printf("no queues yet; `tellerline queue create` makes one, or add some under `queues` in "
               "the configuration file\n");
        return;
    }
    struct tl_table *table = TL_TABLE(queue_columns);
    json_array_foreach(list, i, stats)
    {
        add_row(table, stats);
    }
    tl_table_print(&table);
    json_array_foreach(list, i, stats)
    {
        if (*tl_json_text(stats, "trouble") != '\0')
            printf("%s: %s\n", tl_json_text(stats, "queue"), tl_json_text(stats, "trouble"));
    }
}

/* Only what is no null. */
static json_t *present(const json_t *stats, const char *name)
{
    json_t *value = json_object_get(stats, name);
    return json_is_null(value) ? NULL : json_incref(value);
}

static json_t *short_of(const json_t *stats)
{
    static const char *const totals[] = {"joined",    "admitted", "completed", "expired",
                                         "unclaimed", "absent",   "removed",   "left"};
    const char *trouble = tl_json_text(stats, "trouble");
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s, s:s*, s:I, s:I, s:o*, s:o*, s:o*}", "queue",
        tl_json_text(stats, "queue"), "state", tl_row_state(stats), "mode",
        tl_json_text(stats, "mode"), "phase", tl_json_text(stats, "phase"), "trouble",
        *trouble != '\0' ? trouble : NULL, "waiting", tl_json_number(stats, "waiting"), "active",
        tl_json_number(stats, "active"), "capacity", present(stats, "capacity_now"), "feedback",
        present(stats, "feedback"), "rate", present(stats, "rate"));
    for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++)
        (void)json_object_set_new(object, totals[i],
                                  json_integer((json_int_t)tl_row_total(stats, totals[i])));
    return object;
}

int tl_command_queues(const struct tl_ctl_options *options)
{
    struct tl_ctl_ask ask = tl_ctl_ask("GET", NULL, "/queues");
    json_t *answer, *stats, *rows;
    size_t i;
    int status = tl_ctl_call_once(options, &ask, &answer);
    if (status == TL_EXIT_OK && options->output != TL_OUTPUT_TABLE) {
        rows = json_array();
        json_array_foreach(json_object_get(answer, "queues"), i, stats)
        {
            tl_json_add(rows, short_of(stats));
        }
        tl_data_write(options->output, json_pack("{s:o}", "queues", rows));
    } else if (status == TL_EXIT_OK) {
        write_queues(json_object_get(answer, "queues"));
    }
    json_decref(answer);
    return status;
}

/* ---- show ---- */

static void add_setting(void *context, const char *name, const json_t *value)
{
    char text[VALUE_MAX], local[VALUE_MAX];
    tl_json_show(value, text, sizeof(text));
    tl_terminal_time_of(text, local, sizeof(local));
    tl_table_text(context, name);
    tl_table_text(context, local);
}

static void write_settings(const json_t *queue)
{
    static const struct tl_column columns[] = {{"SETTING", false}, {"VALUE", false}};
    char created[TL_UNITS_TEXT_MAX];
    struct tl_table *table = TL_TABLE(columns);
    tl_terminal_time_of(tl_json_text(queue, "created_at"), created, sizeof(created));
    printf("%s, created %s\n\n", tl_json_text(queue, "name"), created);
    tl_json_flat(json_object_get(queue, "settings"), add_setting, table);
    tl_table_print(&table);
}

int tl_command_queue_show(const struct tl_ctl_options *options)
{
    struct tl_ctl_ask ask = tl_ctl_ask("GET", NULL, "/queues/%s", options->words[0]);
    return tl_ctl_show(options, &ask, write_settings);
}

/* ---- create, delete ---- */

int tl_command_queue_create(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    const char *queue = options->words[0];
    json_t *answer;
    json_t *settings = tl_assignments_read(options->n_words - 1, options->words + 1, &err);
    if (settings == NULL)
        return tl_ctl_fail(tl_ctl_status_of(&err), &err);
    struct tl_ctl_ask ask =
        tl_ctl_ask("POST", json_pack("{s:s, s:o}", "name", queue, "settings", settings), "/queues");
    int status = tl_ctl_call_once(options, &ask, &answer);
    return status == TL_EXIT_OK
               ? tl_ctl_tell(options, answer, "%s: created; the waiting page is at /q/%s", queue,
                             queue)
               : status;
}

/* Asks, with how many people it concerns. */
static int confirm_deletion(const struct tl_ctl_options *options, struct tl_ctl_call *call)
{
    char what[256];
    json_t *stats;
    const char *queue = options->words[0];
    if (options->yes)
        return TL_EXIT_OK;
    struct tl_ctl_ask ask = tl_ctl_ask("GET", NULL, "/queues/%s/stats", queue);
    int status = tl_ctl_call_body(call, &ask, &stats);
    if (status != TL_EXIT_OK)
        return status;
    snprintf(what, sizeof(what),
             "Queue %s will be deleted: %" PRIu64 " who wait lose their places, %" PRIu64
             " who are active lose their sessions. This cannot be undone.",
             queue, tl_json_count(stats, "waiting"), tl_json_count(stats, "active"));
    json_decref(stats);
    return tl_ctl_confirm(options, what, queue);
}

int tl_command_queue_delete(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    const char *queue = options->words[0];
    json_t *answer = NULL;
    struct tl_ctl_ask ask = tl_ctl_ask("DELETE", NULL, "/queues/%s", queue);
    tl_ctl_ask_query(&ask, "confirm", queue);
    if (ask.method == NULL)
        return TL_EXIT_PROBLEM;
    struct tl_ctl_call *call = tl_ctl_call_open(options, &err);
    int status = call != NULL ? confirm_deletion(options, call) : tl_ctl_fail(TL_EXIT_FAILED, &err);
    if (status == TL_EXIT_OK)
        status = tl_ctl_call_body(call, &ask, &answer);
    tl_ctl_call_close(&call);
    return status == TL_EXIT_OK ? tl_ctl_tell(options, answer, "%s: deleted", queue) : status;
}

/* ---- line ---- */

static void write_line(const json_t *answer)
{
    static const struct tl_member members[] = {{"POSITION", "position", TL_MEMBER_NUMBER, ""},
                                               {"LANE", "lane", TL_MEMBER_TEXT, ""},
                                               {"JOINED", "joined_at", TL_MEMBER_TIME, "-"},
                                               {"VISITOR", "visitor", TL_MEMBER_TEXT, ""}};
    const json_t *list = json_object_get(answer, "visitors");
    tl_list_print(list, members, sizeof(members) / sizeof(members[0]));
    if (json_is_true(json_object_get(answer, "has_more")))
        printf(
            "%lld wait in all; --from %lld goes on\n", (long long)tl_json_number(answer, "waiting"),
            (long long)tl_json_number(json_array_get(list, json_array_size(list) - 1), "position") +
                1);
}

int tl_command_queue_line(const struct tl_ctl_options *options)
{
    char from[24], limit[24];
    struct tl_ctl_ask ask = tl_ctl_ask("GET", NULL, "/queues/%s/line", options->words[0]);
    snprintf(from, sizeof(from), "%" PRIu64, options->from - 1);
    snprintf(limit, sizeof(limit), "%" PRIu64, options->limit);
    tl_ctl_ask_query(&ask, "starting_after", options->from > 0 ? from : NULL);
    tl_ctl_ask_query(&ask, "limit", options->limit > 0 ? limit : NULL);
    return tl_ctl_show(options, &ask, write_line);
}

/* ---- modes ---- */

/* The call, and what it changes for visitors. */
static const struct {
    const char *call, *meaning;
} modes[TL_MODES] = {
    [TL_MODE_OPEN] = {"open", "visitors join and are admitted"},
    [TL_MODE_PAUSED] = {"pause", "visitors join, no one is admitted"},
    [TL_MODE_DRAINING] = {"drain", "no one joins, the line is served"},
    [TL_MODE_CLOSED] = {"close", "no one joins, no one is admitted"},
    [TL_MODE_SOLD_OUT] = {"sell-out", "no one joins, no one is admitted"},
    [TL_MODE_PASSTHROUGH] = {"passthrough", "everyone gets in past the line"},
};

static int change(const struct tl_ctl_options *options, enum tl_queue_mode mode)
{
    const char *queue = options->words[0];
    json_t *answer;
    struct tl_ctl_ask ask = tl_ctl_ask("POST", NULL, "/queues/%s/%s", queue, modes[mode].call);
    int status = tl_ctl_call_once(options, &ask, &answer);
    return status == TL_EXIT_OK ? tl_ctl_tell(options, answer, "%s: %s: %s", queue,
                                              tl_mode_name(mode), modes[mode].meaning)
                                : status;
}

int tl_command_open(const struct tl_ctl_options *options)
{
    return change(options, TL_MODE_OPEN);
}

int tl_command_pause(const struct tl_ctl_options *options)
{
    return change(options, TL_MODE_PAUSED);
}

int tl_command_drain(const struct tl_ctl_options *options)
{
    return change(options, TL_MODE_DRAINING);
}

int tl_command_close(const struct tl_ctl_options *options)
{
    return change(options, TL_MODE_CLOSED);
}

int tl_command_sold_out(const struct tl_ctl_options *options)
{
    return change(options, TL_MODE_SOLD_OUT);
}

int tl_command_passthrough(const struct tl_ctl_options *options)
{
    return change(options, TL_MODE_PASSTHROUGH);
}

/* ---- recover ---- */

int tl_command_recover(const struct tl_ctl_options *options)
{
    const char *queue = options->words[0];
    json_t *answer;
    if (options->now == (options->wait_ms > 0))
        return tl_ctl_refuse(TL_EXIT_FAILED, "recover takes one of --now and --wait TIME");
    struct tl_ctl_ask ask = tl_ctl_ask(
        "POST", json_pack("{s:I}", "wait_seconds", (json_int_t)((options->wait_ms + 999) / 1000)),
        "/queues/%s/recover", queue);
    int status = tl_ctl_call_once(options, &ask, &answer);
    if (status != TL_EXIT_OK)
        return status;
    long long restored = tl_json_number(answer, "restored");
    if (options->now && !json_is_true(json_object_get(answer, "was_recovering")))
        return tl_ctl_tell(options, answer,
                           "%s: no recovery is under way; none begins by itself any more", queue);
    if (options->now)
        return tl_ctl_tell(options, answer, "%s: the recovery ends; %lld places came back", queue,
                           restored);
    return tl_ctl_tell(options, answer,
                       "%s: no one is admitted for %" PRId64 " s; %lld places came back so far",
                       queue, options->wait_ms / 1000, restored);
}
