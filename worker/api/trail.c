/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trail, for everyone: checkpoint, tiles and leaves as https://c2sp.org/tlog-tiles serves them,
 * of a generation or of the last one; and for visitors the proof that their place is in it. The
 * thread that reads the archive is asked while the request is held.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/auth/base64.h"
#include "common/base/json_text.h"
#include "worker/api/handlers.h"
#include "worker/archive/archive.h"
#include "worker/archive/trail_path.h"

#define CACHE_FOREVER "public, max-age=31536000, immutable"
#define CACHE_SHORT   "public, max-age=5"
#define TEXT          "text/plain; charset=utf-8"

enum {
    ASKED_PER_SECOND = 20, /* of an address */
    HASH_TEXT_MAX = 48,
};

/* ---- asking ---- */

/* May the address ask, and is there an archive? Else refused. */
static bool may_ask(struct tl_visit *visit)
{
    if (visit->worker->env->archive == NULL)
        return tl_refuse(&visit->refusal, TL_REFUSAL_NOT_FOUND, "There is no archive here");
    if (!tl_queue_name_valid(visit->name, strlen(visit->name)))
        return tl_refuse(&visit->refusal, TL_REFUSAL_NO_QUEUE, "%s", "");
    if (!tl_queue_env_store_up(visit->worker->env))
        return tl_refuse(&visit->refusal, TL_REFUSAL_ARCHIVE,
                         "While Redis is away the archive tells places only");
    return tl_visit_within(visit, TL_LIMITER_TRAIL, ASKED_PER_SECOND) ||
           tl_refuse(&visit->refusal, TL_REFUSAL_TOO_OFTEN, "At most %d a second",
                     ASKED_PER_SECOND);
}

static bool ask(struct tl_visit *visit, struct tl_archive_job *question, tl_step *step)
{
    memcpy(question->queue, visit->name, strlen(visit->name) + 1);
    return tl_wait_archive(visit, question, step) ||
           tl_refuse(&visit->refusal, TL_REFUSAL_ARCHIVE, "Too many ask for it now");
}

/* The answer, if there is one. Else refused: `none` says what the archive does not have. */
static const struct tl_archive_job *answer_of(struct tl_visit *visit, const char *none)
{
    const struct tl_archive_job *job = visit->wait.archived;
    if (visit->worker->env->draining)
        tl_refuse(&visit->refusal, TL_REFUSAL_STOPPING, "%s", "");
    else if (job == NULL || job->found == TL_ARCHIVE_FAILED)
        tl_refuse(&visit->refusal, TL_REFUSAL_ARCHIVE, "%s", "");
    else if (job->found == TL_ARCHIVE_NONE)
        tl_refuse(&visit->refusal, TL_REFUSAL_NOT_FOUND, "%s", none);
    else
        return job;
    return NULL;
}

/* ---- the log ---- */

/* What changes is kept for a short time. That is all of the last generation, too: another one may
 * follow under the same address. */
static bool told(struct tl_visit *visit)
{
    const struct tl_archive_job *job = answer_of(visit, "The trail does not have this");
    if (job == NULL)
        return false;
    bool whole = job->kind == TL_ARCHIVE_TILE && job->generation != 0;
    struct tl_answer answer = {.status = 200,
                               .type =
                                   job->kind == TL_ARCHIVE_TILE ? "application/octet-stream" : TEXT,
                               .cache = whole ? CACHE_FOREVER : CACHE_SHORT,
                               .body = (const char *)job->bytes,
                               .length = job->length};
    tl_answer_header(&answer, "X-Content-Type-Options", "nosniff");
    tl_request_answer(visit->request, &answer);
    return true;
}

bool tl_handle_trail(struct tl_visit *visit)
{
    static const char head[] = "/trail/";
    struct tl_archive_job question = {0};
    /* Behind the name of the queue, which may be "trail". */
    const char *path = tl_request_path(visit->request) + sizeof("/v1/queues/") - 1;
    path += strcspn(path, "/");
    if (strncmp(path, head, sizeof(head) - 1) != 0 ||
        !tl_trail_path_read(path + sizeof(head) - 1, &question))
        return tl_refuse(&visit->refusal, TL_REFUSAL_NOT_FOUND, "%s", "");
    return may_ask(visit) && ask(visit, &question, told);
}

/* ---- the proof of a place ---- */

bool tl_proof_exists(const struct tl_worker *worker)
{
    return worker->env->archive != NULL && access(worker->config->secrets.archive_key, R_OK) == 0;
}

bool tl_proof_ask(struct tl_visit *visit, tl_step *step)
{
    struct tl_archive_job question = {.kind = TL_ARCHIVE_PROOF};
    if (!may_ask(visit))
        return false;
    if (!tl_visit_brought(visit, &visit->ticket))
        return tl_refuse(&visit->refusal, TL_REFUSAL_BAD_TICKET,
                         "Send it as Authorization: Bearer, as cookie, or as ?ticket=");
    question.generation = visit->ticket.generation;
    question.seq = tl_place_seq(visit->ticket.place);
    memcpy(question.visitor, visit->ticket.visitor, sizeof(question.visitor));
    if (question.seq == 0)
        return tl_refuse(&visit->refusal, TL_REFUSAL_NOT_NUMBERED, "Ask for the status first");
    return ask(visit, &question, step);
}

const struct tl_archive_job *tl_proof_told(struct tl_visit *visit)
{
    const struct tl_archive_job *job =
        answer_of(visit, "The trail does not have this place, or not yet");
    if (job == NULL || job->proof->has_salt)
        return job;
    tl_refuse(&visit->refusal, TL_REFUSAL_NOT_FOUND,
              "This worker cannot tell which leaf is whose: it has no secrets.archive_key");
    return NULL;
}

size_t tl_proof_write(const struct tl_visit *visit, const struct tl_archive_job *job,
                      char text[TL_PROOF_TEXT_MAX])
{
    const struct tl_archived_proof *proof = job->proof;
    char word[HASH_TEXT_MAX];
    struct tl_json json;
    tl_json_begin(&json, text, TL_PROOF_TEXT_MAX);
    tl_json_string(&json, "queue", visit->name);
    tl_json_uint(&json, "generation", proof->generation);
    tl_json_string(&json, "visitor", visit->ticket.visitor);
    tl_json_uint(&json, "index", proof->index);
    tl_json_uint(&json, "size", proof->size);
    tl_json_string(&json, "leaf", proof->leaf);
    tl_base64_encode(proof->salt, sizeof(proof->salt), word);
    tl_json_plain(&json, "salt", word);
    tl_json_array(&json, "hashes");
    for (size_t i = 0; i < proof->path.n; i++) {
        tl_base64_encode(proof->path.hashes[i].bytes, TL_TLOG_HASH_BYTES, word);
        tl_json_item(&json, word);
    }
    tl_json_array_end(&json);
    tl_json_string(&json, "checkpoint", (const char *)job->bytes);
    return tl_json_end(&json);
}

static bool told_proof(struct tl_visit *visit)
{
    const struct tl_archive_job *job = tl_proof_told(visit);
    char text[TL_PROOF_TEXT_MAX];
    if (job == NULL)
        return false;
    size_t length = tl_proof_write(visit, job, text);
    tl_request_answer(visit->request, &(struct tl_answer){.status = 200,
                                                          .type = "application/json",
                                                          .body = text,
                                                          .length = length});
    return true;
}

bool tl_handle_proof(struct tl_visit *visit)
{
    return tl_proof_ask(visit, told_proof);
}
