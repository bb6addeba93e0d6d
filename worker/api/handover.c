/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hands a place over to another device: the device that has the place asks for a code, and shows it
 * as a QR code; the other one redeems it. Opening the address of a code moves nothing, because
 * programs open addresses, too: a person does it, with a button.
 *
 * A code is signed and holds the place and its next serial. So the store, which compares and sets
 * serials, takes one code of those made for a serial, once.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/base/json_text.h"
#include "worker/api/body.h"
#include "worker/api/handlers.h"
#include "worker/http/router.h"
#include "worker/page/page_address.h"
#include "worker/visit/answer.h"
#include "worker/visit/browser.h"

enum { SLACK_S = 5 }; /* workers estimate the store's clock */

static bool may_move(struct tl_visit *visit)
{
    const uint64_t most = visit->worker->config->http.joins_per_minute;
    return tl_visit_within(visit, TL_LIMITER_MOVES, most) ||
           tl_refuse(&visit->refusal, TL_REFUSAL_TOO_OFTEN,
                     "At most %llu codes a minute; please wait", (unsigned long long)most);
}

/* ---- making a code ---- */

struct made {
    char code[TL_TICKET_MAX];
    char address[TL_QR_TEXT_MAX + 1];
    struct tl_qr qr;
};

/* The address of the other device's page. The code is its fragment, which a browser sends to no
 * server, so that it stands in no log. In front of it is where the visitor wants to go, unless the
 * code would get hard to scan. */
static void write_address(const struct tl_visit *visit, struct made *made)
{
    const char *url = visit->worker->config->http.public_url;
    const char *name = visit->name;
    char encoded[TL_ADDRESS_MAX] = "";
    struct tl_return_to back;
    tl_return_to_read(visit, visit->queue->settings.target_url, &back);
    if (back.address[0] == '\0' || !tl_address_append(encoded, back.address, true) ||
        snprintf(made->address, sizeof(made->address), "%s/q/%s/move?return=%s#%s", url, name,
                 encoded, made->code) > TL_QR_TEXT_MAX)
        snprintf(made->address, sizeof(made->address), "%s/q/%s/move#%s", url, name, made->code);
}

/* May places move, and has the visitor a ticket of one? Then takes the step. */
static bool begin(struct tl_visit *visit, tl_step *step)
{
    if (!visit->worker->config->http.transfer)
        return tl_refuse(&visit->refusal, TL_REFUSAL_NO_TRANSFER, "%s", "");
    return tl_visit_passes_blocks(visit) && tl_visit_ticket(visit, step);
}

/* Makes the code; tl_qr_free frees made->qr if it returns true. */
static bool make(struct tl_visit *visit, struct made *made)
{
    const struct tl_worker *worker = visit->worker;
    struct tl_refusal *refusal = &visit->refusal;
    if (visit->worth == TL_WORTH_PENDING)
        return tl_refuse(refusal, TL_REFUSAL_NOT_NUMBERED, "Ask for the status first");
    if (visit->worth == TL_WORTH_MOVED)
        return tl_refuse(refusal, TL_REFUSAL_MOVED, "%s", "");
    if (!tl_visit_may_send(visit) || !may_move(visit))
        return false;
    /* With a number that lasts. A visitor with the next turn is called already. */
    if (visit->worth != TL_WORTH_WAITS || visit->state.called ||
        tl_queue_weather(visit->queue, visit->now_ms)->drawing ||
        visit->ticket.serial == UINT32_MAX)
        return tl_refuse(refusal, TL_REFUSAL_NOT_WAITING, "%s", "");
    struct tl_ticket ticket = visit->ticket;
    ticket.serial++;
    ticket.issued = (uint32_t)(tl_queue_env_store_ms(worker->env, visit->now_ms) / 1000);
    tl_ticket_sign_code(worker->secrets.keyring, visit->name, &ticket, made->code);
    write_address(visit, made);
    tl_qr_make(made->address, &made->qr);
    if (!made->qr.path.failed)
        return true;
    tl_qr_free(&made->qr);
    return tl_refuse(refusal, TL_REFUSAL_BUSY, "There is no memory for the code; try again");
}

static bool give_code(struct tl_visit *visit)
{
    struct made made;
    if (!make(visit, &made))
        return false;
    struct tl_text svg = {0};
    tl_qr_svg(&made.qr, &svg);
    tl_qr_free(&made.qr);
    const size_t size = TL_JSON_ESCAPED_MAX(svg.length) + sizeof(made);
    char *text = svg.failed ? NULL : malloc(size);
    if (text == NULL) {
        tl_text_free(&svg);
        return tl_refuse(&visit->refusal, TL_REFUSAL_BUSY,
                         "There is no memory for the code; try again");
    }
    struct tl_json json;
    tl_json_begin(&json, text, size);
    tl_json_string(&json, "code", made.code);
    tl_json_string(&json, "address", made.address);
    tl_json_uint(&json, "expires_in_seconds", TL_TICKET_CODE_S);
    tl_json_string(&json, "svg", svg.data);
    (void)tl_answer_json(visit, 200, &json);
    tl_text_free(&svg);
    free(text);
    return true;
}

bool tl_handle_transfer(struct tl_visit *visit)
{
    return begin(visit, give_code);
}

static bool show_code(struct tl_visit *visit)
{
    struct made made;
    if (!make(visit, &made))
        return false;
    tl_page_send(visit, &(struct tl_view){
                            .page = TL_PAGE_CODE, .code_address = made.address, .qr = &made.qr});
    tl_qr_free(&made.qr);
    return true;
}

