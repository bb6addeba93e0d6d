/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "worker/queue/passthrough.h"

struct tl_passthrough {
    size_t n;
    char names[][TL_QUEUE_NAME_MAX + 1];
};

struct tl_passthrough *tl_passthrough_new(const struct tl_config *config)
{
    struct tl_passthrough *passthrough =
        calloc(1, sizeof(*passthrough) + config->n_queues * sizeof(passthrough->names[0]));
    for (size_t i = 0; passthrough != NULL && i < config->n_queues; i++) {
        const struct tl_queue_config *queue = &config->queues[i];
        if (!queue->passthrough)
            continue;
        memcpy(passthrough->names[passthrough->n++], queue->name, sizeof(queue->name));
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = queue->name},
               "mode: passthrough in the file: this worker lets everyone in, until it is taken out "
               "and the worker gets SIGHUP");
    }
    return passthrough;
}

void tl_passthrough_free(struct tl_passthrough **passthrough)
{
    free(*passthrough);
    *passthrough = NULL;
}

bool tl_passthrough_names(const struct tl_passthrough *passthrough, const char *queue)
{
    for (size_t i = 0; passthrough != NULL && i < passthrough->n; i++) {
        if (strcmp(passthrough->names[i], queue) == 0)
            return true;
    }
    return false;
}
