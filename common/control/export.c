/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/units.h"
#include "common/control/call.h"
#include "common/wire/events.h"

enum { PAGE = 1000 };

/* What is listed, in this order: a visitor who moves on meanwhile is met again, rather than missed.
 */
enum part { PART_WAITING, PART_ACTIVE, PART_ENDED, PART_NONE };

struct tl_control_export {
    struct tl_control *control;
    struct tl_keys keys;
    struct tl_queue_settings settings;
    bool csv;
    enum part part;
    uint64_t total, written;
    uint64_t position;  /* of the last waiting visitor that was written */
    tl_place after;     /* the line goes on behind this place */
    char cursor[24];    /* of the scan of a part; "0" at its start */
    bool begun;         /* the first piece was handed out */
    struct tl_text out; /* the piece */
};

/* ---- rows as text ---- */

/* A cell in quotes. One that a spreadsheet would take for a formula gets a quote before it. */
static void append_cell(struct tl_text *out, const char *text)
{
    char cell[2 * TL_VISITOR_MAX + 4];
    size_t n = 0;
    cell[n++] = '"';
    if (text[0] != '\0' && strchr("=+-@", text[0]) != NULL)
        cell[n++] = '\'';
    for (; *text != '\0' && n + 3 < sizeof(cell); text++) {
        if (*text == '"')
            cell[n++] = '"';
        cell[n++] = *text;
    }
    cell[n++] = '"';
    tl_text_append(out, "%.*s", (int)n, cell);
}

static void append_time(struct tl_text *out, int64_t unix_ms)
{
    char text[TL_UNITS_TEXT_MAX] = "";
    if (unix_ms != 0)
        tl_time_format(unix_ms, text, sizeof(text));
    tl_text_append(out, ",%s", text);
}

static void append_csv(struct tl_control_export *self, const struct tl_visitor_facts *row)
{
    struct tl_text *out = &self->out;
    append_cell(out, row->visitor);
    tl_text_append(out, ",%s,%s,", row->status, row->end_reason != NULL ? row->end_reason : "");
    if (row->has_place) {
        append_cell(out, tl_place_lane_name(&self->settings, row->place));
        tl_text_append(out, ",%" PRIu64 ",", tl_place_seq(row->place));
    } else {
        tl_text_append(out, ",,");
    }
    if (row->position > 0)
        tl_text_append(out, "%" PRIu64, row->position);
    append_time(out, row->joined_ms);
    append_time(out, row->admitted_ms);
    tl_text_append(out, ",%s", row->claimed < 0 ? "" : row->claimed > 0 ? "true" : "false");
    append_time(out, row->expires_ms);
    append_time(out, row->ended_ms);
    tl_text_append(out, "\r\n");
}

static void append_json(struct tl_control_export *self, const struct tl_visitor_facts *row)
{
    json_t *object = tl_visitor_to_json(row, &self->settings);
    char *text = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    if (text == NULL)
        self->out.failed = true;
    else
        tl_text_append(&self->out, "%s\n", text);
    free(text);
}

static void append_row(struct tl_control_export *self, const struct tl_visitor_facts *row)
{
    self->written++;
    if (self->csv)
        append_csv(self, row);
    else
        append_json(self, row);
}

/* ---- pages ---- */

static struct tl_reply *ask(struct tl_control_export *self, struct tl_args *args,
                            struct tl_error *err)
{
    struct tl_redis *redis = tl_control_redis(self->control, self->keys.queue, err);
    struct tl_reply *reply = redis != NULL ? tl_redis_call(redis, args, err) : NULL;
    tl_args_free(args);
    return reply;
}

/* Writes a page of those who have a place. rows: owned; NULL: out of memory. */
static bool write_rows(struct tl_control_export *self, struct tl_visitor_facts *rows, size_t n,
                       struct tl_error *err)
{
    bool ok = rows != NULL ? tl_joined_fill(rows, n, self->control, &self->keys, err)
                           : tl_error_set(err, TL_ERR_NOMEM, "no memory for an export");
    for (size_t i = 0; ok && i < n; i++)
        append_row(self, &rows[i]);
    free(rows);
    return ok;
}

