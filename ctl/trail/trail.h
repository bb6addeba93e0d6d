/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `trail export`, `trail key` and `verify trail`: the trail of a queue as a file, and whether it is
 * true. The file is text (docs/contributors/wire-format.md): a checkpoint; the hashes of its
 * leaves, a line for each tile; the leaves, a line each; with empty lines between them.
 */
#ifndef TL_CTL_TRAIL_H
#define TL_CTL_TRAIL_H

#include "common/archive/postgres.h"
#include "ctl/shell/shell.h"

/* Opens the archive, as of one moment. *kept_ms: how long it keeps what has ended; NULL: not asked.
 */
bool tl_trail_open_archive(struct tl_postgres *postgres, const struct tl_ctl_options *options,
                           int64_t *kept_ms, struct tl_error *err);

tl_ctl_verb tl_command_trail_export;
tl_ctl_verb tl_command_trail_key;
tl_ctl_verb tl_command_verify_trail;
/* A proof that a worker gave (GET /v1/queues/QUEUE/trail/proof). */
tl_ctl_verb tl_command_verify_place;

#endif
