/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "common/base/clock.h"
#include "common/config/checks.h"
#include "worker/feed/mailbox.h"
#include "worker/report/worker_metrics.h"
#include "worker/verify/verifier.h"

/* LOOK_MS: how often the thread looks for questions that waited too long, IDLE_MS: without any. */
enum { LOOK_MS = 100, IDLE_MS = 10000, ADDRESS_BYTES = 64 };

/* Goes to the thread as a question, or to cancel one, and comes back with the verdict. */
struct job {
    struct tl_message message;
    uint64_t number;
    bool cancels;
    int64_t until_ms;
    struct tl_verdict verdict;
    size_t length;
    char form[]; /* holds the secret */
};

/* A question under way. */
struct slot {
    struct job *job; /* NULL: the slot is free */
    CURL *easy;      /* NULL until its first use */
    int64_t since_us;
    bool too_long; /* the answer */
    size_t length;
    char problem[CURL_ERROR_SIZE];
    char answer[TL_VERDICT_ANSWER_MAX];
};

struct tl_verifier {
    struct tl_verifier_settings settings;
    pthread_t thread;
    bool started;
    struct tl_mailbox *requests; /* to the thread */
    struct tl_mailbox *results;  /* to the loop */
    CURLM *multi;                /* of the thread; the loop only wakes it */
    /* The thread's own: */
    struct tl_messages waiting;
    struct slot *slots;
};

static struct job *job_of(struct tl_message *message)
{
    return (struct job *)message;
}

static void free_job(struct tl_message *message)
{
    struct job *job = job_of(message);
    explicit_bzero(job->form, job->length);
    free(job);
}

/* ---- the thread ---- */

static void post(struct tl_verifier *verifier, struct job *job)
{
    explicit_bzero(job->form, job->length);
    tl_mailbox_put(verifier->results, &job->message, sizeof(*job));
}

static size_t take_answer(char *bytes, size_t size, size_t n, void *context)
{
    struct slot *slot = context;
    slot->too_long = slot->too_long || n * size > sizeof(slot->answer) - slot->length;
    if (slot->too_long)
        return 0; /* ends the transfer */
    memcpy(slot->answer + slot->length, bytes, n * size);
    slot->length += n * size;
    return n * size;
}

/* Options that are the same for all questions. Errors mean that memory ran out, or an option that
 * this libcurl does not have. */
static bool prepare(const struct tl_verifier *verifier, struct slot *slot)
{
    CURL *easy = curl_easy_init();
    if (easy == NULL)
        return false;
    bool ok =
        curl_easy_setopt(easy, CURLOPT_URL, verifier->settings.url) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
        /* A transfer that ends does not wait for the thread that resolves its host name. */
        curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_USERAGENT, "tellerline/" TELLERLINE_VERSION) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, slot->problem) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_answer) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, slot) == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_PRIVATE, slot) == CURLE_OK &&
        (!tl_url_is_local(verifier->settings.url) ||
         curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK);
    if (ok)
        slot->easy = easy;
    else
        curl_easy_cleanup(easy);
    return ok;
}

static bool begin(struct tl_verifier *verifier, struct slot *slot, const struct job *job,
                  int64_t now_ms)
{
    if (slot->easy == NULL && !prepare(verifier, slot))
        return false;
    slot->since_us = tl_clock_us();
    slot->length = 0;
    slot->too_long = false;
    slot->problem[0] = '\0';
    const char *form = job->form;
    return curl_easy_setopt(slot->easy, CURLOPT_POSTFIELDS, form) == CURLE_OK &&
           curl_easy_setopt(slot->easy, CURLOPT_POSTFIELDSIZE, (long)job->length) == CURLE_OK &&
           curl_easy_setopt(slot->easy, CURLOPT_TIMEOUT_MS, (long)(job->until_ms - now_ms)) ==
               CURLE_OK &&
           curl_multi_add_handle(verifier->multi, slot->easy) == CURLM_OK;
}

static struct slot *free_slot(const struct tl_verifier *verifier)
{
    for (uint64_t i = 0; i < verifier->settings.max_concurrent; i++)
        if (verifier->slots[i].job == NULL)
            return &verifier->slots[i];
    return NULL;
}

/* Begins what waits, as far as there are slots. */
static void begin_waiting(struct tl_verifier *verifier)
{
    int64_t now_ms = tl_clock_ms();
    struct tl_messages later;
    struct tl_message *message;
    struct slot *slot = free_slot(verifier);
    tl_messages_init(&later);
    while ((message = tl_messages_take(&verifier->waiting)) != NULL) {
        struct job *job = job_of(message);
        if (job->until_ms <= now_ms) {
            tl_verdict_set(&job->verdict, TL_VERDICT_TIMED_OUT, "too many tokens were before it");
            post(verifier, job);
        } else if (slot == NULL) {
            tl_messages_add(&later, message);
        } else if (begin(verifier, slot, job, now_ms)) {
            slot->job = job;
            slot = free_slot(verifier);
        } else {
            tl_verdict_set(&job->verdict, TL_VERDICT_UNREACHABLE, "no memory to ask it");
            post(verifier, job);
        }
    }
    tl_messages_move(&verifier->waiting, &later);
}

