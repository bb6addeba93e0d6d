/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/units.h"
#include "common/report/report.h"
#include "worker/admin/reports.h"

/* For a whole call, as a stop waits for it; and after which nothing is added to a list. */
enum { CALL_MS = 25000, LIST_MS = 10000 };

/* The page has its styles in it. */
static const char policy[] =
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'";

struct tl_admin_reports {
    const struct tl_config *config;
    pthread_mutex_t report, list; /* who holds it asks PostgreSQL for one */
};

struct tl_admin_reports *tl_admin_reports_new(const struct tl_config *config, struct tl_error *err)
{
    struct tl_admin_reports *reports = malloc(sizeof(*reports));
    if (reports == NULL)
        tl_error_set(err, TL_ERR_NOMEM, "no memory for reports");
    else
        *reports = (struct tl_admin_reports){.config = config,
                                             .report = PTHREAD_MUTEX_INITIALIZER,
                                             .list = PTHREAD_MUTEX_INITIALIZER};
    return reports;
}

void tl_admin_reports_free(struct tl_admin_reports **reports)
{
    if (*reports == NULL)
        return;
    pthread_mutex_destroy(&(*reports)->report);
    pthread_mutex_destroy(&(*reports)->list);
    free(*reports);
    *reports = NULL;
}

/* ---- what is asked ---- */

struct wish {
    struct tl_report_wish report, other; /* other.sale 0: none */
    bool is_list, is_page;
};

static bool read_sale(const char *text, struct tl_report_wish *wish,
                      struct tl_control_answer *answer)
{
    struct tl_error err;
    return (tl_number_parse(text, &wish->sale, &err) && wish->sale > 0 &&
            wish->sale <= INT64_MAX) ||
           tl_control_problem(answer, TL_REFUSAL_NOT_FOUND, "A sale has a number");
}

static bool read_wish(const struct tl_control_route *route, const struct tl_target *target,
                      struct wish *wish, struct tl_control_answer *answer)
{
    const char *queue = tl_target_part(target, route->path, "queue");
    const char *sale = tl_target_part(target, route->path, "sale");
    const char *format = tl_target_parameter(target, "format");
    const char *with = tl_target_parameter(target, "with");
    const size_t known = sale != NULL ? (size_t)(format != NULL) + (with != NULL) : 0;
    *wish = (struct wish){.report.queue = queue, .other.queue = queue, .is_list = sale == NULL};
    wish->is_page = format != NULL && strcmp(format, "html") == 0;
    if (target->n_parameters > known ||
        (format != NULL && !wish->is_page && strcmp(format, "json") != 0))
        return tl_control_problem(answer, TL_REFUSAL_BAD_QUERY,
                                  sale == NULL ? "This call takes no parameters"
                                               : "format: json or html; with: a sale");
    if (with != NULL && !wish->is_page)
        return tl_control_problem(answer, TL_REFUSAL_BAD_QUERY, "with: only with format=html");
    return (sale == NULL || read_sale(sale, &wish->report, answer)) &&
           (with == NULL || read_sale(with, &wish->other, answer));
}

/* ---- answers ---- */

/* False: PostgreSQL failed. A report that is not there is a problem, and none. */
static bool ask(struct tl_report_archive *archive, const struct tl_report_wish *wish,
                json_t **report, struct tl_control_answer *answer, struct tl_error *err)
{
    if (!tl_report_ask(archive, wish, report, err))
        return false;
    if (*report == NULL)
        tl_control_problem(answer, TL_REFUSAL_NOT_FOUND,
                           "The archive has no such sale of queue %s, or nobody came", wish->queue);
    return true;
}

static void write_page(const json_t *report, const json_t *other, struct tl_admin_page *page,
                       struct tl_control_answer *answer)
{
    page->policy = strdup(policy);
    tl_report_page(report, other, &page->html);
    if (page->policy != NULL && !page->html.failed)
        return;
    tl_admin_page_clear(page);
    tl_control_problem(answer, TL_REFUSAL_INTERNAL, "out of memory");
}

static bool answer_report(struct tl_report_archive *archive, const struct wish *wish,
                          struct tl_admin_page *page, struct tl_control_answer *answer,
                          struct tl_error *err)
{
    json_t *report = NULL, *other = NULL;
    const bool two = wish->other.sale != 0;
    bool ok = ask(archive, &wish->report, &report, answer, err) &&
              (!two || report == NULL || ask(archive, &wish->other, &other, answer, err));
    if (ok && report != NULL && (!two || other != NULL)) {
        answer->status = 200;
        if (wish->is_page)
            write_page(report, other, page, answer);
        else
            answer->body = json_incref(report);
    }
    json_decref(report);
    json_decref(other);
    return ok;
}

static bool answer_list(struct tl_report_archive *archive, const struct wish *wish,
                        struct tl_control_answer *answer, struct tl_error *err)
{
    if (!tl_report_sales(archive, wish->report.queue, LIST_MS, &answer->body, err))
        return false;
    answer->status = 200;
    return true;
}

void tl_admin_reports_answer(struct tl_admin_reports *reports, const struct tl_control_route *route,
                             const struct tl_target *target, struct tl_admin_page *page,
                             struct tl_control_answer *answer)
{
    struct tl_error err = {0};
    struct tl_report_archive archive = {0};
    struct wish wish;
    const char *url = reports->config->archive.url;
    if (!read_wish(route, target, &wish, answer))
        return;
    if (url[0] == '\0') {
        tl_control_problem(answer, TL_REFUSAL_NOT_FOUND,
                           "There is no archive: archive.url is not set");
        return;
    }
    pthread_mutex_t *mutex = wish.is_list ? &reports->list : &reports->report;
    if (pthread_mutex_trylock(mutex) != 0) {
        tl_control_problem(answer, TL_REFUSAL_BUSY, "Another %s is being made",
                           wish.is_list ? "list of sales" : "report");
        return;
    }
    bool ok = tl_report_open(&archive, url, CALL_MS, &err) &&
              (wish.is_list ? answer_list(&archive, &wish, answer, &err)
                            : answer_report(&archive, &wish, page, answer, &err));
    tl_report_close(&archive);
    pthread_mutex_unlock(mutex);
    if (!ok)
        tl_control_problem(answer, TL_REFUSAL_STORE, "The archive cannot be read: %s", err.text);
}
