#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "common/store/queue.h"

#include "ctl/audit.h"
#include "ctl/command.h"
#include "ctl/json.h"
#include "ctl/session.h"

static void write_report(const char *queue, const struct tl_audit_report *report)
{
    if (report->n_violations == 0)
        printf("%s: ok (waiting %" PRIu64 ", active %" PRIu64 ")\n", queue, report->waiting,
               report->active);
    for (size_t i = 0; i < report->n_listed; i++)
        printf("%s: violates invariant %d: %s\n", queue, report->listed[i].rule,
               report->listed[i].text);
    if (report->n_violations > report->n_listed)
        printf("%s: and %" PRIu64 " more violations\n", queue,
               report->n_violations - report->n_listed);
    if (report->note[0] != '\0')
        printf("%s: note: %s\n", queue, report->note);
}

/* NULL when out of memory. */
static json_t *report_json(const char *queue, const struct tl_audit_report *report)
{
    json_t *list = json_array();
    for (size_t i = 0; list != NULL && i < report->n_listed; i++) {
        json_t *violation = json_pack("{s:i, s:s}", "invariant", report->listed[i].rule, "text",
                                      report->listed[i].text);
        if (json_array_append_new(list, violation) != 0) {
            json_decref(list);
            list = NULL;
        }
    }
    if (list == NULL)
        return NULL;
    return json_pack("{s:s, s:b, s:I, s:I, s:I, s:o, s:s}", "queue", queue, "ok",
                     report->n_violations == 0, "waiting", (json_int_t)report->waiting, "active",
                     (json_int_t)report->active, "n_violations", (json_int_t)report->n_violations,
                     "violations", list, "note", report->note);
}

/* One run of the command. */
struct audit {
    struct tl_ctl_session session;
    json_t *list; /* of reports; NULL: they are printed as text */
    uint64_t violations;
};

static bool audit_one(struct audit *audit, const char *queue, struct tl_error *err)
{
    struct tl_keys keys;
    struct tl_audit_report report;
    struct tl_redis *redis = tl_ctl_session_redis(&audit->session, queue, err);
    if (redis == NULL || !tl_ctl_session_keys(&audit->session, queue, &keys, err) ||
        !tl_audit_queue(redis, &keys, &report, err))
        return tl_error_prefix(err, "queue %s", queue);
    audit->violations += report.n_violations;
    if (audit->list == NULL)
        write_report(queue, &report);
    else if (json_array_append_new(audit->list, report_json(queue, &report)) != 0)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for the report");
    return true;
}

static bool audit_all(struct audit *audit, struct tl_error *err)
{
    char(*names)[TL_QUEUE_NAME_MAX + 1] = NULL;
    size_t n = 0;
    struct tl_redis *redis = tl_ctl_session_redis(&audit->session, NULL, err);
    bool ok = redis != NULL &&
              tl_queue_list(redis, audit->session.config->redis.key_prefix, &names, &n, err);
    for (size_t i = 0; ok && i < n; i++)
        ok = audit_one(audit, names[i], err);
    if (ok && n == 0 && audit->list == NULL)
        printf("no queues yet: nothing to audit\n");
    free(names);
    return ok;
}

int tl_command_audit(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    struct tl_keys keys;
    struct audit audit = {0};
    if (!tl_ctl_session_open(&audit.session, options, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    audit.list = options->json ? json_array() : NULL;
    bool ok = !options->json || audit.list != NULL ||
              tl_error_set(&err, TL_ERR_NOMEM, "no memory for the report");
    if (ok && options->queue == NULL)
        ok = audit_all(&audit, &err);
    else if (ok)
        ok = tl_ctl_session_keys(&audit.session, options->queue, &keys, &err) &&
             audit_one(&audit, options->queue, &err);
    if (ok && options->json)
        ok = tl_json_write(json_pack("{s:I, s:O}", "n_violations", (json_int_t)audit.violations,
                                     "queues", audit.list)) ||
             tl_error_set(&err, TL_ERR_SYSTEM, "the report could not be written");
    json_decref(audit.list);
    tl_ctl_session_close(&audit.session);
    if (!ok)
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    return audit.violations > 0 ? TL_EXIT_PROBLEM : TL_EXIT_OK;
}
