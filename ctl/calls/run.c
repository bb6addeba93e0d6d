/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that are calls: their rows say what to ask and what to write of the answer. */
#include <ctype.h>
#include <string.h>

#include "common/base/text.h"
#include "common/base/units.h"
#include "common/config/value.h"

#include "ctl/calls/calls.h"

enum { VALUE_MAX = 1200, NAME_MAX_BYTES = 40 };

/* ---- the arguments ---- */

/* The value of an option; NULL: it is not given. */
static json_t *value_of(const struct tl_option *option, const struct tl_ctl_options *options)
{
    char text[VALUE_MAX];
    const struct tl_setting *setting = &option->value;
    const void *field = (const char *)options + setting->offset;
    if (setting->type == TL_SETTING_BOOL)
        return *(const bool *)field ? json_true() : NULL;
    if (setting->type == TL_SETTING_STRING)
        return *(const char *const *)field != NULL ? json_string(*(const char *const *)field)
                                                   : NULL;
    if (setting->type == TL_SETTING_NUMBER)
        return *(const uint64_t *)field > 0 ? json_integer(*(const json_int_t *)field) : NULL;
    if (setting->type == TL_SETTING_DURATION) {
        int64_t ms = *(const int64_t *)field;
        return ms > 0 ? json_integer((ms + 999) / 1000) : NULL;
    }
    tl_setting_get(setting, options, TL_FORM_FILE, text, sizeof(text));
    return json_string(text);
}

/* The name of an operand as an argument: OPENS-AT is "opens_at". */
static void name_of(const char *operand, size_t length, char name[NAME_MAX_BYTES])
{
    snprintf(name, NAME_MAX_BYTES, "%.*s", (int)length, operand);
    for (char *at = name; *at != '\0'; at++)
        *at = *at == '-' ? '_' : (char)tolower((unsigned char)*at);
}

json_t *tl_ctl_arguments(const struct tl_ctl_options *options, struct tl_error *err)
{
    const struct tl_ctl_command *command = options->command;
    json_t *arguments = json_object(), *settings = NULL;
    char name[NAME_MAX_BYTES];
    size_t n, length;
    const struct tl_ctl_option *rows = tl_ctl_option_table(&n);
    for (size_t i = 0; i < n; i++) {
        json_t *value = rows[i].asks && (rows[i].of & command->options) != 0
                            ? value_of(&rows[i].option, options)
                            : NULL;
        bool is_time = rows[i].option.value.type == TL_SETTING_DURATION;
        snprintf(name, sizeof(name), "%s%s", rows[i].option.value.path, is_time ? "_seconds" : "");
        if (value != NULL)
            (void)json_object_set_new(arguments, name, value);
    }
    for (int i = 0; i < options->n_words; i++) {
        const char *operand = tl_operand_name(command->words, i, &length);
        if (memchr(operand, '=', length) != NULL) {
            settings = tl_assignments_read(options->n_words - i, options->words + i, err);
            if (settings == NULL)
                json_decref(arguments);
            return settings != NULL && json_object_set_new(arguments, "settings", settings) == 0
                       ? arguments
                       : NULL;
        }
        name_of(operand, length, name);
        (void)json_object_set_new(arguments, name, json_string(options->words[i]));
        if (i == 0 && command->also != NULL)
            (void)json_object_set_new(arguments, command->also, json_string(options->words[i]));
    }
    return arguments;
}

/* ---- the call ---- */

/* Asks whether it is meant, with what is so now if the question needs that. */
static int confirm(const struct tl_ctl_options *options, struct tl_ctl_call *call,
                   const json_t *arguments)
{
    const struct tl_ctl_command *command = options->command;
    struct tl_text question = {0};
    json_t *now = NULL;
    int status = TL_EXIT_OK;
    if (command->confirm == NULL || options->yes)
        return status;
    const struct tl_ctl_ask ask = {.operation = command->confirm_by,
                                   .arguments = json_deep_copy(arguments)};
    if (command->confirm_by != NULL)
        status = tl_ctl_call_body(call, &ask, &now);
    else
        json_decref(ask.arguments);
    if (status == TL_EXIT_OK) {
        tl_sentence_write(command->confirm, now, arguments, &question);
        status = tl_ctl_confirm(options, tl_xtext(&question),
                                command->confirm_typed ? options->words[0] : NULL);
    }
    tl_text_free(&question);
    json_decref(now);
    return status;
}

int tl_ctl_run_with(const struct tl_ctl_options *options, const char *operation, json_t *arguments)
{
    struct tl_error err = {0};
    json_t *answer = NULL;
    struct tl_ctl_call *call = tl_ctl_call_open(options, &err);
    int status =
        call != NULL ? confirm(options, call, arguments) : tl_ctl_fail(TL_EXIT_FAILED, &err);
    if (status == TL_EXIT_OK) {
        const struct tl_ctl_ask ask = {.operation = operation,
                                       .arguments = json_deep_copy(arguments)};
        status = tl_ctl_call_body(call, &ask, &answer);
    }
    if (status == TL_EXIT_OK && options->output != TL_OUTPUT_TABLE)
        tl_data_write(options->output, json_incref(answer));
    else if (status == TL_EXIT_OK)
        tl_ctl_answer_write(options->command, answer, arguments);
    json_decref(answer);
    json_decref(arguments);
    tl_ctl_call_close(&call);
    return status;
}

/* The call, by this operation and with more arguments, which it releases; NULL: none. */
static int run_as(const struct tl_ctl_options *options, const char *operation, json_t *more)
{
    struct tl_error err = {0};
    json_t *arguments = tl_ctl_arguments(options, &err);
    if (arguments == NULL)
        return tl_ctl_fail(tl_ctl_status_of(&err), &err);
    if (more != NULL)
        (void)json_object_update(arguments, more);
    json_decref(more);
    return tl_ctl_run_with(options, operation, arguments);
}

int tl_ctl_run(const struct tl_ctl_options *options)
{
    return run_as(options, options->command->operation, NULL);
}

/* ---- with another operation, or other arguments ---- */

int tl_command_visitor_show(const struct tl_ctl_options *options)
{
    bool named = options->n_words > 1;
    if (named == (options->reference != NULL))
        return tl_ctl_refuse(TL_EXIT_FAILED,
                             "name the visitor, by id or ticket, or give --reference CODE");
    return run_as(options, named ? "getVisitor" : "findVisitor", NULL);
}

int tl_command_recover(const struct tl_ctl_options *options)
{
    if (options->now == (options->wait_ms > 0))
        return tl_ctl_refuse(TL_EXIT_FAILED, "recover takes one of --now and --wait TIME");
    return run_as(options, options->command->operation,
                  options->now ? json_pack("{s:i}", "wait_seconds", 0) : NULL);
}

int tl_command_line(const struct tl_ctl_options *options)
{
    return run_as(options, options->command->operation,
                  options->from > 0
                      ? json_pack("{s:I}", "starting_after", (json_int_t)options->from - 1)
                      : NULL);
}
