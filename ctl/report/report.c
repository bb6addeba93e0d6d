/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/units.h"

#include "ctl/report/report.h"

/* For all that PostgreSQL is asked; and after which nothing is added to a list. */
enum { LIMIT_MS = 60000, LIST_MS = 45000 };

/* Says that there is nothing to report, and which queue may have been meant. */
static int fail_nobody(struct tl_report_archive *archive, const char *queue)
{
    json_t *names = json_array();
    PGresult *found = tl_postgres_run(&archive->postgres, "SELECT name FROM queues", 0, NULL, NULL);
    for (int i = 0; i < PQntuples(found); i++)
        tl_json_add(names, json_string(PQgetvalue(found, i, 0)));
    PQclear(found);
    tl_ctl_propose_queue(queue, names);
    return tl_ctl_refuse(TL_EXIT_PROBLEM, "the archive has no visitors of queue %s in this time",
                         queue);
}

static bool open_archive(struct tl_report_archive *archive, const struct tl_ctl_options *options,
                         struct tl_error *err)
{
    char url[TL_CTL_URL_MAX];
    const struct tl_config *config = tl_config_load(options->config, err);
    bool ok = config != NULL && tl_ctl_archive_url(config, options, url, err) &&
              tl_report_open(archive, url, LIMIT_MS, err);
    tl_config_free(&config);
    return ok;
}

/* "QUEUE" or "QUEUE@SALE". The name is put into `queue`. */
static bool read_sale(const char *text, char queue[TL_QUEUE_NAME_MAX + 1],
                      struct tl_report_wish *wish, struct tl_error *err)
{
    const size_t length = strcspn(text, "@");
    wish->queue = queue;
    if (length > TL_QUEUE_NAME_MAX)
        return tl_error_set(err, TL_ERR_INVALID, "%.80s is no queue", text);
    snprintf(queue, TL_QUEUE_NAME_MAX + 1, "%.*s", (int)length, text);
    if (text[length] == '\0')
        return true;
    struct tl_error problem = {0};
    return (tl_number_parse(text + length + 1, &wish->sale, &problem) && wish->sale > 0 &&
            wish->sale <= INT64_MAX) ||
           tl_error_set(err, TL_ERR_INVALID,
                        "%.80s: behind @ comes the number of a sale, which `tellerline report %s "
                        "--sales` lists",
                        text, queue);
}

/* The report of a sale. Returns the exit status. */
static int ask(struct tl_report_archive *archive, const struct tl_report_wish *wish,
               json_t **report)
{
    struct tl_error err = {0};
    if (!tl_report_ask(archive, wish, report, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    return *report != NULL ? TL_EXIT_OK : fail_nobody(archive, wish->queue);
}

static void write_report(json_t *report, json_t *other, unsigned form)
{
    struct tl_text out = {0};
    if (form == TL_REPORT_JSON) {
        tl_data_write(TL_OUTPUT_JSON, other == NULL
                                          ? json_incref(report)
                                          : json_pack("{s:[O, O]}", "sales", report, other));
        return;
    }
    if (form == TL_REPORT_TEXT)
        tl_report_text(report, other, tl_terminal_colour(stdout), &out);
    else if (form == TL_REPORT_CSV)
        tl_report_csv(report, other, &out);
    else
        tl_report_page(report, other, &out);
    tl_text_print(&out);
}

static int write_sales(struct tl_report_archive *archive, const char *queue, unsigned form)
{
    struct tl_error err = {0};
    struct tl_text out = {0};
    json_t *sales;
    if (!tl_report_sales(archive, queue, LIST_MS, &sales, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    int status = TL_EXIT_OK;
    if (json_array_size(json_object_get(sales, "sales")) == 0) {
        status = fail_nobody(archive, queue);
    } else if (form == TL_REPORT_JSON) {
        tl_data_write(TL_OUTPUT_JSON, json_incref(sales));
    } else {
        tl_report_list(sales, tl_terminal_colour(stdout), &out);
        tl_text_print(&out);
    }
    json_decref(sales);
    return status;
}

/* What does not go together. */
static bool check(const struct tl_ctl_options *options, struct tl_error *err)
{
    const bool timed = options->since_ms != 0 || options->until_ms != 0;
    if (options->sales && (options->with != NULL || timed || options->format == TL_REPORT_CSV ||
                           options->format == TL_REPORT_HTML))
        return tl_error_set(err, TL_ERR_INVALID,
                            "--sales lists all sales, as text or json: without --with, --since and "
                            "--until");
    return options->with == NULL || !timed ||
           tl_error_set(err, TL_ERR_INVALID,
                        "--with compares whole sales: without --since and --until");
}

int tl_command_report(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    struct tl_report_archive archive = {0};
    char queue[TL_QUEUE_NAME_MAX + 1], other_queue[TL_QUEUE_NAME_MAX + 1];
    struct tl_report_wish wish = {.since_ms = options->since_ms, .until_ms = options->until_ms},
                          other_wish = {0};
    json_t *report = NULL, *other = NULL;
    if (!read_sale(options->words[0], queue, &wish, &err) ||
        (options->with != NULL && !read_sale(options->with, other_queue, &other_wish, &err)) ||
        !check(options, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    int status = TL_EXIT_OK;
    if (!open_archive(&archive, options, &err))
        status = tl_ctl_fail(TL_EXIT_FAILED, &err);
    else if (options->sales)
        status = write_sales(&archive, queue, options->format);
    else
        status = ask(&archive, &wish, &report);
    if (report != NULL && options->with != NULL)
        status = ask(&archive, &other_wish, &other);
    if (report != NULL && status == TL_EXIT_OK)
        write_report(report, other, options->format);
    json_decref(report);
    json_decref(other);
    tl_report_close(&archive);
    return status;
}
