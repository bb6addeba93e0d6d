/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "worker/api/answer.h"
#include "worker/api/block.h"
#include "worker/api/handover.h"
#include "worker/api/move_body.h"
#include "worker/api/page_renderer.h"
#include "worker/api/return_to.h"
#include "worker/api/shown_place.h"
#include "worker/api/visitor.h"
#include "worker/http/json_text.h"
#include "worker/http/renderer.h"
#include "worker/page/qr.h"
#include "worker/page/return_address.h"
#include "worker/queue/tickets.h"

enum { SLACK_S = 5 }; /* workers estimate the store's clock */

static bool may_move(const struct tl_api *api, const struct tl_request *request,
                     struct tl_refusal *refusal)
{
    const uint64_t most = api->config->http.joins_per_minute;
    struct tl_address address;
    return most == 0 || !tl_visitor_address(api, request, &address) ||
           tl_limiter_allow(api->limiter, TL_LIMITER_MOVES, &address, most, tl_clock_ms()) ||
           tl_refuse(refusal, TL_REFUSAL_TOO_OFTEN, "At most %llu codes a minute; please wait",
                     (unsigned long long)most);
}

/* ---- making a code ---- */

struct made {
    char code[TL_TICKET_MAX];
    char address[TL_QR_TEXT_MAX + 1];
    struct tl_qr qr;
};

/* Does the ticket's place wait, with a number that lasts? Who has the next turn is called already.
 */
static bool is_waiting(struct tl_queue *queue, const struct tl_ticket *ticket)
{
    bool known;
    struct tl_line_view state = tl_queue_look(queue, ticket->place, &known);
    return state.status == TL_LINE_WAITING && !state.called && !tl_queue_drawing(queue);
}

/* The address of the other device's page. The code is its fragment, which a browser sends to no
 * server, so that it stands in no log. In front of it is where the visitor wants to go, unless the
 * code would get hard to scan. */
static void write_address(const struct tl_api *api, const struct tl_queue *queue,
                          const struct tl_request *request, struct made *made)
{
    const char *url = api->config->http.public_url;
    const char *name = queue->name;
    char encoded[TL_ADDRESS_MAX] = "";
    struct tl_return_to back;
    tl_return_to_read(api, request, queue->settings.target_url, &back);
    if (back.address[0] == '\0' || !tl_address_append(encoded, back.address, true) ||
        snprintf(made->address, sizeof(made->address), "%s/q/%s/move?return=%s#%s", url, name,
                 encoded, made->code) > TL_QR_TEXT_MAX)
        snprintf(made->address, sizeof(made->address), "%s/q/%s/move#%s", url, name, made->code);
}

/* Makes the code; tl_qr_free frees made->qr if it returns true. */
static bool make(struct tl_api *api, struct tl_request *request, const char *name,
                 struct made *made, struct tl_refusal *refusal)
{
    struct tl_ticket ticket = {0};
    if (!api->config->page.transfer)
        return tl_refuse(refusal, TL_REFUSAL_NO_TRANSFER, "%s", "");
    if (!tl_block_passes(api, request, name, refusal))
        return false;
    struct tl_queue *queue = tl_visitor_of(api, request, name, &ticket, refusal);
    if (queue == NULL)
        return false;
    if (tl_place_seq(ticket.place) == 0)
        return tl_refuse(refusal, TL_REFUSAL_NOT_NUMBERED, "Ask for the status first");
    if (tl_queue_moved(queue, &ticket))
        return tl_refuse(refusal, TL_REFUSAL_MOVED, "%s", "");
    if (!tl_visitor_may_send(api, refusal) || !may_move(api, request, refusal))
        return false;
    if (!is_waiting(queue, &ticket) || ticket.serial == UINT32_MAX)
        return tl_refuse(refusal, TL_REFUSAL_NOT_WAITING, "%s", "");
    ticket.serial++;
    ticket.issued = (uint32_t)(tl_queue_env_store_ms(api->env, tl_clock_ms()) / 1000);
    tl_ticket_sign_code(api->secrets.keyring, name, &ticket, made->code);
    write_address(api, queue, request, made);
    tl_qr_make(made->address, &made->qr);
    if (!made->qr.path.failed)
        return true;
    tl_qr_free(&made->qr);
    return tl_refuse(refusal, TL_REFUSAL_BUSY, "There is no memory for the code; try again");
}

