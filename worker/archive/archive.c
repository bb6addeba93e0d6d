/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "worker/archive/archive.h"
#include "worker/archive/reading.h"
#include "worker/report/worker_metrics.h"

enum {
    WAITING_MAX = 1000,  /* questions without an answer */
    BYTES_MAX = 1 << 26, /* of both mailboxes */
    LIMIT_MS = 1500,     /* of a statement, and about that of connecting */
    RETRY_BASE_MS = 200,
    RETRY_LIMIT_MS = 5000,
    IDLE_MS = 60000, /* then the connection is closed */
    LOG_EVERY_MS = 10000,
};

/* Questions in a second. */
static const unsigned rates[TL_ARCHIVE_KINDS] = {[TL_ARCHIVE_PLACE] = 200,
                                                 [TL_ARCHIVE_CHECKPOINT] = 100,
                                                 [TL_ARCHIVE_TILE] = 200,
                                                 [TL_ARCHIVE_PROOF] = 50};

struct tl_archive {
    struct tl_archive_settings settings;
    struct tl_mailbox *questions; /* to the thread */
    struct tl_mailbox *answers;   /* to the loop */
    pthread_t thread;
    bool started;
    /* The loop's own: */
    size_t waiting;
    int64_t second;
    unsigned asked[TL_ARCHIVE_KINDS]; /* in that second */
    /* The thread's own: */
    struct tl_reading reading;
    struct tl_backoff backoff;
    int64_t retry_ms; /* when to connect again */
    struct tl_log_limit log;
};

static void free_job(struct tl_archive_job *job)
{
    free(job->proof);
    free(job->bytes);
    free(job);
}

/* ---- the thread ---- */

static bool (*const read_kind[TL_ARCHIVE_KINDS])(struct tl_reading *, struct tl_archive_job *,
                                                 struct tl_error *) = {
    [TL_ARCHIVE_PLACE] = tl_reading_place,
    [TL_ARCHIVE_CHECKPOINT] = tl_reading_checkpoint,
    [TL_ARCHIVE_TILE] = tl_reading_tile,
    [TL_ARCHIVE_PROOF] = tl_reading_proof,
};

static bool read_it(struct tl_archive *archive, struct tl_archive_job *job, struct tl_error *err)
{
    struct tl_reading *reading = &archive->reading;
    reading->postgres.limit_ms = LIMIT_MS;
    reading->now_ms = tl_clock_ms();
    return tl_postgres_open(&reading->postgres, archive->settings.url, "tellerline-worker", err) &&
           read_kind[job->kind](reading, job, err);
}

/* Without a connection it is not tried for each question again. */
static void answer(struct tl_archive *archive, struct tl_archive_job *job)
{
    struct tl_error err = {0};
    unsigned suppressed;
    int64_t now_ms = tl_clock_ms();
    bool connected = tl_postgres_connected(&archive->reading.postgres);
    job->found = TL_ARCHIVE_FAILED;
    if (now_ms >= job->until_ms || (!connected && now_ms < archive->retry_ms))
        return;
    if (read_it(archive, job, &err)) {
        tl_backoff_reset(&archive->backoff);
        return;
    }
    now_ms = tl_clock_ms();
    job->found = TL_ARCHIVE_FAILED;
    archive->retry_ms = now_ms + tl_backoff_next(&archive->backoff, randombytes_random());
    if (tl_log_allow(&archive->log, now_ms, LOG_EVERY_MS, &suppressed))
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = job->queue, .error = &err},
               "the archive could not be read");
}

static void *run(void *context)
{
    struct tl_archive *archive = context;
    struct tl_messages messages = {0};
    bool open;
    do {
        int64_t now_ms = tl_clock_ms();
        open = tl_mailbox_wait(archive->questions, now_ms + IDLE_MS, &messages);
        struct tl_message *message = tl_messages_take(&messages);
        if (message == NULL)
            tl_postgres_close(&archive->reading.postgres);
        for (; message != NULL; message = tl_messages_take(&messages)) {
            if (open)
                answer(archive, (struct tl_archive_job *)message);
            tl_mailbox_put(archive->answers, message, sizeof(struct tl_archive_job));
        }
    } while (open);
    tl_reading_clear(&archive->reading);
    return NULL;
}

/* ---- the loop ---- */

static void on_answer(void *context, struct tl_message *message)
{
    struct tl_archive *archive = context;
    struct tl_archive_job *job = (struct tl_archive_job *)message;
    archive->waiting--;
    tl_metrics_add(
        archive->settings.metrics,
        job->found == TL_ARCHIVE_FAILED ? TL_WORKER_ARCHIVE_FAILED : TL_WORKER_ARCHIVE_READS, 1);
    archive->settings.answered(archive->settings.context, job);
    free_job(job);
}

bool tl_archive_ask(struct tl_archive *archive, const struct tl_archive_job *question,
                    int64_t now_ms)
{
    if (now_ms / 1000 != archive->second) {
        archive->second = now_ms / 1000;
        for (size_t kind = 0; kind < TL_ARCHIVE_KINDS; kind++)
            archive->asked[kind] = 0;
    }
    struct tl_archive_job *job = NULL;
    if (archive->waiting < WAITING_MAX && archive->asked[question->kind] < rates[question->kind])
        job = malloc(sizeof(*job));
    if (job == NULL) {
        tl_metrics_add(archive->settings.metrics, TL_WORKER_ARCHIVE_REFUSED, 1);
        return false;
    }
    *job = *question;
    job->until_ms = now_ms + TL_ARCHIVE_WAIT_MS;
    archive->asked[question->kind]++;
    archive->waiting++;
    tl_mailbox_put(archive->questions, &job->message, sizeof(*job));
    return true;
}

struct tl_archive *tl_archive_new(uv_loop_t *loop, const struct tl_archive_settings *settings,
                                  struct tl_error *err)
{
    struct tl_archive *archive = calloc(1, sizeof(*archive));
    if (archive == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory to read the archive");
        return NULL;
    }
    archive->settings = *settings;
    archive->reading.key_path = settings->key_path;
    tl_backoff_init(&archive->backoff, RETRY_BASE_MS, RETRY_LIMIT_MS);
    archive->questions = tl_mailbox_new(NULL, BYTES_MAX, NULL, NULL, err);
    if (archive->questions != NULL)
        archive->answers = tl_mailbox_new(loop, BYTES_MAX, on_answer, archive, err);
    if (archive->answers != NULL) {
        archive->started = pthread_create(&archive->thread, NULL, run, archive) == 0;
        if (!archive->started)
            tl_error_set(err, TL_ERR_SYSTEM, "cannot start the thread that reads the archive");
    }
    if (!archive->started)
        tl_archive_free(&archive);
    return archive;
}

void tl_archive_free(struct tl_archive **archive)
{
    struct tl_archive *old = *archive;
    struct tl_messages left = {0};
    struct tl_message *message;
    *archive = NULL;
    if (old == NULL)
        return;
    if (old->questions != NULL)
        tl_mailbox_close(old->questions);
    if (old->answers != NULL)
        tl_mailbox_close(old->answers);
    if (old->started)
        pthread_join(old->thread, NULL);
    tl_mailbox_free(&old->questions, &left);
    tl_mailbox_free(&old->answers, &left);
    while ((message = tl_messages_take(&left)) != NULL)
        free_job((struct tl_archive_job *)message);
    free(old);
}
