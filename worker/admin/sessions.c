/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "worker/admin/sessions.h"

enum { ENDED_MAX = 4096, ID_BYTES = 16, SEAL_BYTES = 32 };

/* What a hash is for: no text sealed for one purpose is good for another. */
static const unsigned char for_session[crypto_generichash_blake2b_PERSONALBYTES] =
    "tl-admin-sessio";
static const unsigned char for_csrf[crypto_generichash_blake2b_PERSONALBYTES] = "tl-admin-csrf";

struct ended {
    char id[TL_ADMIN_SESSION_ID_MAX + 1];
    int64_t ends_ms;
};

struct tl_admin_sessions {
    struct tl_token_key link_key;  /* random: a link is good at this process alone */
    pthread_mutex_t mutex;         /* for what follows */
    struct ended ended[ENDED_MAX]; /* a ring: `next` is the oldest */
    size_t next;
};

struct tl_admin_sessions *tl_admin_sessions_new(struct tl_error *err)
{
    struct tl_admin_sessions *sessions = calloc(1, sizeof(*sessions));
    if (sessions == NULL || pthread_mutex_init(&sessions->mutex, NULL) != 0) {
        free(sessions);
        tl_error_set(err, TL_ERR_NOMEM, "no memory for sessions");
        return NULL;
    }
    randombytes_buf(&sessions->link_key, sizeof(sessions->link_key));
    return sessions;
}

void tl_admin_sessions_free(struct tl_admin_sessions **sessions)
{
    if (*sessions == NULL)
        return;
    pthread_mutex_destroy(&(*sessions)->mutex);
    sodium_memzero(&(*sessions)->link_key, sizeof((*sessions)->link_key));
    free(*sessions);
    *sessions = NULL;
}

/* ---- seals ---- */

