/* What the events thread posts to the loop: an ordered list between two threads, bounded in bytes.
 */
#ifndef TL_WORKER_POST_H
#define TL_WORKER_POST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "common/config/config.h"
#include "common/line/line.h"

enum tl_post_kind {
    TL_POST_LINE,
    TL_POST_ENTRY,
    TL_POST_SETTINGS,
    TL_POST_NOTICE,
    TL_POST_GONE,
    TL_POST_LISTED,
    TL_POST_CLOCK,
    TL_POST_STORE,
};

struct tl_item {
    struct tl_item *next;
    enum tl_post_kind kind;
    char queue[TL_QUEUE_NAME_MAX + 1];
    struct tl_line *line;               /* LINE; freed with the item unless taken */
    struct tl_queue_settings *settings; /* LINE, SETTINGS */
    int64_t number;                     /* CLOCK, STORE */
    size_t length;                      /* ENTRY, NOTICE: bytes that follow */
    unsigned char bytes[];
};

struct tl_postbox;

/* deliver is called on the loop's thread for each item, in order; the item is freed afterwards. */
struct tl_postbox *tl_postbox_new(uv_loop_t *loop, void *context,
                                  void (*deliver)(void *context, struct tl_item *item));
/* After close no more posts are waited for; free closes the handle, which takes one more turn of
 * the loop. */
void tl_postbox_close(struct tl_postbox *box);
void tl_postbox_free(struct tl_postbox **box);

/* A new item with room for n bytes, or NULL. */
struct tl_item *tl_item_new(enum tl_post_kind kind, const char *queue, size_t n);
void tl_item_free(struct tl_item *item);
/* Posts (from the other thread), and waits while the loop is far behind. The item is the box's. */
void tl_postbox_put(struct tl_postbox *box, struct tl_item *item);

#endif
