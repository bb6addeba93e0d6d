/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/queue.h"
#include "common/store/reply.h"
#include "common/wire/names.h"

#include "ctl/audit/audit.h"

static void write_report(const char *queue, const struct tl_audit_report *report)
{
    if (report->n_violations == 0)
        printf("%s: ok (waiting %" PRIu64 ", active %" PRIu64 ")\n", queue, report->waiting,
               report->active);
    for (size_t i = 0; i < report->n_listed; i++)
        printf("%s: violates invariant %d: %s\n    what to do: %s\n", queue, report->listed[i].rule,
               report->listed[i].text, report->listed[i].advice);
    if (report->n_violations > report->n_listed)
        printf("%s: and %" PRIu64 " more violations\n", queue,
               report->n_violations - report->n_listed);
    if (report->note[0] != '\0')
        printf("%s: note: %s\n", queue, report->note);
}

static json_t *report_json(const char *queue, const struct tl_audit_report *report)
{
    json_t *list = json_array();
    for (size_t i = 0; i < report->n_listed; i++)
        tl_json_add(list, json_pack("{s:i, s:s, s:s}", "invariant", report->listed[i].rule, "text",
                                    report->listed[i].text, "advice", report->listed[i].advice));
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
    const char *workers;        /* to compare with; NULL: none */
    struct tl_postgres archive; /* closed: there is none */
    bool at_once;               /* compares with the archive */
};

/* There need not be one, nor can it be reached, unless it is asked for. */
static bool open_archive(struct audit *audit, const struct tl_ctl_options *options,
                         struct tl_error *err)
{
    char url[TL_CTL_URL_MAX];
    const bool is_set = audit->session.config->archive.url[0] != '\0';
    audit->at_once = options->archive;
    if (tl_ctl_archive_url(audit->session.config, options, url, err) &&
        tl_postgres_check(url, err) && tl_postgres_open(&audit->archive, url, "tellerline", err))
        return true;
    if (options->archive)
        return false;
    if (is_set)
        fprintf(stderr, "tellerline: not compared with the archive: %s\n", err->text);
    *err = (struct tl_error){0};
    return true;
}

/* Without --archive a failure is only said. */
static bool audit_archive(struct audit *audit, const char *queue, struct tl_audit_report *report,
                          struct tl_error *err)
{
    if (!tl_postgres_connected(&audit->archive) || tl_queue_is_rehearsal(queue) ||
        tl_audit_archive(&audit->archive, queue, audit->at_once, report, err))
        return true;
    if (audit->at_once)
        return false;
    fprintf(stderr, "tellerline: %s is not compared with the archive: %s\n", queue, err->text);
    *err = (struct tl_error){0};
    return true;
}

/* listed: is the queue in tl:queues? */
static bool audit_one(struct audit *audit, const char *queue, bool listed, struct tl_error *err)
{
    struct tl_keys keys;
    struct tl_audit_report report;
    struct tl_redis *redis = tl_store_reach(audit->session.store, queue, err);
    if (redis == NULL || !tl_keys_of(&keys, audit->session.config->redis.key_prefix, queue, err))
        return tl_error_prefix(err, "queue %s", queue);
    if (!tl_audit_queue(redis, &keys, &report, err)) {
        if (!listed || err->kind != TL_ERR_NOQUEUE)
            return tl_error_prefix(err, "queue %s", queue);
        *err = (struct tl_error){0};
        report = (struct tl_audit_report){0};
        tl_audit_add(&report, 10, "it is listed, but nothing of it exists",
                     "restore its keys from a backup, or let it go: `tellerline queue delete`. A "
                     "program that runs and knows it makes it again");
    } else if (!listed) {
        tl_audit_add(&report, 10, "it is not listed among the queues: no program serves it",
                     "SADD its name to the set of queues, or delete its keys");
    }
    /* A damaged queue is found by then, and its draw may not be readable. */
    if (report.n_violations == 0 && !tl_audit_draw(redis, &keys, &report, err))
        return tl_error_prefix(err, "queue %s", queue);
    if (listed && report.n_violations == 0 && audit->workers != NULL &&
        !tl_audit_workers(redis, &keys, audit->workers, &report, err))
        return tl_error_prefix(err, "queue %s", queue);
    if (listed && !audit_archive(audit, queue, &report, err))
        return tl_error_prefix(err, "queue %s", queue);
    audit->violations += report.n_violations;
    if (audit->list == NULL)
        write_report(queue, &report);
    else
        tl_json_add(audit->list, report_json(queue, &report));
    return true;
}

/* ---- which queues there are ---- */

enum { LOOK_AGAIN_MS = 300, SCAN_COUNT = 1000 };

struct names {
    char (*names)[TL_QUEUE_NAME_MAX + 1]; /* sorted */
    size_t n, capacity;
};

static bool list_queues(struct audit *audit, struct names *listed, struct tl_error *err)
{
    struct tl_redis *redis = tl_store_reach(audit->session.store, NULL, err);
    free(listed->names);
    *listed = (struct names){0};
    return redis != NULL && tl_queue_list(redis, audit->session.config->redis.key_prefix,
                                          &listed->names, &listed->n, err);
}

