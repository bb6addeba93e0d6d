/* SPDX-License-Identifier: Apache-2.0 */
#include "usage.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/reply.h"
#include "pipe.h"

static struct pipe own; /* a connection of its own, opened once */
static double asked;    /* INFO commands it has sent */

/* The sum of the named fields of INFO. */
static double info(const char *section, const char *field, const char *second)
{
    if (own.redis == NULL)
        pipe_open(&own);
    pipe_begin(&own, "INFO", section);
    struct tl_reply *reply = pipe_call(&own);
    const char *text = tl_reply_string(reply, NULL);
    double sum = 0;
    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? field : second;
        const char *at = name != NULL ? strstr(text, name) : NULL;
        if (at != NULL)
            sum += strtod(at + strlen(name), NULL);
    }
    tl_reply_free(reply);
    asked++;
    return sum;
}

static long parent_of(const char *pid)
{
    char path[300];
    char line[512] = "";
    snprintf(path, sizeof(path), "/proc/%s/stat", pid);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return -1;
    size_t length = fread(line, 1, sizeof(line) - 1, file);
    fclose(file);
    line[length] = '\0';
    const char *after = strrchr(line, ')'); /* the name before it may hold anything */
    return after != NULL && strlen(after) > 4 ? strtol(after + 4, NULL, 10) : -1;
}

static double cpu_of(const char *pid)
{
    char path[300];
    char line[128] = "";
    snprintf(path, sizeof(path), "/proc/%s/schedstat", pid);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return 0;
    const char *got = fgets(line, sizeof(line), file);
    fclose(file);
    return got != NULL ? strtod(line, NULL) * 1e-9 : 0;
}

static double postgres_cpu_s(void)
{
    const char *text = getenv("BENCH_POSTGRES_PID");
    long postmaster = text != NULL ? strtol(text, NULL, 10) : 0;
    double sum = 0;
    DIR *processes = opendir("/proc");
    if (processes == NULL || postmaster == 0)
        way_die("BENCH_POSTGRES_PID is not set, or there is no /proc");
    for (const struct dirent *entry = readdir(processes); entry != NULL;
         entry = readdir(processes)) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        if (strtol(entry->d_name, NULL, 10) == postmaster || parent_of(entry->d_name) == postmaster)
            sum += cpu_of(entry->d_name);
    }
    closedir(processes);
    return sum;
}

double usage_cpu_s(bool postgres)
{
    return postgres ? postgres_cpu_s() : info("cpu", "used_cpu_sys:", "used_cpu_user:");
}

double usage_redis_bytes(void)
{
    return info("memory", "used_memory:", NULL);
}

void usage_wait_durable(void)
{
    const char *durability = getenv("BENCH_DURABILITY");
    if (durability == NULL || strcmp(durability, "replicated") != 0)
        return;
    if (own.redis == NULL)
        pipe_open(&own);
    pipe_ask(&own, "SET", "written", "1", NULL); /* WAIT is for writes of its own connection */
    if (pipe_ask(&own, "WAIT", "1", "60000", NULL) < 1)
        way_die("no replica has the joins");
}

double usage_redis_commands(void)
{
    double processed = info("stats", "total_commands_processed:", NULL);
    return processed - asked;
}
