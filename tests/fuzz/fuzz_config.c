/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file: any bytes are either refused with a sentence that begins with the file's
 * name, or give settings that are valid and come back unchanged from the text the store keeps. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/config/config.h"
#include "common/config/queue_settings.h"
#include "common/wire/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_queue(const struct tl_queue_config *queue)
{
    struct tl_queue_settings copy;
    const char *name;
    char value[TL_QUEUE_VALUE_MAX];
    require(tl_queue_name_valid(queue->name, strlen(queue->name)));
    require(tl_queue_settings_validate(&queue->settings, NULL));
    tl_queue_settings_defaults(&copy);
    for (size_t i = 0; tl_queue_settings_get(&queue->settings, i, &name, value, sizeof(value)); i++)
        require(tl_queue_settings_set(&copy, name, value, TL_FORM_STORE, NULL));
    require(memcmp(&copy.lanes, &queue->settings.lanes, sizeof(copy.lanes)) == 0);
    require(copy.default_lane == queue->settings.default_lane);
    require(copy.opens_at_ms == queue->settings.opens_at_ms);
    require(strcmp(copy.target_url, queue->settings.target_url) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tl_error err = {0};
    const struct tl_config *config = tl_config_parse("fuzz.yaml", data, size, &err);
    if (config == NULL) {
        require(err.kind == TL_ERR_INVALID);
        require(strncmp(err.text, "fuzz.yaml:", 10) == 0);
        return 0;
    }
    for (size_t i = 0; i < config->n_queues; i++)
        check_queue(&config->queues[i]);
    tl_config_free(&config);
    return 0;
}
