/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/config/queue_settings.h"
#include "common/config/queue_table.h"
#include "common/store/library.h"
#include "common/store/queue.h"
#include "common/store/reply.h"

#include "ctl/audit/audit.h"

enum {
    PAGE = 500,
    PATIENCE_MS = 60000,   /* an entry of the ingest stream is applied within this time */
    LOOK_AGAIN_MS = 300,   /* what heals or has only just begun is gone then */
    HOLDERS_MOST = 500000, /* sessions whose places are compared with each other */
    CURSOR_MAX = 32,
};

#define START "-" /* the cursor of the first page */

/* A session's place and visitor. */
struct holder {
    tl_place place;
    unsigned page; /* visitors of one page are compared by the function */
    char visitor[TL_VISITOR_MAX + 1];
};

struct audit {
    struct tl_redis *redis;
    const struct tl_keys *keys;
    struct tl_args args;
    struct holder *holders;
    size_t n_holders, holders_capacity;
    unsigned pages;     /* looked at so far */
    int64_t longest_ms; /* that any setting gives a session */
    struct tl_audit_report *report;
};

/* ---- what is found ---- */

/* A text of the store on one line, for a terminal. */
static void copy_text(const char *text, char *copy, size_t size)
{
    snprintf(copy, size, "%s", text);
    for (char *at = copy; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            *at = '?';
    }
}

void tl_audit_add(struct tl_audit_report *report, int rule, const char *text, const char *advice)
{
    report->n_violations++;
    if (report->n_listed == TL_AUDIT_LISTED_MAX)
        return;
    struct tl_audit_violation *violation = &report->listed[report->n_listed++];
    violation->rule = rule;
    copy_text(text, violation->text, sizeof(violation->text));
    copy_text(advice, violation->advice, sizeof(violation->advice));
}

/* found: a finding as the functions return it. */
static void add_found(struct tl_audit_report *report, const struct tl_reply *found)
{
    tl_audit_add(report, (int)tl_reply_signed(found, 0), tl_reply_text(found, 2),
                 tl_reply_text(found, 3));
}

static void add_all(struct tl_audit_report *report, const struct tl_reply *list, int64_t n)
{
    size_t listed = tl_reply_count(list);
    for (size_t i = 0; i < listed; i++)
        add_found(report, tl_reply_at(list, i));
    if (n > (int64_t)listed)
        report->n_violations += (uint64_t)n - listed;
}

static bool is_kind(const struct tl_reply *list, const char *kind)
{
    for (size_t i = 0; i < tl_reply_count(list); i++) {
        if (strcmp(tl_reply_text(tl_reply_at(list, i), 1), kind) == 0)
            return true;
    }
    return false;
}

/* ---- the queue as a whole ---- */

static struct tl_reply *look_at_state(struct audit *audit, struct tl_error *err)
{
    tl_call_begin(&audit->args, TL_FN_AUDIT_STATE, audit->keys);
    tl_args_uint(&audit->args, PATIENCE_MS);
    struct tl_reply *reply = tl_call(audit->redis, &audit->args, err);
    if (reply != NULL && tl_reply_type(reply) == TL_REPLY_NIL) {
        tl_error_set(err, TL_ERR_NOQUEUE, "there is no queue %s", audit->keys->queue);
        tl_reply_free(reply);
        return NULL;
    }
    return reply;
}

/* Only what is found twice is reported: programs mend some things by themselves. */
static bool check_state(struct audit *audit, struct tl_error *err)
{
    struct tl_audit_report *report = audit->report;
    struct tl_reply *first = look_at_state(audit, err);
    if (first == NULL)
        return false;
    struct tl_reply *last = first;
    if (tl_reply_signed(first, TL_AUDIT_STATE_N_FINDINGS) > 0) {
        tl_ctl_pause(LOOK_AGAIN_MS);
        last = look_at_state(audit, err);
    }
    if (last != NULL) {
        const struct tl_reply *list = tl_reply_at(last, TL_AUDIT_STATE_FINDINGS);
        report->waiting = tl_reply_number(last, TL_AUDIT_STATE_WAITING);
        report->active = tl_reply_number(last, TL_AUDIT_STATE_ACTIVE);
        copy_text(tl_reply_text(last, TL_AUDIT_STATE_NOTE), report->note, sizeof(report->note));
        for (size_t i = 0; i < tl_reply_count(list); i++) {
            const struct tl_reply *found = tl_reply_at(list, i);
            if (is_kind(tl_reply_at(first, TL_AUDIT_STATE_FINDINGS), tl_reply_text(found, 1)))
                add_found(report, found);
        }
    }
    bool ok = last != NULL;
    if (last != first)
        tl_reply_free(last);
    tl_reply_free(first);
    return ok;
}

/* The value of a setting that is stored, or NULL. pairs: names and values in turn. */
static const char *value_of(const struct tl_reply *pairs, const char *name)
{
    for (size_t i = 0; i + 1 < tl_reply_count(pairs); i += 2) {
        if (strcmp(tl_reply_text(pairs, i), name) == 0)
            return tl_reply_text(pairs, i + 1);
    }
    return NULL;
}

/* Every value can be read, and they agree with each other. */
static void check_settings(const struct tl_reply *reply, struct tl_audit_report *report)
{
    struct tl_error err = {0};
    struct tl_queue_settings settings;
    char text[512];
    size_t n;
    const struct tl_setting *rows = tl_queue_table(&n); /* `lanes` before default_lane */
    tl_queue_settings_defaults(&settings);
    for (size_t i = 0; i < n; i++) {
        const char *value = value_of(reply, rows[i].path);
        if (value == NULL ||
            tl_queue_settings_set(&settings, rows[i].path, value, TL_FORM_STORE, &err))
            continue;
        snprintf(text, sizeof(text), "a setting cannot be read: %s", err.text);
        tl_audit_add(report, 10, text, "programs use the default: set it again");
    }
    if (!tl_queue_settings_validate(&settings, &err)) {
        snprintf(text, sizeof(text), "the settings do not agree: %s", err.text);
        tl_audit_add(report, 10, text, "correct them with `tellerline queue set`");
    }
}

