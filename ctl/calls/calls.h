/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs that are calls of the control room, and what they share. Calls are made straight on
 * Redis, in this process (common/control), or with --server over HTTP at an admin listener
 * (docs/integrators/openapi-admin.yaml). Answers are the same.
 */
#ifndef TL_CTL_CALLS_H
#define TL_CTL_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "common/auth/draw.h"
#include "common/control/control.h"
#include "common/store/keys.h"
#include "common/store/redis.h"
#include "common/wire/names.h"

#include "ctl/shell/shell.h"

/* ---- calls ---- */

/* What is asked for. */
struct tl_ctl_ask {
    const char *operation; /* of the admin API: common/control/routes.c */
    /* By name, what its path and its query take; what is left is the body. Owned; NULL: none. */
    json_t *arguments;
    json_t *body;         /* owned; NULL: the arguments that are left */
    const char *if_match; /* borrowed; NULL: none */
};

/* The request of the operation: its path and query, for which it takes arguments out. False with
 * TL_ERR_INVALID: a part of the path is missing or empty, or the target is too long. */
bool tl_ctl_ask_target(const char *operation, json_t *arguments, const char **method,
                       char target[TL_TARGET_MAX], struct tl_error *err);
/* Does the operation change something? */
bool tl_ctl_ask_changes(const char *operation);

struct tl_ctl_call;

/* Opens the way that the options name. NULL on failure. */
struct tl_ctl_call *tl_ctl_call_open(const struct tl_ctl_options *options, struct tl_error *err);
void tl_ctl_call_close(struct tl_ctl_call **call);

/* Asks, and releases what is asked; a list has the entries of as many pages as the limit that is
 * asked for needs, or one that is short by nature, of all. A problem is an answer, too. False:
 * there is no answer. Clear the answer with tl_control_answer_clear in either case. */
bool tl_ctl_call_ask(struct tl_ctl_call *call, const struct tl_ctl_ask *ask,
                     struct tl_control_answer *answer, struct tl_error *err);
/* The body of a good answer, owned. NULL: there is none; TL_ERR_DENIED for 401 and 403,
 * TL_ERR_INVALID for other problems that are the asker's. */
json_t *tl_ctl_call_get(struct tl_ctl_call *call, const struct tl_ctl_ask *ask,
                        struct tl_error *err);
/* Asks; *body gets the body of a good answer, owned (an empty object if it has none). Anything else
 * is told on standard error (with -o json the problem is also written to standard output), and the
 * exit status returned. */
int tl_ctl_call_body(struct tl_ctl_call *call, const struct tl_ctl_ask *ask, json_t **body);
/* The same for a command that asks once: opens and closes, too. */
int tl_ctl_call_once(const struct tl_ctl_options *options, const struct tl_ctl_ask *ask,
                     json_t **body);
/* The exit status for an answer that is a problem, which is told as above. queue: that was asked
 * for; "": none. */
int tl_ctl_call_problem(struct tl_ctl_call *call, const char *operation, const char *queue,
                        const struct tl_control_answer *answer);

/* An answer that is a stream (common/control/control.h), on its way to its caller. */
struct tl_ctl_stream {
    /* Takes the next bytes; false ends it. */
    bool (*sink)(void *context, const char *bytes, size_t length, struct tl_error *err);
    /* Called before the first bytes, where it is known how many lines will come. */
    void (*expected)(void *context, uint64_t lines);
    void *context; /* of both */
};
/* Asks for a stream, and gives it to the sink. False with err: it broke off, and what the sink has
 * is a part. An answer that is a problem is in *answer. */
bool tl_ctl_call_stream(struct tl_ctl_call *call, const struct tl_ctl_ask *ask,
                        const struct tl_ctl_stream *stream, struct tl_control_answer *answer,
                        struct tl_error *err);

/* The way over HTTP. server: "https://control.example". The token is the first line of token_file,
 * or, if that is NULL, in TELLERLINE_TOKEN. NULL on failure. */
struct tl_ctl_http *tl_ctl_http_new(const char *server, const char *token_file,
                                    struct tl_error *err);
void tl_ctl_http_free(struct tl_ctl_http **http);
/* stream: a good answer goes to its sink; NULL: it is JSON. False: there is no answer, or the
 * stream broke off. */
bool tl_ctl_http_ask(struct tl_ctl_http *http, const struct tl_control_request *request,
                     const struct tl_ctl_stream *stream, struct tl_control_answer *answer,
                     struct tl_error *err);

/* ---- a command that is a call (struct tl_ctl_command) ---- */

/* The arguments of the call: the operands and the options. NULL with TL_ERR_INVALID: one is not as
 * the command takes it. */
json_t *tl_ctl_arguments(const struct tl_ctl_options *options, struct tl_error *err);
/* Asks the operator where that is due, then the control room, and writes the answer. Returns the
 * exit status. */
int tl_ctl_run(const struct tl_ctl_options *options);
/* The same by this operation, and with these arguments, which it releases. */
int tl_ctl_run_with(const struct tl_ctl_options *options, const char *operation, json_t *arguments);
/* Does it hold, by the answer and the arguments? */
bool tl_sentence_holds(const struct tl_sentence *sentence, const json_t *answer,
                       const json_t *arguments);
/* Appends the sentence, with members of the answer, or where that has none, of the arguments. */
void tl_sentence_write(const char *sentence, const json_t *answer, const json_t *arguments,
                       struct tl_text *out);
/* Writes the answer of a command for people. */
void tl_ctl_answer_write(const struct tl_ctl_command *command, const json_t *answer,
                         const json_t *arguments);
/* Writes the answer with -o json or yaml, else the printf-style sentence, whose texts may be
 * borrowed from the answer, and releases the answer. Returns TL_EXIT_OK. */
