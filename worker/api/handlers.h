/* SPDX-License-Identifier: Apache-2.0 */
/* What answers which request, and what the files of this room ask of each other. */
#ifndef TL_HANDLERS_H
#define TL_HANDLERS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/auth/invite.h"
#include "common/auth/puzzle.h"
#include "worker/http/router.h"
#include "worker/page/page_address.h"
#include "worker/page/view.h"
#include "worker/report/queue_counts.h"
#include "worker/visit/visit.h"

extern const struct tl_route tl_routes[]; /* for tl_router_find */

tl_step tl_handle_join, tl_handle_status, tl_handle_events, tl_handle_leave, tl_handle_complete,
    tl_handle_renew, tl_handle_extend;
tl_step tl_handle_transfer, tl_handle_move, tl_handle_page_transfer, tl_handle_page_move;
tl_step tl_handle_check, tl_handle_draw, tl_handle_feedback;
tl_step tl_handle_page, tl_handle_page_join, tl_handle_page_leave;
tl_step tl_handle_queue, tl_handle_jwks, tl_handle_livez, tl_handle_readyz;
tl_step tl_handle_trail, tl_handle_proof, tl_handle_page_proof;
tl_step tl_handle_asset, tl_handle_openapi, tl_handle_problem;

/* ---- the archive ---- */

/* A question about the visit's place was refused. Does the archive know it, while the store is
 * away? Then asks it and returns true; the answer is its last known place. False: still refused. */
bool tl_archived_place(struct tl_visit *visit);

/* Can this worker prove places: is there an archive, and the key of its names? */
bool tl_proof_exists(const struct tl_worker *worker);
/* Asks for the proof that the place of the visit's ticket is in the trail, and takes the step when
 * it is there, or not in time. False: refused. */
bool tl_proof_ask(struct tl_visit *visit, tl_step *step);
/* The proof, which is the archive's; NULL: refused. */
struct tl_archive_job;
const struct tl_archive_job *tl_proof_told(struct tl_visit *visit);
#define TL_PROOF_TEXT_MAX 16384
/* Writes it as JSON, which `tellerline verify place` reads. Returns the length. */
size_t tl_proof_write(const struct tl_visit *visit, const struct tl_archive_job *job,
                      char text[TL_PROOF_TEXT_MAX]);

/* ---- the challenge ---- */

/* What a queue with a challenge asks for before it gives a new place. `work`: the solution of a
 * puzzle, or for browsers without scripts a signed wait. `external`: a token of the challenge
 * service, which verifies it. */

/* How long the signed wait is, in seconds. */
#define TL_CHALLENGE_WAIT_S 10
/* Signed waits of one address at most; see worker/http/limiter.h for networks. */
#define TL_CHALLENGE_WAITS_A_MINUTE 10

/* What a request brings for the challenge. NULL or "": nothing. */
struct tl_proof {
    const char *solution, *token;
};

/* Does the queue take tokens, and the request bring one that has to be verified? */
bool tl_challenge_takes_token(const struct tl_visit *visit, const struct tl_proof *proof);
/* May this request take a new place, without a verification? True when the queue has no challenge,
 * or the request comes from a trusted caller: then solved->id is "". Or when the request brings a
 * solution: the join must spend solved->id. Else refused, with a fresh puzzle, or with the service
 * whose token is asked for. */
bool tl_challenge_passed(struct tl_visit *visit, const struct tl_proof *proof,
                         struct tl_puzzle_solved *solved);
/* A join with this spent id ended with TL_OUTCOME_SPENT: refuses, with a fresh puzzle if the id was
 * a puzzle's, and not an invite's. Returns false. */
bool tl_challenge_refuse_spent(struct tl_visit *visit, const char *id);
/* Writes the signed wait that a page for this visit offers. */
void tl_challenge_wait(const struct tl_visit *visit, char text[TL_PUZZLE_MAX]);

/*
 * Joins that wait for the verdict of the challenge service on their token, until its deadline, or
 * until their client is gone. How many may wait is bounded.
 */
/* Waits for the verdict on the token. False: refused. The step begins with tl_verification_passed.
 */
bool tl_verification_begin(struct tl_visit *visit, const char *token, tl_step *step);
/* Is the token good? Else refused. The join must spend the id visit->wait.about, which is
 * remembered as spent until *kept_until (Unix seconds). */
bool tl_verification_passed(struct tl_visit *visit, int64_t *kept_until);
/* Questions to the service have ended, for the verifier. */
void tl_verifications_ended(void *worker);
/* Call every tick: ends what no client waits for. */
void tl_verifications_tick(struct tl_worker *worker, int64_t now_ms);

