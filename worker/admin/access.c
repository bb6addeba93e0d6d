/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <sodium.h>

#include "common/auth/genuine.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/store/tokens.h"
#include "worker/admin/access.h"
#include "worker/admin/secrets.h"

enum {
    LINES_PER_SECOND = 200,
    SESSIONS_TIMES = 20, /* wrong sessions that count as one wrong token: browsers send them by
                            themselves */
    RETRY_S = 60,
    LINK_MS = 600000, /* how long a link is good */
};

static const char bearer_word[] = "Bearer ";
static const char not_in_browsers[] =
    "Browsers cannot sign in here: the admin listener is not on a loopback address, and admin.tls "
    "does not say that a proxy speaks TLS";

struct tl_admin_access {
    const struct tl_config *config;
    struct tl_limiter *limiter;
    struct tl_admin_secrets *secrets;
    struct tl_admin_sessions *sessions;
    bool in_browsers;         /* may browsers sign in? */
    pthread_mutex_t mutex;    /* for what follows */
    struct tl_genuine *known; /* tokens that were genuine: these are always looked at */
    int64_t second;           /* of the lines counted */
    unsigned lines, dropped;
};

/* Nobody but this machine, or a proxy with TLS, sees what a browser sends. */
static bool is_private(const struct tl_config *config)
{
    struct tl_address address;
    const char *host = config->admin.worker.host;
    return config->admin.tls != TL_ADMIN_TLS_NONE || strcmp(host, "localhost") == 0 ||
           (tl_address_parse(host, &address) && tl_address_is_loopback(&address));
}

struct tl_admin_access *tl_admin_access_new(const struct tl_config *config,
                                            struct tl_limiter *limiter, struct tl_error *err)
{
    struct tl_admin_access *access = calloc(1, sizeof(*access));
    if (access == NULL || pthread_mutex_init(&access->mutex, NULL) != 0) {
        free(access);
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the admin API");
        return NULL;
    }
    access->config = config;
    access->limiter = limiter;
    access->in_browsers = is_private(config);
    access->secrets = tl_admin_secrets_new(config, err);
    access->sessions = access->secrets != NULL ? tl_admin_sessions_new(err) : NULL;
    access->known = tl_genuine_new();
    if (access->known == NULL)
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the admin API");
    if (access->sessions == NULL || access->known == NULL)
        tl_admin_access_free(&access);
    return access;
}

void tl_admin_access_free(struct tl_admin_access **access)
{
    if (*access == NULL)
        return;
    tl_admin_secrets_free(&(*access)->secrets);
    tl_admin_sessions_free(&(*access)->sessions);
    tl_genuine_free(&(*access)->known);
    pthread_mutex_destroy(&(*access)->mutex);
    free(*access);
    *access = NULL;
}

/* ---- refusals ---- */

/* Logs a refusal, at most LINES_PER_SECOND. why: a phrase. */
static void log_refusal(struct tl_admin_access *access, const struct tl_admin_head *head,
                        const char *who, const char *why)
{
    int64_t second = tl_clock_ms() / 1000;
    unsigned dropped = 0;
    pthread_mutex_lock(&access->mutex);
    if (second != access->second) {
        dropped = access->dropped;
        access->dropped = access->lines = 0;
        access->second = second;
    }
    bool written = access->lines < LINES_PER_SECOND;
    access->lines += written;
    access->dropped += !written;
    pthread_mutex_unlock(&access->mutex);
    if (dropped > 0)
        tl_warn("admin API: refused %u more requests", dropped);
    if (written)
        tl_warn("admin API: refused %s %.*s of %s from %s: %s", head->method,
                (int)tl_admin_head_path(head), head->target, who, head->client, why);
}

/* How many that are not genuine are looked at in a minute. 0: no limit. */
static uint64_t most_of(const struct tl_admin_access *access, enum tl_limiter_kind kind)
{
    uint64_t most = access->config->admin.max_failed_logins_per_minute;
    return kind == TL_LIMITER_SESSIONS ? most * SESSIONS_TIMES : most;
}

/* A token or session that is not genuine. */
static bool refuse_wrong(struct tl_admin_access *access, const struct tl_admin_head *head,
                         enum tl_limiter_kind kind, const char *who, const char *what,
                         struct tl_control_answer *answer)
{
    (void)tl_limiter_allow(access->limiter, kind, &head->address, most_of(access, kind),
                           tl_clock_ms());
    log_refusal(access, head, who, what);
    return tl_control_problem(answer, TL_REFUSAL_BAD_TOKEN, "%s", what);
}

