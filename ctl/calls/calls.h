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
#include "common/store/signs.h"
#include "common/wire/names.h"

#include "ctl/shell/shell.h"

/* ---- calls ---- */

#define TL_CTL_TARGET_MAX 1024 /* bytes of a path with its query */

/* What is asked for. */
struct tl_ctl_ask {
    const char *method; /* "GET", ...; NULL: it cannot be asked, which is told already */
    char target[TL_CTL_TARGET_MAX]; /* path and query */
    json_t *body;                   /* owned, released by the call; NULL: none */
    const char *if_match;           /* borrowed; NULL: none */
};

/* path: behind "/v1/admin", as "/queues/%s/stats", with a text for each %s, which is
 * percent-encoded. One that is empty, or too long, is told on standard error. Takes the body. */
struct tl_ctl_ask tl_ctl_ask(const char *method, json_t *body, const char *path, ...)
    __attribute__((format(printf, 3, 4)));
/* Appends a parameter to the query; value NULL: none. */
void tl_ctl_ask_query(struct tl_ctl_ask *ask, const char *name, const char *value);

struct tl_ctl_call;

/* Opens the way that the options name. NULL on failure. */
struct tl_ctl_call *tl_ctl_call_open(const struct tl_ctl_options *options, struct tl_error *err);
void tl_ctl_call_close(struct tl_ctl_call **call);

/* Asks. A problem is an answer, too. False: there is no answer. Clear the answer with
 * tl_control_answer_clear in either case. */
bool tl_ctl_call_ask(struct tl_ctl_call *call, struct tl_ctl_ask *ask,
                     struct tl_control_answer *answer, struct tl_error *err);
/* Asks; *body gets the body of a good answer, owned (an empty object if it has none). Anything else
 * is told on standard error (with -o json the problem is also written to standard output), and the
 * exit status returned. A list has the entries of all its pages, unless the query has a limit. */
int tl_ctl_call_body(struct tl_ctl_call *call, struct tl_ctl_ask *ask, json_t **body);
/* The same for a command that asks once: opens and closes, too. */
int tl_ctl_call_once(const struct tl_ctl_options *options, struct tl_ctl_ask *ask, json_t **body);
/* The exit status for an answer that is a problem, which is told as above. */
int tl_ctl_call_problem(const struct tl_ctl_options *options,
                        const struct tl_control_answer *answer, bool changes);

/* An answer that is a stream (common/control/control.h), on its way to whoever asked for it. */
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

/* ---- the end of a command ---- */

/* Writes the answer with -o json, else the printf-style sentence, whose texts may be borrowed from
 * the answer, and releases the answer. Returns TL_EXIT_OK. */