bool tl_handle_transfer(void *context, struct tl_request *request, const char *name,
                        struct tl_refusal *refusal)
{
    struct made made;
    if (!make(context, request, name, &made, refusal))
        return false;
    struct tl_text svg = {0};
    tl_qr_svg(&made.qr, &svg);
    tl_qr_free(&made.qr);
    const size_t size = TL_JSON_ESCAPED_MAX(svg.length) + sizeof(made);
    char *text = svg.failed ? NULL : malloc(size);
    if (text == NULL) {
        tl_text_free(&svg);
        return tl_refuse(refusal, TL_REFUSAL_BUSY, "There is no memory for the code; try again");
    }
    struct tl_json json;
    tl_json_begin(&json, text, size);
    tl_json_string(&json, "code", made.code);
    tl_json_string(&json, "address", made.address);
    tl_json_uint(&json, "expires_in", TL_TICKET_CODE_S);
    tl_json_string(&json, "svg", svg.data);
    const struct tl_answer answer = {
        .status = 200, .type = "application/json", .body = text, .length = tl_json_end(&json)};
    tl_request_answer(request, &answer);
    tl_text_free(&svg);
    free(text);
    return true;
}

bool tl_handle_page_transfer(void *context, struct tl_request *request, const char *name,
                             struct tl_refusal *refusal)
{
    const struct tl_api *api = context;
    struct made made;
    if (tl_shown_place_differs(api, request, name)) {
        tl_page_send_present(api, request, name);
        return true;
    }
    if (make(context, request, name, &made, refusal)) {
        tl_page_send_code(api, request, name, made.address, &made.qr);
        tl_qr_free(&made.qr);
        return true;
    }
    /* The page says what became of the place meanwhile. */
    if (refusal->kind != TL_REFUSAL_NOT_WAITING && refusal->kind != TL_REFUSAL_NOT_NUMBERED &&
        refusal->kind != TL_REFUSAL_NO_TRANSFER)
        return false;
    tl_page_send_back(api, request, name);
    return true;
}

/* ---- redeeming it ---- */

/* Was this code, or another one for its serial, redeemed? The store knows by which device. */
static bool is_redeemed(const struct tl_queue *queue, const struct tl_ticket *ticket)
{
    return !tl_queue_outdated(queue, ticket) &&
           tl_queue_serial(queue, ticket->place) >= ticket->serial;
}

/* The code, as the ticket that it gives. One that was redeemed lasts longer: if the answer was
 * lost, no device has the place until that device repeats the request. */
static bool read_code(const struct tl_api *api, const struct tl_queue *queue, const char *text,
                      struct tl_ticket *ticket, struct tl_refusal *refusal)
{
    int64_t now_ms = tl_clock_ms();
    if (!tl_ticket_verify_code(api->secrets.keyring, queue->name, text, strlen(text), ticket))
        return tl_refuse(refusal, TL_REFUSAL_BAD_CODE, "%s", "");
    int64_t age_s = tl_queue_env_store_ms(api->env, now_ms) / 1000 - ticket->issued;
    const int64_t most_s = is_redeemed(queue, ticket) ? TL_TICKET_CODE_REPEAT_S : TL_TICKET_CODE_S;
    if (age_s > most_s || age_s < -SLACK_S)
        return tl_refuse(refusal, TL_REFUSAL_CODE_OVER, "It is good for %d seconds",
                         TL_TICKET_CODE_S);
    return true;
}

static uint64_t random_device(void)
{
    return (uint64_t)randombytes_random() << 20 | randombytes_uniform(1 << 20);
}