/* kind: FORBIDDEN, or FOREIGN_ORIGIN for what a page of another site may have sent. */
static bool refuse_page(struct tl_admin_access *access, const struct tl_admin_head *head,
                        const char *who, enum tl_refusal_kind kind, const char *why,
                        struct tl_control_answer *answer)
{
    log_refusal(access, head, who, why);
    return tl_control_problem(answer, kind, "%s", why);
}

/* Is the address listened to? */
static bool is_heard(struct tl_admin_access *access, const struct tl_admin_head *head,
                     enum tl_limiter_kind kind, struct tl_control_answer *answer)
{
    uint64_t most = most_of(access, kind);
    if (tl_limiter_within(access->limiter, kind, &head->address, most, tl_clock_ms()))
        return true;
    log_refusal(access, head, "somebody", "too many wrong tokens from this address");
    tl_control_problem(answer, TL_REFUSAL_FORGERIES,
                       "Too many wrong tokens came from this address; try again in a minute");
    answer->retry_after_s = RETRY_S / (int)(most < RETRY_S ? most : RETRY_S);
    return false;
}

/* Was this token genuine before? Then it is looked at, however many wrong ones came. */
static bool is_known(struct tl_admin_access *access, const char *token)
{
    pthread_mutex_lock(&access->mutex);
    bool known = tl_genuine_has(access->known, token, strlen(token));
    pthread_mutex_unlock(&access->mutex);
    return known;
}

static void note_genuine(struct tl_admin_access *access, const char *token)
{
    pthread_mutex_lock(&access->mutex);
    tl_genuine_add(access->known, token, strlen(token));
    pthread_mutex_unlock(&access->mutex);
}

bool tl_admin_access_browser(struct tl_admin_access *access, const struct tl_admin_head *head,
                             struct tl_control_answer *answer)
{
    const char *public_url = access->config->admin.public_url;
    if (!tl_admin_host_allowed(head, public_url))
        return refuse_page(access, head, "a browser", TL_REFUSAL_FOREIGN_ORIGIN,
                           "The dashboard is not served under this host name; admin.public_url "
                           "names the one that is",
                           answer);
    return true;
}

/* ---- tokens ---- */

enum outcome {
    GENUINE,
    WRONG,
    OVER,    /* a session that has lasted its time: no sign of an attack */
    UNKNOWN, /* the store cannot be asked */
};

/* The admin token is in a file: it costs nothing to look at it. */
static bool is_admin_token(struct tl_admin_access *access, const char *text,
                           struct tl_admin_bearer *bearer)
{
    struct tl_admin_secrets_now secrets;
    tl_admin_secrets_look(access->secrets, &secrets);
    bool is = tl_admin_token_equal(&secrets.admin, text, strlen(text));
    if (is)
        *bearer = (struct tl_admin_bearer){
            .name = TL_ADMIN_NAME, .role = TL_TOKEN_ADMIN, .hash = secrets.admin.hash};
    sodium_memzero(&secrets, sizeof(secrets));
    return is;
}

/* A token that is in the store. */
static enum outcome check_token(struct tl_admin_access *access, struct tl_control *control,
                                const char *text, struct tl_admin_bearer *bearer,
                                struct tl_error *err)
{
    struct tl_admin_secrets_now secrets;
    struct tl_token_record record;
    size_t length = strlen(text);
    enum outcome outcome = WRONG;
    char name[TL_TOKEN_NAME_MAX + 1];
    tl_admin_secrets_look(access->secrets, &secrets);
    if (secrets.has_key && tl_token_parse(text, length, name)) {
        struct tl_redis *redis = tl_control_redis(control, NULL, err);
        enum tl_token_role role = TL_TOKEN_NOTHING;
        if (redis == NULL || !tl_tokens_check(redis, access->config->redis.key_prefix, &secrets.key,
                                              text, length, &role, &record, err))
            outcome = UNKNOWN;
        else if (role != TL_TOKEN_NOTHING)
            outcome = GENUINE;
        if (outcome == GENUINE) {
            *bearer = (struct tl_admin_bearer){.role = role, .hash = record.hash};
            memcpy(bearer->name, name, sizeof(name));
            /* Only for the list of tokens: its failure changes nothing. */
            (void)tl_tokens_used(redis, access->config->redis.key_prefix, name, NULL);
        }
    }
    sodium_memzero(&secrets, sizeof(secrets));
    return outcome;
}

