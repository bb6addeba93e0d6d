#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/quote.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "common/store/script.h"

#include "ctl/audit.h"
#include "generated/ctl_scripts.h"

/* The reply of audit_totals.lua, by index. */
enum {
    WAITING,
    ACTIVE,
    JOINED,
    COMPLETED,
    EXPIRED,
    LEFT,
    ADMIT_CAPACITY,
    N_COUNTERS,
    SIZE_WAITING = N_COUNTERS,
    SIZE_ACTIVE,
    SIZE_SESSIONS,
    POLICY,
    CAPACITY,
    N_TOTALS,
};

enum { PAGE = 500, QUOTED = 3 + TL_VISITOR_MAX };

struct audit {
    struct tl_redis *redis;
    const struct tl_keys *keys;
    struct tl_script active_script;
    struct tl_args args;
    struct tl_audit_report *report;
};

__attribute__((format(printf, 3, 4))) static void add_violation(struct tl_audit_report *report,
                                                                int rule, const char *format, ...)
{
    report->n_violations++;
    if (report->n_listed == TL_AUDIT_LISTED_MAX)
        return;
    struct tl_audit_violation *violation = &report->listed[report->n_listed++];
    violation->rule = rule;
    va_list args;
    va_start(args, format);
    vsnprintf(violation->text, sizeof(violation->text), format, args);
    va_end(args);
}

/* ---- the totals ---- */

static void check_counters(const int64_t v[N_TOTALS], struct tl_audit_report *report)
{
    static const char *const names[N_COUNTERS] = {"waiting", "active", "joined",        "completed",
                                                  "expired", "left",   "admit_capacity"};
    for (int i = 0; i < N_COUNTERS; i++) {
        if (v[i] < 0)
            add_violation(report, 1, "the counter %s is negative: %" PRId64, names[i], v[i]);
    }
    if (v[WAITING] != v[SIZE_WAITING])
        add_violation(report, 1, "the counter waiting is %" PRId64 ", but %" PRId64 " are waiting",
                      v[WAITING], v[SIZE_WAITING]);
    if (v[ACTIVE] != v[SIZE_ACTIVE])
        add_violation(report, 1, "the counter active is %" PRId64 ", but %" PRId64 " are active",
                      v[ACTIVE], v[SIZE_ACTIVE]);
    if (v[SIZE_SESSIONS] != v[SIZE_ACTIVE])
        add_violation(report, 1, "%" PRId64 " are active, but there are %" PRId64 " sessions",
                      v[SIZE_ACTIVE], v[SIZE_SESSIONS]);
    int64_t known = v[WAITING] + v[ACTIVE] + v[COMPLETED] + v[EXPIRED] + v[LEFT];
    if (v[JOINED] != known)
        add_violation(report, 5,
                      "%" PRId64 " joined, but waiting %" PRId64 " + active %" PRId64
                      " + completed %" PRId64 " + expired %" PRId64 " + left %" PRId64
                      " is %" PRId64,
                      v[JOINED], v[WAITING], v[ACTIVE], v[COMPLETED], v[EXPIRED], v[LEFT], known);
}

/* An admission stores the capacity it obeyed as admit_capacity, and nothing else raises active. So
 * active must not exceed that; the capacity of today may have been lowered since. */
static void check_capacity(const int64_t v[N_TOTALS], const char *policy,
                           struct tl_audit_report *report)
{
    if (strcmp(policy, "rate") == 0 || v[SIZE_ACTIVE] <= v[CAPACITY])
        return;
    if (v[SIZE_ACTIVE] > v[ADMIT_CAPACITY])
        add_violation(report, 2,
                      "%" PRId64 " are active, but the capacity is %" PRId64 " and was %" PRId64
                      " at the last admission",
                      v[SIZE_ACTIVE], v[CAPACITY], v[ADMIT_CAPACITY]);
    else
        snprintf(report->note, sizeof(report->note),
                 "%" PRId64 " are active, above the capacity of %" PRId64
                 ": it was lowered, which ends no session",
                 v[SIZE_ACTIVE], v[CAPACITY]);
}