/* Puts the queue whose state has this key into `found`, unless it is listed or there already. */
static void take_key(const char *key, const char *prefix, const struct names *listed,
                     struct names *found)
{
    char name[TL_QUEUE_NAME_MAX + 1];
    const char *start = key + strlen(prefix) + 1; /* prefix{name}:state */
    const char *end = strchr(start, '}');
    size_t length = end != NULL ? (size_t)(end - start) : 0;
    if (!tl_queue_name_valid(start, length))
        return;
    memcpy(name, start, length);
    name[length] = '\0';
    if (tl_queue_find_name(listed->names, listed->n, name, NULL))
        return;
    for (size_t i = 0; i < found->n; i++) {
        if (strcmp(found->names[i], name) == 0)
            return;
    }
    found->names = tl_xgrow(found->names, &found->capacity, found->n + 1, sizeof(*found->names));
    memcpy(found->names[found->n++], name, length + 1);
}

/* Looks through all keys of a node of the store for states of queues that are not listed. */
static bool look_through(const struct audit *audit, struct tl_redis *redis,
                         const struct names *listed, struct names *found, struct tl_error *err)
{
    const char *prefix = audit->session.config->redis.key_prefix;
    struct tl_args args = {0};
    char cursor[24] = "0";
    char pattern[64];
    bool ok = true;
    snprintf(pattern, sizeof(pattern), "%s{*}:state", prefix);
    do {
        tl_args_reset(&args);
        tl_args_strs(&args, "SCAN", cursor, "MATCH", pattern, "COUNT", NULL);
        tl_args_uint(&args, SCAN_COUNT);
        struct tl_reply *page = ok ? tl_redis_call(redis, &args, err) : NULL;
        ok = page != NULL;
        snprintf(cursor, sizeof(cursor), "%s", tl_reply_text(page, 0));
        const struct tl_reply *keys = tl_reply_at(page, 1);
        for (size_t i = 0; ok && i < tl_reply_count(keys); i++)
            take_key(tl_reply_text(keys, i), prefix, listed, found);
        tl_reply_free(page);
    } while (ok && strcmp(cursor, "0") != 0);
    tl_args_free(&args);
    return ok;
}

static bool find_unlisted(struct audit *audit, const struct names *listed, struct names *found,
                          struct tl_error *err)
{
    struct tl_store *store = audit->session.store;
    bool ok = tl_store_connect(store, err);
    for (size_t i = 0; ok && i < tl_store_nodes(store); i++)
        ok = look_through(audit, tl_store_node(store, i), listed, found, err);
    return ok;
}

/* Queues that are not listed, nor a moment later: a queue that is being made is listed last. */
static bool audit_unlisted(struct audit *audit, struct names *listed, struct tl_error *err)
{
    struct names found = {0};
    bool ok = find_unlisted(audit, listed, &found, err);
    if (!ok && err->kind == TL_ERR_STORE) { /* this user of Redis may not look */
        fprintf(stderr, "tellerline: queues that are not listed cannot be looked for: %s\n",
                err->text);
        *err = (struct tl_error){0};
        ok = true;
    }
    if (ok && found.n > 0) {
        tl_ctl_pause(LOOK_AGAIN_MS);
        ok = list_queues(audit, listed, err);
    }
    for (size_t i = 0; ok && i < found.n; i++) {
        bool deleted = false;
        if (!tl_queue_find_name(listed->names, listed->n, found.names[i], NULL))
            ok = audit_one(audit, found.names[i], false, err) ||
                 (deleted = err->kind == TL_ERR_NOQUEUE);
        if (deleted)
            *err = (struct tl_error){0};
    }
    free(found.names);
    return ok;
}

static bool audit_all(struct audit *audit, struct tl_error *err)
{
    struct names listed = {0};
    bool ok = list_queues(audit, &listed, err);
    for (size_t i = 0; ok && i < listed.n; i++)
        ok = audit_one(audit, listed.names[i], true, err);
    if (ok && listed.n == 0 && audit->list == NULL)
        printf("no queues are listed\n");
    ok = ok && audit_unlisted(audit, &listed, err);
    free(listed.names);
    return ok;
}

static bool audit_named(struct audit *audit, const char *queue, struct tl_error *err)
{
    struct names listed = {0};
    struct tl_keys keys;
    bool ok = tl_keys_of(&keys, audit->session.config->redis.key_prefix, queue, err) &&
              list_queues(audit, &listed, err) &&
              audit_one(audit, queue, tl_queue_find_name(listed.names, listed.n, queue, NULL), err);
    free(listed.names);
    return ok;
}

int tl_command_audit(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    struct audit audit = {.workers = options->worker};
    if (!tl_ctl_session_open(&audit.session, options, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    audit.list = options->output != TL_OUTPUT_TABLE ? json_array() : NULL;
    bool ok = open_archive(&audit, options, &err) &&
              (options->queue != NULL ? audit_named(&audit, options->queue, &err)
                                      : audit_all(&audit, &err));
    if (ok && options->output != TL_OUTPUT_TABLE)
        tl_data_write(options->output,
                      json_pack("{s:I, s:O}", "n_violations", (json_int_t)audit.violations,
                                "queues", audit.list));
    json_decref(audit.list);
    int status = !ok                    ? tl_ctl_fail(TL_EXIT_FAILED, &err)
                 : audit.violations > 0 ? TL_EXIT_PROBLEM
                                        : TL_EXIT_OK;
    if (err.kind == TL_ERR_NOQUEUE)
        tl_ctl_session_propose(&audit.session, options->queue);
    tl_postgres_close(&audit.archive);
    tl_ctl_session_close(&audit.session);
    return status;
}
