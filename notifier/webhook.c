/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sodium.h>

#include "common/auth/hex.h"
#include "common/auth/secret_file.h"
#include "common/base/log.h"
#include "notifier/webhook.h"

enum {
    ANSWER_MAX = 64 * 1024, /* what is longer is cut off */
    SECRET_MIN = 16,
    SIGNATURE_MAX = 224,
};

/* ---- secrets ---- */

static bool read_secrets(struct tl_webhook *webhook, char *rest, struct tl_error *err)
{
    const char *path = webhook->config->secret_file;
    char *line;
    while (tl_secret_line(&rest, &line, NULL)) {
        size_t length = strlen(line);
        if (length < SECRET_MIN || length > TL_WEBHOOK_SECRET_MAX)
            return tl_error_set(err, TL_ERR_INVALID,
                                "%s: a secret has %d to %d characters; `openssl rand -hex 32` "
                                "makes one",
                                path, SECRET_MIN, TL_WEBHOOK_SECRET_MAX);
        if (webhook->n_secrets == TL_WEBHOOK_SECRETS_MAX)
            return tl_error_set(err, TL_ERR_INVALID, "%s: more than %d secrets", path,
                                TL_WEBHOOK_SECRETS_MAX);
        memcpy(webhook->secrets[webhook->n_secrets++], line, length + 1);
    }
    return webhook->n_secrets > 0 ||
           tl_error_set(err, TL_ERR_INVALID, "%s: there is no secret in it", path);
}

bool tl_webhook_load(struct tl_webhook *webhook, struct tl_error *err)
{
    const char *path = webhook->config->secret_file;
    size_t length = 0;
    bool missing = false;
    char *bytes = tl_secret_read(path, &length, &missing, err);
    if (bytes == NULL && missing && tl_secret_create_key(path, "", "the secret of a webhook", err))
        bytes = tl_secret_read(path, &length, NULL, err);
    bool ok = bytes != NULL && read_secrets(webhook, bytes, err);
    tl_secret_free(&bytes, length);
    return ok;
}

/* The header "Tellerline-Signature: t=SECONDS,v1=HEX", with another v1 for a second secret, each
 * the HMAC-SHA-256 of "SECONDS.BODY". */
static void sign(const struct tl_webhook *webhook, const char *body, char line[SIGNATURE_MAX])
{
    int64_t seconds = (int64_t)time(NULL);
    char head[32];
    size_t head_length = (size_t)snprintf(head, sizeof(head), "%" PRId64 ".", seconds);
    int used = snprintf(line, SIGNATURE_MAX, "Tellerline-Signature: t=%" PRId64, seconds);
    for (size_t i = 0; i < webhook->n_secrets; i++) {
        crypto_auth_hmacsha256_state state;
        unsigned char mac[crypto_auth_hmacsha256_BYTES];
        char hex[2 * sizeof(mac) + 1];
        const char *secret = webhook->secrets[i];
        crypto_auth_hmacsha256_init(&state, (const unsigned char *)secret, strlen(secret));
        crypto_auth_hmacsha256_update(&state, (const unsigned char *)head, head_length);
        crypto_auth_hmacsha256_update(&state, (const unsigned char *)body, strlen(body));
        crypto_auth_hmacsha256_final(&state, mac);
        tl_hex_format(mac, sizeof(mac), hex);
        used += snprintf(line + used, SIGNATURE_MAX - (size_t)used, ",v1=%s", hex);
    }
}

/* ---- posts ---- */

static struct tl_fetch *send_body(const struct tl_webhook *webhook, const char *id,
                                  const char *body)
{
    char id_line[TL_DELIVERY_ID_MAX + 32];
    char signature[SIGNATURE_MAX];
    snprintf(id_line, sizeof(id_line), "Tellerline-Id: %s", id);
    sign(webhook, body, signature);
    const char *const headers[] = {"Content-Type: application/json", "Expect:", id_line, signature,
                                   NULL};
    const struct tl_fetch_request request = {.url = webhook->config->url,
                                             .timeout_ms = webhook->config->timeout_ms,
                                             .body = body,
                                             .length = strlen(body),
                                             .headers = headers,
                                             .answer_max = ANSWER_MAX};
    return tl_fetch_begin(webhook->fetcher, &request);
}

struct tl_fetch *tl_webhook_post(struct tl_webhook *webhook, const char *id, json_t *events,
                                 struct tl_error *err)
{
    json_t *body =
        json_pack("{s:s, s:s, s:O}", "id", id, "webhook", webhook->config->name, "events", events);
    char *text = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;
    struct tl_fetch *post = text != NULL ? send_body(webhook, id, text) : NULL;
    json_decref(body);
    free(text);
    if (post == NULL)
        tl_error_set(err, TL_ERR_NOMEM, "no memory to call a webhook");
    webhook->under_way += post != NULL;
    return post;
}

void tl_webhook_break_off(struct tl_webhook *webhook, struct tl_fetch **post)
{
    webhook->under_way -= *post != NULL;
    tl_fetch_end(post);
}

static void judge(const struct tl_fetched *fetched, struct tl_post_result *result)
{
    bool complete = fetched->end == TL_FETCH_ANSWERED || fetched->end == TL_FETCH_CUT_OFF;
    *result = (struct tl_post_result){.status = fetched->status};
    result->accepted = complete && result->status >= 200 && result->status < 300;
    if (!complete)
        snprintf(result->problem, sizeof(result->problem), "%.150s", fetched->problem);
    else if (!result->accepted)
        snprintf(result->problem, sizeof(result->problem), "it answers %ld%s", result->status,
                 result->status >= 300 && result->status < 400 ? "; redirects are not followed"
                                                               : "");
}

bool tl_webhook_result(struct tl_webhook *webhook, struct tl_fetch **post, int64_t now_ms,
                       struct tl_post_result *result)
{
    const struct tl_fetched *fetched = tl_fetch_result(*post);
    if (fetched == NULL)
        return false;
    judge(fetched, result);
    tl_metrics_add(webhook->metrics, TL_NOTIFIER_POSTS, 1);
    tl_metrics_add(webhook->metrics, TL_NOTIFIER_FAILED, result->accepted ? 0 : 1);
    tl_metrics_observe(webhook->metrics, TL_NOTIFIER_POST_TIME, fetched->took_us);
    tl_webhook_break_off(webhook, post);
    if (result->accepted && webhook->failing)
        tl_info("webhook %s answers again", webhook->config->name);
    if (!result->accepted && !webhook->failing) {
        webhook->failing_since_ms = now_ms;
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){0},
               "webhook %s fails: %s. It is tried again; `tellerline webhook list` shows it",
               webhook->config->name, result->problem);
    }
    webhook->failing = !result->accepted;
    return true;
}
