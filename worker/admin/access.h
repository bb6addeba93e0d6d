/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a caller may do. It shows a token (`Authorization: Bearer`) or the cookie of a session.
 * Refusals are logged; an address with many wrong tokens gets no hearing for a while.
 * Thread-safe.
 */
#ifndef TL_ADMIN_ACCESS_H
#define TL_ADMIN_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/auth/token.h"
#include "common/config/settings.h"
#include "common/control/control.h"
#include "worker/admin/backend.h"
#include "worker/admin/head.h"
#include "worker/admin/sessions.h"
#include "worker/http/limiter.h"

struct tl_admin_access;

/* Both are borrowed. */
struct tl_admin_access *tl_admin_access_new(const struct tl_config *config,
                                            struct tl_limiter *limiter, struct tl_error *err);
void tl_admin_access_free(struct tl_admin_access **access);

/* The caller. */
struct tl_admin_bearer {
    char name[TL_TOKEN_NAME_MAX + 1];
    enum tl_token_role role;
    struct tl_token_hash hash; /* of the token */
    bool by_session;
    struct tl_admin_session session; /* if so */
    char csrf[TL_ADMIN_SESSION_SEAL_MAX + 1];
};

/* What a request needs. */
struct tl_admin_access_need {
    enum tl_token_role role; /* the least */
    bool changes;            /* it is no mere look: a page must prove that it is ours */
    bool quiet;              /* a request without token and cookie is not worth a line in the log */
};

/* False: the answer is the refusal (401, 403, 429), or 503 when the store cannot be asked. */
bool tl_admin_access_allows(struct tl_admin_access *access, struct tl_control *control,
                            const struct tl_admin_head *head,
                            const struct tl_admin_access_need *need, struct tl_admin_bearer *bearer,
                            struct tl_control_answer *answer);
/* Is the bearer of an earlier request still one? For streams. True also while the store cannot be
 * asked. */
bool tl_admin_access_still(struct tl_admin_access *access, struct tl_control *control,
                           const struct tl_admin_bearer *bearer);

/* Opens a session for the bearer of this token or link. cookie: its value. False: as
 * tl_admin_access_allows. */
bool tl_admin_access_sign_in(struct tl_admin_access *access, struct tl_control *control,
                             const struct tl_admin_head *head, const char *token,
                             struct tl_admin_bearer *bearer,
                             char cookie[TL_ADMIN_SESSION_TEXT_MAX + 1],
                             struct tl_control_answer *answer);
void tl_admin_access_sign_out(struct tl_admin_access *access, const struct tl_admin_bearer *bearer);
/* Makes a link: a text with which a browser signs in as the bearer of this token, once, at this
 * process, until *ends_ms (Unix time). Short-lived, because addresses show up in histories and in
 * lists of processes. False: the answer is the refusal. */
bool tl_admin_access_make_link(struct tl_admin_access *access, const struct tl_admin_head *head,
                               const struct tl_admin_bearer *bearer,
                               char text[TL_ADMIN_SESSION_TEXT_MAX + 1], int64_t *ends_ms,
                               struct tl_control_answer *answer);

/* May a browser come under this host name, and is the page that sent this ours? Else the answer is
 * the refusal. Needs no store. */
bool tl_admin_access_browser(struct tl_admin_access *access, const struct tl_admin_head *head,
                             struct tl_control_answer *answer);

#endif
