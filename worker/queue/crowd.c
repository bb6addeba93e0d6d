#include <stdio.h>
#include <stdlib.h>

#include "common/line/placemap.h"
#include "worker/queue/crowd.h"

struct tl_crowd {
    struct tl_placemap *by_place; /* place -> struct tl_subscriber *, the first of its chain */
    struct tl_subscriber *unnumbered;
    struct tl_subscriber *turn; /* the next to have its turn; NULL: the crowd is empty */
    size_t n;
};

struct tl_crowd *tl_crowd_new(void)
{
    struct tl_crowd *crowd = calloc(1, sizeof(*crowd));
    if (crowd == NULL)
        return NULL;
    crowd->by_place = tl_placemap_new();
    if (crowd->by_place == NULL)
        tl_crowd_free(&crowd);
    return crowd;
}

void tl_crowd_free(struct tl_crowd **crowd)
{
    if (*crowd == NULL)
        return;
    tl_placemap_free(&(*crowd)->by_place);
    free(*crowd);
    *crowd = NULL;
}

size_t tl_crowd_count(const struct tl_crowd *crowd)
{
    return crowd->n;
}

struct tl_subscriber *tl_crowd_at(const struct tl_crowd *crowd, tl_place place)
{
    uint64_t value;
    if (!tl_placemap_get(crowd->by_place, place, &value))
        return NULL;
    return (struct tl_subscriber *)(uintptr_t)value;
}

struct tl_subscriber *tl_crowd_unnumbered(const struct tl_crowd *crowd)
{
    return crowd->unnumbered;
}

/* Puts the subscriber into the chain of its place. */
static bool chain(struct tl_crowd *crowd, struct tl_subscriber *subscriber)
{
    if (tl_place_seq(subscriber->place) == 0) {
        subscriber->chain = crowd->unnumbered;
        crowd->unnumbered = subscriber;
        return true;
    }
    subscriber->chain = tl_crowd_at(crowd, subscriber->place);
    return tl_placemap_put(crowd->by_place, subscriber->place, (uint64_t)(uintptr_t)subscriber);
}

static void unchain(struct tl_crowd *crowd, struct tl_subscriber *subscriber)
{
    bool numbered = tl_place_seq(subscriber->place) != 0;
    struct tl_subscriber *first =
        numbered ? tl_crowd_at(crowd, subscriber->place) : crowd->unnumbered;
    if (first != subscriber) {
        while (first->chain != subscriber)
            first = first->chain;
        first->chain = subscriber->chain;
    } else if (!numbered) {
        crowd->unnumbered = subscriber->chain;
    } else if (subscriber->chain == NULL) {
        (void)tl_placemap_remove(crowd->by_place, subscriber->place, NULL);
    } else { /* overwriting needs no memory */
        (void)tl_placemap_put(crowd->by_place, subscriber->place,
                              (uint64_t)(uintptr_t)subscriber->chain);
    }
}

struct tl_subscriber *tl_crowd_add(struct tl_crowd *crowd, const struct tl_ticket *ticket)
{
    struct tl_subscriber *subscriber = calloc(1, sizeof(*subscriber));
    if (subscriber == NULL)
        return NULL;
    subscriber->place = ticket->place;
    snprintf(subscriber->visitor, sizeof(subscriber->visitor), "%s", ticket->visitor);
    if (!chain(crowd, subscriber)) {
        free(subscriber);
        return NULL;
    }
    if (crowd->turn == NULL) {
        subscriber->prev = subscriber->next = crowd->turn = subscriber;
    } else {
        subscriber->next = crowd->turn;
        subscriber->prev = crowd->turn->prev;
        subscriber->prev->next = subscriber->next->prev = subscriber;
    }
    crowd->n++;
    return subscriber;
}

void tl_crowd_remove(struct tl_crowd *crowd, struct tl_subscriber *subscriber)
{
    unchain(crowd, subscriber);
    subscriber->prev->next = subscriber->next;
    subscriber->next->prev = subscriber->prev;
    if (crowd->turn == subscriber)
        crowd->turn = subscriber->next != subscriber ? subscriber->next : NULL;
    crowd->n--;
    free(subscriber);
}

bool tl_crowd_set_place(struct tl_crowd *crowd, struct tl_subscriber *subscriber, tl_place place)
{
    tl_place old = subscriber->place;
    unchain(crowd, subscriber);
    subscriber->place = place;
    if (chain(crowd, subscriber))
        return true;
    subscriber->place = old;
    (void)chain(crowd, subscriber); /* back into the unnumbered list, which needs no memory */
    return false;
}

struct tl_subscriber *tl_crowd_turn(struct tl_crowd *crowd)
{
    struct tl_subscriber *subscriber = crowd->turn;
    if (subscriber != NULL)
        crowd->turn = subscriber->next;
    return subscriber;
}