static bool read_settings(struct audit *audit, struct tl_error *err)
{
    struct tl_reply *reply =
        tl_ask(audit->redis, err, "HGETALL", audit->keys->names[TL_KEY_CONFIG], NULL);
    if (reply != NULL)
        check_settings(reply, audit->report);
    tl_reply_free(reply);
    return reply != NULL;
}

/* ---- the sets, page by page ---- */

static void keep_holder(struct audit *audit, const char *visitor, const char *place)
{
    if (strlen(visitor) > TL_VISITOR_MAX || audit->n_holders == HOLDERS_MOST)
        return;
    audit->holders = tl_xgrow(audit->holders, &audit->holders_capacity, audit->n_holders + 1,
                              sizeof(*audit->holders));
    struct holder *holder = &audit->holders[audit->n_holders++];
    holder->place = strtoull(place, NULL, 10);
    holder->page = audit->pages;
    snprintf(holder->visitor, sizeof(holder->visitor), "%s", visitor);
}

/* Checks a page; *cursor then is that of the next one, "" after the last. pair: two visitors to
 * look at instead; of others, remembers who holds which place. */
static bool check_page(struct audit *audit, const char *function, const char *const pair[2],
                       char cursor[CURSOR_MAX], struct tl_error *err)
{
    tl_call_begin(&audit->args, function, audit->keys);
    tl_args_str(&audit->args, cursor);
    tl_args_uint(&audit->args, PAGE);
    tl_args_int(&audit->args, audit->longest_ms);
    for (size_t i = 0; pair != NULL && i < 2; i++)
        tl_args_str(&audit->args, pair[i]);
    struct tl_reply *reply = tl_call(audit->redis, &audit->args, err);
    if (reply == NULL)
        return false;
    const struct tl_reply *places = tl_reply_at(reply, 3);
    snprintf(cursor, CURSOR_MAX, "%s", tl_reply_text(reply, 0));
    add_all(audit->report, tl_reply_at(reply, 1), tl_reply_signed(reply, 2));
    audit->pages++;
    for (size_t i = 0; pair == NULL && i + 1 < tl_reply_count(places); i += 2)
        keep_holder(audit, tl_reply_text(places, i), tl_reply_text(places, i + 1));
    tl_reply_free(reply);
    return true;
}

static bool check_pages(struct audit *audit, const char *function, struct tl_error *err)
{
    char cursor[CURSOR_MAX] = START;
    while (cursor[0] != '\0') {
        if (!check_page(audit, function, NULL, cursor, err))
            return false;
    }
    return true;
}

static int compare_holders(const void *a, const void *b)
{
    const struct holder *first = a, *second = b;
    if (first->place != second->place)
        return first->place > second->place ? 1 : -1;
    return strcmp(first->visitor, second->visitor); /* ZSCAN may return one twice */
}

/* Two sessions with one place, on different pages: both are looked at again at one moment. */
static bool check_holders(struct audit *audit, struct tl_error *err)
{
    if (audit->n_holders == 0)
        return true;
    qsort(audit->holders, audit->n_holders, sizeof(*audit->holders), compare_holders);
    for (size_t i = 1; i < audit->n_holders; i++) {
        const struct holder *one = &audit->holders[i - 1], *other = &audit->holders[i];
        const char *const pair[] = {one->visitor, other->visitor};
        char cursor[CURSOR_MAX] = START;
        if (one->place == other->place && one->page != other->page &&
            strcmp(pair[0], pair[1]) != 0 &&
            !check_page(audit, TL_FN_AUDIT_ACTIVE, pair, cursor, err))
            return false;
    }
    return true;
}

/* ---- all ---- */

/* The highest value that any setting of a session may have. */
static int64_t longest_session_ms(void)
{
    static const char *const keys[] = {"session_ttl", "session_max", "claim_ttl"};
    int64_t longest = 0;
    size_t n;
    const struct tl_setting *rows = tl_queue_table(&n);
    for (size_t i = 0; i < n; i++) {
        for (size_t key = 0; key < sizeof(keys) / sizeof(keys[0]); key++) {
            if (strcmp(rows[i].path, keys[key]) == 0 && rows[i].max > longest)
                longest = rows[i].max;
        }
    }
    return longest;
}

/* A key of the wrong type refuses the checks of what is in it: that it is one is found already. */
static bool done(const struct audit *audit, bool ok, struct tl_error *err)
{
    if (ok || err->kind != TL_ERR_STORE || audit->report->n_violations == 0)
        return ok;
    *err = (struct tl_error){0};
    return true;
}

bool tl_audit_queue(struct tl_redis *redis, const struct tl_keys *keys,
                    struct tl_audit_report *report, struct tl_error *err)
{
    struct audit audit = {
        .redis = redis, .keys = keys, .longest_ms = longest_session_ms(), .report = report};
    *report = (struct tl_audit_report){0};
    bool ok = check_state(&audit, err) && done(&audit, read_settings(&audit, err), err) &&
              done(&audit, check_pages(&audit, TL_FN_AUDIT_WAITING, err), err) &&
              done(&audit, check_pages(&audit, TL_FN_AUDIT_ACTIVE, err), err) &&
              done(&audit, check_holders(&audit, err), err) &&
              done(&audit, check_pages(&audit, TL_FN_AUDIT_SERIALS, err), err);
    free(audit.holders);
    tl_args_free(&audit.args);
    return ok;
}
