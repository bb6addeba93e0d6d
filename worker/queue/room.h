/* One queue in a worker process: its line, its settings, and what is under way for it. */
#ifndef TL_ROOM_H
#define TL_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "common/config/config.h"
#include "common/line/line.h"
#include "common/line/placemap.h"
#include "common/store/queue.h"
#include "common/wire/names.h"
#include "worker/feed/outbox.h"
#include "worker/queue/eta.h"
#include "worker/queue/presence.h"
#include "worker/queue/push.h"

struct tl_edge;

struct tl_room {
    struct tl_edge *edge;
    char name[TL_QUEUE_NAME_MAX + 1];
    struct tl_queue_settings settings;
    struct tl_line *line; /* NULL until the first snapshot */
    struct tl_eta eta;
    struct tl_outbox *outbox;
    struct tl_presence *presence;
    uint64_t presence_batch;     /* the last batch with presence in it */
    struct tl_placemap *claimed; /* active place -> local ms + 1 of the last RENEW we know of */
    struct tl_placemap
        *ended;           /* place the line does not know -> its end (enum tl_reason; 0: nowhere) */
    struct tl_push *push; /* who wants to hear of changes */
    char *notice;         /* what the operator says, as JSON {"text":...}; NULL: nothing ever */
    char notice_text[TL_NOTICE_MAX + 1]; /* the same as text; "": nothing */
    uint64_t notice_version;
    bool gone;       /* the queue was deleted: what is under way is answered so */
    bool rebuilding; /* a gap was found: a new line is on its way */
};

struct tl_room *tl_room_new(struct tl_edge *edge, const char *name); /* NULL when out of memory */
/* Settles everything under way. */
void tl_room_free(struct tl_room **room);

/* A new line of this queue (taken over). */
void tl_room_set_line(struct tl_room *room, struct tl_line *line, int64_t now_ms);
void tl_room_set_settings(struct tl_room *room, const struct tl_queue_settings *settings,
                          int64_t now_ms);
/* What the operator says to everybody; length 0: nothing any more. */
void tl_room_set_notice(struct tl_room *room, const char *text, size_t length);
/* One entry of the events stream. */
void tl_room_apply(struct tl_room *room, const void *payload, size_t length, int64_t now_ms);

/* Is anybody admitted at all now? redis_ms: Unix time by the store's clock. */
bool tl_room_open(const struct tl_room *room, int64_t redis_ms);
/* Does this place wait while there is room for it, so that it will be called within moments? */
bool tl_room_about_to_admit(const struct tl_room *room, tl_place place);
/* How this place stands. Also answers from what the store was asked before; *known is false when it
 * must be asked. */
struct tl_line_view tl_room_look(const struct tl_room *room, tl_place place, bool *known);
/* A sign of life of whoever stands here: of one who waits it is gathered, of one who was admitted
 * it claims the session, or slides it on. */
void tl_room_greet(struct tl_room *room, const char *visitor, tl_place place,
                   const struct tl_line_view *view, int64_t now_ms);
/* The store's answer about a place. */
void tl_room_remember_end(struct tl_room *room, tl_place place, unsigned reason);
/* Adds presence to the outbox when it is time. */
void tl_room_flush_presence(struct tl_room *room, int64_t now_ms);

#endif
