/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything an operator does, as a function: one call is (method, target, body, If-Match,
 * Idempotency-Key, actor) -> (status, body, ETag). worker/admin serves these calls over HTTP, ctl/
 * makes them in process. Nobody else implements one, except what only a listener has.
 * docs/integrators/openapi-admin.yaml describes them, and a test compares it with the table of
 * routes.
 *
 * The caller has found out who asks and that the role suffices (struct tl_control_route).
 * Everything else is checked here.
 */
#ifndef TL_CONTROL_H
#define TL_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "common/auth/token.h"
#include "common/base/error.h"
#include "common/config/settings.h"
#include "common/control/target.h"
#include "common/store/actor.h"
#include "common/store/store.h"
#include "common/wire/names.h"
#include "common/wire/refusals.h"

/* ---- a request and its answer ---- */

#define TL_CONTROL_ETAG_MAX     48  /* bytes of an ETag with its quotes, and the zero */
#define TL_CONTROL_KEY_MAX      128 /* bytes of an Idempotency-Key */
#define TL_CONTROL_PROBLEM_TYPE "application/problem+json"

struct tl_control_request {
    const char *method; /* "GET", "POST", "PUT", "PATCH", "DELETE" */
    /* Path and query as in a request line, percent-encoded:
     * "/v1/admin/queues/concert/line?limit=20". */
    const char *target;
    const json_t *body;          /* NULL: none */
    const char *if_match;        /* NULL: none */
    const char *idempotency_key; /* NULL: none */
    const struct tl_actor *actor;
};

struct tl_control_answer {
    int status;
    json_t *body;                   /* owned; a problem (RFC 9457) from 400 on; NULL: none */
    char etag[TL_CONTROL_ETAG_MAX]; /* "": none */
    int retry_after_s;              /* 0: none */
    char allow[64];                 /* of a 405: the methods there are */
};

void tl_control_answer_clear(struct tl_control_answer *answer);
/* Makes the answer a problem of this kind, with the detail from the printf-style text. An answer
 * without memory for it has no body. Always returns NULL, which is false where a bool is wanted. */
