#include <stdlib.h>

#include "worker/feed/job.h"

void tl_jobs_init(struct tl_jobs *jobs)
{
    jobs->first = NULL;
    jobs->end = &jobs->first;
}

void tl_jobs_add(struct tl_jobs *jobs, struct tl_job *job)
{
    job->next = NULL;
    *jobs->end = job;
    jobs->end = &job->next;
}

struct tl_job *tl_jobs_take(struct tl_jobs *jobs)
{
    struct tl_job *job = jobs->first;
    if (job == NULL)
        return NULL;
    jobs->first = job->next;
    if (jobs->first == NULL)
        jobs->end = &jobs->first;
    return job;
}

void tl_jobs_move(struct tl_jobs *to, struct tl_jobs *from)
{
    if (from->first == NULL)
        return;
    *to->end = from->first;
    to->end = from->end;
    tl_jobs_init(from);
}

void tl_job_free(struct tl_job *job)
{
    free(job->bytes);
    free(job);
}

void tl_jobs_free(struct tl_jobs *jobs)
{
    struct tl_job *job;
    while ((job = tl_jobs_take(jobs)) != NULL)
        tl_job_free(job);
}