static bool read_body(const struct tl_request *request, struct tl_move_body *body,
                      struct tl_refusal *refusal)
{
    struct tl_error err = {0};
    size_t length;
    const char *text = tl_request_body(request, &length);
    if (tl_move_body_is_form(request)) {
        tl_move_body_parse_form(text, length, body);
        return true;
    }
    return tl_move_body_parse_json(text, length, body, &err) ||
           tl_refuse(refusal, TL_REFUSAL_BAD_BODY, "%s", err.text);
}

/* The page knows nothing of the code yet, not even whether it is good. */
bool tl_handle_page_move(void *context, struct tl_request *request, const char *name,
                         struct tl_refusal *refusal)
{
    struct tl_api *api = context;
    char digits[TL_MOVE_DEVICE_MAX + 4];
    if (tl_visitor_queue(api, name, refusal) == NULL ||
        !tl_block_passes(api, request, name, refusal))
        return false;
    snprintf(digits, sizeof(digits), "%" PRIx64, random_device());
    tl_page_send_move(api, request, name, digits);
    return true;
}

bool tl_handle_move(void *context, struct tl_request *request, const char *name,
                    struct tl_refusal *refusal)
{
    struct tl_api *api = context;
    struct tl_ticket ticket = {0};
    struct tl_move_body body;
    struct tl_queue *queue = tl_visitor_queue(api, name, refusal);
    if (queue == NULL || !tl_block_passes(api, request, name, refusal) ||
        !tl_visitor_may_send(api, refusal) || !read_body(request, &body, refusal) ||
        !read_code(api, queue, body.code, &ticket, refusal) || !may_move(api, request, refusal))
        return false;
    const uint64_t device =
        1 + (body.device[0] != '\0' ? strtoull(body.device, NULL, 16) : random_device());
    if (tl_queue_behind(queue, &ticket, tl_clock_ms()))
        return tl_refuse(refusal, TL_REFUSAL_LOADING, "%s", "");
    if (tl_queue_outdated(queue, &ticket))
        return tl_refuse(refusal, TL_REFUSAL_CODE_OVER, "The queue was recreated");
    struct tl_pending_command *pending =
        tl_outbox_hand_over(queue->outbox, ticket.visitor, ticket.place, ticket.serial, device);
    const struct tl_held held = {
        .queue = queue, .request = request, .ticket = ticket, .since_us = tl_clock_us()};
    if (pending != NULL && tl_holds_command(api->holds, &held, pending))
        return true;
    return tl_refuse(refusal, TL_REFUSAL_BUSY, "There is no memory for this command; try again");
}

static void answer_moved_here(struct tl_api *api, const struct tl_held *held)
{
    struct tl_ticket ticket = tl_answer_ticket(held->queue, api->env, held->ticket.visitor,
                                               held->ticket.place, tl_clock_ms());
    ticket.serial = held->ticket.serial;
    (void)tl_queue_adopt(held->queue, &ticket); /* in another lane meanwhile */
    tl_answer_view(api, held->queue, held->request, &ticket, true);
}

void tl_handover_settled(struct tl_api *api, const struct tl_held *held,
                         const struct tl_pending_result *result)
{
    if (result != NULL && result->end == TL_PENDING_REFUSED)
        tl_render_refused(held->request, TL_REFUSAL_STORE,
                          "The store did not take the command; try again");
    else if (result == NULL || result->end != TL_PENDING_APPLIED)
        tl_render_refused(held->request, TL_REFUSAL_UNKNOWN_OUTCOME,
                          "The command is in progress; repeat it with the same code and device");
    else if (result->outcome == TL_OUTCOME_DONE)
        answer_moved_here(api, held);
    else if (result->outcome == TL_OUTCOME_WAITING)
        tl_render_refused(held->request, TL_REFUSAL_CODE_USED, "");
    else
        tl_render_refused(held->request, TL_REFUSAL_CODE_OVER,
                          result->outcome == TL_OUTCOME_ACTIVE
                              ? "Its turn has come on the other device"
                              : "Its place has ended");
}