static bool allow_token(struct tl_admin_access *access, struct tl_control *control,
                        const struct tl_admin_head *head, const char *who, const char *text,
                        struct tl_admin_bearer *bearer, struct tl_control_answer *answer)
{
    struct tl_error err = {0};
    if (is_admin_token(access, text, bearer))
        return true;
    if (!is_known(access, text) && !is_heard(access, head, TL_LIMITER_SIGN_INS, answer))
        return false;
    enum outcome outcome = check_token(access, control, text, bearer, &err);
    if (outcome == GENUINE)
        note_genuine(access, text);
    else if (outcome == UNKNOWN)
        tl_control_problem_of(answer, &err);
    else
        refuse_wrong(access, head, TL_LIMITER_SIGN_INS, who, "This is no token of an operator",
                     answer);
    return outcome == GENUINE;
}

/* Fills in name, role and hash of a session whose name is known, if its token still exists. */
static enum outcome find_token(struct tl_admin_access *access, struct tl_control *control,
                               const struct tl_admin_secrets_now *secrets, const char *name,
                               struct tl_admin_bearer *bearer, struct tl_error *err)
{
    struct tl_token_record record;
    bool found = false;
    memcpy(bearer->name, name, sizeof(bearer->name));
    if (strcmp(name, TL_ADMIN_NAME) == 0) {
        bearer->role = TL_TOKEN_ADMIN;
        bearer->hash = secrets->admin.hash;
        return secrets->admin.found ? GENUINE : WRONG;
    }
    struct tl_redis *redis = secrets->has_key ? tl_control_redis(control, NULL, err) : NULL;
    if (!secrets->has_key)
        return WRONG;
    if (redis == NULL ||
        !tl_tokens_find(redis, access->config->redis.key_prefix, name, &record, &found, err))
        return UNKNOWN;
    if (!found)
        return WRONG;
    bearer->role = record.role;
    bearer->hash = record.hash;
    return GENUINE;
}

/* ---- sessions ---- */

/* The key that seals the sessions of this name. */
static const struct tl_token_key *seal_key(const struct tl_admin_secrets_now *secrets,
                                           const char *name)
{
    return strcmp(name, TL_ADMIN_NAME) == 0 ? &secrets->admin.key : &secrets->key;
}

static enum outcome check_session(struct tl_admin_access *access, struct tl_control *control,
                                  const char *cookie, struct tl_admin_bearer *bearer,
                                  struct tl_error *err)
{
    struct tl_admin_secrets_now secrets;
    struct tl_admin_session session;
    *bearer = (struct tl_admin_bearer){.by_session = true};
    if (!access->in_browsers || !tl_admin_session_parse(cookie, &session))
        return WRONG;
    if (session.ends_ms <= tl_clock_wall_ms())
        return OVER;
    tl_admin_secrets_look(access->secrets, &secrets);
    enum outcome outcome = find_token(access, control, &secrets, session.name, bearer, err);
    const struct tl_token_key *key = seal_key(&secrets, session.name);
    if (outcome == GENUINE && !tl_admin_sessions_check(access->sessions, &session, key,
                                                       &bearer->hash, tl_clock_wall_ms()))
        outcome = WRONG;
    bearer->session = session;
    if (outcome == GENUINE)
        tl_admin_session_csrf(key, &session, bearer->csrf);
    sodium_memzero(&secrets, sizeof(secrets));
    return outcome;
}

/* Of cookies with our name, one is enough: others may have been planted. */
static bool allow_session(struct tl_admin_access *access, struct tl_control *control,
                          const struct tl_admin_head *head, struct tl_admin_bearer *bearer,
                          struct tl_control_answer *answer)
{
    static const char over[] = "The session is over; sign in again";
    struct tl_error err = {0};
    enum outcome outcome = WRONG;
    if (!tl_admin_access_browser(access, head, answer) ||
        !is_heard(access, head, TL_LIMITER_SESSIONS, answer))
        return false;
    for (size_t i = 0; i < head->n_cookies && (outcome == WRONG || outcome == OVER); i++) {
        enum outcome one = check_session(access, control, head->cookies[i], bearer, &err);
        outcome = one == WRONG ? outcome : one;
    }
    if (outcome == UNKNOWN)
        tl_control_problem_of(answer, &err);
    else if (outcome == OVER)
        tl_control_problem(answer, TL_REFUSAL_BAD_TOKEN, "%s", over);
    else if (outcome == WRONG)
        refuse_wrong(access, head, TL_LIMITER_SESSIONS, "a browser", over, answer);
    return outcome == GENUINE;
}

