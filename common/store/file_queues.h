/* SPDX-License-Identifier: Apache-2.0 */
/* The queues of the configuration: made in the store where they are missing, unless an operator
 * deleted them. */
#ifndef TL_FILE_QUEUES_H
#define TL_FILE_QUEUES_H

#include <stdbool.h>
#include <stddef.h>

#include "common/config/config.h"
#include "common/store/actor.h"
#include "common/store/redis.h"
#include "common/wire/names.h"

struct tl_file_queues;

/* Copies the queues of config; borrows the others for its life. NULL when out of memory. */
struct tl_file_queues *tl_file_queues_new(const char *key_prefix, const struct tl_config *config,
                                          const struct tl_actor *actor);
void tl_file_queues_free(struct tl_file_queues **file);

size_t tl_file_queues_count(const struct tl_file_queues *file);
const char *tl_file_queues_name(const struct tl_file_queues *file, size_t i);
/* The settings of the queue of this name; NULL: it is not in the configuration. */
const struct tl_queue_settings *tl_file_queues_settings(const struct tl_file_queues *file,
                                                        const char *queue);
/* Did an operator delete this queue of the configuration? */
bool tl_file_queues_away(const struct tl_file_queues *file, const char *queue);

/* Is any of the queues missing in this sorted list of all there are? Not one that an operator
 * deleted, until it is listed again. */
bool tl_file_queues_missing(struct tl_file_queues *file, char (*names)[TL_QUEUE_NAME_MAX + 1],
                            size_t n);
/* Makes the i-th queue if it is missing, unless an operator deleted it, which is logged once.
 * in_force: the settings that were in force when the caller read them last, which are given to the
 * store (tl_queue_bring_back); NULL: it does not know the queue. */
bool tl_file_queues_make(struct tl_file_queues *file, struct tl_redis *redis, size_t i,
                         const struct tl_queue_settings *in_force, struct tl_error *err);
/* Logs once where the file and these settings of the store differ, for a queue of the file. */
void tl_file_queues_compare(struct tl_file_queues *file, const char *queue,
                            const struct tl_queue_settings *stored);

#endif
