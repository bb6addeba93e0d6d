/* SPDX-License-Identifier: Apache-2.0 */
/* `diff` and `apply`: the queues of the configuration file beside those of the store. */
#include <string.h>

#include "common/config/queue_settings.h"
#include "common/config/queue_table.h"
#include "common/config/value.h"
#include "common/control/settings_json.h"

#include "ctl/calls/calls.h"

/* The work of both commands. */
struct file {
    const struct tl_ctl_options *options;
    const struct tl_config *config;
    struct tl_ctl_call *call;
    json_t *differences;                  /* [{"queue", "setting", "file", "store"}] */
    json_t *only_in_file, *only_in_store; /* names of queues */
    json_t *applied;                      /* names */
    struct tl_text shrinks;               /* times that become much shorter */
};

/* A queue of the file that is compared. */
struct compared {
    struct file *file;
    const struct tl_queue_config *queue;
    json_t *wanted; /* the settings of the file that the store does not have */
};

/* Asks for the value of a setting, in its long form: a bare capacity would fix it, while the least
 * is a difference of its own. */
static void want(json_t *wanted, const struct tl_setting *row,
                 const struct tl_queue_settings *settings)
{
    char name[2 * TL_SETTING_PATH_MAX];
    snprintf(name, sizeof(name), "%s%s%s", row->path, row->self != NULL ? "." : "",
             row->self != NULL ? row->self : "");
    (void)json_object_set_new(wanted, name, tl_setting_to_json(row, settings));
}

static void note_difference(void *context, const struct tl_setting *row, const char *in_file,
                            const char *in_store)
{
    struct compared *compared = context;
    struct file *file = compared->file;
    tl_json_add(file->differences,
                json_pack("{s:s, s:s, s:s, s:s}", "queue", compared->queue->name, "setting",
                          row->path, "file", in_file, "store", in_store));
    tl_shrink_note(&file->shrinks, compared->queue->name, row->path, in_store, in_file);
    want(compared->wanted, row, &compared->queue->settings);
}

/* The settings of an answer; false: there is one that is not known here. */
static bool read_settings(const json_t *answer, struct tl_queue_settings *settings)
{
    struct tl_settings_wish wish;
    struct tl_error err = {0};
    tl_queue_settings_defaults(&wish.settings);
    bool ok = tl_settings_wish_read(&wish, json_object_get(answer, "settings"), false, &err) &&
              wish.mistakes.n == 0;
    *settings = wish.settings;
    if (!ok)
        fprintf(stderr, "tellerline: queue %s: its settings cannot be compared: %s\n",
                tl_json_text(answer, "name"),
                err.text[0] != '\0' ? err.text : wish.mistakes.list[0].err.text);
    return ok;
}

/* ---- settling ---- */

/* All settings that the file has for the queue. */
static json_t *written(const struct tl_queue_config *queue)
{
    size_t n;
    const struct tl_setting *rows = tl_queue_table(&n);
    json_t *settings = json_object();
    for (size_t i = 0; i < n; i++)
        if (queue->places[i].line > 0)
            want(settings, &rows[i], &queue->settings);
    return settings;
}

/* Does a call that settles the queue. */
static int settle(struct file *file, const struct tl_queue_config *queue,
                  const struct tl_ctl_ask *ask)
{
    json_t *answer;
    int status = tl_ctl_call_body(file->call, ask, &answer);
    json_decref(answer);
    if (status == TL_EXIT_OK)
        tl_json_add(file->applied, json_string(queue->name));
    return status;
}

/* ---- a queue ---- */

static int compare(struct file *file, const struct tl_queue_config *queue,
                   const struct tl_control_answer *answer, bool applies)
{
    struct tl_queue_settings stored;
    struct compared compared = {.file = file, .queue = queue, .wanted = json_object()};
    int status = TL_EXIT_FAILED;
    if (read_settings(answer->body, &stored)) {
        status = TL_EXIT_OK;
        tl_file_settings_compare(queue, &stored, note_difference, &compared);
    }
    if (status == TL_EXIT_OK && applies && json_object_size(compared.wanted) > 0) {
        const struct tl_ctl_ask ask = {.operation = "patchQueue",
                                       .arguments = json_pack("{s:s}", "queue", queue->name),
                                       .body = json_incref(compared.wanted),
                                       .if_match = answer->etag[0] != '\0' ? answer->etag : NULL};
        status = settle(file, queue, &ask);
    }
    json_decref(compared.wanted);
    return status;
}

static int look_at(struct file *file, const struct tl_queue_config *queue, bool applies)
{
    struct tl_error err = {0};
    struct tl_control_answer answer;
    const struct tl_ctl_ask ask = {.operation = "getQueue",
                                   .arguments = json_pack("{s:s}", "queue", queue->name)};
    int status = TL_EXIT_OK;
    if (!tl_ctl_call_ask(file->call, &ask, &answer, &err)) {
        status = tl_ctl_fail(TL_EXIT_FAILED, &err);
    } else if (answer.status == 404) {
        tl_json_add(file->only_in_file, json_string(queue->name));
        if (applies) {
            const struct tl_ctl_ask create = {
                .operation = "createQueue",
                .arguments =
                    json_pack("{s:s, s:o}", "name", queue->name, "settings", written(queue))};
            status = settle(file, queue, &create);
        }
    } else if (!tl_control_succeeded(&answer)) {
        status = tl_ctl_call_problem(file->call, ask.operation, queue->name, &answer);
    } else {
        status = compare(file, queue, &answer, applies);
    }
    tl_control_answer_clear(&answer);
    return status;
}

