/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/units.h"
#include "common/control/control.h"
#include "worker/admin/call.h"

enum { DISCARDED_MAX = 4 * TL_CONTROL_BODY_MAX };

struct tl_admin_call *tl_admin_call_new(const char *target)
{
    struct tl_admin_call *call = calloc(1, sizeof(*call));
    if (call != NULL && (call->text = strdup(target)) == NULL)
        tl_admin_call_free(&call);
    return call;
}

void tl_admin_call_free(struct tl_admin_call **call)
{
    if (*call == NULL)
        return;
    if ((*call)->stream != NULL)
        MHD_destroy_response((*call)->stream);
    tl_control_answer_clear(&(*call)->answer);
    tl_admin_page_clear(&(*call)->page);
    if ((*call)->body != NULL) /* it may hold a token */
        sodium_memzero((*call)->body, (*call)->body_length);
    free((*call)->body);
    free((*call)->text);
    free(*call);
    *call = NULL;
}

/* ---- what is asked ---- */

bool tl_admin_call_find(struct tl_admin_call *call)
{
    if (strcmp(call->head.method, "HEAD") == 0)
        call->head.method = "GET";
    call->route =
        tl_control_route_find(call->head.method, call->text, &call->target, &call->answer);
    return call->route != NULL;
}

/* ---- the body ---- */

bool tl_admin_call_takes_body(const struct tl_admin_call *call)
{
    return strcmp(call->head.method, "GET") != 0;
}

bool tl_admin_call_receive(struct tl_admin_call *call, const char *bytes, size_t length)
{
    call->body_received += length;
    if (call->body_received > TL_CONTROL_BODY_MAX)
        return call->body_received <= DISCARDED_MAX; /* answered when it is complete */
    char *body = malloc(call->body_length + length);
    if (body == NULL)
        return false;
    if (call->body != NULL) {
        memcpy(body, call->body, call->body_length);
        sodium_memzero(call->body, call->body_length);
        free(call->body);
    }
    memcpy(body + call->body_length, bytes, length);
    call->body = body;
    call->body_length += length;
    return true;
}

static bool is_json(const char *type)
{
    static const char json[] = "application/json";
    return type != NULL && strncasecmp(type, json, sizeof(json) - 1) == 0 &&
           strchr("; \t", type[sizeof(json) - 1]) != NULL;
}

/* The body as JSON; *body is NULL when there is none. */
static bool read_body(struct tl_admin_call *call, json_t **body)
{
    struct tl_error err = {0};
    *body = NULL;
    if (call->body_received > TL_CONTROL_BODY_MAX) {
        tl_control_problem(&call->answer, TL_REFUSAL_TOO_LARGE, "A body has at most %d bytes",
                           TL_CONTROL_BODY_MAX);
        return false;
    }
    if (call->body_length == 0)
        return true;
    if (!is_json(call->head.content_type)) {
        tl_control_problem(&call->answer, TL_REFUSAL_NOT_JSON, "The body must be application/json");
        return false;
    }
    *body = tl_control_read_body(call->body, call->body_length, &err);
    if (*body == NULL)
        tl_control_problem(&call->answer, TL_REFUSAL_BAD_BODY, "%s", err.text);
    return *body != NULL;
}

/* ---- sessions ---- */

static void answer_session(struct tl_admin_call *call)
{
    const struct tl_admin_bearer *bearer = &call->bearer;
    char ends_at[32];
    tl_time_format(bearer->session.ends_ms, ends_at, sizeof(ends_at));
    call->answer.status = 200;
    call->answer.body = json_pack("{s:s, s:s, s:s?, s:s?}", "name", bearer->name, "role",
                                  tl_token_role_name(bearer->role), "csrf",
                                  bearer->by_session ? bearer->csrf : NULL, "ends_at",
                                  bearer->by_session ? ends_at : NULL);
    if (call->answer.body == NULL)
        tl_control_problem(&call->answer, TL_REFUSAL_INTERNAL, "out of memory");
}

static void sign_in(struct tl_admin_call *call, const struct tl_admin_call_env *env,
                    struct tl_control *control, const json_t *body)
{
    const char *token = json_string_value(json_object_get(body, "token"));
    if (token == NULL || json_object_size(body) != 1) {
        tl_control_problem(&call->answer, TL_REFUSAL_BAD_BODY,
                           "The body must be an object with one text, token");
        return;
    }
    if (!tl_admin_access_sign_in(env->access, control, &call->head, token, &call->bearer,
                                 call->cookie, &call->answer))
        return;
    call->cookie_change = TL_COOKIE_SET;
    answer_session(call);
}