void *tl_control_problem(struct tl_control_answer *answer, enum tl_refusal_kind kind,
                         const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The same for an error: `invalid` for invalid input, `no-such-queue`, `store-unavailable`, and
 * `internal` for what else may fail. */
void *tl_control_problem_of(struct tl_control_answer *answer, const struct tl_error *err);
/* Is the status one of success? */
bool tl_control_succeeded(const struct tl_control_answer *answer);

#define TL_CONTROL_BODY_MAX (256 * 1024) /* bytes: a bulk join of 1000 visitors fits */

/* An object, no member twice. NULL with TL_ERR_INVALID; the caller owns it. */
json_t *tl_control_read_body(const char *bytes, size_t length, struct tl_error *err);

/* ---- the control room ---- */

/* A connection to the store and what the calls need of the configuration. Not thread-safe: one for
 * each thread. */
struct tl_control;

/* config is borrowed and must outlive it. redis_url: NULL for that of the configuration. Opens no
 * connection: the first call does, and each call after it broke. */
struct tl_control *tl_control_new(const struct tl_config *config, const char *redis_url,
                                  struct tl_error *err);
void tl_control_free(struct tl_control **control);
/* The connection of a queue, borrowed; that of no queue where it is NULL. Opens the connections
 * that are not open. NULL: the store cannot be reached. */
struct tl_redis *tl_control_redis(struct tl_control *control, const char *queue,
                                  struct tl_error *err);

/* Its store, borrowed: for what a program does besides calls. */
struct tl_store *tl_control_store(const struct tl_control *control);

/* Does the call. There is always an answer; clear it with tl_control_answer_clear. Only routes of
 * the kind TL_CONTROL_CALL are found here. */
void tl_control_call(struct tl_control *control, const struct tl_control_request *request,
                     struct tl_control_answer *answer);

/* The id of a change: that of its entry in the stream and, for tl:{q}:changes, the queue:
 * "1732320000000-0:sale". */
#define TL_CHANGES_ID_MAX (41 + 1 + TL_QUEUE_NAME_MAX)

#define TL_CONTROL_PAGE_MAX 1000 /* entries of a list in one answer */

/* ---- the table of the calls: the only one ---- */

struct tl_control_call; /* under way; its definition belongs to the handlers */
typedef json_t *tl_control_handler(struct tl_control_call *call);

enum tl_control_kind {
    TL_CONTROL_CALL,   /* tl_control_call answers it */
    TL_CONTROL_EVENTS, /* server-sent events: the answer of the queue's `stats` once a second */
    TL_CONTROL_EXPORT, /* tl_control_export_begin */
    /* What only an admin listener has: worker/admin answers it. */
    TL_CONTROL_SESSION, /* who asks */
    TL_CONTROL_SIGN_IN, /* of a browser; the token is in the body */
    TL_CONTROL_SIGN_OUT,
    TL_CONTROL_LINK,    /* that signs a browser in */
    TL_CONTROL_PREVIEW, /* of a waiting page: no call, and so in no document */
    TL_CONTROL_REPORT,  /* of past sales, from the archive */
};

/* What tl_control_call does with an Idempotency-Key. */
enum tl_control_repeat {
    TL_REPEAT_FREELY, /* nothing: the call reads, or doing it twice is as doing it once */
    TL_REPEAT_KEPT,   /* answers a repeated key with the first answer */
};

struct tl_control_route {
    const char *method;
    const char *path;        /* "/v1/admin/queues/{queue}/visitors/{visitor}" */
    const char *operation;   /* operationId */
    enum tl_token_role role; /* the least that may call it */
    bool changes;            /* it changes something, if it succeeds */
    enum tl_control_kind kind;
    enum tl_control_repeat repeat;
    const char *query;           /* the parameters it takes, separated by spaces; NULL: none */
    tl_control_handler *handler; /* NULL unless TL_CONTROL_CALL */
    enum tl_queue_mode mode;     /* of the calls that set it */
};

/* All routes. Static storage. */
const struct tl_control_route *tl_control_routes(size_t *n);

/* Splits the text of a target and finds its route. NULL: the answer has the problem: 400, 404, or
 * 405 with `allow`. */
const struct tl_control_route *tl_control_route_find(const char *method, const char *text,
                                                     struct tl_target *target,
                                                     struct tl_control_answer *answer);

/* ---- the export ---- */

/*
 * All visitors of a queue, as CSV or JSON lines, in bounded memory: those who wait in the order of
 * the line, those who are active, those who ended lately. Each piece is a page of at most 1000
 * visitors. The export is no snapshot: who moves on meanwhile may be missing or be listed twice, in
 * both states.
 */
struct tl_control_export;

/* Begins the export that the request asks for: GET
 * /v1/admin/queues/{queue}/export?format=csv|jsonl. Borrows the control until the end; other calls
 * may be made between two pieces. NULL: the answer has the problem; otherwise it has status 200 and
 * is cleared as well. */
struct tl_control_export *tl_control_export_begin(struct tl_control *control,
                                                  const struct tl_control_request *request,
                                                  struct tl_control_answer *answer);
/* "text/csv; charset=utf-8; header=present" or "application/jsonl". Static storage. */
const char *tl_control_export_type(const struct tl_control_export *export);
/* How many visitors there were at the beginning, and how many are written: for progress. */
uint64_t tl_control_export_total(const struct tl_control_export *export);
uint64_t tl_control_export_written(const struct tl_control_export *export);
/* The next piece, borrowed until the next call. length 0: that was all. False: the store failed;
 * the caller breaks the stream off, so that nobody takes the part for the whole. */
bool tl_control_export_next(struct tl_control_export *export, const char **bytes, size_t *length,
                            struct tl_error *err);
void tl_control_export_end(struct tl_control_export **export);

#endif
