/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tellerline-worker: serves visitors over HTTP. It holds no state of record: it batches commands
 * for the dispatcher and answers positions from lines in its own memory, which the events of every
 * queue keep up to date.
 *
 * main -> parent.c: sockets, shared memory, processes -> edge.c: one process and its loop ->
 * routes.c: requests.
 */
#include "common/config/config.h"
#include "common/role/program.h"
#include "worker/process/process.h"

enum { PROCESSES_MAX = 256 };

int main(int argc, char **argv)
{
    uint64_t processes = 0;
    const struct tl_option options[] = {
        {.value = {.path = "processes",
                   .type = TL_SETTING_NUMBER,
                   .min = 1,
                   .max = PROCESSES_MAX,
                   .help = "processes on the same port (default: worker.processes)"},
         .argument = "N",
         .base = &processes},
        {.argument = NULL},
    };
    const struct tl_program program = {
        .name = "tellerline-worker",
        .summary = "Serves visitors over HTTP: accepts joins and answers positions.",
        .options = options,
        .listeners = {offsetof(struct tl_config, admin.worker),
                      offsetof(struct tl_config, http.listen)},
        .out = stdout,
        .errors = stderr,
    };
    const char *config_path = NULL;
    int status;
    if (!tl_program_parse(&program, argc, argv, &config_path, &status))
        return status;
    const struct tl_config *config = tl_program_start(program.name, "worker", config_path);
    if (config == NULL)
        return 1;
    if (processes == 0)
        processes = config->worker.processes;
    status = tl_parent_run(config, config_path, (unsigned)processes);
    tl_config_free(&config);
    return status;
}
