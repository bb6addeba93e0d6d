/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <curl/curl.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/config/checks.h"
#include "notifier/hook.h"

enum {
    ANSWER_MAX = 64 * 1024, /* read and thrown away; what is longer is cut off */
    CONNECTIONS_KEPT = 40,
};

struct tl_sender {
    CURLM *multi;
    size_t under_way;
};

struct tl_post {
    struct tl_hook *hook;
    int64_t started_us;
    CURL *easy;
    struct curl_slist *headers;
    bool under_way;
    size_t answered; /* bytes */
    CURLcode code;
    char problem[CURL_ERROR_SIZE];
};

/* ---- sending ---- */

static size_t take_answer(char *bytes, size_t size, size_t n, void *context)
{
    struct tl_post *post = context;
    (void)bytes;
    post->answered += size * n;
    return post->answered <= ANSWER_MAX ? size * n : 0; /* 0 ends the transfer */
}

static bool add_header(struct tl_post *post, const char *name, const char *value)
{
    char line[512];
    int length = snprintf(line, sizeof(line), "%s: %s", name, value);
    struct curl_slist *longer =
        length > 0 && (size_t)length < sizeof(line) ? curl_slist_append(post->headers, line) : NULL;
    if (longer != NULL)
        post->headers = longer;
    return longer != NULL;
}

static bool prepare(struct tl_post *post, const char *id, const char *body, size_t length)
{
    const struct tl_hook_config *config = post->hook->config;
    char signature[TL_SIGNATURE_TEXT_MAX];
    CURL *easy = post->easy = curl_easy_init();
    tl_signer_sign(post->hook->signer, (int64_t)time(NULL), body, length, signature);
    return easy != NULL && add_header(post, "Content-Type", "application/json") &&
           add_header(post, "Expect", "") && add_header(post, "Tellerline-Id", id) &&
           add_header(post, "Tellerline-Signature", signature) &&
           curl_easy_setopt(easy, CURLOPT_URL, config->url) == CURLE_OK &&
           (!tl_url_is_local(config->url) ||
            curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK) &&
           curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           /* Only the address of the configuration is called, no other that it names. */
           curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           /* A transfer that ends does not wait for the thread that resolves its host name. */
           curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)config->timeout_ms) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_USERAGENT, "tellerline/" TELLERLINE_VERSION) ==
               CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HTTPHEADER, post->headers) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)length) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, body) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, post->problem) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_answer) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEDATA, post) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PRIVATE, post) == CURLE_OK;
}

static void free_post(struct tl_post *post)
{
    if (post == NULL)
        return;
    curl_easy_cleanup(post->easy);
    curl_slist_free_all(post->headers);
    free(post);
}

struct tl_post *tl_hook_post(struct tl_hook *hook, const char *id, const char *body, size_t length,
                             struct tl_error *err)
{
    struct tl_post *post = calloc(1, sizeof(*post));
    if (post != NULL)
        *post = (struct tl_post){.hook = hook, .started_us = tl_clock_us(), .under_way = true};
    if (post == NULL || !prepare(post, id, body, length) ||
        curl_multi_add_handle(hook->sender->multi, post->easy) != CURLM_OK) {
        free_post(post);
        tl_error_set(err, TL_ERR_NOMEM, "no memory to call a hook");
        return NULL;
    }
    hook->sender->under_way++;
    hook->under_way++;
    return post;
}

static void end(struct tl_post *post)
{
    struct tl_sender *sender = post->hook->sender;
    (void)curl_multi_remove_handle(sender->multi, post->easy); /* fails for other handles */
    post->under_way = false;
    sender->under_way--;
}

void tl_hook_break_off(struct tl_post **post)
{
    if (*post == NULL)
        return;
    if ((*post)->under_way)
        end(*post);
    (*post)->hook->under_way--;
    free_post(*post);
    *post = NULL;
}

/* ---- how it went ---- */

static void judge(const struct tl_post *post, struct tl_post_result *result)
{
    *result = (struct tl_post_result){0};
    if (curl_easy_getinfo(post->easy, CURLINFO_RESPONSE_CODE, &result->status) != CURLE_OK)
        result->status = 0;
    bool complete = post->code == CURLE_OK || post->answered > ANSWER_MAX;
    result->accepted = complete && result->status >= 200 && result->status < 300;
    if (!complete)
        snprintf(result->problem, sizeof(result->problem), "%.150s",
                 post->problem[0] != '\0' ? post->problem : curl_easy_strerror(post->code));
    else if (!result->accepted)
        snprintf(result->problem, sizeof(result->problem), "it answers %ld%s", result->status,
                 result->status >= 300 && result->status < 400 ? "; redirects are not followed"
                                                               : "");
}

bool tl_hook_result(struct tl_post **post, int64_t now_ms, struct tl_post_result *result)
{
    if (*post == NULL || (*post)->under_way)
        return false;
    struct tl_hook *hook = (*post)->hook;
    judge(*post, result);
    tl_metrics_add(hook->metrics, TL_NOTIFIER_POSTS, 1);
    tl_metrics_add(hook->metrics, TL_NOTIFIER_FAILED, result->accepted ? 0 : 1);
    tl_metrics_observe(hook->metrics, TL_NOTIFIER_POST_TIME, tl_clock_us() - (*post)->started_us);
    tl_hook_break_off(post);
    if (result->accepted && hook->failing)
        tl_info("hook %s answers again", hook->config->name);
    if (!result->accepted && !hook->failing) {
        hook->failing_since_ms = now_ms;
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){0},
               "hook %s cannot be told: %s. It is tried again; `tellerline hooks list` shows it",
               hook->config->name, result->problem);
    }
    hook->failing = !result->accepted;
    return true;
}

/* ---- the sender ---- */

void tl_sender_turn(struct tl_sender *sender, int64_t wait_ms)
{
    int running, left;
    const CURLMsg *message;
    (void)curl_multi_perform(sender->multi, &running); /* each transfer has its own result */
    if (wait_ms > 0 && running > 0) {
        (void)curl_multi_poll(sender->multi, NULL, 0, (int)wait_ms, NULL);
        (void)curl_multi_perform(sender->multi, &running);
    }
    while ((message = curl_multi_info_read(sender->multi, &left)) != NULL) {
        char *owner = NULL;
        CURLcode code = message->data.result; /* the message is gone with its handle */
        if (message->msg != CURLMSG_DONE ||
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &owner) != CURLE_OK)
            continue;
        struct tl_post *post = (struct tl_post *)(void *)owner;
        post->code = code;
        end(post);
    }
}

size_t tl_sender_under_way(const struct tl_sender *sender)
{
    return sender->under_way;
}

struct tl_sender *tl_sender_new(struct tl_error *err)
{
    struct tl_sender *sender = calloc(1, sizeof(*sender));
    if (sender != NULL && curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(sender);
        sender = NULL;
    }
    if (sender != NULL && (sender->multi = curl_multi_init()) != NULL &&
        curl_multi_setopt(sender->multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_KEPT) == CURLM_OK)
        return sender;
    tl_sender_free(&sender);
    tl_error_set(err, TL_ERR_NOMEM, "no memory to call hooks");
    return NULL;
}

void tl_sender_free(struct tl_sender **sender)
{
    if (*sender == NULL)
        return;
    if ((*sender)->multi != NULL)
        (void)curl_multi_cleanup((*sender)->multi);
    curl_global_cleanup();
    free(*sender);
    *sender = NULL;
}