static void sign_out(struct tl_admin_call *call, const struct tl_admin_call_env *env)
{
    tl_admin_access_sign_out(env->access, &call->bearer);
    call->cookie_change = TL_COOKIE_REMOVE;
    call->answer.status = 204;
}

/* The address is complete where the configuration says how browsers reach this listener. The text
 * comes after `#`, which no browser sends: no proxy logs it. */
static void make_link(struct tl_admin_call *call, const struct tl_admin_call_env *env,
                      const json_t *body)
{
    char text[TL_ADMIN_SESSION_TEXT_MAX + 1], ends_at[32];
    int64_t ends_ms;
    if (body != NULL && (!json_is_object(body) || json_object_size(body) > 0)) {
        tl_control_problem(&call->answer, TL_REFUSAL_BAD_BODY, "This call takes no body");
        return;
    }
    if (!tl_admin_access_make_link(env->access, &call->head, &call->bearer, text, &ends_ms,
                                   &call->answer))
        return;
    tl_time_format(ends_ms, ends_at, sizeof(ends_at));
    call->answer.status = 201;
    call->answer.body = json_pack(
        "{s:o, s:s}", "url", json_sprintf("%s/#/sign-in/%s", env->config->admin.public_url, text),
        "ends_at", ends_at);
    sodium_memzero(text, sizeof(text));
    if (call->answer.body == NULL)
        tl_control_problem(&call->answer, TL_REFUSAL_INTERNAL, "out of memory");
}

/* ---- who asks, and doing it ---- */

bool tl_admin_call_authorise(struct tl_admin_call *call, const struct tl_admin_call_env *env,
                             struct tl_control *control)
{
    const struct tl_admin_access_need need = {
        .role = call->route->role,
        .changes = call->route->changes,
        .quiet = call->route->kind == TL_CONTROL_SESSION, /* a page asks whether it is signed in */
    };
    if (call->route->kind == TL_CONTROL_SIGN_IN)
        return true; /* the token is in the body */
    return tl_admin_access_allows(env->access, control, &call->head, &need, &call->bearer,
                                  &call->answer);
}

void tl_admin_call_perform(struct tl_admin_call *call, const struct tl_admin_call_env *env,
                           struct tl_control *control)
{
    struct tl_actor actor = {.kept = env->config->retention.changes_entries};
    json_t *body;
    if (!read_body(call, &body))
        return;
    memcpy(actor.name, call->bearer.name, sizeof(call->bearer.name));
    memcpy(actor.from, call->head.client, sizeof(actor.from) - 1);
    const struct tl_control_request request = {.method = call->head.method,
                                               .target = call->text,
                                               .body = body,
                                               .if_match = call->head.if_match,
                                               .idempotency_key = call->head.idempotency_key,
                                               .actor = &actor};
    switch (call->route->kind) {
    case TL_CONTROL_CALL:
        tl_control_call(control, &request, &call->answer);
        break;
    case TL_CONTROL_EVENTS:
        call->stream_type = "text/event-stream";
        call->stream = tl_admin_events_open(env->streams, control, call->connection, call->text,
                                            &call->bearer, &call->answer);
        break;
    case TL_CONTROL_EXPORT:
        call->stream = tl_admin_export_open(env->streams, call->connection, &request,
                                            &call->stream_type, &call->answer);
        break;
    case TL_CONTROL_SESSION:
        answer_session(call);
        break;
    case TL_CONTROL_SIGN_IN:
        sign_in(call, env, control, body);
        break;
    case TL_CONTROL_SIGN_OUT:
        sign_out(call, env);
        break;
    case TL_CONTROL_LINK:
        make_link(call, env, body);
        break;
    case TL_CONTROL_REPORT:
        tl_admin_reports_answer(env->reports, call->route, &call->target, &call->page,
                                &call->answer);
        break;
    case TL_CONTROL_PREVIEW:
        if (tl_admin_previews_render(env->previews, control, &call->target, tl_clock_wall_ms(),
                                     &call->page, &call->answer))
            call->answer.status = 200;
    }
    json_decref(body);
}