/* Published at a loopback address, as the operator says: then no browser names another host. */
static bool is_as_published(const struct tl_config *config, const struct tl_admin_head *head)
{
    return config->admin.tls != TL_ADMIN_TLS_LOOPBACK || tl_admin_host_loopback(head);
}

/* A browser shows it in place of the token. */
static bool allow_link(struct tl_admin_access *access, struct tl_control *control,
                       const struct tl_admin_head *head, const struct tl_admin_session *link,
                       struct tl_admin_bearer *bearer, struct tl_control_answer *answer)
{
    struct tl_admin_secrets_now secrets;
    struct tl_error err = {0};
    if (!is_heard(access, head, TL_LIMITER_SIGN_INS, answer))
        return false;
    tl_admin_secrets_look(access->secrets, &secrets);
    enum outcome outcome = find_token(access, control, &secrets, link->name, bearer, &err);
    sodium_memzero(&secrets, sizeof(secrets));
    if (outcome == GENUINE &&
        !tl_admin_sessions_use_link(access->sessions, link, &bearer->hash, tl_clock_wall_ms()))
        outcome = WRONG;
    if (outcome == UNKNOWN)
        tl_control_problem_of(answer, &err);
    else if (outcome == WRONG)
        refuse_wrong(access, head, TL_LIMITER_SIGN_INS, "a browser",
                     "This link was used, or is over; `tellerline dashboard` makes another",
                     answer);
    return outcome == GENUINE;
}

bool tl_admin_access_sign_in(struct tl_admin_access *access, struct tl_control *control,
                             const struct tl_admin_head *head, const char *token,
                             struct tl_admin_bearer *bearer,
                             char cookie[TL_ADMIN_SESSION_TEXT_MAX + 1],
                             struct tl_control_answer *answer)
{
    struct tl_admin_secrets_now secrets;
    struct tl_admin_session link;
    if (!tl_admin_access_browser(access, head, answer))
        return false;
    if (!tl_admin_origin_own(head, access->config->admin.public_url))
        return refuse_page(access, head, "a browser", TL_REFUSAL_FOREIGN_ORIGIN,
                           "A page of another web site sent this", answer);
    if (!access->in_browsers)
        return refuse_page(access, head, "a browser", TL_REFUSAL_FORBIDDEN, not_in_browsers,
                           answer);
    if (!is_as_published(access->config, head))
        return refuse_page(access, head, "a browser", TL_REFUSAL_FORBIDDEN,
                           "Browsers sign in at localhost only: admin.tls says that the admin "
                           "listener is published at a loopback address",
                           answer);
    *bearer = (struct tl_admin_bearer){.role = TL_TOKEN_NOTHING};
    if (tl_admin_session_parse(token, &link)
            ? !allow_link(access, control, head, &link, bearer, answer)
            : !allow_token(access, control, head, "a browser", token, bearer, answer))
        return false;
    tl_admin_secrets_look(access->secrets, &secrets);
    tl_admin_session_make(seal_key(&secrets, bearer->name), bearer->name, &bearer->hash,
                          tl_clock_wall_ms() + access->config->admin.session_ttl_ms, cookie);
    bearer->by_session = tl_admin_session_parse(cookie, &bearer->session);
    tl_admin_session_csrf(seal_key(&secrets, bearer->name), &bearer->session, bearer->csrf);
    sodium_memzero(&secrets, sizeof(secrets));
    tl_info("admin API: %s (%s) signed in from %s", bearer->name, tl_token_role_name(bearer->role),
            head->client);
    return true;
}

void tl_admin_access_sign_out(struct tl_admin_access *access, const struct tl_admin_bearer *bearer)
{
    if (bearer->by_session)
        tl_admin_sessions_end(access->sessions, &bearer->session, tl_clock_wall_ms());
}

