/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queues as one program knows them: which its configuration names, and the settings in force of
 * all, as it read them last. What the store lacks is made again. A queue of the configuration that
 * was never made gets its settings from there. One that the store has lost gets those in force, and
 * so does a change of the settings that it has lost: a store that forgets must not open a paused
 * queue or undo a lowered capacity. A queue that an operator deleted stays away (tl:{q}:retired).
 *
 * The users of the store that workers and notifiers have may make nothing: the other programs do,
 * so TL_ERR_DENIED is no error here.
 */
#ifndef TL_INVENTORY_H
#define TL_INVENTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/config/config.h"
#include "common/store/store.h"
#include "common/store/troubles.h"
#include "common/wire/names.h"

struct tl_inventory;

struct tl_inventory_settings {
    struct tl_store *store;
    const struct tl_config *config;
    const char *key_prefix;
    const char *program;          /* makes queues under this name */
    struct tl_troubles *troubles; /* queues that are set aside are not made */
    bool compares;                /* logs once where the file and the store differ */
    /* A queue of the configuration could not be made. False when the error concerns all queues. */
    bool (*failed)(void *context, const char *queue, int64_t now_ms, struct tl_error *err);
    void *context;
};

/* Borrows all of it. NULL when out of memory. */
struct tl_inventory *tl_inventory_new(const struct tl_inventory_settings *settings);
void tl_inventory_free(struct tl_inventory **inventory);

/* Lists all queues of the store, sorted; *names is freed with free(). Makes those that are missing
 * before. Makes sure of the queues of the configuration also where they are listed, if their store
 * may be another one than before; all: of all of them. now_ms: local monotonic time. */
bool tl_inventory_list(struct tl_inventory *inventory, bool all, int64_t now_ms,
                       char (**names)[TL_QUEUE_NAME_MAX + 1], size_t *n, struct tl_error *err);
/* Reads the settings of the next queues of such a list, 32 at most, and of those whose node is
 * another one than before, or of all, where they have changed. Where the store has older ones, it
 * gets those known here; then all are read, as one is rarely alone. A queue that cannot be read is
 * left out. False when the store cannot be used. */
bool tl_inventory_read(struct tl_inventory *inventory, char (*names)[TL_QUEUE_NAME_MAX + 1],
                       size_t n, bool all, struct tl_error *err);
/* For a program that reads settings itself: these are in force. False when out of memory. */
bool tl_inventory_learn(struct tl_inventory *inventory, const char *queue,
                        const struct tl_queue_settings *settings);

/* The settings in force; NULL: not known. Valid until the next call of one of the above. */
const struct tl_queue_settings *tl_inventory_in_force(const struct tl_inventory *inventory,
                                                      const char *queue);
/* The settings that this program can offer for a queue. Valid as long. */
struct tl_mend_offer tl_inventory_offer(const struct tl_inventory *inventory, const char *queue);

/* The queues that ought to be there, sorted: i counts up to the number of those known. NULL: an
 * operator deleted this one. */
size_t tl_inventory_count(const struct tl_inventory *inventory);
const char *tl_inventory_expects(const struct tl_inventory *inventory, size_t i);
/* Is this one of them? */
bool tl_inventory_has(const struct tl_inventory *inventory, const char *queue);

#endif
