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

/* What audit_totals.lua answers, by index. */
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

__attribute__((format(printf, 3, 4))) static void add(struct tl_audit_report *report, int rule,
                                                      const char *format, ...)
{
    report->n_violations++;
    if (report->n_told == TL_AUDIT_TEXTS_MAX)
        return;
    struct tl_audit_violation *violation = &report->told[report->n_told++];
    violation->rule = rule;
    va_list args;
    va_start(args, format);
    vsnprintf(violation->text, sizeof(violation->text), format, args);
    va_end(args);
}

/* ---- what one look at the totals tells ---- */

static void check_counters(const int64_t v[N_TOTALS], struct tl_audit_report *report)
{
    static const char *const names[N_COUNTERS] = {"waiting", "active", "joined",        "completed",
                                                  "expired", "left",   "admit_capacity"};
    for (int i = 0; i < N_COUNTERS; i++) {
        if (v[i] < 0)
            add(report, 1, "the counter %s is negative: %" PRId64, names[i], v[i]);
    }
    if (v[WAITING] != v[SIZE_WAITING])
        add(report, 1, "the counter waiting is %" PRId64 ", but %" PRId64 " are waiting",
            v[WAITING], v[SIZE_WAITING]);
    if (v[ACTIVE] != v[SIZE_ACTIVE])
        add(report, 1, "the counter active is %" PRId64 ", but %" PRId64 " are active", v[ACTIVE],
            v[SIZE_ACTIVE]);
    if (v[SIZE_SESSIONS] != v[SIZE_ACTIVE])
        add(report, 1, "%" PRId64 " are active, but there are %" PRId64 " sessions", v[SIZE_ACTIVE],
            v[SIZE_SESSIONS]);
    int64_t known = v[WAITING] + v[ACTIVE] + v[COMPLETED] + v[EXPIRED] + v[LEFT];
    if (v[JOINED] != known)
        add(report, 5,
            "%" PRId64 " joined, but waiting %" PRId64 " + active %" PRId64 " + completed %" PRId64
            " + expired %" PRId64 " + left %" PRId64 " is %" PRId64,
            v[JOINED], v[WAITING], v[ACTIVE], v[COMPLETED], v[EXPIRED], v[LEFT], known);
}

/* Every admission leaves active at most at the capacity it obeyed, which it notes; nothing else
 * raises active. So the bound is that note, not today's capacity, which may have been lowered
 * since. */
static void check_capacity(const int64_t v[N_TOTALS], const char *policy,
                           struct tl_audit_report *report)
{
    if (strcmp(policy, "rate") == 0 || v[SIZE_ACTIVE] <= v[CAPACITY])
        return;
    if (v[SIZE_ACTIVE] > v[ADMIT_CAPACITY])
        add(report, 2,
            "%" PRId64 " are active, but the capacity is %" PRId64 " and was %" PRId64
            " at the last admission",
            v[SIZE_ACTIVE], v[CAPACITY], v[ADMIT_CAPACITY]);
    else
        snprintf(report->note, sizeof(report->note),
                 "%" PRId64 " are active, above the capacity of %" PRId64
                 ": it was lowered, which throws nobody out",
                 v[SIZE_ACTIVE], v[CAPACITY]);
}

static bool check_totals(struct tl_redis *redis, const struct tl_keys *keys,
                         struct tl_audit_report *report, struct tl_error *err)
{
    struct tl_reply *reply = tl_script_run(redis, tl_script_audit_totals, keys, NULL, err);
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
        tl_error_set(err, TL_ERR_NOQUEUE, "there is no queue %s", keys->queue);
    } else {
        tl_error_set(err, TL_ERR_PROTOCOL, "the store's totals of queue %s make no sense",
                     keys->queue);
    }
    tl_reply_free(reply);
    return ok;
}

/* ---- the active set, page by page ---- */

static void add_wrong(const struct tl_reply *wrong, struct tl_audit_report *report)
{
    char visitor[QUOTED];
    char other[QUOTED];
    const char *rule = tl_reply_string(tl_reply_at(wrong, 0), NULL);
    tl_quote(tl_reply_string(tl_reply_at(wrong, 1), NULL), visitor, sizeof(visitor));
    if (strcmp(rule, "both") == 0) {
        add(report, 3, "visitor %s is both waiting and active", visitor);
    } else if (strcmp(rule, "session") == 0) {
        add(report, 1, "visitor %s is active, but has no readable session", visitor);
    } else {
        tl_place place = (tl_place)tl_reply_integer(tl_reply_at(wrong, 2));
        tl_place ahead = (tl_place)tl_reply_integer(tl_reply_at(wrong, 4));
        tl_quote(tl_reply_string(tl_reply_at(wrong, 3), NULL), other, sizeof(other));
        add(report, 4,
            "visitor %s (number %" PRIu64 " of lane %u) is active, while %s (number %" PRIu64
            ") still waits",
            visitor, tl_place_seq(place), tl_place_lane(place), other, tl_place_seq(ahead));
    }
}

/* members: what ZSCAN returned, visitor and score in turn. */
static bool check_page(struct tl_redis *redis, const struct tl_keys *keys, struct tl_script *script,
                       const struct tl_reply *members, struct tl_audit_report *report,
                       struct tl_error *err)
{
    if (tl_reply_count(members) == 0)
        return true;
    struct tl_args args = {0};
    struct tl_reply *reply = NULL;
    if (tl_script_begin(redis, script, &args, err)) {
        tl_keys_append(keys, &args);
        for (size_t i = 0; i < tl_reply_count(members); i += 2) {
            size_t length;
            const char *visitor = tl_reply_string(tl_reply_at(members, i), &length);
            tl_args_bin(&args, visitor, length);
        }
        reply = tl_script_call(redis, script, &args, err);
    }
    tl_args_free(&args);
    if (reply == NULL)
        return false;
    for (size_t i = 0; i < tl_reply_count(reply); i++)
        add_wrong(tl_reply_at(reply, i), report);
    tl_reply_free(reply);
    return true;
}

static struct tl_reply *scan(struct tl_redis *redis, const struct tl_keys *keys, const char *cursor,
                             struct tl_error *err)
{
    struct tl_args args = {0};
    tl_args_strs(&args, "ZSCAN", keys->names[TL_KEY_ACTIVE], cursor, "COUNT", NULL);
    tl_args_uint(&args, PAGE);
    struct tl_reply *reply = tl_redis_call(redis, &args, err);
    tl_args_free(&args);
    return reply;
}

static bool check_active(struct tl_redis *redis, const struct tl_keys *keys,
                         struct tl_audit_report *report, struct tl_error *err)
{
    struct tl_script script = {.source = tl_script_audit_active};
    char cursor[24] = "0";
    do {
        struct tl_reply *page = scan(redis, keys, cursor, err);
        if (page == NULL)
            return false;
        bool ok = check_page(redis, keys, &script, tl_reply_at(page, 1), report, err);
        snprintf(cursor, sizeof(cursor), "%s", tl_reply_string(tl_reply_at(page, 0), NULL));
        tl_reply_free(page);
        if (!ok)
            return false;
    } while (strcmp(cursor, "0") != 0 && cursor[0] != '\0');
    return true;
}

bool tl_audit_queue(struct tl_redis *redis, const struct tl_keys *keys,
                    struct tl_audit_report *report, struct tl_error *err)
{
    *report = (struct tl_audit_report){0};
    return check_totals(redis, keys, report, err) && check_active(redis, keys, report, err);
}
