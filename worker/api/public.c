/* What anybody may ask. */
#include "common/base/units.h"
#include "worker/api/routes.h"
#include "worker/http/json_text.h"
#include "worker/http/problem.h"

enum { QUEUE_TEXT_MAX = 2048 };

void tl_handle_queue(struct tl_edge *edge, struct tl_request *request, const char *queue)
{
    const struct tl_room *room = tl_visitor_room(edge, request, queue);
    if (room == NULL)
        return;
    const struct tl_queue_settings *settings = &room->settings;
    char text[QUEUE_TEXT_MAX];
    struct tl_json json;
    tl_json_begin(&json, text, sizeof(text));
    tl_json_string(&json, "queue", room->name);
    tl_json_bool(&json, "open", tl_room_open(room, tl_edge_now_ms(edge)));
    if (settings->opens_at_ms != 0) {
        char opens_at[TL_UNITS_TEXT_MAX];
        tl_time_format(settings->opens_at_ms, opens_at, sizeof(opens_at));
        tl_json_string(&json, "opens_at", opens_at);
    }
    if (settings->paused)
        tl_json_bool(&json, "paused", true);
    tl_json_uint(&json, "waiting", tl_line_waiting(room->line));
    tl_json_uint(&json, "active", tl_line_active(room->line));
    if (settings->policy != TL_POLICY_RATE)
        tl_json_uint(&json, "capacity", settings->capacity);
    tl_json_array(&json, "lanes");
    for (size_t i = 0; i < settings->n_lanes; i++)
        tl_json_item(&json, settings->lanes[i]);
    tl_json_array_end(&json);
    struct tl_answer answer = {.status = 200, .type = "application/json", .body = text};
    answer.length = tl_json_end(&json);
    tl_request_answer(request, &answer);
}

static void answer_ok(struct tl_request *request)
{
    const char body[] = "ok\n";
    tl_request_answer(request, &(struct tl_answer){.status = 200,
                                                   .type = "text/plain; charset=utf-8",
                                                   .body = body,
                                                   .length = sizeof(body) - 1});
}

void tl_handle_livez(struct tl_edge *edge, struct tl_request *request, const char *queue)
{
    (void)edge;
    (void)queue;
    answer_ok(request);
}

void tl_handle_readyz(struct tl_edge *edge, struct tl_request *request, const char *queue)
{
    (void)queue;
    enum tl_readiness readiness = tl_edge_readiness(edge);
    if (readiness == TL_READY)
        answer_ok(request);
    else
        tl_problem_answer(request,
                          readiness == TL_DRAINING        ? TL_PROBLEM_STOPPING
                          : readiness == TL_LINES_LOADING ? TL_PROBLEM_LOADING
                                                          : TL_PROBLEM_STORE,
                          "%s", tl_readiness_text(readiness));
}
