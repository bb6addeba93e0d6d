/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/auth/keyring.h"
#include "common/auth/ticket.h"

#include "common/control/visitor_find.h"

bool tl_control_find_visitor(const struct tl_config *config, const char *queue, const char *text,
                             char visitor[TL_VISITOR_MAX + 1], struct tl_error *err)
{
    struct tl_ticket ticket;
    struct tl_error problem = {0};
    struct tl_keyring *keyring = tl_keyring_load(config->secrets.ticket_keys, false, &problem);
    bool genuine = keyring != NULL && tl_ticket_verify(keyring, queue, text, strlen(text), &ticket);
    bool have_keys = keyring != NULL;
    tl_keyring_free(&keyring);
    if (genuine) {
        memcpy(visitor, ticket.visitor, sizeof(ticket.visitor));
        return true;
    }
    /* A short ticket would pass for an id, of which then nothing is known. */
    bool unread = !have_keys && tl_ticket_shaped(text, strlen(text));
    if (!unread && tl_visitor_valid(text, strlen(text))) {
        memcpy(visitor, text, strlen(text) + 1);
        return true;
    }
    if (!unread && strlen(text) <= TL_VISITOR_MAX)
        return tl_error_set(err, TL_ERR_INVALID,
                            "a visitor id is 1 to %d printable characters without space",
                            TL_VISITOR_MAX);
    if (have_keys)
        return tl_error_set(err, TL_ERR_INVALID, "this is not a genuine ticket of queue %s", queue);
    *err = problem;
    return tl_error_prefix(err, "the ticket cannot be verified, give the visitor's id instead");
}