static bool check_totals(struct audit *audit, struct tl_error *err)
{
    struct tl_audit_report *report = audit->report;
    struct tl_reply *reply =
        tl_script_run(audit->redis, tl_script_audit_totals, audit->keys, NULL, err);
    if (reply == NULL)
        return false;
    bool ok = tl_reply_count(reply) == N_TOTALS;
    if (ok) {
        int64_t values[N_TOTALS];
        for (size_t i = 0; i < N_TOTALS; i++)
            values[i] = tl_reply_integer(tl_reply_at(reply, i)); /* 0 when absent */
        report->waiting = (uint64_t)values[SIZE_WAITING];
        report->active = (uint64_t)values[SIZE_ACTIVE];
        check_counters(values, report);
        check_capacity(values, tl_reply_string(tl_reply_at(reply, POLICY), NULL), report);
    } else if (tl_reply_type(reply) == TL_REPLY_NIL) {
        tl_error_set(err, TL_ERR_NOQUEUE, "there is no queue %s", audit->keys->queue);
    } else {
        tl_error_set(err, TL_ERR_PROTOCOL,
                     "unexpected reply of the store to the totals of queue %s", audit->keys->queue);
    }
    tl_reply_free(reply);
    return ok;
}

/* ---- the active set, page by page ---- */

/* found: one of the violations that audit_active.lua returns. */
static void add_found(struct tl_audit_report *report, const struct tl_reply *found)
{
    char visitor[QUOTED];
    char other[QUOTED];
    const char *rule = tl_reply_string(tl_reply_at(found, 0), NULL);
    tl_quote(tl_reply_string(tl_reply_at(found, 1), NULL), visitor, sizeof(visitor));
    if (strcmp(rule, "both") == 0) {
        add_violation(report, 3, "visitor %s is both waiting and active", visitor);
    } else if (strcmp(rule, "session") == 0) {
        add_violation(report, 1, "visitor %s is active, but has no readable session", visitor);
    } else {
        tl_place place = (tl_place)tl_reply_integer(tl_reply_at(found, 2));
        tl_place ahead = (tl_place)tl_reply_integer(tl_reply_at(found, 4));
        tl_quote(tl_reply_string(tl_reply_at(found, 3), NULL), other, sizeof(other));
        add_violation(report, 4,
                      "visitor %s (number %" PRIu64
                      " of lane %u) is active, while %s (number %" PRIu64 ") still waits",
                      visitor, tl_place_seq(place), tl_place_lane(place), other,
                      tl_place_seq(ahead));
    }
}

/* members: visitors and scores in turn, as ZSCAN returns them. */
static bool check_page(struct audit *audit, const struct tl_reply *members, struct tl_error *err)
{
    if (tl_reply_count(members) == 0)
        return true;
    if (!tl_script_begin(audit->redis, &audit->active_script, &audit->args, err))
        return false;
    tl_keys_append(audit->keys, &audit->args);
    for (size_t i = 0; i < tl_reply_count(members); i += 2) {
        size_t length;
        const char *visitor = tl_reply_string(tl_reply_at(members, i), &length);
        tl_args_bin(&audit->args, visitor, length);
    }
    struct tl_reply *reply = tl_script_call(audit->redis, &audit->active_script, &audit->args, err);
    if (reply == NULL)
        return false;
    for (size_t i = 0; i < tl_reply_count(reply); i++)
        add_found(audit->report, tl_reply_at(reply, i));
    tl_reply_free(reply);
    return true;
}

static bool check_active(struct audit *audit, struct tl_error *err)
{
    char cursor[24] = "0";
    do {
        tl_args_reset(&audit->args);
        tl_args_strs(&audit->args, "ZSCAN", audit->keys->names[TL_KEY_ACTIVE], cursor, "COUNT",
                     NULL);
        tl_args_uint(&audit->args, PAGE);
        struct tl_reply *page = tl_redis_call(audit->redis, &audit->args, err);
        if (page == NULL)
            return false;
        snprintf(cursor, sizeof(cursor), "%s", tl_reply_string(tl_reply_at(page, 0), NULL));
        bool ok = check_page(audit, tl_reply_at(page, 1), err);
        tl_reply_free(page);
        if (!ok)
            return false;
    } while (strcmp(cursor, "0") != 0 && cursor[0] != '\0');
    return true;
}

bool tl_audit_queue(struct tl_redis *redis, const struct tl_keys *keys,
                    struct tl_audit_report *report, struct tl_error *err)
{
    struct audit audit = {.redis = redis,
                          .keys = keys,
                          .active_script.source = tl_script_audit_active,
                          .report = report};
    *report = (struct tl_audit_report){0};
    bool ok = check_totals(&audit, err) && check_active(&audit, err);
    tl_args_free(&audit.args);
    return ok;
}