/* Takes the job off its slot. */
static struct job *end(struct tl_verifier *verifier, struct slot *slot)
{
    struct job *job = slot->job;
    slot->job = NULL;
    (void)curl_multi_remove_handle(verifier->multi, slot->easy); /* fails only for other handles */
    return job;
}

static void judge(const struct tl_verifier *verifier, const struct slot *slot, CURLcode result,
                  struct tl_verdict *verdict)
{
    long status = 0;
    if (slot->too_long)
        tl_verdict_set(verdict, TL_VERDICT_UNREACHABLE, "it answers with more than %d bytes",
                       TL_VERDICT_ANSWER_MAX);
    else if (result == CURLE_OPERATION_TIMEDOUT)
        tl_verdict_set(verdict, TL_VERDICT_TIMED_OUT, "it does not answer in time");
    else if (result != CURLE_OK ||
             curl_easy_getinfo(slot->easy, CURLINFO_RESPONSE_CODE, &status) != CURLE_OK)
        tl_verdict_set(verdict, TL_VERDICT_UNREACHABLE, "%s",
                       slot->problem[0] != '\0' ? slot->problem : curl_easy_strerror(result));
    else
        tl_verdict_decode((unsigned)status, slot->answer, slot->length, &verifier->settings.rules,
                          verdict);
}

static void end_finished(struct tl_verifier *verifier)
{
    int left;
    const CURLMsg *message;
    while ((message = curl_multi_info_read(verifier->multi, &left)) != NULL) {
        char *owner = NULL;
        CURLcode result = message->data.result; /* the message is gone with its handle */
        if (message->msg != CURLMSG_DONE ||
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &owner) != CURLE_OK)
            continue;
        struct slot *slot = (struct slot *)(void *)owner;
        tl_metrics_observe(verifier->settings.metrics, TL_WORKER_VERIFY_TIME,
                           tl_clock_us() - slot->since_us);
        judge(verifier, slot, result, &slot->job->verdict);
        post(verifier, end(verifier, slot));
    }
}

static void cancel(struct tl_verifier *verifier, uint64_t number)
{
    struct tl_messages all;
    struct tl_message *message;
    tl_messages_init(&all);
    tl_messages_move(&all, &verifier->waiting);
    while ((message = tl_messages_take(&all)) != NULL) {
        if (job_of(message)->number == number)
            free_job(message);
        else
            tl_messages_add(&verifier->waiting, message);
    }
    for (uint64_t i = 0; i < verifier->settings.max_concurrent; i++) {
        struct slot *slot = &verifier->slots[i];
        if (slot->job != NULL && slot->job->number == number)
            free_job(&end(verifier, slot)->message);
    }
}

/* Takes what the loop has put. False when the verifier is being freed. */
static bool take_requests(struct tl_verifier *verifier)
{
    struct tl_messages fresh;
    struct tl_message *message;
    tl_messages_init(&fresh);
    bool open = tl_mailbox_wait(verifier->requests, 0, &fresh);
    while ((message = tl_messages_take(&fresh)) != NULL) {
        if (!job_of(message)->cancels) {
            tl_messages_add(&verifier->waiting, message);
            continue;
        }
        cancel(verifier, job_of(message)->number);
        free_job(message);
    }
    return open;
}

static void *run(void *context)
{
    struct tl_verifier *verifier = context;
    int running;
    while (take_requests(verifier)) {
        begin_waiting(verifier);
        (void)curl_multi_perform(verifier->multi, &running); /* each transfer has its own result */
        end_finished(verifier);
        bool more = verifier->waiting.first != NULL;
        int wait_ms = !more ? IDLE_MS : free_slot(verifier) != NULL ? 0 : LOOK_MS;
        (void)curl_multi_poll(verifier->multi, NULL, 0, wait_ms, NULL);
    }
    return NULL;
}

/* ---- the loop's side ---- */

static void deliver(void *context, struct tl_message *message)
{
    const struct tl_verifier *verifier = context;
    const struct job *job = job_of(message);
    verifier->settings.verified(verifier->settings.context, job->number, &job->verdict);
}

static void put(struct tl_verifier *verifier, struct job *job)
{
    tl_mailbox_put(verifier->requests, &job->message, sizeof(*job) + job->length);
    (void)curl_multi_wakeup(verifier->multi); /* fails only when memory ran out */
}

