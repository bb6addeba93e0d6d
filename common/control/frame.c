/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/control/call.h"

struct tl_control *tl_control_new(const struct tl_config *config, const char *redis_url,
                                  struct tl_error *err)
{
    const struct tl_redis_settings settings = tl_redis_settings_of(config, redis_url);
    unsigned char random[8];
    char hex[2 * sizeof(random) + 1];
    struct tl_control *control = calloc(1, sizeof(*control));
    if (control == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the control room");
        return NULL;
    }
    if (sodium_init() < 0) {
        tl_error_set(err, TL_ERR_SYSTEM, "libsodium cannot start");
        tl_control_free(&control);
        return NULL;
    }
    /* A name of its own for each: the number of a batch counts for its writer only. */
    randombytes_buf(random, sizeof(random));
    sodium_bin2hex(hex, sizeof(hex), random, sizeof(random));
    snprintf(control->writer, sizeof(control->writer), "control-%s", hex);
    control->config = config;
    control->store = tl_store_new(&settings, err);
    tl_durable_init(&control->durable, config->redis.durability, config->redis.key_prefix);
    if (control->store == NULL)
        tl_control_free(&control);
    return control;
}

void tl_control_free(struct tl_control **control)
{
    if (*control == NULL)
        return;
    tl_store_free(&(*control)->store);
    free(*control);
    *control = NULL;
}

static bool check_query(struct tl_control_call *call)
{
    const char *query = call->route->query;
    for (size_t i = 0; i < call->target.n_parameters; i++)
        if (query == NULL || !tl_call_has_word(query, " ", call->target.parameters[i].name))
            return tl_call_refuse(call, TL_REFUSAL_BAD_QUERY, "this call takes %s%s in its query",
                                  query != NULL ? "only " : "no parameters",
                                  query != NULL ? query : "");
    return true;
}

bool tl_call_prepare(struct tl_control_call *call)
{
    call->route = tl_control_route_find(call->request->method, call->request->target, &call->target,
                                        call->answer);
    if (call->route == NULL || !check_query(call))
        return false;
    const char *path = call->route->path;
    const char *queue = tl_target_part(&call->target, path, "queue");
    const char *visitor = tl_target_part(&call->target, path, "visitor");
    bool creates = queue == NULL || strcmp(call->route->method, "PUT") == 0;
    call->name = visitor != NULL ? visitor : tl_target_part(&call->target, path, "name");
    /* The queue that is to be created: its name is where the answers to repeated calls are kept. */
    if (queue == NULL && call->route->repeat == TL_REPEAT_KEPT)
        queue = json_string_value(json_object_get(call->request->body, "name"));
    if (queue == NULL || tl_call_keys(call->control, queue, &call->keys, &call->err))
        call->redis = tl_control_redis(call->control, queue, &call->err);
    if (call->redis != NULL)
        return true;
    /* A name that no queue can have. */
    if (call->err.kind == TL_ERR_INVALID && !creates)
        return tl_call_refuse(call, TL_REFUSAL_NO_QUEUE, "%s", call->err.text);
    return tl_control_problem_of(call->answer, &call->err);
}

/* Does the call by its handler, and makes its answer. */
static void perform(struct tl_control_call *call)
{
    call->err = (struct tl_error){0}; /* what opening a connection may have left */
    json_t *body = call->route->handler(call);
    if (body != NULL) {
        call->answer->status = call->status;
        call->answer->body = body;
    } else if (call->answer->status != 0) {
        return; /* it is refused */
    } else if (call->err.kind == TL_OK) {
        tl_call_refuse(call, TL_REFUSAL_INTERNAL, "no memory for the answer");
    } else {
        tl_control_problem_of(call->answer, &call->err);
    }
}

void tl_control_call(struct tl_control *control, const struct tl_control_request *request,
                     struct tl_control_answer *answer)
{
    struct tl_control_call call = {.control = control,
                                   .config = control->config,
                                   .request = request,
                                   .answer = answer,
                                   .status = 200};
    *answer = (struct tl_control_answer){0};
    if (!tl_call_prepare(&call))
        return;
    if (call.route->handler == NULL)
        tl_call_refuse(&call, TL_REFUSAL_NOT_FOUND, "only a listener answers this");
    else if (request->body != NULL && !json_is_object(request->body))
        tl_call_refuse(&call, TL_REFUSAL_BAD_BODY, "the body must be a JSON object");
    else if (call.route->repeat == TL_REPEAT_KEPT && request->idempotency_key != NULL &&
             call.keys.queue[0] != '\0')
        tl_repeat_once(&call, perform);
    else
        perform(&call);
}