bool tl_handle_page_transfer(struct tl_visit *visit)
{
    if (tl_shown_place_differs(visit))
        return tl_page_redirect(visit, TL_PAGE_PRESENT);
    if (begin(visit, show_code))
        return true;
    /* The page says what became of the place meanwhile. */
    const enum tl_refusal_kind kind = visit->refusal.kind;
    return (kind == TL_REFUSAL_NOT_WAITING || kind == TL_REFUSAL_NOT_NUMBERED ||
            kind == TL_REFUSAL_NO_TRANSFER) &&
           tl_page_redirect(visit, TL_PAGE_BACK);
}

/* ---- redeeming it ---- */

/* Was this code, or another one for its serial, redeemed? The store knows by which device. */
static bool is_redeemed(const struct tl_queue *queue, const struct tl_ticket *ticket)
{
    return !tl_queue_outdated(queue, ticket) &&
           tl_queue_serial(queue, ticket->place) >= ticket->serial;
}

/* Reads the code, as the ticket that it gives. One that was redeemed lasts longer: if the answer
 * was lost, no device has the place until that device repeats the request. */
static bool read_code(struct tl_visit *visit, const char *text)
{
    const struct tl_worker *worker = visit->worker;
    struct tl_ticket *ticket = &visit->ticket;
    int64_t now_ms = visit->now_ms;
    if (!tl_ticket_verify_code(worker->secrets.keyring, visit->name, text, strlen(text), ticket))
        return tl_refuse(&visit->refusal, TL_REFUSAL_BAD_CODE, "%s", "");
    int64_t age_s = tl_queue_env_store_ms(worker->env, now_ms) / 1000 - ticket->issued;
    const int64_t most_s =
        is_redeemed(visit->queue, ticket) ? TL_TICKET_CODE_REPEAT_S : TL_TICKET_CODE_S;
    if (age_s > most_s || age_s < -SLACK_S)
        return tl_refuse(&visit->refusal, TL_REFUSAL_CODE_OVER, "It is good for %d seconds",
                         TL_TICKET_CODE_S);
    return true;
}

static uint64_t random_device(void)
{
    return (uint64_t)randombytes_random() << 20 | randombytes_uniform(1 << 20);
}

static bool read_body(struct tl_visit *visit, struct tl_move_body *body)
{
    struct tl_error err = {0};
    size_t length;
    const char *text = tl_request_body(visit->request, &length);
    if (tl_body_is(visit->request, TL_BODY_FORM)) {
        tl_move_body_parse_form(text, length, body);
        return true;
    }
    return tl_move_body_parse_json(text, length, body, &err) ||
           tl_refuse(&visit->refusal, TL_REFUSAL_BAD_BODY, "%s", err.text);
}

/* The page knows nothing of the code yet, not even whether it is good. */
bool tl_handle_page_move(struct tl_visit *visit)
{
    char digits[TL_MOVE_DEVICE_MAX + 4];
    if (!tl_visit_queue(visit) || !tl_visit_passes_blocks(visit))
        return false;
    snprintf(digits, sizeof(digits), "%" PRIx64, random_device());
    return tl_page_send(visit, &(struct tl_view){.page = TL_PAGE_MOVE, .device = digits});
}

static bool answer_moved_here(struct tl_visit *visit)
{
    const struct tl_ticket redeemed = visit->ticket;
    visit->ticket = tl_answer_ticket(visit->queue, redeemed.visitor, redeemed.place, visit->now_ms);
    visit->ticket.serial = redeemed.serial;
    visit->gives_ticket = true;
    return tl_answer_anew(visit); /* it may be in another lane meanwhile */
}

/* The HAND_OVER has an outcome, or not in time. */
static bool moved(struct tl_visit *visit)
{
    const struct tl_pending_result *result = visit->wait.result;
    struct tl_refusal *refusal = &visit->refusal;
    if (result != NULL && result->end == TL_PENDING_REFUSED)
        return tl_refuse(refusal, TL_REFUSAL_STORE,
                         "The store did not take the command; try again");
    if (result == NULL || result->end != TL_PENDING_APPLIED)
        return tl_refuse(refusal, TL_REFUSAL_UNKNOWN_OUTCOME,
                         "The command is in progress; repeat it with the same code and device");
    if (result->outcome == TL_OUTCOME_DONE)
        return answer_moved_here(visit);
    if (result->outcome == TL_OUTCOME_WAITING)
        return tl_refuse(refusal, TL_REFUSAL_CODE_USED, "%s", "");
    return tl_refuse(refusal, TL_REFUSAL_CODE_OVER, "%s",
                     result->outcome == TL_OUTCOME_ACTIVE ? "Its turn has come on the other device"
                                                          : "Its place has ended");
}

bool tl_handle_move(struct tl_visit *visit)
{
    const struct tl_ticket *ticket = &visit->ticket;
    struct tl_move_body body;
    if (!tl_visit_queue(visit) || !tl_visit_passes_blocks(visit) || !tl_visit_may_send(visit) ||
        !read_body(visit, &body) || !read_code(visit, body.code) || !may_move(visit))
        return false;
    const uint64_t device =
        1 + (body.device[0] != '\0' ? strtoull(body.device, NULL, 16) : random_device());
    if (tl_queue_behind(visit->queue, ticket, visit->now_ms))
        return tl_refuse(&visit->refusal, TL_REFUSAL_LOADING, "%s", "");
    if (tl_queue_outdated(visit->queue, ticket))
        return tl_refuse(&visit->refusal, TL_REFUSAL_CODE_OVER, "The queue was recreated");
    return tl_wait_command(
        visit,
        tl_outbox_command(visit->queue->outbox, TL_COMMAND_HAND_OVER, ticket->visitor,
                          ticket->place,
                          (const uint64_t[TL_PENDING_NUMBERS]){ticket->serial, device}),
        moved);
}
