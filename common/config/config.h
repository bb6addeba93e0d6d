/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration: one YAML file for all programs (conf/tellerline.yaml), every value overridable
 * by the environment. Parsed against a table of settings with types and bounds, validated whole,
 * then published as one const struct. Each mistake is told as `file:line:column: what, and the
 * limit`.
 */
#ifndef TL_CONFIG_H
#define TL_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"
#include "common/config/mistakes.h"
#include "common/config/settings.h"

/* Reads and validates the file, then the environment (TELLERLINE_REDIS_URL, TELLERLINE_HTTP_LISTEN,
 * ...; the name of a setting is its path in capitals, '.' and '-' as '_'; TELLERLINE_QUEUES holds
 * all queues as a YAML mapping; an unknown TELLERLINE_* is an error). path NULL: defaults and
 * environment only. NULL after any mistake; the caller frees with tl_config_free. */
const struct tl_config *tl_config_load_all(const char *path, struct tl_mistakes *mistakes);
/* The same; err gets the first mistake. */
const struct tl_config *tl_config_load(const char *path, struct tl_error *err);
/* The settings of the queue of this name among these configured ones; NULL if there is none. */
const struct tl_queue_settings *tl_config_queue(const struct tl_queue_config *queues, size_t n,
                                                const char *name);
/* Can a queue have `challenge: external` with this configuration? Else err says what is missing. */
bool tl_config_has_service(const struct tl_config *config, struct tl_error *err);
void tl_config_free(const struct tl_config **config);

/* The same from bytes in memory, without the environment; `name` stands for the file in messages.
 * For the tests and the fuzz target. */
const struct tl_config *tl_config_parse(const char *name, const void *bytes, size_t length,
                                        struct tl_error *err);

#endif
