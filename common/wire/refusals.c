/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/wire/refusals.h"

static const struct tl_refusal_row rows[TL_REFUSAL_COUNT] = {
    [TL_REFUSAL_BAD_REQUEST] = {"bad-request", 400, 0, "The request is malformed",
                                "Its address or a header is not well formed, or where its head or "
                                "body ends is unclear. `detail` says which."},
    [TL_REFUSAL_BAD_QUERY] = {"bad-query", 400, 0, "A query parameter is not valid",
                              "A parameter is missing or out of bounds, or, in the admin API, "
                              "unknown or given twice. `detail` says which."},
    [TL_REFUSAL_BAD_BODY] = {"bad-body", 400, 0, "The request body is not valid",
                             "It is no JSON object, or a member is missing, unknown or of the "
                             "wrong type. `detail` names it."},
    [TL_REFUSAL_NOT_JSON] = {"not-json", 415, 0, "The body must be application/json",
                             "Send the header `Content-Type: application/json`."},
    [TL_REFUSAL_TOO_LARGE] = {"too-large", 413, 0, "The request body is too large",
                              "`detail` says how many bytes a body may have."},
    [TL_REFUSAL_INVALID] =
        {"invalid", 422, 0, "A value is invalid",
         "A value breaks a rule or a limit. `detail` says which; `errors` lists several."},
    [TL_REFUSAL_METHOD] = {"method-not-allowed", 405, 0, "Method not allowed",
                           "The header `Allow` lists the methods that this address takes."},
    [TL_REFUSAL_NOT_FOUND] = {"not-found", 404, 0, "Not found",
                              "There is nothing at this address, or no such visitor, token, block "
                              "or draw. `detail` says what is missing."},
    [TL_REFUSAL_NO_QUEUE] = {"no-such-queue", 404, 0, "There is no such queue",
                             "It was never created, or was deleted."},
    [TL_REFUSAL_KEY_IN_USE] = {"key-in-use", 409, 1, "The first request is under way",
                               "A request with this `Idempotency-Key` has no answer yet. Send it "
                               "again after `Retry-After`, with the same key."},
    [TL_REFUSAL_KEY_REUSED] =
        {"key-reused", 422, 0, "The key belongs to another request",
         "Use a new `Idempotency-Key` for each request, and the same one only to repeat it."},
    [TL_REFUSAL_BAD_TICKET] = {"bad-ticket", 401, 0, "A valid ticket of this queue is required",
                               "The ticket is missing, forged, too old or of another queue. Join "
                               "to get one."},
    [TL_REFUSAL_BAD_TOKEN] = {"bad-token", 401, 0, "A token of an operator is required",
                              "The token is missing, wrong or revoked, or the session of the "
                              "dashboard is over. Sign in again."},
    [TL_REFUSAL_FORGERIES] = {"too-many-forgeries", 429, 30,
                              "Too many tokens from this address were not genuine",
                              "Tickets, invites or tokens that are not genuine came too often. "
                              "Wait for `Retry-After`."},
    [TL_REFUSAL_FORBIDDEN] = {"forbidden", 403, 0, "This is not allowed",
                              "The token is good, but its role does not allow this call, or "
                              "browsers cannot sign in here. `detail` says which."},
    [TL_REFUSAL_NOT_TRUSTED] = {"not-trusted", 403, 0, "Only a trusted caller may do this",
                                "Naming the visitor or the lane, and reporting the load of the "
                                "site, need an API key as `Authorization: Bearer`."},
    [TL_REFUSAL_FOREIGN_ORIGIN] = {"cross-origin", 403, 0, "A page of another web site sent this",
                                   "Its origin is neither this site nor allowed by "
                                   "`http.allowed_origins` or `admin.public_url`."},
    [TL_REFUSAL_BLOCKED] =
        {"blocked", 403, 0, "This address is blocked",
         "An operator has blocked it or its network, and only an operator can end that."},
    [TL_REFUSAL_SHARED] =
        {"shared-session", 403, 0, "This session is used by another client",
         "The queue refuses shared sessions, and another client came first to this one."},
    [TL_REFUSAL_BY_INVITATION] = {"by-invitation", 403, 0,
                                  "This queue is joined by invitation only",
                                  "Send an invite that the site has signed, or join with an API "
                                  "key."},
    [TL_REFUSAL_BAD_INVITE] = {"bad-invite", 403, 0, "The invite is not valid",
                               "It is forged, expired or of another queue. `detail` says what is "
                               "wrong; ask the site for a new one."},
    [TL_REFUSAL_INVITE_SPENT] =
        {"invite-used", 403, 0, "The invite has been used already",
         "Use the ticket of the place that it gave, or ask the site for a new invite."},
    [TL_REFUSAL_CHALLENGE] = {"challenge-required", 403, 0, "This queue asks for a check first",
                              "Solve the `puzzle`, or get a token of the `provider` for "
                              "`site_key`, and join with it."},
    [TL_REFUSAL_CHALLENGE_FAILED] = {"challenge-failed", 403, 0, "The check did not succeed",
                                     "The solution or token is wrong, too old or used. Try again "
                                     "with what the problem carries."},
    [TL_REFUSAL_UNVERIFIED] = {"challenge-unavailable", 503, 3,
                               "The check cannot be verified at the moment",
                               "The challenge service could not be asked. Try again with a new "
                               "token after `Retry-After`, or solve the `puzzle` if there is one."},
    [TL_REFUSAL_TOO_MANY] = {"too-many-joins", 429, 30, "Too many joins from this address",
                             "It or its network has taken all the new places it may take for now. "
                             "Wait for `Retry-After`."},
    [TL_REFUSAL_FULL] = {"full", 503, 15, "The line is full",
                         "`max_waiting` visitors wait. A repeat with its `Idempotency-Key` is "
                         "refused, too. Try again after `Retry-After`."},
    [TL_REFUSAL_DRAINING] = {"draining", 403, 30, "The queue takes no new visitors",
                             "Those in line are still served. Joins begin again when an operator "
                             "opens the queue."},
    [TL_REFUSAL_CLOSED] = {"closed", 403, 30, "The queue is closed",
                           "Joins begin again when an operator opens the queue."},
    [TL_REFUSAL_SOLD_OUT] = {"sold-out", 410, 0, "Sold out", "The sale is over. Do not try again."},
    [TL_REFUSAL_OVER] = {"join-closed", 410, 0, "The time to join is over",
                         "The queue's `closes_at` has passed. Do not try again."},
    [TL_REFUSAL_REMOVED] = {"removed", 403, 0, "This place was removed by the operator",
                            "Its ticket gets no other place in this queue."},
    [TL_REFUSAL_OLD_GENERATION] = {"queue-recreated", 409, 0, "The queue was recreated; join again",
                                   "The ticket is of an earlier queue of the same name. Drop it."},
    [TL_REFUSAL_NOT_NUMBERED] = {"pending", 409, 1, "The place has no number yet",
                                 "The join is accepted and numbered soon. Ask for the status "
                                 "first, or try again after `Retry-After`."},
    [TL_REFUSAL_NOT_ADMITTED] =
        {"not-admitted", 409, 0, "Not admitted yet",
         "The place still waits, or its session is over. `check` answers with 401 instead."},
    [TL_REFUSAL_MOVED] = {"moved", 409, 0, "The place is on another device now",
                          "It was transferred. This ticket is no longer valid."},
    [TL_REFUSAL_NOT_WAITING] = {"not-waiting", 409, 0, "Only a place that waits can be moved",
                                "The visitor has been admitted, or the place has ended."},
    [TL_REFUSAL_NO_TRANSFER] = {"no-transfer", 403, 0, "Places stay on their devices here",
                                "The configuration allows no transfers (`http.transfer`)."},
    [TL_REFUSAL_BAD_CODE] = {"bad-code", 403, 0, "The code is not valid",
                             "It is mistyped, forged or of another queue."},
    [TL_REFUSAL_CODE_USED] = {"code-used", 409, 0, "The code has been used already",
                              "Get a new one on the device that has the place."},
    [TL_REFUSAL_CODE_OVER] =
        {"code-expired", 410, 0, "The code is no longer valid",
         "It is too old, or its place has ended or has its turn. Get a new one "
         "on the device that has the place."},
    [TL_REFUSAL_CONFLICT] = {"conflict", 409, 0, "The present state does not allow this",
                             "`detail` says what the state is. Nothing was changed."},
    [TL_REFUSAL_LIMIT] =
        {"limit-reached", 409, 0, "There are as many as may be",
         "`detail` says of what, and which setting is the limit, if one is. Delete one first."},
    [TL_REFUSAL_CHANGED] = {"changed", 412, 0, "It was changed meanwhile",
                            "The settings are not those that `If-Match` names. Read them again."},
    [TL_REFUSAL_TOO_OFTEN] =
        {"too-often", 429, 1, "Too many calls in a short time",
         "The caller makes this call more often than allowed. Wait for `Retry-After`."},
    [TL_REFUSAL_BUSY] = {"busy", 503, 2, "Too many requests are in progress",
                         "Nothing was changed. Try again after `Retry-After`."},
    [TL_REFUSAL_LOADING] = {"loading", 503, 1, "The line is being loaded",
                            "This process has just started or lost the line. Try again after "
                            "`Retry-After`."},
    [TL_REFUSAL_STORE] =
        {"store-unavailable", 503, 2, "The store is not available",
         "Redis cannot be reached, or refuses to write. Places are kept. Try again "
         "after `Retry-After`."},
    [TL_REFUSAL_ARCHIVE] =
        {"archive-unavailable", 503, 3, "The archive is not available",
         "PostgreSQL cannot be reached, or too many ask it. Try again after `Retry-After`."},
    [TL_REFUSAL_UNKNOWN_OUTCOME] = {"unknown-outcome", 503, 1, "The outcome is not known yet",
                                    "Nobody has confirmed the command yet. Repeat the same "
                                    "request: a place or an end is never taken twice."},
    [TL_REFUSAL_STOPPING] = {"stopping", 503, 1, "This process is shutting down",
                             "Try again after `Retry-After`: another process answers."},
    [TL_REFUSAL_INTERNAL] = {"internal", 500, 0, "The server could not do it",
                             "`detail` says what failed; the log of the worker may say more."},
};

const struct tl_refusal_row *tl_refusal_row(enum tl_refusal_kind kind)
{
    return &rows[kind];
}

bool tl_refusal_page(const char *name, struct tl_text *page)
{
    for (size_t i = 0; i < TL_REFUSAL_COUNT; i++)
        if (strcmp(name, rows[i].name) == 0) {
            tl_text_append(page, "%s (%u)\n%s\n\n%s\n", rows[i].name, rows[i].status, rows[i].title,
                           rows[i].help);
            return true;
        }
    return false;
}
