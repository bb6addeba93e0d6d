/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/keys.h"
#include "common/store/queue.h"
#include "worker/admin/previews.h"
#include "worker/page/languages.h"
#include "worker/page/look.h"
#include "worker/page/page.h"
#include "worker/page/page_address.h"
#include "worker/page/preview.h"

struct tl_admin_previews {
    const struct tl_config *config;
    const struct tl_brand *brand;  /* borrowed */
    pthread_mutex_t mutex;         /* for what follows, which a reload replaces */
    struct tl_event_looks *events; /* borrowed */
};

void tl_admin_page_clear(struct tl_admin_page *page)
{
    tl_text_free(&page->html);
    free(page->policy);
    page->policy = NULL;
}

struct tl_admin_previews *tl_admin_previews_new(const struct tl_config *config,
                                                const struct tl_brand *brand,
                                                struct tl_event_looks *events, struct tl_error *err)
{
    struct tl_admin_previews *previews = calloc(1, sizeof(*previews));
    if (previews == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the previews");
        return NULL;
    }
    pthread_mutex_init(&previews->mutex, NULL);
    previews->config = config;
    previews->brand = brand;
    previews->events = events;
    return previews;
}

void tl_admin_previews_free(struct tl_admin_previews **previews)
{
    if (*previews == NULL)
        return;
    pthread_mutex_destroy(&(*previews)->mutex);
    free(*previews);
    *previews = NULL;
}

bool tl_admin_previews_reload(struct tl_admin_previews *previews, const struct tl_config *config,
                              struct tl_error *err)
{
    struct tl_event_looks events;
    if (!tl_page_read(config, previews->brand->languages, NULL, &events, err))
        return false;
    pthread_mutex_lock(&previews->mutex);
    struct tl_event_looks old = *previews->events;
    *previews->events = events;
    pthread_mutex_unlock(&previews->mutex);
    tl_event_looks_free(&old);
    return true;
}

/* A list of all states. The queue's name is a valid one, so it needs no escaping. */
static void write_list(const char *queue, struct tl_text *html)
{
    tl_text_append(html,
                   "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                   "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                   "<title>Pages of %s</title>\n"
                   "<link rel=\"stylesheet\" href=\"/assets/dashboard.css\">\n</head>\n<body>\n"
                   "<main>\n<h1>Pages of %s</h1>\n<p>What visitors see, with invented numbers. "
                   "Each page has a menu of languages.</p>\n<ul>\n",
                   queue, queue);
    for (size_t i = 0; tl_page_preview_name(i) != NULL; i++)
        tl_text_append(html, "<li><a href=\"/preview/%s?state=%s\">%s</a></li>\n", queue,
                       tl_page_preview_name(i), tl_page_preview_name(i));
    tl_text_append(html, "</ul>\n</main>\n</body>\n</html>\n");
}

static bool render(struct tl_admin_previews *previews, const struct tl_target *target,
                   const char *state, struct tl_queue_settings *settings, int64_t now_ms,
                   struct tl_admin_page *page)
{
    const char *code = tl_target_parameter(target, "lang");
    const struct tl_catalogue *language =
        tl_languages_choose(previews->brand->languages, code, NULL, NULL);
    struct tl_view view;
    struct tl_text policy = {0};
    struct tl_qr qr = {0};
    if (!tl_page_preview(state, now_ms, settings, &view))
        return false;
    if (view.code_address != NULL) {
        tl_qr_make(view.code_address, &qr);
        view.qr = &qr;
    }
    view.queue = target->segments[1];
    pthread_mutex_lock(&previews->mutex);
    view.event = tl_event_looks_find(previews->events, view.queue);
    tl_page_render(&view, previews->brand, language, &page->html);
    tl_page_policy(&view, previews->brand, &policy);
    pthread_mutex_unlock(&previews->mutex);
    page->html.failed = page->html.failed || policy.failed || qr.path.failed;
    tl_qr_free(&qr);
    page->policy = policy.data;
    return true;
}

bool tl_admin_previews_render(struct tl_admin_previews *previews, struct tl_control *control,
                              const struct tl_target *target, int64_t now_ms,
                              struct tl_admin_page *page, struct tl_control_answer *answer)
{
    struct tl_error err = {0};
    struct tl_keys keys;
    struct tl_queue_settings settings;
    const char *queue = target->segments[1];
    struct tl_redis *redis = tl_control_redis(control, queue, &err);
    if (!tl_keys_of(&keys, previews->config->redis.key_prefix, queue, &err) || redis == NULL ||
        !tl_queue_load(redis, &keys, &settings, &err)) {
        tl_control_problem_of(answer, &err);
        return false;
    }
    const char *state = tl_target_parameter(target, "state");
    if (state == NULL) {
        write_list(queue, &page->html);
    } else if (!render(previews, target, state, &settings, now_ms, page)) {
        tl_control_problem(answer, TL_REFUSAL_NOT_FOUND,
                           "There is no such state; " TL_ADMIN_PREVIEWS "%s lists all", queue);
        return false;
    }
    if (page->html.failed)
        tl_control_problem(answer, TL_REFUSAL_INTERNAL, "out of memory");
    return !page->html.failed;
}

const struct tl_asset *tl_admin_previews_borrow(struct tl_admin_previews *previews,
                                                const char *path, size_t length)
{
    char copy[256];
    pthread_mutex_lock(&previews->mutex);
    if (length >= sizeof(copy))
        return NULL;
    memcpy(copy, path, length);
    copy[length] = '\0';
    return tl_look_asset(previews->brand, previews->events, copy);
}

void tl_admin_previews_return(struct tl_admin_previews *previews)
{
    pthread_mutex_unlock(&previews->mutex);
}
