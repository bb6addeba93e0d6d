/* SPDX-License-Identifier: Apache-2.0 */
/* The first steps of every program that runs as a service: command line, configuration, log,
 * libsodium. */
#ifndef TL_START_H
#define TL_START_H

#include "common/config/config.h"
#include "common/role/program.h"

enum { TL_PROCESS_ID_SIZE = 33 };

/* Reads the command line and the configuration, and starts the log under the name `role`
 * (borrowed). Returns the configuration, which the caller frees, and the path it came from. NULL
 * when the program is to exit now with *status: --help and its kind, or an error that has been
 * written to standard error. */
const struct tl_config *tl_start(const struct tl_program *program, const char *role, int argc,
                                 char **argv, const char **config_path, int *status);

/* Puts the log settings of the configuration in force. role is borrowed. */
void tl_start_log(const struct tl_config *config, const char *role);

/* Writes a random name for this process among its peers: role and random bits. */
void tl_start_process_id(const char *role, char id[TL_PROCESS_ID_SIZE]);

#endif
