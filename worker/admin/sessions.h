/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions of browsers that are signed in. The cookie says whose session it is and until when, and
 * is sealed with a key and with the hash of the token that signed in: with another token of that
 * name, or none, it opens nothing. So nothing is kept but the sessions that signed out, and a
 * session outlives a restart.
 *
 * A link has the form of a session and is sealed with a key of this process alone. A browser
 * exchanges it for a session, once. Thread-safe.
 */
#ifndef TL_ADMIN_SESSIONS_H
#define TL_ADMIN_SESSIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/auth/token.h"

enum {
    TL_ADMIN_SESSION_ID_MAX = 22,   /* 128 random bits in base64url */
    TL_ADMIN_SESSION_SEAL_MAX = 43, /* 256 bits */
    TL_ADMIN_SESSION_TEXT_MAX =
        TL_TOKEN_NAME_MAX + 1 + 16 + 1 + TL_ADMIN_SESSION_ID_MAX + 1 + TL_ADMIN_SESSION_SEAL_MAX,
};

struct tl_admin_session {
    char name[TL_TOKEN_NAME_MAX + 1]; /* of the token, or TL_ADMIN_NAME */
    int64_t ends_ms;                  /* Unix time */
    char id[TL_ADMIN_SESSION_ID_MAX + 1];
    char seal[TL_ADMIN_SESSION_SEAL_MAX + 1];
};

struct tl_admin_sessions;

struct tl_admin_sessions *tl_admin_sessions_new(struct tl_error *err);
void tl_admin_sessions_free(struct tl_admin_sessions **sessions);

/* A session of the token with this hash. text: the value of the cookie. */
void tl_admin_session_make(const struct tl_token_key *key, const char *name,
                           const struct tl_token_hash *hash, int64_t ends_ms,
                           char text[TL_ADMIN_SESSION_TEXT_MAX + 1]);
/* Reads what a cookie claims; proves nothing. False when it has not the form of a session. */
bool tl_admin_session_parse(const char *text, struct tl_admin_session *session);
/* Is the session genuine, not over, and not signed out? hash: that of the token of its name. */
bool tl_admin_sessions_check(struct tl_admin_sessions *sessions,
                             const struct tl_admin_session *session, const struct tl_token_key *key,
                             const struct tl_token_hash *hash, int64_t now_unix_ms);
/* Signs a session out that was checked. Of more than some thousands that are not over yet, the
 * first is forgotten. */
void tl_admin_sessions_end(struct tl_admin_sessions *sessions,
                           const struct tl_admin_session *session, int64_t now_unix_ms);

/* A link for the token with this hash. text: what a browser shows to sign in. */
void tl_admin_sessions_make_link(const struct tl_admin_sessions *sessions, const char *name,
                                 const struct tl_token_hash *hash, int64_t ends_ms,
                                 char text[TL_ADMIN_SESSION_TEXT_MAX + 1]);
/* Is the link genuine, not over, and not used? Then it is used now. */
bool tl_admin_sessions_use_link(struct tl_admin_sessions *sessions,
                                const struct tl_admin_session *link,
                                const struct tl_token_hash *hash, int64_t now_unix_ms);

/* What our own page sends with every change (TL_ADMIN_CSRF_HEADER), and no other site knows. */
void tl_admin_session_csrf(const struct tl_token_key *key, const struct tl_admin_session *session,
                           char csrf[TL_ADMIN_SESSION_SEAL_MAX + 1]);

#endif