/* The next page of the line: by place, so that nobody is missed when those before leave. */
static bool write_waiting(struct tl_control_export *self, struct tl_error *err)
{
    struct tl_args args = {0};
    char from[32];
    snprintf(from, sizeof(from), "(%" PRIu64, self->after);
    tl_args_strs(&args, "ZRANGE", self->keys.names[TL_KEY_WAITING], from, "+inf", "BYSCORE",
                 "LIMIT", "0", NULL);
    tl_args_uint(&args, PAGE);
    tl_args_str(&args, "WITHSCORES");
    struct tl_reply *page = ask(self, &args, err);
    if (page == NULL)
        return false;
    size_t n = tl_reply_count(page) / 2;
    struct tl_visitor_facts *rows = calloc(n + 1, sizeof(*rows));
    for (size_t i = 0; rows != NULL && i < n; i++) {
        rows[i] = (struct tl_visitor_facts){.visitor = tl_reply_text(page, 2 * i),
                                            .status = "waiting",
                                            .position = ++self->position,
                                            .claimed = -1};
        rows[i].has_place = tl_record_place(tl_reply_text(page, 2 * i + 1), &rows[i].place);
        if (rows[i].has_place)
            self->after = rows[i].place;
    }
    bool ok = write_rows(self, rows, n, err);
    tl_reply_free(page);
    if (ok && n < PAGE)
        self->part = PART_ACTIVE;
    return ok;
}

/* A page of a scan: names and values in turn, borrowed from *page. Moves on to the next part at its
 * end. */
static const struct tl_reply *scan(struct tl_control_export *self, const char *command,
                                   enum tl_key key, struct tl_reply **page, struct tl_error *err)
{
    struct tl_args args = {0};
    tl_args_strs(&args, command, self->keys.names[key], self->cursor, "COUNT", NULL);
    tl_args_uint(&args, PAGE);
    *page = ask(self, &args, err);
    if (*page == NULL)
        return NULL;
    snprintf(self->cursor, sizeof(self->cursor), "%s", tl_reply_text(*page, 0));
    if (strcmp(self->cursor, "0") == 0)
        self->part++;
    return tl_reply_at(*page, 1);
}

static bool write_active(struct tl_control_export *self, struct tl_error *err)
{
    struct tl_reply *page;
    const struct tl_reply *list = scan(self, "HSCAN", TL_KEY_SESSIONS, &page, err);
    size_t n = tl_reply_count(list) / 2;
    if (n == 0) {
        bool received = page != NULL;
        tl_reply_free(page);
        return received;
    }
    struct tl_args args = {0};
    tl_args_strs(&args, "ZMSCORE", self->keys.names[TL_KEY_ACTIVE], NULL);
    for (size_t i = 0; i < n; i++)
        tl_args_str(&args, tl_reply_text(list, 2 * i));
    struct tl_reply *deadlines = ask(self, &args, err);
    struct tl_visitor_facts *rows = calloc(n, sizeof(*rows));
    for (size_t i = 0; rows != NULL && i < n; i++) {
        rows[i] = (struct tl_visitor_facts){.visitor = tl_reply_text(list, 2 * i), .claimed = -1};
        (void)tl_visitor_active(&rows[i], tl_reply_text(list, 2 * i + 1),
                                tl_reply_text(deadlines, i));
    }
    bool ok = deadlines != NULL && write_rows(self, rows, n, err);
    if (deadlines == NULL)
        free(rows);
    tl_reply_free(deadlines);
    tl_reply_free(page);
    return ok;
}

static bool write_ended(struct tl_control_export *self, struct tl_error *err)
{
    struct tl_reply *page;
    const struct tl_reply *list = scan(self, "ZSCAN", TL_KEY_ENDED, &page, err);
    for (size_t i = 0; i + 1 < tl_reply_count(list); i += 2) {
        struct tl_end_record end;
        if (!tl_record_end(tl_reply_text(list, i + 1), &end))
            continue;
        struct tl_visitor_facts row = {.visitor = tl_reply_text(list, i), .claimed = -1};
        tl_visitor_ended(&row, &end);
        append_row(self, &row);
    }
    bool ok = page != NULL;
    tl_reply_free(page);
    return ok;
}

