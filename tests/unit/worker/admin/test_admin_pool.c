/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that work jobs off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/admin/pool.h"

enum { THREADS = 4, JOBS = 200 };

struct counted {
    struct tl_admin_pool_job job;
    atomic_int runs;
    void *context;
};

static atomic_bool gate; /* closed jobs wait */

static void count(struct tl_admin_pool_job *job, void *context)
{
    struct counted *counted = (struct counted *)(void *)job;
    while (atomic_load(&gate))
        (void)usleep(1000);
    counted->context = context;
    atomic_fetch_add(&counted->runs, 1);
}

static void each_job_runs_once(void **state)
{
    static struct counted jobs[JOBS];
    static int names[THREADS];
    void *const contexts[THREADS] = {&names[0], &names[1], &names[2], &names[3]};
    struct tl_admin_pool *pool = tl_admin_pool_new(contexts, THREADS, JOBS, NULL);
    (void)state;
    assert_non_null(pool);
    for (size_t i = 0; i < JOBS; i++) {
        jobs[i].job.run = count;
        tl_admin_pool_submit(pool, &jobs[i].job);
    }
    tl_admin_pool_free(&pool); /* what was submitted is run */
    assert_null(pool);
    for (size_t i = 0; i < JOBS; i++) {
        assert_int_equal(jobs[i].runs, 1);
        assert_true((int *)jobs[i].context >= names && (int *)jobs[i].context < names + THREADS);
    }
}

static void only_so_many_wait(void **state)
{
    struct counted jobs[4] = {0};
    int name = 0;
    void *const contexts[] = {&name};
    struct tl_admin_pool *pool = tl_admin_pool_new(contexts, 1, 2, NULL);
    unsigned taken = 0;
    (void)state;
    atomic_store(&gate, true);
    for (size_t i = 0; i < 4; i++) {
        jobs[i].job.run = count;
        taken += tl_admin_pool_offer(pool, &jobs[i].job);
    }
    assert_in_range(taken, 2, 3); /* the thread has the first already, or not yet */
    atomic_store(&gate, false);
    tl_admin_pool_free(&pool);
    unsigned runs = 0;
    for (size_t i = 0; i < 4; i++)
        runs += (unsigned)jobs[i].runs;
    assert_int_equal(runs, taken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_job_runs_once),
        cmocka_unit_test(only_so_many_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