/* ---- joins; all answer the request or let it wait, or refuse and return false ---- */

/* May a join follow the visit's ticket, as it was judged? Refused if its place is on another device
 * now, or if the operator removed its visitor: nothing gives such a visitor another place, as long
 * as the end is remembered. */
bool tl_join_may_follow(struct tl_visit *visit);

/* Joins a visitor who holds no place and has no invite, where the queue needs none: the request
 * must pass its challenge. visitor: as of an earlier ticket, or NULL for a new one. Counted against
 * the address.
 */
bool tl_join_newcomer(struct tl_visit *visit, const char *visitor, unsigned lane,
                      const struct tl_proof *proof);
/* Joins the visitor of an invite. */
bool tl_join_by_invite(struct tl_visit *visit, const char *invite);
/* Joins with a ticket, which was judged: the place still held, or a new one in the default lane. */
bool tl_join_again(struct tl_visit *visit, const struct tl_proof *proof);
/* Joins the visitor of a pending ticket again: the same join. */
bool tl_join_by_ticket(struct tl_visit *visit);
/* The holder of a pending ticket leaves: the place is given up as soon as its number is known. */
bool tl_join_then_leave(struct tl_visit *visit);

/* ---- the gate ---- */

/* In the mode passthrough, by the file or in the store: answers a join or the page so, and returns
 * true. */
bool tl_past_everyone(const struct tl_visit *visit);

/* Reads an invite to this queue. False: refused, it is not genuine, or too many were not. */
bool tl_past_invite(struct tl_visit *visit, const char *text, struct tl_invite *invite);
/* An invite with a bypass lets its bearer past the line: remembered in a cookie, which `check`
 * reads, until it expires. False: refused, it is too long for that, or over. */
bool tl_past_by_invite(struct tl_visit *visit, const char *text, const struct tl_invite *invite);

/*
 * ---- signs of misuse, for the operator ----
 *
 * Networks that send very many joins or credentials that open nothing, sessions that several
 * clients use in turn, sessions checked faster than by a person. Each is counted (worker/report),
 * logged at most once in ten seconds, and sent to the store for `tellerline top`
 * (common/store/signs.h): with the network.
 */
struct tl_misuse *tl_misuse_new(void); /* NULL when out of memory */
void tl_misuse_free(struct tl_misuse **misuse);

/* Counts one for this queue, in the metrics with the label `queue`. */
void tl_misuse_count(const struct tl_worker *worker, const char *queue, enum tl_queue_count kind);

/* Notes that a visitor without a ticket wants to join the queue. */
void tl_misuse_join(const struct tl_visit *visit);
/* Notes a ticket or pass that did not open the gate. */
void tl_misuse_failed(const struct tl_visit *visit);
/* May this client use the session of the visit's ticket, by the queue's setting session_sharing? */
bool tl_misuse_session(struct tl_visit *visit);

/* Call every tick: sends what was seen at each queue to the store, every ten seconds. */
void tl_misuse_tick(const struct tl_worker *worker, int64_t now_ms);

/* ---- answers under /q/: the waiting page ---- */

extern const struct tl_renderer tl_page_renderer;

/* `?return=`: where the waiting page sends its visitor. */
struct tl_return_to {
    char address[TL_ADDRESS_MAX]; /* percent-encoded; "": none */
    const char *refused;          /* why there is none, for the sender of the link; or NULL */
};

/* Reads the address. It counts if it leads to the site that the queue guards (target_url, may be
 * ""), or to one the operator named. A sender who did not encode it is understood where that is
 * possible: parameters after it that are not the page's own belong to its query. */
void tl_return_to_read(const struct tl_visit *visit, const char *target_url,
                       struct tl_return_to *result);

/* All of these answer the request and return true. */

/* A page of no place: OUTSIDE says how to join; MOVE asks whether the place of the request's code
 * is to come to this device, which has the number `device`; CODE shows a code, its address and the
 * image of that (`code_address`, `qr`). Nothing else of the view is read. */
bool tl_page_send(const struct tl_visit *visit, const struct tl_view *what);

/* 303 to the page at another address. */
enum tl_page_redirection {
    TL_PAGE_BACK,    /* from a form to the page of the visitor's place */
    TL_PAGE_PRESENT, /* from a form on a page of another place, to that of the cookie's place */
    TL_PAGE_CLEAN,   /* without the ticket and the invite, which others could use */
    TL_PAGE_PROBE,   /* with a cookie that shows whether the browser keeps cookies */
};
bool tl_page_redirect(const struct tl_visit *visit, enum tl_page_redirection to);

#endif
