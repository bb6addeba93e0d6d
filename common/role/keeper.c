#include "common/role/keeper.h"

bool tl_keeper_init(struct tl_keeper *keeper, const struct tl_daemon *daemon,
                    const struct tl_keeper_settings *settings, struct tl_error *err)
{
    const struct tl_config *config = tl_daemon_config(daemon);
    const struct tl_redis_settings redis = {.url = config->redis.url,
                                            .ca_file = config->redis.ca_file,
                                            .timeout_ms = config->redis.timeout_ms};
    struct tl_roster_settings roster = settings->roster;
    roster.owner = tl_daemon_id(daemon);
    *keeper = (struct tl_keeper){0};
    keeper->store = tl_store_new(&redis, err);
    keeper->roster = keeper->store != NULL ? tl_roster_new(&roster, config, err) : NULL;
    if (keeper->roster == NULL) {
        tl_keeper_deinit(keeper);
        return false;
    }
    if (settings->on_entry == NULL)
        return true;
    keeper->tail = tl_tail_new(settings->on_entry, roster.context);
    if (keeper->tail == NULL) {
        tl_keeper_deinit(keeper);
        return tl_error_set(err, TL_ERR_NOMEM, "no memory to follow the events");
    }
    return true;
}

void tl_keeper_deinit(struct tl_keeper *keeper)
{
    if (keeper->roster != NULL && tl_redis_connected(tl_keeper_redis(keeper, NULL)))
        tl_roster_release_all(keeper->roster, keeper->store);
    tl_roster_free(&keeper->roster);
    tl_tail_free(&keeper->tail);
    tl_store_free(&keeper->store);
}

struct tl_redis *tl_keeper_redis(const struct tl_keeper *keeper, const char *queue)
{
    return tl_store_of(keeper->store, queue);
}

struct tl_held_queue *tl_keeper_find(const struct tl_keeper *keeper, const struct tl_keys *keys)
{
    for (size_t i = 0; i < tl_roster_count(keeper->roster); i++)
        if (&tl_roster_at(keeper->roster, i)->keys == keys)
            return tl_roster_at(keeper->roster, i);
    return NULL;
}