int tl_ctl_tell(const struct tl_ctl_options *options, json_t *answer, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Asks, and writes the answer: with -o json as it is, else by write_answer. Returns the exit
 * status.
 */
int tl_ctl_show(const struct tl_ctl_options *options, struct tl_ctl_ask *ask,
                void (*write_answer)(const json_t *answer));

/* ---- the numbers of a queue, from GET /v1/admin/queues/{queue}/stats ---- */

/* One of its totals, "admitted"; 0 when there is none. */
uint64_t tl_row_total(const json_t *stats, const char *name);
/* Those who gave up: left, or were not seen any more. */
uint64_t tl_row_gave_up(const json_t *stats);
/* What is so: the phase, or "damaged"; in recovery "recovers 12 s: 8 of 10" (places that came
 * back), before the opening "opens 2026-12-01T20:00:00+09:00". */
void tl_row_phase(const json_t *stats, char *text, size_t size);
/* Mode and phase in one word: the phase where the mode is open, else the mode. */
const char *tl_row_state(const json_t *stats);
/* Adds such a text as a cell: what wants care, and what is damaged, stands out in colour. */
void tl_row_add_state(struct tl_table *table, const json_t *stats, const char *text);
/* What limits admission: the capacity ("300"; "0: no one"; "140 auto" where the site's reports
 * steer it, "120 auto (no feedback)" while there are none), the rate ("1400/10s"), or both. */
void tl_row_limit(const json_t *stats, char *text, size_t size);
/* How many a minute, such as "admitted"; "-" when that is not known. */
void tl_row_per_minute(const json_t *stats, const char *name, char *text, size_t size);
/* A length of time, such as "oldest_wait_ms"; "-" when it is not known. */
void tl_row_wait(const json_t *object, const char *name, char *text, size_t size);

#define TL_HOOK_WORDS_MAX 256
/* The state of a hook: "answers", "failing since 2026-12-01T20:00:00+09:00: it answers 500". */
void tl_hook_words(const json_t *hook, char text[TL_HOOK_WORDS_MAX]);

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

/* Appends "NAME=VALUE" as people read it: durations and times in words, odd bytes as '?', long
 * values cut. */
void tl_change_value(struct tl_text *out, const char *name, const char *value);
/* Appends " (was VALUE)" and the end of the line; old NULL: it was not set. */
void tl_change_was(struct tl_text *out, const char *name, const char *old);
/* The member as text; of one in several languages "[en] TEXT [ko] TEXT". NULL: there is none. The
 * caller frees `made`, which may hold it. */
const char *tl_change_text(const json_t *members, const char *name, struct tl_text *made);

/* ---- signs of misuse ---- */

#define TL_CTL_SIGNS_COLUMNS 80 /* lines are no longer */

/* Adds up the entries of tl:{q}:signs of the last minute. now_ms: Unix time by the store's clock.
 */
bool tl_ctl_signs_read(struct tl_redis *redis, const struct tl_keys *keys, int64_t now_ms,
                       struct tl_signs *signs, struct tl_error *err);
/* Appends the signs of a queue in the last minute, over several lines if need be; nothing if there
 * are none: no network sent more than 60 joins or failed checks, and no session looks misused. */
void tl_ctl_signs_write(const char *queue, const struct tl_signs *signs, struct tl_text *out);

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
 * ascend. `before` is its own. */
struct tl_draw_check {
    const unsigned char *hash; /* published before the draw; NULL: the one in the list */
    const unsigned char *id;   /* a draw id to look for, or NULL */
    struct tl_draw_head head;  /* out */
    uint64_t n;                /* out: ids so far */
    uint64_t rank;             /* out: of that id, from 1; 0: it is not in the list */
    unsigned char before[TL_DRAW_KEY_BYTES];
};
/* Verifies a list from its beginning, as text or as pages one after the other. False, with err
 * naming the first line (of the text) that is wrong. */
bool tl_draw_verify(FILE *in, struct tl_draw_check *check, struct tl_error *err);

/* Takes pages: verifies them, or with `out` writes them there as text. */
struct tl_draw_pages {
    FILE *out;                   /* the caller's; NULL: */
    struct tl_draw_check *check; /* the caller's */
    struct tl_draw_head head;    /* of the first page */
    uint64_t n;                  /* ids so far */
    bool begun;
};
enum { TL_DRAW_PAGE_IDS = 1000 }; /* of a page, at most */
/* Adds the next page; the first one begins the list. False with err: the draw is not done, the page
 * is damaged or is of another draw, or the order is wrong. */
bool tl_draw_pages_add(struct tl_draw_pages *pages, const json_t *page, struct tl_error *err);
/* After the last page: are these all? */
bool tl_draw_check_end(const struct tl_draw_check *check, struct tl_error *err);

/* ---- the verbs ---- */

tl_ctl_verb tl_command_queues, tl_command_queue_show, tl_command_queue_create,
    tl_command_queue_line, tl_command_queue_delete, tl_command_open, tl_command_pause,
    tl_command_drain, tl_command_close, tl_command_sold_out, tl_command_passthrough,
    tl_command_recover, tl_command_notice, tl_command_set, tl_command_diff, tl_command_apply,
    tl_command_check, tl_command_config_doc, tl_command_draw, tl_command_draw_schedule,
    tl_command_verify_draw, tl_command_visitor_show, tl_command_visitor_move,
    tl_command_visitor_remove, tl_command_visitor_forget, tl_command_block, tl_command_unblock,
    tl_command_blocks, tl_command_hooks_list, tl_command_hooks_test, tl_command_stats,
    tl_command_top, tl_command_export, tl_command_log, tl_command_dashboard, tl_command_token_make,
    tl_command_token_list, tl_command_token_revoke, tl_command_key_make;

#endif
