/* SPDX-License-Identifier: Apache-2.0 */
/* Where the file and the store differ. The store's settings apply to a queue that exists, so an
 * edited file is without effect. */
#ifndef TL_FILE_SETTINGS_H
#define TL_FILE_SETTINGS_H

#include "common/config/settings.h"

/* One setting that differs: its path in the file ("rate.admit"), and both values as the file writes
 * them. The texts are borrowed for the call. */
typedef void tl_file_difference(void *context, const char *path, const char *file,
                                const char *store);

/* Calls `differs` for each setting that the file has for the queue and that is another one in the
 * store. What the file does not have is left to the store. */
void tl_file_settings_compare(const struct tl_queue_config *file,
                              const struct tl_queue_settings *store, tl_file_difference *differs,
                              void *context);
/* Logs a line for each of them. */
void tl_file_settings_log(const struct tl_queue_config *file,
                          const struct tl_queue_settings *store);

#endif
