/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdio.h>

#include <sodium.h>

#include "common/base/log.h"
#include "common/config/config.h"
#include "common/role/start.h"

const struct tl_config *tl_start(const struct tl_program *program, const char *role, int argc,
                                 char **argv, const char **config_path, int *status)
{
    if (!tl_program_parse(program, argc, argv, config_path, status, stdout, stderr))
        return NULL;
    *status = 1;
    struct tl_error err = {0};
    const struct tl_config *config = tl_config_load(*config_path, &err);
    if (config == NULL) {
        fprintf(stderr, "%s: %s\n", program->name, err.text);
        return NULL;
    }
    if (sodium_init() < 0) {
        fprintf(stderr, "%s: libsodium could not be initialised\n", program->name);
        tl_config_free(&config);
        return NULL;
    }
    tl_start_log(config, role);
    return config;
}

void tl_start_log(const struct tl_config *config, const char *role)
{
    tl_log_init(&(struct tl_log_settings){
        .level = config->log.level, .format = config->log.format, .role = role});
}

void tl_start_process_id(const char *role, char id[TL_PROCESS_ID_SIZE])
{
    uint8_t random[8];
    char hex[2 * sizeof(random) + 1];
    randombytes_buf(random, sizeof(random));
    sodium_bin2hex(hex, sizeof(hex), random, sizeof(random));
    snprintf(id, TL_PROCESS_ID_SIZE, "%.14s-%s", role, hex);
}
