/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of calls for people, where columns and sentences do not suffice. */
#include <inttypes.h>
#include <string.h>

#include "common/base/units.h"

#include "ctl/calls/calls.h"

enum { VALUE_MAX = 1200 };

/* ---- queue list ---- */

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

void tl_write_queues(const json_t *answer)
{
    static const struct tl_column columns[] = {
        {"QUEUE", false},    {"MODE", false},   {"PHASE", false}, {"WAITING", true},
        {"ACTIVE", true},    {"LIMIT", true},   {"JOINED", true}, {"ADMITTED", true},
        {"COMPLETED", true}, {"EXPIRED", true}, {"LEFT", true},
    };
    size_t i;
    json_t *stats;
    const json_t *list = json_object_get(answer, "queues");
    if (json_array_size(list) == 0) {
        printf("no queues yet; `tellerline queue create` makes one, or add some under `queues` in "
               "the configuration file\n");
        return;
    }
    struct tl_table *table = TL_TABLE(columns);
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

/* ---- queue show ---- */

static void add_setting(void *context, const char *name, const json_t *value)
{
    char text[VALUE_MAX], local[VALUE_MAX];
    tl_json_show(value, text, sizeof(text));
    tl_terminal_time_of(text, local, sizeof(local));
    tl_table_text(context, name);
    tl_table_text(context, local);
}

void tl_write_settings(const json_t *answer)
{
    static const struct tl_column columns[] = {{"SETTING", false}, {"VALUE", false}};
    char created[TL_UNITS_TEXT_MAX];
    struct tl_table *table = TL_TABLE(columns);
    tl_terminal_time_of(tl_json_text(answer, "created_at"), created, sizeof(created));
    printf("%s, created %s\n\n", tl_json_text(answer, "name"), created);
    tl_json_flat(json_object_get(answer, "settings"), add_setting, table);
    tl_table_print(&table);
}

/* ---- visitor show ---- */

static void write_member(void *context, const char *name, const json_t *value)
{
    char text[VALUE_MAX], local[VALUE_MAX];
    (void)context;
    tl_json_show(value, text, sizeof(text));
    tl_terminal_time_of(text, local, sizeof(local));
    printf("%-12s %s\n", name, local);
}

void tl_write_members(const json_t *answer)
{
    tl_json_flat(answer, write_member, NULL);
}

/* ---- webhook list ---- */

static enum tl_tint tint_of(const json_t *webhook)
{
    const char *state = tl_json_text(webhook, "state");
    if (strcmp(state, "dead") == 0 || strcmp(state, "unwatched") == 0)
        return TL_TINT_TROUBLE;
    return strcmp(state, "failing") == 0 ? TL_TINT_CARE : TL_TINT_NONE;
}

void tl_write_webhooks(const json_t *answer)
{
    static const struct tl_column columns[] = {{"WEBHOOK", false}, {"QUEUE", false}, {"TOLD", true},
                                               {"PENDING", true},  {"OLDEST", true}, {"LOST", true},
                                               {"STATE", false}};
    const json_t *webhooks = json_object_get(answer, "webhooks");
    size_t i;
    json_t *webhook;
    if (json_array_size(webhooks) == 0) {
        printf(
            "no webhook watches a queue; list some under `webhooks` in the configuration file, and "
            "run tellerline-notifier\n");
        return;
    }
    struct tl_table *table = TL_TABLE(columns);
    json_array_foreach(webhooks, i, webhook)
    {
        char oldest[TL_UNITS_TEXT_MAX], state[TL_WEBHOOK_WORDS_MAX];
        tl_row_wait(webhook, "oldest_pending_ms", oldest, sizeof(oldest));
        tl_webhook_words(webhook, state);
        tl_table_text(table, tl_json_text(webhook, "name"));
        tl_table_text(table, tl_json_text(webhook, "queue"));
        tl_table_number(table, tl_json_count(webhook, "told"));
        tl_table_number(table, tl_json_count(webhook, "pending"));
        tl_table_text(table, oldest);
        tl_table_number(table, tl_json_count(webhook, "lost"));
        tl_table_text(table, state);
        tl_table_tint(table, tint_of(webhook));
    }
    tl_table_print(&table);
}

/* ---- queue line ---- */

void tl_write_line(const json_t *answer)
{
    static const struct tl_member members[] = {{"POSITION", "position", TL_MEMBER_NUMBER, ""},
                                               {"LANE", "lane", TL_MEMBER_TEXT, ""},
                                               {"JOINED", "joined_at", TL_MEMBER_TIME, "-"},
                                               {"VISITOR", "visitor", TL_MEMBER_TEXT, ""},
                                               {.title = NULL}};
    const json_t *list = json_object_get(answer, "visitors");
    const json_t *last = json_array_get(list, json_array_size(list) - 1);
    tl_list_print(list, members);
    if (json_is_true(json_object_get(answer, "has_more")))
        printf("%" PRIu64 " wait in all; --from %" PRIu64 " goes on\n",
               tl_json_count(answer, "waiting"), tl_json_count(last, "position") + 1);
}

/* ---- a plain answer ---- */

/* The first of the sentences that holds, on a line. */
static void say(const struct tl_ctl_command *command, const json_t *answer, const json_t *arguments,
                FILE *file)
{
    struct tl_text out = {0};
    for (size_t i = 0; i < TL_SENTENCES && out.length == 0; i++)
        if (tl_sentence_holds(&command->say[i], answer, arguments))
            tl_sentence_write(command->say[i].text, answer, arguments, &out);
    const char *said = tl_xtext(&out);
    if (*said != '\0')
        fprintf(file, "%s\n", said);
    tl_text_free(&out);
}

void tl_ctl_answer_write(const struct tl_ctl_command *command, const json_t *answer,
                         const json_t *arguments)
{
    if (command->write != NULL)
        command->write(answer);
    if (command->list != NULL) {
        const json_t *list = json_object_get(answer, command->list);
        if (json_array_size(list) == 0 && command->none != NULL)
            printf("%s\n", command->none);
        else
            tl_list_print(list, command->columns);
    }
    if (command->alone != NULL) {
        printf("%s\n", tl_json_text(answer, command->alone));
        fflush(stdout);
    }
    say(command, answer, arguments, command->alone != NULL ? stderr : stdout);
}
