/* SPDX-License-Identifier: Apache-2.0 */
/* What the servers have used, and kept, so far. */
#ifndef TL_BENCH_USAGE_H
#define TL_BENCH_USAGE_H

#include <stdbool.h>

/* Seconds of processor time, user and system, of the whole server: of Redis as INFO tells, of
 * PostgreSQL summed over its processes (/proc/PID/schedstat; BENCH_POSTGRES_PID). */
double usage_cpu_s(bool postgres);
/* INFO used_memory of Redis. */
double usage_redis_bytes(void);
/* Returns once Redis has all that was written as durable as BENCH_DURABILITY says. With appendfsync
 * always there is nothing to wait for: it answers nothing before it has synced. */
void usage_wait_durable(void);
/* Commands Redis has processed, without those of this module. 0 without Redis. */
double usage_redis_commands(void);

#endif
