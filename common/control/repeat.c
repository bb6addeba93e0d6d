/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/control/call.h"

enum { DIGEST_BYTES = 16, DIGEST_DIGITS = 2 * DIGEST_BYTES, ANSWER_MAX = 16 * 1024 };

struct digest {
    char text[DIGEST_DIGITS + 1];
};

static void add(crypto_generichash_state *hash, const char *text)
{
    /* With the terminating zero, so that no two lists of texts run into each other. */
    crypto_generichash_update(hash, (const unsigned char *)text, strlen(text) + 1);
}

/* Of the texts up to NULL. */
static void digest_of(struct digest *digest, const char *const *texts)
{
    unsigned char bytes[DIGEST_BYTES];
    crypto_generichash_state hash;
    crypto_generichash_init(&hash, NULL, 0, sizeof(bytes));
    for (; *texts != NULL; texts++)
        add(&hash, *texts);
    crypto_generichash_final(&hash, bytes, sizeof(bytes));
    sodium_bin2hex(digest->text, sizeof(digest->text), bytes, sizeof(bytes));
}

static struct tl_reply *run(struct tl_control_call *call, const char *what,
                            const struct digest *key, const struct digest *request,
                            const char *answer, struct tl_error *err)
{
    struct tl_args args = {0};
    tl_call_begin(&args, TL_FN_IDEMPOTENT, &call->keys);
    tl_args_strs(&args, what, key->text, request->text, answer, NULL);
    return tl_call_once(call->redis, &args, err);
}

/* Keeps the answer, or lets the key be used again. A failure only means that a repetition is
 * refused for a minute, and does the call again then. */
static void keep(struct tl_control_call *call, const struct digest *key,
                 const struct digest *request)
{
    const struct tl_control_answer *answer = call->answer;
    char *text = NULL;
    if (answer->status < 500) {
        json_t *kept = json_pack("{s:i, s:O?, s:s}", "status", answer->status, "body", answer->body,
                                 "etag", answer->etag);
        text = kept != NULL ? json_dumps(kept, JSON_COMPACT) : NULL;
        json_decref(kept);
    }
    bool fits = text != NULL && strlen(text) <= ANSWER_MAX;
    tl_reply_free(run(call, fits ? "keep" : "release", key, request, fits ? text : NULL, NULL));
    free(text);
}

static void answer_again(struct tl_control_call *call, const char *text)
{
    const char *etag = "";
    int status = 0;
    json_t *body = NULL;
    json_t *kept = json_loads(text, 0, NULL);
    if (json_unpack(kept, "{s:i, s:o, s:s}", "status", &status, "body", &body, "etag", &etag) !=
            0 ||
        strlen(etag) >= sizeof(call->answer->etag)) {
        tl_call_refuse(call, TL_REFUSAL_INTERNAL,
                       "the kept answer cannot be read; use another Idempotency-Key");
    } else {
        call->answer->status = status;
        call->answer->body = json_is_null(body) ? NULL : json_incref(body);
        memcpy(call->answer->etag, etag, strlen(etag) + 1);
    }
    json_decref(kept);
}

void tl_repeat_once(struct tl_control_call *call, void (*perform)(struct tl_control_call *call))
{
    const struct tl_control_request *request = call->request;
    struct digest key;
    struct digest asked;
    size_t length = strlen(request->idempotency_key);
    if (length < 1 || length > TL_CONTROL_KEY_MAX) {
        tl_call_refuse(call, TL_REFUSAL_BAD_REQUEST, "Idempotency-Key: 1 to %d characters",
                       TL_CONTROL_KEY_MAX);
        return;
    }
    char *body = json_dumps(request->body, JSON_COMPACT | JSON_SORT_KEYS);
    digest_of(&key, (const char *const[]){request->actor->name, request->idempotency_key, NULL});
    digest_of(&asked, (const char *const[]){request->method, request->target,
                                            request->if_match != NULL ? request->if_match : "",
                                            body != NULL ? body : "", NULL});
    free(body);
    struct tl_reply *reply = run(call, "claim", &key, &asked, NULL, &call->err);
    if (reply == NULL) {
        tl_control_problem_of(call->answer, &call->err);
        return;
    }
    switch (tl_reply_signed(reply, 0)) {
    case TL_CLAIM_NEW:
        perform(call);
        keep(call, &key, &asked);
        break;
    case TL_CLAIM_OTHER:
        tl_call_refuse(call, TL_REFUSAL_KEY_REUSED,
                       "this Idempotency-Key was used for another request");
        break;
    case TL_CLAIM_BUSY:
        tl_call_refuse(call, TL_REFUSAL_KEY_IN_USE,
                       "the first request with this Idempotency-Key is under way");
        break;
    default:
        answer_again(call, tl_reply_text(reply, 1));
    }
    tl_reply_free(reply);
}