int tl_ctl_tell(const struct tl_ctl_options *options, json_t *answer, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- the numbers of a queue, from GET /v1/admin/queues/{queue}/stats ---- */

/* One of its totals, "admitted"; 0 when there is none. */
uint64_t tl_row_total(const json_t *stats, const char *name);
/* Appends what is so: the phase, or "damaged", or "away" with its node of a cluster; in recovery
 * "recovers 12 s: 8 of 10" (places that came back), before the opening "opens
 * 2026-12-01T20:00:00+09:00". */
void tl_row_phase(const json_t *stats, struct tl_text *out);
/* Mode and phase in one word: the phase where the mode is open, else the mode. */
const char *tl_row_state(const json_t *stats);
/* What wants care, and what is damaged, stands out in colour. */
enum tl_tint tl_row_tint(const json_t *stats);
/* Appends what limits admission: the capacity ("300"; "0: no one"; "140 auto" where the site's
 * reports steer it, "120 auto (no feedback)" while there are none), the rate ("1400/10s"), or both.
 */
void tl_row_limit(const json_t *stats, struct tl_text *out);
/* How many a minute, such as "admitted"; "-" when that is not known. */
void tl_row_per_minute(const json_t *stats, const char *name, char *text, size_t size);

#define TL_CTL_SIGNS_COLUMNS 80 /* lines are no longer */
/* Appends the signs of misuse in the last minute, over several lines if need be; nothing if there
 * are none: no network sent more than 60 joins or failed checks, and no session looks misused. */
void tl_row_signs(const json_t *stats, struct tl_text *out);

/* Appends the state of a webhook: "answers", "failing since 2026-12-01T20:00:00+09:00: it answers
 * 500". */
void tl_webhook_words(const json_t *webhook, struct tl_text *out);
enum tl_tint tl_webhook_tint(const json_t *webhook);

/* ---- settings ---- */

/* NAME=VALUE... of the command line as an object; the caller owns it. NULL with TL_ERR_INVALID when
 * a word is not of this form, or a name is there twice. */
json_t *tl_assignments_read(int n, char *const *words, struct tl_error *err);

/* Times that become much shorter: mostly a wrong unit, and those who wait or shop lose by it.
 * Appends a sentence if the setting is a duration that becomes less than a tenth of what it was.
 * Values as people write them. */
void tl_shrink_note(struct tl_text *what, const char *queue, const char *name, const char *before,
                    const char *after);
/* Asks whether all of it is meant. TL_EXIT_OK: yes, or nothing was noted. Releases the text. */
int tl_shrink_confirm(const struct tl_ctl_options *options, struct tl_text *what);

/* ---- the published list of a draw ---- */

/*
 * As text: lines `name value`, then an empty line, then the draw ids of those who were drawn, in
 * their order, one a line (docs/operators/openings.md).
 *
 *   tellerline-draw 1
 *   queue concert-2026
 *   opens_at 2026-12-01T11:00:00.000Z
 *   seed_hash <64 hex digits>
 *   seed <64 hex digits>
 *   drawn 1000000
 *
 * As the APIs give it: pages of JSON, each with what the list begins with and some of the ids
 * (docs/integrators/openapi.yaml).
 */
struct tl_draw_head {
    char queue[TL_QUEUE_NAME_MAX + 1];
    int64_t opens_at_ms;
    unsigned char seed[TL_DRAW_KEY_BYTES];
    unsigned char hash[TL_DRAW_KEY_BYTES];
    uint64_t drawn;
};

/* Writes the head. The ids follow, each by tl_draw_list_write_id. */
void tl_draw_list_write_head(FILE *out, const struct tl_draw_head *head);
void tl_draw_list_write_id(FILE *out, const unsigned char id[TL_DRAW_ID_BYTES]);

/* Recomputes the order: the seed has the hash, the list is complete, and the draw keys of its ids
 * ascend. */
struct tl_draw_check {
    const unsigned char *hash; /* published before the draw; NULL: the one in the list */
    const unsigned char *id;   /* a draw id to look for, or NULL */
    FILE *out;                 /* gets the list as text, as far as it is right; NULL: none */
    struct tl_draw_head head;  /* out */
    uint64_t n;                /* out: ids so far */
    uint64_t rank;             /* out: of that id, from 1; 0: it is not in the list */
    unsigned char before[TL_DRAW_KEY_BYTES];
    bool begun;
};
/* Verifies a list from its beginning, as text or as pages one after the other. False, with err
 * naming the first line (of the text) that is wrong. */
bool tl_draw_verify(FILE *in, struct tl_draw_check *check, struct tl_error *err);

enum { TL_DRAW_PAGE_IDS = 1000 }; /* of a page, at most */
/* Gets the page of the ids behind the first `after`; *page is the caller's. */
typedef bool tl_draw_fetch(void *context, uint64_t after, json_t **page, struct tl_error *err);
/* The same for pages that are fetched one by one. */
bool tl_draw_verify_pages(struct tl_draw_check *check, tl_draw_fetch *fetch, void *context,
                          struct tl_error *err);

/* ---- what the table of commands names ---- */

void tl_write_troubles(const json_t *answer);
void tl_write_settings(const json_t *answer);
void tl_write_members(const json_t *answer);
void tl_write_line(const json_t *answer);
void tl_write_stats(const json_t *answer);

tl_ctl_verb tl_command_recover, tl_command_line, tl_command_notice, tl_command_set, tl_command_diff,
    tl_command_apply, tl_command_check, tl_command_config_doc, tl_command_draw_show,
    tl_command_draw_verify, tl_command_visitor_show, tl_command_webhook_test, tl_command_top,
    tl_command_export, tl_command_log, tl_command_dashboard, tl_command_key_create;

#endif