static void digest(const struct tl_token_key *key, const unsigned char *purpose, const char *text,
                   const struct tl_token_hash *hash, char out[TL_ADMIN_SESSION_SEAL_MAX + 1])
{
    static const unsigned char salt[crypto_generichash_blake2b_SALTBYTES] = {0};
    unsigned char bytes[SEAL_BYTES];
    crypto_generichash_blake2b_state state;
    crypto_generichash_blake2b_init_salt_personal(&state, key->bytes, sizeof(key->bytes),
                                                  sizeof(bytes), salt, purpose);
    crypto_generichash_blake2b_update(&state, (const unsigned char *)text, strlen(text) + 1);
    if (hash != NULL)
        crypto_generichash_blake2b_update(&state, hash->bytes, sizeof(hash->bytes));
    crypto_generichash_blake2b_final(&state, bytes, sizeof(bytes));
    sodium_bin2base64(out, TL_ADMIN_SESSION_SEAL_MAX + 1, bytes, sizeof(bytes),
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

/* The text before the seal. */
static void write_claim(const struct tl_admin_session *session,
                        char text[TL_ADMIN_SESSION_TEXT_MAX + 1])
{
    snprintf(text, TL_ADMIN_SESSION_TEXT_MAX + 1, "%s:%" PRIx64 ":%s", session->name,
             (uint64_t)session->ends_ms, session->id);
}

static bool is_equal(const char *a, const char *b, size_t length)
{
    return strlen(a) == length && strlen(b) == length && sodium_memcmp(a, b, length) == 0;
}

void tl_admin_session_make(const struct tl_token_key *key, const char *name,
                           const struct tl_token_hash *hash, int64_t ends_ms,
                           char text[TL_ADMIN_SESSION_TEXT_MAX + 1])
{
    struct tl_admin_session session = {.ends_ms = ends_ms};
    unsigned char id[ID_BYTES];
    snprintf(session.name, sizeof(session.name), "%s", name);
    randombytes_buf(id, sizeof(id));
    sodium_bin2base64(session.id, sizeof(session.id), id, sizeof(id),
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    write_claim(&session, text);
    digest(key, for_session, text, hash, session.seal);
    size_t length = strlen(text);
    snprintf(text + length, TL_ADMIN_SESSION_TEXT_MAX + 1 - length, ":%s", session.seal);
}

bool tl_admin_session_parse(const char *text, struct tl_admin_session *session)
{
    *session = (struct tl_admin_session){.ends_ms = 0};
    size_t name = strcspn(text, ":");
    if (name == 0 || name > TL_TOKEN_NAME_MAX || text[name] != ':' ||
        (!tl_token_name_valid(text, name) &&
         (name != strlen(TL_ADMIN_NAME) || strncmp(text, TL_ADMIN_NAME, name) != 0)))
        return false;
    memcpy(session->name, text, name);
    const char *ends = text + name + 1;
    size_t digits = strspn(ends, "0123456789abcdef");
    if (digits == 0 || digits > 12 || ends[digits] != ':')
        return false;
    session->ends_ms = (int64_t)strtoull(ends, NULL, 16);
    const char *id = ends + digits + 1;
    if (strcspn(id, ":") != TL_ADMIN_SESSION_ID_MAX ||
        strlen(id) != TL_ADMIN_SESSION_ID_MAX + 1 + TL_ADMIN_SESSION_SEAL_MAX)
        return false;
    memcpy(session->id, id, TL_ADMIN_SESSION_ID_MAX);
    memcpy(session->seal, id + TL_ADMIN_SESSION_ID_MAX + 1, TL_ADMIN_SESSION_SEAL_MAX);
    return true;
}

static bool is_genuine(const struct tl_admin_session *session, const struct tl_token_key *key,
                       const struct tl_token_hash *hash, int64_t now_unix_ms)
{
    char text[TL_ADMIN_SESSION_TEXT_MAX + 1], seal[TL_ADMIN_SESSION_SEAL_MAX + 1];
    write_claim(session, text);
    digest(key, for_session, text, hash, seal);
    return is_equal(seal, session->seal, TL_ADMIN_SESSION_SEAL_MAX) &&
           session->ends_ms > now_unix_ms;
}

/* ---- those that have ended; with the mutex held ---- */

static bool has_ended(const struct tl_admin_sessions *sessions,
                      const struct tl_admin_session *session)
{
    for (size_t i = 0; i < ENDED_MAX; i++) {
        if (strcmp(sessions->ended[i].id, session->id) == 0)
            return true;
    }
    return false;
}

static void note_ended(struct tl_admin_sessions *sessions, const struct tl_admin_session *session,
                       int64_t now_unix_ms)
{
    size_t place = sessions->next;
    for (size_t i = 0; i < ENDED_MAX; i++) {
        if (sessions->ended[i].ends_ms <= now_unix_ms) {
            place = i;
            break;
        }
    }
    if (place == sessions->next)
        sessions->next = (sessions->next + 1) % ENDED_MAX;
    memcpy(sessions->ended[place].id, session->id, sizeof(session->id));
    sessions->ended[place].ends_ms = session->ends_ms;
}

bool tl_admin_sessions_check(struct tl_admin_sessions *sessions,
                             const struct tl_admin_session *session, const struct tl_token_key *key,
                             const struct tl_token_hash *hash, int64_t now_unix_ms)
{
    if (!is_genuine(session, key, hash, now_unix_ms))
        return false;
    pthread_mutex_lock(&sessions->mutex);
    bool ended = has_ended(sessions, session);
    pthread_mutex_unlock(&sessions->mutex);
    return !ended;
}

void tl_admin_sessions_end(struct tl_admin_sessions *sessions,
                           const struct tl_admin_session *session, int64_t now_unix_ms)
{
    pthread_mutex_lock(&sessions->mutex);
    note_ended(sessions, session, now_unix_ms);
    pthread_mutex_unlock(&sessions->mutex);
}

void tl_admin_sessions_make_link(const struct tl_admin_sessions *sessions, const char *name,
                                 const struct tl_token_hash *hash, int64_t ends_ms,
                                 char text[TL_ADMIN_SESSION_TEXT_MAX + 1])
{
    tl_admin_session_make(&sessions->link_key, name, hash, ends_ms, text);
}

bool tl_admin_sessions_use_link(struct tl_admin_sessions *sessions,
                                const struct tl_admin_session *link,
                                const struct tl_token_hash *hash, int64_t now_unix_ms)
{
    if (!is_genuine(link, &sessions->link_key, hash, now_unix_ms))
        return false;
    pthread_mutex_lock(&sessions->mutex);
    bool used = has_ended(sessions, link);
    if (!used)
        note_ended(sessions, link, now_unix_ms);
    pthread_mutex_unlock(&sessions->mutex);
    return !used;
}

void tl_admin_session_csrf(const struct tl_token_key *key, const struct tl_admin_session *session,
                           char csrf[TL_ADMIN_SESSION_SEAL_MAX + 1])
{
    digest(key, for_csrf, session->seal, NULL, csrf);
}
