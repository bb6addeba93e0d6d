/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "common/control/call.h"

#define QUEUES   "/v1/admin/queues"
#define QUEUE    QUEUES "/{queue}"
#define VISITORS QUEUE "/visitors/{visitor}"
#define PAGE     "limit starting_after"
#define SESSION  "/v1/admin/session"

/* Every role may look. */
#define READS .role = TL_TOKEN_VIEWER
/* Day-to-day work during a sale. */
#define WORKS .role = TL_TOKEN_OPERATOR, .changes = true
/* What cannot be undone, and who may do what. */
#define RULES    .role = TL_TOKEN_ADMIN, .changes = true
#define KEPT     .repeat = TL_REPEAT_KEPT
#define SETS(to) WORKS, KEPT, .handler = tl_handle_mode, .mode = (to)

static const struct tl_control_route routes[] = {
    {"GET", QUEUES, "listQueues", READS, .query = PAGE, .handler = tl_handle_queue_list},
    {"POST", QUEUES, "createQueue", WORKS, KEPT, .handler = tl_handle_queue_create},
    {"GET", QUEUE, "getQueue", READS, .handler = tl_handle_queue_get},
    {"PUT", QUEUE, "putQueue", WORKS, KEPT, .handler = tl_handle_queue_put},
    {"PATCH", QUEUE, "patchQueue", WORKS, KEPT, .handler = tl_handle_queue_patch},
    {"DELETE", QUEUE, "deleteQueue", RULES, KEPT, .query = "confirm",
     .handler = tl_handle_queue_delete},
    {"POST", QUEUE "/open", "openQueue", SETS(TL_MODE_OPEN)},
    {"POST", QUEUE "/resume", "resumeQueue", SETS(TL_MODE_OPEN)},
    {"POST", QUEUE "/pause", "pauseQueue", SETS(TL_MODE_PAUSED)},
    {"POST", QUEUE "/drain", "drainQueue", SETS(TL_MODE_DRAINING)},
    {"POST", QUEUE "/close", "closeQueue", SETS(TL_MODE_CLOSED)},
    {"POST", QUEUE "/sell-out", "sellOutQueue", SETS(TL_MODE_SOLD_OUT)},
    {"POST", QUEUE "/passthrough", "passQueueThrough", SETS(TL_MODE_PASSTHROUGH)},
    {"POST", QUEUE "/notice", "setNotice", WORKS, KEPT, .handler = tl_handle_notice},
    {"POST", QUEUE "/recover", "recoverQueue", WORKS, KEPT, .handler = tl_handle_recover},
    {"GET", QUEUE "/draw", "getDraw", READS, .query = PAGE, .handler = tl_handle_draw_get},
    {"POST", QUEUE "/draw", "setDraw", WORKS, KEPT, .handler = tl_handle_draw_set},
    {"GET", QUEUE "/stats", "getStats", READS, .handler = tl_handle_stats},
    {"GET", QUEUE "/events", "followStats", READS, .kind = TL_CONTROL_EVENTS},
    {"GET", QUEUE "/history", "getHistory", READS, .query = "step_seconds from to",
     .handler = tl_handle_history},
    {"GET", QUEUE "/reports", "listReports", READS, .kind = TL_CONTROL_REPORT},
    {"GET", QUEUE "/reports/{sale}", "getReport", READS, .query = "format with",
     .kind = TL_CONTROL_REPORT},
    {"GET", QUEUE "/line", "getLine", READS, .query = PAGE, .handler = tl_handle_line},
    {"GET", QUEUE "/export", "exportQueue", READS, .query = "format", .kind = TL_CONTROL_EXPORT},
    {"POST", QUEUE "/joins", "joinVisitors", WORKS, KEPT, .handler = tl_handle_joins},
    {"GET", QUEUE "/visitors", "findVisitor", READS, .query = "reference",
     .handler = tl_handle_visitor_find},
    {"GET", VISITORS, "getVisitor", READS, .handler = tl_handle_visitor_get},
    {"DELETE", VISITORS, "removeVisitor", WORKS, KEPT, .handler = tl_handle_visitor_remove},
    {"POST", VISITORS "/lane", "moveVisitor", WORKS, KEPT, .handler = tl_handle_visitor_move},
    {"POST", VISITORS "/forget", "forgetVisitor", RULES, .handler = tl_handle_visitor_forget},
    {"GET", QUEUE "/webhooks", "listQueueWebhooks", READS, .query = PAGE,
     .handler = tl_handle_queue_webhooks},
    {"POST", QUEUE "/webhooks/{name}/test", "testWebhook", WORKS,
     .handler = tl_handle_webhook_test},
    {"GET", "/v1/admin/webhooks", "listWebhooks", READS, .query = PAGE,
     .handler = tl_handle_webhook_list},
    {"GET", "/v1/admin/changes", "listChanges", READS, .query = "queue " PAGE,
     .handler = tl_handle_changes},
    {"GET", SESSION, "getSession", READS, .kind = TL_CONTROL_SESSION},
    {"POST", SESSION, "signIn", .role = TL_TOKEN_NOTHING, .kind = TL_CONTROL_SIGN_IN},
    {"DELETE", SESSION, "signOut", READS, .changes = true, .kind = TL_CONTROL_SIGN_OUT},
    {"POST", SESSION "/link", "createLink", READS, .changes = true, .kind = TL_CONTROL_LINK},
    {"GET", "/preview/{queue}", "getPreview", READS, .kind = TL_CONTROL_PREVIEW},
    {"GET", "/v1/admin/tokens", "listTokens", .role = TL_TOKEN_ADMIN, .query = PAGE,
     .handler = tl_handle_token_list},
    {"POST", "/v1/admin/tokens", "createToken", RULES, .handler = tl_handle_token_create},
    {"DELETE", "/v1/admin/tokens/{name}", "revokeToken", RULES, .handler = tl_handle_token_revoke},
    {"GET", "/v1/admin/blocks", "listBlocks", READS, .query = PAGE,
     .handler = tl_handle_block_list},
    {"POST", "/v1/admin/blocks", "createBlock", WORKS, .handler = tl_handle_block_create},
    {"DELETE", "/v1/admin/blocks", "deleteBlock", WORKS, .query = "prefix queue",
     .handler = tl_handle_block_delete},
};

enum { ROUTES = sizeof(routes) / sizeof(routes[0]) };

const struct tl_control_route *tl_control_routes(size_t *n)
{
    *n = ROUTES;
    return routes;
}

const struct tl_control_route *tl_control_route_find(const char *method, const char *text,
                                                     struct tl_target *target,
                                                     struct tl_control_answer *answer)
{
    char allow[sizeof(answer->allow)] = "";
    struct tl_error err = {0};
    if (!tl_target_parse(text, target, &err))
        return tl_control_problem(answer,
                                  target->has_path ? TL_REFUSAL_BAD_QUERY : TL_REFUSAL_BAD_REQUEST,
                                  "%s", err.text);
    for (size_t i = 0; i < ROUTES; i++) {
        if (!tl_target_matches(target, routes[i].path))
            continue;
        if (strcmp(routes[i].method, method) == 0)
            return &routes[i];
        tl_words_append(allow, sizeof(allow), ", ", routes[i].method, strlen(routes[i].method));
    }
    if (allow[0] == '\0')
        return tl_control_problem(answer, TL_REFUSAL_NOT_FOUND, "there is no such call");
    tl_control_problem(answer, TL_REFUSAL_METHOD, "this path takes %s", allow);
    memcpy(answer->allow, allow, sizeof(allow));
    return NULL;
}
