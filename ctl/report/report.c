/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/archive/migrate.h"
#include "common/base/units.h"
#include "common/control/settings_json.h"

#include "ctl/report/report.h"

#include "generated/report_sql.h"

/* ---- from PostgreSQL ---- */

/* Puts words that people read in the place of those that the record keeps. */
static void show(json_t *change, const char *name)
{
    const char *members = json_string_value(json_object_get(change, name));
    (void)json_object_set_new(change, name, tl_settings_record_to_json(members));
}

/* *report: NULL when nobody came. False with err. */
static bool ask(struct tl_postgres *postgres, const char *queue, const char *const times[2],
                json_t **report, struct tl_error *err)
{
    const char *const values[] = {queue, times[0], times[1]};
    struct tl_text sql = {0};
    json_t *change;
    size_t i;
    tl_text_append(&sql, "%.*s", (int)sizeof(tl_web_report_sql), (const char *)tl_web_report_sql);
    PGresult *found = tl_postgres_run(postgres, tl_xtext(&sql), 3, values, err);
    tl_text_free(&sql);
    if (found == NULL)
        return false;
    *report = PQntuples(found) > 0 ? json_loads(PQgetvalue(found, 0, 0), 0, NULL) : NULL;
    PQclear(found);
    json_array_foreach(json_object_get(*report, "changes"), i, change)
    {
        show(change, "before");
        show(change, "after");
    }
    return true;
}

/* Says that there is nothing to report, and which queue may have been meant. */
static int fail_nobody(struct tl_postgres *postgres, const char *queue)
{
    json_t *names = json_array();
    PGresult *found = tl_postgres_run(postgres, "SELECT name FROM queues", 0, NULL, NULL);
    for (int i = 0; i < PQntuples(found); i++)
        tl_json_add(names, json_string(PQgetvalue(found, i, 0)));
    PQclear(found);
    tl_ctl_propose_queue(queue, names);
    return tl_ctl_refuse(TL_EXIT_PROBLEM, "the archive has no visitors of queue %s in this time",
                         queue);
}

static bool open_archive(struct tl_postgres *postgres, const struct tl_ctl_options *options,
                         struct tl_error *err)
{
    char url[TL_CTL_URL_MAX];
    unsigned version = 0;
    const struct tl_config *config = tl_config_load(options->config, err);
    bool ok = config != NULL && tl_ctl_archive_url(config, options, url, err) &&
              tl_postgres_check(url, err) && tl_postgres_open(postgres, url, "tellerline", err) &&
              tl_postgres_do(postgres, "SET timezone = 'UTC'", 0, NULL, err) &&
              tl_migrate_version(postgres, &version, err) &&
              (version > 0 || tl_error_set(err, TL_ERR_INVALID,
                                           "PostgreSQL has no tables of an archive: run "
                                           "`tellerline db migrate`"));
    tl_config_free(&config);
    return ok;
}

/* ---- the report ---- */

static int64_t time_of(const json_t *object, const char *name)
{
    int64_t unix_ms = 0;
    (void)tl_time_parse(tl_json_text(object, name), &unix_ms, NULL);
    return unix_ms;
}

static struct tl_series *series_of(const json_t *report)
{
    struct tl_series *series = tl_xalloc(1, sizeof(*series));
    const json_t *steps = json_object_get(report, "steps");
    const json_t *changes = json_object_get(report, "changes");
    const size_t n = json_array_size(steps), together = 1 + n / TL_SERIES_MOST;
    series->width_ms = (int64_t)together * 1000 * tl_json_number(report, "step_seconds");
    for (size_t i = 0; i < n; i++) {
        const json_t *step = json_array_get(steps, i);
        const uint64_t waiting = tl_json_count(step, "waiting");
        const uint64_t active = tl_json_count(step, "active");
        struct tl_series_point *point = &series->points[i / together];
        point->waiting = waiting > point->waiting ? waiting : point->waiting;
        point->active = active > point->active ? active : point->active;
        series->n = i / together + 1;
    }
    for (size_t i = 0; i < json_array_size(changes) && i < TL_SERIES_MARKS; i++)
        series->marks_ms[series->n_marks++] =
            time_of(json_array_get(changes, i), "at") - time_of(report, "from");
    return series;
}

static void write_report(const json_t *report, unsigned form)
{
    struct tl_series *series = series_of(report);
    struct tl_text out = {0};
    if (form == TL_REPORT_TEXT)
        tl_report_text(report, series, tl_terminal_colour(stdout), &out);
    else if (form == TL_REPORT_CSV)
        tl_report_csv(report, &out);
    else
        tl_report_html(report, series, &out);
    tl_text_print(&out);
    free(series);
}

/* As text for PostgreSQL; NULL for a time that was not given. */
static const char *moment(int64_t unix_ms, char text[24])
{
    snprintf(text, 24, "%" PRId64, unix_ms);
    return unix_ms != 0 ? text : NULL;
}

int tl_command_report(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    struct tl_postgres postgres = {0};
    char since[24], until[24];
    const char *const times[2] = {moment(options->since_ms, since),
                                  moment(options->until_ms, until)};
    json_t *report = NULL;
    int status = TL_EXIT_OK;
    if (!open_archive(&postgres, options, &err) ||
        !ask(&postgres, options->words[0], times, &report, &err))
        status = tl_ctl_fail(TL_EXIT_FAILED, &err);
    else if (report == NULL)
        status = fail_nobody(&postgres, options->words[0]);
    else if (options->format == TL_REPORT_JSON)
        tl_data_write(TL_OUTPUT_JSON, json_incref(report));
    else
        write_report(report, options->format);
    json_decref(report);
    tl_postgres_close(&postgres);
    return status;
}
