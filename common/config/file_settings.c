/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/base/log.h"
#include "common/config/file_settings.h"
#include "common/config/queue_settings.h"
#include "common/config/queue_table.h"
#include "common/config/value.h"

/* `mode: passthrough` of a file is no setting, but a switch of the program that reads it. */
static bool is_written(const struct tl_queue_config *file, const struct tl_setting *row,
                       bool written)
{
    return written && !(file->passthrough && strcmp(row->path, "mode") == 0);
}

void tl_file_settings_compare(const struct tl_queue_config *file,
                              const struct tl_queue_settings *store, tl_file_difference *differs,
                              void *context)
{
    char of_file[TL_QUEUE_VALUE_MAX], of_store[TL_QUEUE_VALUE_MAX];
    size_t n;
    const struct tl_setting *rows = tl_queue_table(&n);
    for (size_t i = 0; i < n; i++) {
        if (!is_written(file, &rows[i], file->written[i]))
            continue;
        tl_setting_show(&rows[i], &file->settings, of_file, sizeof(of_file));
        tl_setting_show(&rows[i], store, of_store, sizeof(of_store));
        if (strcmp(of_file, of_store) != 0)
            differs(context, rows[i].path, of_file, of_store);
    }
}

static void log_difference(void *context, const char *path, const char *file, const char *store)
{
    tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = context},
           "%s: the file says \"%s\", but \"%s\" of the store applies, as the queue exists; "
           "`tellerline apply` puts the file into force",
           path, file, store);
}

void tl_file_settings_log(const struct tl_queue_config *file, const struct tl_queue_settings *store)
{
    /* The callback only reads the name. */
    tl_file_settings_compare(file, store, log_difference, (void *)(uintptr_t)file->name);
}
