/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/text.h"
#include "worker/report/worker_metrics.h"
#include "worker/verify/verifier.h"

struct tl_verifier {
    struct tl_verifier_settings settings;
    struct tl_fetcher *fetcher;
    uv_poll_t poll; /* of the fetcher's descriptor */
};

bool tl_verifier_judge(const struct tl_verifier *verifier, const struct tl_fetch *fetch,
                       struct tl_verdict *verdict)
{
    const struct tl_fetched *fetched = tl_fetch_result(fetch);
    if (fetched == NULL)
        return false;
    if (fetched->end != TL_FETCH_UNSENT)
        tl_metrics_observe(verifier->settings.metrics, TL_WORKER_VERIFY_TIME, fetched->took_us);
    if (fetched->end == TL_FETCH_ANSWERED)
        tl_verdict_decode((unsigned)fetched->status, fetched->text, fetched->length,
                          &verifier->settings.rules, verdict);
    else if (fetched->end == TL_FETCH_CUT_OFF)
        tl_verdict_set(verdict, TL_VERDICT_UNREACHABLE, "it answers with more than %d bytes",
                       TL_VERDICT_ANSWER_MAX);
    else if (fetched->end == TL_FETCH_LATE)
        tl_verdict_set(verdict, TL_VERDICT_TIMED_OUT, "it does not answer in time");
    else if (fetched->end == TL_FETCH_UNSENT)
        tl_verdict_set(verdict, TL_VERDICT_TIMED_OUT, "too many tokens were before it");
    else
        tl_verdict_set(verdict, TL_VERDICT_UNREACHABLE, "%s", fetched->problem);
    return true;
}

static void on_ended(uv_poll_t *poll, int status, int events)
{
    const struct tl_verifier *verifier = poll->data;
    (void)status;
    (void)events;
    tl_fetcher_seen(verifier->fetcher);
    verifier->settings.ended(verifier->settings.context);
}

struct tl_fetch *tl_verifier_ask(struct tl_verifier *verifier, const struct tl_question *asked)
{
    const char *address = asked->address != NULL ? asked->address : "";
    const struct {
        const char *name, *value;
    } fields[] = {
        {"secret=", asked->secret}, {"&response=", asked->token}, {"&remoteip=", address}};
    size_t size = 3 * (strlen(asked->secret) + strlen(asked->token) + strlen(address)) + 64;
    char *form = malloc(size);
    if (form == NULL)
        return NULL;
    char *at = form;
    for (size_t i = 0; i < (address[0] != '\0' ? 3 : 2); i++) {
        at = stpcpy(at, fields[i].name);
        at += tl_percent_encode(fields[i].value, at, size - (size_t)(at - form));
    }
    const struct tl_fetch_request request = {.url = verifier->settings.url,
                                             .timeout_ms = asked->until_ms - tl_clock_ms(),
                                             .body = form,
                                             .length = (size_t)(at - form),
                                             .answer_max = TL_VERDICT_ANSWER_MAX};
    struct tl_fetch *fetch = tl_fetch_begin(verifier->fetcher, &request);
    explicit_bzero(form, size);
    free(form);
    return fetch;
}

static void on_closed(uv_handle_t *poll)
{
    free(uv_handle_get_data(poll));
}

struct tl_verifier *tl_verifier_new(uv_loop_t *loop, const struct tl_verifier_settings *settings,
                                    struct tl_error *err)
{
    struct tl_verifier *verifier = calloc(1, sizeof(*verifier));
    if (verifier == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory to verify tokens");
        return NULL;
    }
    verifier->settings = *settings;
    verifier->fetcher = tl_fetcher_new(settings->max_concurrent, err);
    if (verifier->fetcher != NULL &&
        uv_poll_init(loop, &verifier->poll, tl_fetcher_fd(verifier->fetcher)) == 0) {
        verifier->poll.data = verifier;
        uv_poll_start(&verifier->poll, UV_READABLE, on_ended); /* cannot fail */
        return verifier;
    }
    if (verifier->fetcher != NULL)
        tl_error_set(err, TL_ERR_SYSTEM, "verifications of tokens cannot be put on the loop");
    tl_fetcher_free(&verifier->fetcher);
    free(verifier);
    return NULL;
}

void tl_verifier_free(struct tl_verifier **verifier)
{
    struct tl_verifier *old = *verifier;
    *verifier = NULL;
    if (old == NULL)
        return;
    uv_close((uv_handle_t *)&old->poll, on_closed); /* no longer uses the descriptor */
    tl_fetcher_free(&old->fetcher);
}