/* A session makes no link, or a stolen one could go on for ever. */
bool tl_admin_access_make_link(struct tl_admin_access *access, const struct tl_admin_head *head,
                               const struct tl_admin_bearer *bearer,
                               char text[TL_ADMIN_SESSION_TEXT_MAX + 1], int64_t *ends_ms,
                               struct tl_control_answer *answer)
{
    if (bearer->by_session)
        return refuse_page(access, head, bearer->name, TL_REFUSAL_FORBIDDEN,
                           "Only a token makes a link to sign in", answer);
    if (!access->in_browsers)
        return refuse_page(access, head, bearer->name, TL_REFUSAL_FORBIDDEN, not_in_browsers,
                           answer);
    *ends_ms = tl_clock_wall_ms() + LINK_MS;
    tl_admin_sessions_make_link(access->sessions, bearer->name, &bearer->hash, *ends_ms, text);
    tl_info("admin API: a link to sign in as %s (%s) was made, from %s", bearer->name,
            tl_token_role_name(bearer->role), head->client);
    return true;
}

/* ---- requests ---- */

/* Is the text the value of a header with a token? */
static const char *token_of(const char *authorization)
{
    size_t word = sizeof(bearer_word) - 1;
    return strncasecmp(authorization, bearer_word, word) == 0 ? authorization + word : "";
}

/* A browser sends a cookie with a request that any page makes. */
static bool page_is_ours(struct tl_admin_access *access, const struct tl_admin_head *head,
                         const struct tl_admin_access_need *need,
                         const struct tl_admin_bearer *bearer, struct tl_control_answer *answer)
{
    if (!bearer->by_session || !need->changes)
        return true;
    if (!tl_admin_origin_own(head, access->config->admin.public_url))
        return refuse_page(access, head, bearer->name, TL_REFUSAL_FOREIGN_ORIGIN,
                           "A page of another web site sent this", answer);
    if (head->csrf == NULL || strlen(head->csrf) != strlen(bearer->csrf) ||
        sodium_memcmp(head->csrf, bearer->csrf, strlen(bearer->csrf)) != 0)
        return refuse_page(access, head, bearer->name, TL_REFUSAL_FOREIGN_ORIGIN,
                           "The header " TL_ADMIN_CSRF_HEADER " is not the one of this session",
                           answer);
    return true;
}

bool tl_admin_access_allows(struct tl_admin_access *access, struct tl_control *control,
                            const struct tl_admin_head *head,
                            const struct tl_admin_access_need *need, struct tl_admin_bearer *bearer,
                            struct tl_control_answer *answer)
{
    if (head->authorization == NULL && head->n_cookies == 0) {
        if (!need->quiet)
            log_refusal(access, head, "somebody", "no token");
        tl_control_problem(answer, TL_REFUSAL_BAD_TOKEN,
                           "Send a token (Authorization: Bearer), or sign in");
        return false;
    }
    if (head->authorization != NULL ? !allow_token(access, control, head, "somebody",
                                                   token_of(head->authorization), bearer, answer)
                                    : !allow_session(access, control, head, bearer, answer))
        return false;
    if (bearer->role < need->role) {
        log_refusal(access, head, bearer->name, "the role does not allow it");
        tl_control_problem(
            answer, TL_REFUSAL_FORBIDDEN, "This takes the role %s; %s has the role %s",
            tl_token_role_name(need->role), bearer->name, tl_token_role_name(bearer->role));
        return false;
    }
    return page_is_ours(access, head, need, bearer, answer);
}

bool tl_admin_access_still(struct tl_admin_access *access, struct tl_control *control,
                           const struct tl_admin_bearer *bearer)
{
    struct tl_admin_secrets_now secrets;
    struct tl_admin_bearer now = {.role = TL_TOKEN_NOTHING};
    tl_admin_secrets_look(access->secrets, &secrets);
    enum outcome outcome = find_token(access, control, &secrets, bearer->name, &now, NULL);
    bool same = tl_token_hash_equal(&now.hash, &bearer->hash);
    if (outcome == GENUINE && bearer->by_session)
        same = same && tl_admin_sessions_check(access->sessions, &bearer->session,
                                               seal_key(&secrets, bearer->name), &now.hash,
                                               tl_clock_wall_ms());
    sodium_memzero(&secrets, sizeof(secrets));
    return outcome == UNKNOWN || (outcome == GENUINE && same);
}
