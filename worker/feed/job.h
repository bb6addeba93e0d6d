/* What passes between the loop and the ingest thread, and lists of it. */
#ifndef TL_JOB_H
#define TL_JOB_H

#include "common/wire/names.h"
#include "worker/feed/ingest.h"

enum tl_job_kind { TL_JOB_SEND, TL_JOB_LOOK, TL_JOB_STORE_UP, TL_JOB_STORE_DOWN };

struct tl_job {
    struct tl_job *next;
    enum tl_job_kind kind;
    char queue[TL_QUEUE_NAME_MAX + 1];
    /* TL_JOB_SEND */
    uint64_t number;
    void *bytes;
    size_t length;
    bool tried; /* went out at least once: its outcome is unknown until the store answers */
    bool taken;
    struct tl_error refusal;
    /* TL_JOB_LOOK */
    char visitor[TL_VISITOR_MAX + 1];
    tl_place place;
    uint64_t token;
    enum tl_lookup_found found;
    enum tl_reason reason;
};

/* First in, first out. Must be initialised. */
struct tl_jobs {
    struct tl_job *first, **end;
};

void tl_job_free(struct tl_job *job);

void tl_jobs_init(struct tl_jobs *jobs);
void tl_jobs_add(struct tl_jobs *jobs, struct tl_job *job);
/* The first one, or NULL. */
struct tl_job *tl_jobs_take(struct tl_jobs *jobs);
/* Moves everything from one list to the end of the other. */
void tl_jobs_move(struct tl_jobs *to, struct tl_jobs *from);
void tl_jobs_free(struct tl_jobs *jobs);

#endif
