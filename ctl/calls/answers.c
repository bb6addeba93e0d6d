/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of calls for people, where columns and sentences do not suffice. */
#include <inttypes.h>
#include <string.h>

#include "common/base/units.h"

#include "ctl/calls/calls.h"

enum { VALUE_MAX = 1200 };

/* ---- queue list ---- */

void tl_write_troubles(const json_t *answer)
{
    size_t i;
    json_t *stats;
    json_array_foreach(json_object_get(answer, "queues"), i, stats)
    {
        if (*tl_json_text(stats, "trouble") != '\0')
            printf("%s: %s\n", tl_json_text(stats, "queue"), tl_json_text(stats, "trouble"));
    }
}

/* ---- queue show ---- */

static void add_setting(void *context, const char *name, const json_t *value)
{
    char text[VALUE_MAX];
    tl_json_show(value, text, sizeof(text));
    tl_json_add(context, json_pack("{s:s, s:s}", "setting", name, "value", text));
}

void tl_write_settings(const json_t *answer)
{
    static const struct tl_member columns[] = {TL_MEMBER("SETTING", "setting", TEXT, ""),
                                               TL_MEMBER("VALUE", "value", TIME, ""),
                                               {.title = NULL}};
    char created[TL_UNITS_TEXT_MAX];
    json_t *list = json_array();
    tl_terminal_time_of(tl_json_text(answer, "created_at"), created, sizeof(created));
    printf("%s, created %s\n\n", tl_json_text(answer, "name"), created);
    tl_json_flat(json_object_get(answer, "settings"), add_setting, list);
    tl_list_print(list, columns);
    json_decref(list);
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

/* ---- queue line ---- */

void tl_write_line(const json_t *answer)
{
    static const struct tl_member members[] = {TL_MEMBER("POSITION", "position", NUMBER, ""),
                                               TL_MEMBER("LANE", "lane", TEXT, ""),
                                               TL_MEMBER("JOINED", "joined_at", TIME, "-"),
                                               TL_MEMBER("VISITOR", "visitor", TEXT, ""),
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
    if (command->list != NULL) {
        const json_t *list = json_object_get(answer, command->list);
        if (json_array_size(list) == 0 && command->none != NULL)
            printf("%s\n", command->none);
        else
            tl_list_print(list, command->columns);
    }
    if (command->write != NULL)
        command->write(answer);
    if (command->alone != NULL) {
        printf("%s\n", tl_json_text(answer, command->alone));
        fflush(stdout);
    }
    say(command, answer, arguments, command->alone != NULL ? stderr : stdout);
}