static bool write_page(struct tl_control_export *self, struct tl_error *err)
{
    switch (self->part) {
    case PART_WAITING:
        return write_waiting(self, err);
    case PART_ACTIVE:
        return write_active(self, err);
    default:
        return write_ended(self, err);
    }
}

/* ---- the export ---- */

/* The queue and the format that are asked for. False: the call is refused. */
static bool read_request(struct tl_control_export *self, struct tl_control_call *call)
{
    if (!tl_call_prepare(call))
        return false;
    if (call->route->kind != TL_CONTROL_EXPORT)
        return tl_call_refuse(call, TL_REFUSAL_NOT_FOUND, "this is no export");
    const char *format = tl_target_parameter(&call->target, "format");
    self->control = call->control;
    self->keys = call->keys;
    self->csv = format == NULL || strcmp(format, "csv") == 0;
    return self->csv || strcmp(format, "jsonl") == 0 ||
           tl_call_refuse(call, TL_REFUSAL_BAD_QUERY, "format: csv or jsonl");
}

/* How many visitors there are, and the settings. */
static bool begin(struct tl_control_export *self, struct tl_error *err)
{
    struct tl_state state;
    struct tl_args args = {0};
    struct tl_redis *redis = tl_control_redis(self->control, self->keys.queue, err);
    if (redis == NULL || !tl_queue_load(redis, &self->keys, &self->settings, err) ||
        !tl_state_read(redis, &self->keys, TL_STATE_SIZES, &state, err))
        return false;
    tl_args_strs(&args, "ZCARD", self->keys.names[TL_KEY_ENDED], NULL);
    struct tl_reply *ended = ask(self, &args, err);
    if (ended == NULL)
        return false;
    self->total = state.waiting + state.active + (uint64_t)tl_reply_integer(ended);
    tl_reply_free(ended);
    if (self->csv)
        tl_text_append(&self->out,
                       "visitor,status,end_reason,lane,seq,position,joined_at,admitted_at,"
                       "claimed,expires_at,ended_at\r\n");
    return true;
}

struct tl_control_export *tl_control_export_begin(struct tl_control *control,
                                                  const struct tl_control_request *request,
                                                  struct tl_control_answer *answer)
{
    struct tl_control_call call = {
        .control = control, .config = control->config, .request = request, .answer = answer};
    struct tl_control_export *self = calloc(1, sizeof(*self));
    *answer = (struct tl_control_answer){0};
    if (self == NULL)
        return tl_control_problem(answer, TL_REFUSAL_INTERNAL, "no memory for an export");
    memcpy(self->cursor, "0", 2);
    bool asked = read_request(self, &call);
    if (asked && begin(self, &call.err)) {
        answer->status = 200;
        return self;
    }
    if (asked)
        tl_control_problem_of(answer, &call.err);
    tl_control_export_end(&self);
    return NULL;
}

void tl_control_export_end(struct tl_control_export **export)
{
    if (*export == NULL)
        return;
    tl_text_free(&(*export)->out);
    free(*export);
    *export = NULL;
}

const char *tl_control_export_type(const struct tl_control_export *export)
{
    return export->csv ? "text/csv; charset=utf-8; header=present" : "application/jsonl";
}

uint64_t tl_control_export_total(const struct tl_control_export *export)
{
    return export->total;
}

uint64_t tl_control_export_written(const struct tl_control_export *export)
{
    return export->written;
}

bool tl_control_export_next(struct tl_control_export *export, const char **bytes, size_t *length,
                            struct tl_error *err)
{
    /* The head of a CSV is the first piece. A page may be empty, and not the last one. */
    if (export->begun)
        export->out.length = 0;
    export->begun = true;
    while (export->part != PART_NONE && export->out.length == 0)
        if (!write_page(export, err))
            return false;
    *bytes = export->out.data;
    *length = export->out.length;
    return !export->out.failed || tl_error_set(err, TL_ERR_NOMEM, "no memory for an export");
}