/* The queues that the file does not have. They were made by hand; nothing is done to them. */
static int list_others(struct file *file)
{
    const struct tl_ctl_ask ask = {.operation = "listQueues"};
    size_t i;
    json_t *answer, *queue;
    int status = tl_ctl_call_body(file->call, &ask, &answer);
    if (status != TL_EXIT_OK)
        return status;
    json_array_foreach(json_object_get(answer, "queues"), i, queue)
    {
        const char *name = tl_json_text(queue, "queue");
        if (tl_config_queue(file->config->queues, file->config->n_queues, name) == NULL)
            tl_json_add(file->only_in_store, json_string(name));
    }
    json_decref(answer);
    return status;
}

/* Compares all queues, and settles each one if `applies`. Ends at the first that fails. */
static int look_at_all(struct file *file, bool applies)
{
    const char *only = file->options->queue;
    json_t *names = json_array();
    bool found = false;
    int status = TL_EXIT_OK;
    for (size_t i = 0; status == TL_EXIT_OK && i < file->config->n_queues; i++) {
        const struct tl_queue_config *queue = &file->config->queues[i];
        tl_json_add(names, json_string(queue->name));
        if (only != NULL && strcmp(only, queue->name) != 0)
            continue;
        found = true;
        status = look_at(file, queue, applies);
    }
    if (only == NULL && status == TL_EXIT_OK)
        status = list_others(file);
    if (only == NULL || found) {
        json_decref(names);
        return status;
    }
    fprintf(stderr, "tellerline: the file has no queue %s\n", only);
    tl_ctl_propose_queue(only, names);
    return TL_EXIT_PROBLEM;
}

/* Compares all queues, asks if need be, and starts over: nothing is applied before it is confirmed.
 */
static int confirm(struct file *file)
{
    int status = look_at_all(file, false);
    if (status == TL_EXIT_OK)
        status = tl_shrink_confirm(file->options, &file->shrinks);
    json_array_clear(file->differences);
    json_array_clear(file->only_in_file);
    json_array_clear(file->only_in_store);
    return status;
}

/* ---- the commands ---- */

static void write_differences(const struct file *file)
{
    static const struct tl_member columns[] = {TL_MEMBER("QUEUE", "queue", TEXT, ""),
                                               TL_MEMBER("SETTING", "setting", TEXT, ""),
                                               TL_MEMBER("FILE", "file", TIME, "\"\""),
                                               TL_MEMBER("STORE", "store", TIME, "\"\""),
                                               {.title = NULL}};
    size_t i;
    json_t *row;
    if (json_array_size(file->differences) > 0)
        tl_list_print(file->differences, columns);
    json_array_foreach(file->only_in_file, i, row)
    {
        printf("%s: in the file only\n", json_string_value(row));
    }
    json_array_foreach(file->only_in_store, i, row)
    {
        printf("%s: in the store only; the file says nothing of it\n", json_string_value(row));
    }
}

static void write_result(const struct file *file, bool applies)
{
    size_t i;
    json_t *name;
    if (file->options->output != TL_OUTPUT_TABLE) {
        tl_data_write(file->options->output,
                      json_pack("{s:O, s:O, s:O, s:O}", "differences", file->differences,
                                "only_in_file", file->only_in_file, "only_in_store",
                                file->only_in_store, "applied", file->applied));
        return;
    }
    write_differences(file);
    json_array_foreach(file->applied, i, name)
    {
        printf("%s: the settings of the file are in force now\n", json_string_value(name));
    }
    if (json_array_size(file->differences) + json_array_size(file->only_in_file) == 0)
        printf("%s: nothing differs\n", file->config->queues_source);
    else if (!applies)
        printf("`tellerline apply` puts the file into force\n");
}

static int run(const struct tl_ctl_options *options, bool applies, bool *differs)
{
    struct tl_error err = {0};
    struct tl_mistakes mistakes = {0};
    const struct tl_config *config = tl_config_load_all(options->config, &mistakes);
    if (config == NULL) {
        tl_mistakes_write(&mistakes, "tellerline: ", stderr);
        return tl_ctl_file_status(&mistakes.list[0].err);
    }
    struct file file = {.options = options,
                        .config = config,
                        .differences = json_array(),
                        .only_in_file = json_array(),
                        .only_in_store = json_array(),
                        .applied = json_array()};
    int status = TL_EXIT_FAILED;
    file.call = tl_ctl_call_open(options, &err);
    if (file.call == NULL) {
        tl_ctl_fail(status, &err);
    } else {
        status = applies && !options->yes ? confirm(&file) : TL_EXIT_OK;
        if (status == TL_EXIT_OK) {
            status = look_at_all(&file, applies);
            write_result(&file, applies);
        }
        *differs = json_array_size(file.differences) + json_array_size(file.only_in_file) > 0;
    }
    tl_ctl_call_close(&file.call);
    tl_config_free(&file.config);
    tl_text_free(&file.shrinks);
    json_decref(file.differences);
    json_decref(file.only_in_file);
    json_decref(file.only_in_store);
    json_decref(file.applied);
    return status;
}

int tl_command_diff(const struct tl_ctl_options *options)
{
    bool differs = false;
    int status = run(options, false, &differs);
    return status == TL_EXIT_OK && differs ? TL_EXIT_PROBLEM : status;
}

int tl_command_apply(const struct tl_ctl_options *options)
{
    bool differs = false;
    return run(options, !options->dry_run, &differs);
}