/* Appends "name=value" as forms encode it. */
static char *append(char *at, const char *name, const char *value)
{
    static const char digits[] = "0123456789ABCDEF";
    at = stpcpy(at, name);
    for (; *value != '\0'; value++) {
        unsigned char c = (unsigned char)*value;
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     c == '-' || c == '.' || c == '_';
        if (plain) {
            *at++ = *value;
        } else {
            *at++ = '%';
            *at++ = digits[c >> 4];
            *at++ = digits[c & 15];
        }
    }
    *at = '\0';
    return at;
}

bool tl_verifier_ask(struct tl_verifier *verifier, const struct tl_question *question)
{
    size_t size = sizeof("secret=&response=&remoteip=") + 3 * strlen(question->secret) +
                  3 * strlen(question->token) + (size_t)3 * ADDRESS_BYTES;
    struct job *job = calloc(1, sizeof(*job) + size);
    if (job == NULL)
        return false;
    job->number = question->number;
    job->until_ms = question->until_ms;
    char *end_of_form = append(job->form, "secret=", question->secret);
    end_of_form = append(end_of_form, "&response=", question->token);
    if (question->address != NULL && strlen(question->address) < ADDRESS_BYTES)
        end_of_form = append(end_of_form, "&remoteip=", question->address);
    job->length = (size_t)(end_of_form - job->form);
    put(verifier, job);
    return true;
}

void tl_verifier_cancel(struct tl_verifier *verifier, uint64_t number)
{
    struct job *job = calloc(1, sizeof(*job));
    if (job == NULL)
        return; /* the question ends at its own time */
    job->number = number;
    job->cancels = true;
    put(verifier, job);
}

static bool start(struct tl_verifier *verifier, uv_loop_t *loop, struct tl_error *err)
{
    /* Unbounded in both directions: the caller bounds the questions, and each has one verdict. */
    const struct tl_mailbox_settings requests = {.bytes_max = TL_MAILBOX_UNBOUNDED,
                                                 .free_message = free_job};
    const struct tl_mailbox_settings results = {.bytes_max = TL_MAILBOX_UNBOUNDED,
                                                .free_message = free_job,
                                                .loop = loop,
                                                .context = verifier,
                                                .deliver = deliver};
    verifier->slots = calloc(verifier->settings.max_concurrent, sizeof(*verifier->slots));
    verifier->multi = curl_multi_init();
    if (verifier->slots == NULL || verifier->multi == NULL ||
        curl_multi_setopt(verifier->multi, CURLMOPT_MAXCONNECTS,
                          (long)verifier->settings.max_concurrent) != CURLM_OK)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory to verify tokens");
    verifier->requests = tl_mailbox_new(&requests, err);
    verifier->results = verifier->requests != NULL ? tl_mailbox_new(&results, err) : NULL;
    if (verifier->results == NULL)
        return false;
    int problem = pthread_create(&verifier->thread, NULL, run, verifier);
    verifier->started = problem == 0;
    return verifier->started ||
           tl_error_set(err, TL_ERR_SYSTEM, "cannot start the thread that verifies tokens: %s",
                        strerror(problem));
}

struct tl_verifier *tl_verifier_new(uv_loop_t *loop, const struct tl_verifier_settings *settings,
                                    struct tl_error *err)
{
    struct tl_verifier *verifier = calloc(1, sizeof(*verifier));
    if (verifier == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory to verify tokens");
        free(verifier);
        return NULL;
    }
    verifier->settings = *settings;
    tl_messages_init(&verifier->waiting);
    if (!start(verifier, loop, err))
        tl_verifier_free(&verifier);
    return verifier;
}

void tl_verifier_free(struct tl_verifier **verifier)
{
    struct tl_verifier *old = *verifier;
    struct tl_message *message;
    *verifier = NULL;
    if (old == NULL)
        return;
    if (old->started) {
        tl_mailbox_close(old->requests);
        (void)curl_multi_wakeup(old->multi);
        pthread_join(old->thread, NULL);
    }
    for (uint64_t i = 0; old->slots != NULL && i < old->settings.max_concurrent; i++) {
        if (old->slots[i].job != NULL)
            free_job(&end(old, &old->slots[i])->message);
        curl_easy_cleanup(old->slots[i].easy);
    }
    while ((message = tl_messages_take(&old->waiting)) != NULL)
        free_job(message);
    tl_mailbox_free(&old->requests);
    tl_mailbox_free(&old->results);
    if (old->multi != NULL)
        (void)curl_multi_cleanup(old->multi);
    curl_global_cleanup();
    free(old->slots);
    free(old);
}
