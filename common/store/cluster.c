/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "common/store/cluster.h"
#include "common/store/watcher.h"

enum {
    CALM_MS = 10000,     /* without a reason */
    DOUBT_MS = 100,      /* the first pause while a caller doubts; each is twice the last one... */
    DOUBT_MAX_MS = 1000, /* ...up to this */
    DOUBT_LASTS_MS = 2000, /* a slot may be on its way */
    AWAY_MS = 300,         /* a node that is away is asked again after this time */
    KNOWN_MAX = TL_STORE_NODES_MAX + TL_SENTINELS_MAX, /* all masters, and those of the URL */
};

/* A node that was named once, by the URL or by another node. */
struct known {
    struct tl_redis_address address;
    struct tl_redis *redis; /* NULL: never asked */
    bool named;             /* by the URL, or by the answer that is believed */
    bool away;
    int64_t asked_ms;
};

struct tl_cluster {
    struct tl_redis_url url;
    char ca_file[256];
    struct known known[KNOWN_MAX];
    size_t n_known;
    uint64_t epoch;             /* of the configuration that is believed */
    struct tl_cluster_map next; /* as it is being read */
    struct tl_watcher watcher;
    /* Under its lock: */
    int64_t doubt_ms; /* doubted until then */
    struct tl_cluster_map map;
};

unsigned tl_cluster_slot(const char *key)
{
    const char *open = strchr(key, '{');
    const char *close = open != NULL ? strchr(open + 1, '}') : NULL;
    size_t length = strlen(key);
    if (close != NULL && close > open + 1) {
        key = open + 1;
        length = (size_t)(close - key);
    }
    unsigned crc = 0; /* CRC-16/XMODEM */
    for (size_t i = 0; i < length; i++) {
        crc ^= (unsigned)(unsigned char)key[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc << 1 ^ ((crc & 0x8000) != 0 ? 0x1021U : 0U)) & 0xffff;
    }
    return crc % TL_CLUSTER_SLOTS;
}

/* ---- reading what a node says ---- */

/* The address of [host, port, id...]. */
static bool read_address(const struct tl_reply *node, const char *host,
                         struct tl_redis_address *address)
{
    const char *named = tl_reply_text(node, 0);
    int64_t port = tl_reply_signed(node, 1);
    if (named[0] == '\0' || strcmp(named, "?") == 0)
        named = host;
    if (port < 1 || port > 65535 || strlen(named) >= sizeof(address->host))
        return false;
    snprintf(address->host, sizeof(address->host), "%s", named);
    address->port = (int)port;
    return true;
}

/* The place of a node in the map, which it gets if it has none; TL_STORE_NODES_MAX: it is full.
 */
static size_t place_of(struct tl_cluster_map *map, const struct tl_redis_address *address)
{
    size_t i = 0;
    while (i < map->n && !tl_redis_address_equal(&map->nodes[i], address))
        i++;
    if (i == map->n && i < TL_STORE_NODES_MAX)
        map->nodes[map->n++] = *address;
    return i;
}

bool tl_cluster_map_read(const struct tl_reply *reply, const char *host, struct tl_cluster_map *map,
                         struct tl_error *err)
{
    map->n = 0;
    memset(map->slots, TL_STORE_NODES_MAX, sizeof(map->slots));
    memset(map->away, 0, sizeof(map->away));
    for (size_t i = 0; i < tl_reply_count(reply); i++) {
        const struct tl_reply *range = tl_reply_at(reply, i);
        int64_t first = tl_reply_signed(range, 0), last = tl_reply_signed(range, 1);
        struct tl_redis_address address;
        if (tl_reply_count(range) < 3 || first < 0 || last < first || last >= TL_CLUSTER_SLOTS ||
            !read_address(tl_reply_at(range, 2), host, &address))
            return tl_error_set(err, TL_ERR_PROTOCOL, "a node's list of slots cannot be read");
        size_t node = place_of(map, &address);
        if (node == TL_STORE_NODES_MAX)
            return tl_error_set(err, TL_ERR_PROTOCOL, "the cluster has more than %d masters",
                                TL_STORE_NODES_MAX);
        memset(map->slots + first, (int)node, (size_t)(last - first + 1));
    }
    return true;
}

/* ---- one node ---- */

static bool open_node(const struct tl_cluster *cluster, struct known *node, struct tl_error *err)
{
    if (node->redis == NULL) {
        const struct tl_redis_settings settings = {.ca_file = cluster->ca_file,
                                                   .timeout_ms = TL_CLUSTER_ASK_MS};
        struct tl_redis_url url = {.tls = cluster->url.tls, .port = node->address.port};
        snprintf(url.host, sizeof(url.host), "%s", node->address.host);
        memcpy(url.user, cluster->url.user, sizeof(url.user));
        memcpy(url.password, cluster->url.password, sizeof(url.password));
        node->redis = tl_redis_new_at(&url, &settings, err);
        explicit_bzero(&url, sizeof(url));
    }
    if (node->redis == NULL)
        return false;
    return tl_redis_connected(node->redis) || tl_redis_connect(node->redis, err);
}

/* What a node knows of the cluster. */
struct answer {
    struct tl_reply *slots; /* NULL: none */
    struct tl_redis_address teller;
    uint64_t epoch; /* of the newest configuration that it has seen */
    bool whole;     /* it is part of the majority; else what it knows may be out of date */
};

/* One look at the cluster. */
struct round {
    int64_t now_ms;
    struct answer best;
    size_t answers;
};

static bool ask(const struct tl_cluster *cluster, struct known *node, struct answer *answer,
                struct tl_error *err)
{
    struct tl_reply *info = NULL;
    if (open_node(cluster, node, err) &&
        (info = tl_ask(node->redis, err, "CLUSTER", "INFO", NULL)) != NULL)
        answer->slots = tl_ask(node->redis, err, "CLUSTER", "SLOTS", NULL);
    const char *text = tl_reply_string(info, NULL);
    answer->epoch = strtoull(tl_info_field(text, "cluster_current_epoch"), NULL, 10);
    answer->whole = strncmp(tl_info_field(text, "cluster_state"), "ok", 2) == 0;
    tl_reply_free(info);
    return answer->slots != NULL ||
           tl_error_prefix(err, "the node at %s:%d", node->address.host, node->address.port);
}

/* ---- all of them ---- */

static struct known *find_known(struct tl_cluster *cluster, const struct tl_redis_address *address)
{
    for (size_t i = 0; i < cluster->n_known; i++)
        if (tl_redis_address_equal(&cluster->known[i].address, address))
            return &cluster->known[i];
    return NULL;
}

/* Calls for the nodes of this answer from the first-th to the last-th of each range (0: the
 * master): they are named. Adds those that are not known, while there is room. */
static void name_nodes(struct tl_cluster *cluster, const struct answer *answer, size_t first,
                       size_t last, bool adds)
{
    for (size_t i = 0; i < tl_reply_count(answer->slots); i++) {
        const struct tl_reply *range = tl_reply_at(answer->slots, i);
        for (size_t k = 2 + first; k <= 2 + last && k < tl_reply_count(range); k++) {
            struct tl_redis_address address;
            if (!read_address(tl_reply_at(range, k), answer->teller.host, &address))
                continue;
            struct known *node = find_known(cluster, &address);
            if (node == NULL && adds && cluster->n_known < KNOWN_MAX) {
                node = &cluster->known[cluster->n_known++];
                *node = (struct known){.address = address};
            }
            if (node != NULL)
                node->named = true;
        }
    }
}

/* From now on those of the URL are known, all masters of this answer, and as many replicas as there
 * is room for: known ones are dropped where a new master may need the room. */
static void learn(struct tl_cluster *cluster, const struct answer *answer)
{
    size_t kept = 0;
    for (size_t i = 0; i < cluster->n_known; i++)
        cluster->known[i].named = i < cluster->url.n_sentinels;
    name_nodes(cluster, answer, 0, cluster->n_known + cluster->next.n <= KNOWN_MAX ? KNOWN_MAX : 0,
               false);
    for (size_t i = 0; i < cluster->n_known; i++) {
        if (cluster->known[i].named)
            cluster->known[kept++] = cluster->known[i];
        else
            tl_redis_free(&cluster->known[i].redis);
    }
    cluster->n_known = kept;
    name_nodes(cluster, answer, 0, 0, true);
    name_nodes(cluster, answer, 1, KNOWN_MAX, true);
}

/* Asks a node, unless it has been asked in this look, or was away a moment ago. */
static void ask_for_best(struct tl_cluster *cluster, struct known *node, struct round *round,
                         struct tl_error *err)
{
    struct answer answer = {.teller = node->address}, *best = &round->best;
    if (round->now_ms - node->asked_ms < (node->away ? AWAY_MS : 1))
        return;
    node->asked_ms = round->now_ms;
    node->away = !ask(cluster, node, &answer, err);
    if (node->away)
        return;
    round->answers++;
    /* First who belongs to the majority: a replica that is cut off counts its epoch up whenever it
     * tries to be elected. */
    bool better = best->slots == NULL || (answer.whole && !best->whole) ||
                  (answer.whole == best->whole && answer.epoch > best->epoch);
    tl_reply_free(better ? best->slots : answer.slots);
    if (better)
        *best = answer;
}

/* Takes over what was read, if it is another map. */
static void publish(struct tl_cluster *cluster)
{
    struct tl_cluster_map *next = &cluster->next;
    const struct tl_cluster_map *map = &cluster->map;
    bool same = next->n == map->n && memcmp(next->slots, map->slots, sizeof(map->slots)) == 0;
    for (size_t i = 0; same && i < map->n; i++)
        same = tl_redis_address_equal(&next->nodes[i], &map->nodes[i]);
    bool known = same && memcmp(next->away, map->away, sizeof(map->away)) == 0;
    if (known && map->version > 0)
        return;
    next->version = map->version + 1;
    next->layout = map->layout + (same && map->layout > 0 ? 0 : 1);
    tl_watcher_lock(&cluster->watcher);
    cluster->map = *next;
    tl_watcher_unlock(&cluster->watcher);
}

/* Takes over the best answer, if it can be believed. */
static bool take_over(struct tl_cluster *cluster, const struct round *round, struct tl_error *err)
{
    const struct answer *best = &round->best;
    /* An older configuration is that of a node which is cut off, or the cluster was made again. */
    if (best->slots == NULL ||
        (best->epoch < cluster->epoch && (!best->whole || 2 * round->answers <= cluster->n_known)))
        return false;
    if (!tl_cluster_map_read(best->slots, best->teller.host, &cluster->next, err))
        return false;
    learn(cluster, best);
    cluster->epoch = best->whole ? best->epoch : cluster->epoch;
    for (size_t i = 0; i < cluster->next.n; i++)
        cluster->next.away[i] = find_known(cluster, &cluster->next.nodes[i])->away;
    publish(cluster);
    return true;
}

static bool is_any_away(const struct tl_cluster *cluster)
{
    for (size_t i = 0; i < cluster->map.n; i++)
        if (cluster->map.away[i])
            return true;
    return false;
}

/* Asks all nodes: last those that were away, which others need not wait for. False when none
 * answered that can be believed. Keeps the connections while a caller doubts, or one is away. */
static bool look(struct tl_cluster *cluster, bool doubted, struct tl_error *err)
{
    struct round round = {.now_ms = tl_clock_ms()};
    struct tl_error problem = {0};
    bool believed = false;
    for (int away = 0; away < 2; away++) {
        for (size_t i = 0; i < cluster->n_known; i++)
            if (cluster->known[i].away == (away == 1))
                ask_for_best(cluster, &cluster->known[i], &round, &problem);
        believed = take_over(cluster, &round, &problem);
    }
    tl_reply_free(round.best.slots);
    for (size_t i = 0; !doubted && !is_any_away(cluster) && i < cluster->n_known; i++)
        if (cluster->known[i].redis != NULL)
            tl_redis_close(cluster->known[i].redis);
    if (!believed && err != NULL) {
        *err = problem;
        if (problem.kind == TL_OK)
            tl_error_set(err, TL_ERR_CONNECT, "no node of the cluster knows where the slots are");
    }
    return believed;
}

/* All programs notice the same at the same time: they need not ask again at the same time. */
static int64_t with_jitter(int64_t ms)
{
    return ms - ms / 4 + randombytes_uniform((uint32_t)ms / 2);
}

static void *watch(void *context)
{
    struct tl_cluster *cluster = context;
    int64_t pause_ms = DOUBT_MAX_MS;
    bool woken;
    tl_watcher_lock(&cluster->watcher);
    while (tl_watcher_sleep(&cluster->watcher, with_jitter(pause_ms), &woken)) {
        bool doubted = woken || tl_clock_ms() < cluster->doubt_ms;
        uint64_t version = cluster->map.version;
        tl_watcher_unlock(&cluster->watcher);
        (void)look(cluster, doubted, NULL);
        tl_watcher_lock(&cluster->watcher);
        pause_ms = woken || cluster->map.version != version ? DOUBT_MS : 2 * pause_ms;
        if (pause_ms > DOUBT_MAX_MS)
            pause_ms = doubted || is_any_away(cluster) ? DOUBT_MAX_MS : CALM_MS;
    }
    tl_watcher_unlock(&cluster->watcher);
    return NULL;
}

bool tl_cluster_look(struct tl_cluster *cluster, struct tl_cluster_map *map, struct tl_error *err)
{
    if (!cluster->watcher.started) {
        int problem = look(cluster, false, err) ? 0 : -1;
        if (problem == 0)
            problem = tl_watcher_start(&cluster->watcher, watch, cluster);
        if (problem > 0)
            tl_error_set(err, TL_ERR_SYSTEM, "cannot watch the cluster: %s", strerror(problem));
        if (problem != 0)
            return false;
    }
    tl_watcher_lock(&cluster->watcher);
    if (map->version != cluster->map.version)
        *map = cluster->map;
    tl_watcher_unlock(&cluster->watcher);
    return true;
}

void tl_cluster_doubt(struct tl_cluster *cluster)
{
    tl_watcher_lock(&cluster->watcher);
    int64_t now_ms = tl_clock_ms();
    /* A caller who doubts often is answered no more often than the thread looks anyway. */
    if (now_ms >= cluster->doubt_ms)
        tl_watcher_wake(&cluster->watcher);
    cluster->doubt_ms = now_ms + DOUBT_LASTS_MS;
    tl_watcher_unlock(&cluster->watcher);
}

/* ---- making and freeing ---- */

struct tl_cluster *tl_cluster_new(const struct tl_redis_url *url,
                                  const struct tl_redis_settings *settings, struct tl_error *err)
{
    struct tl_cluster *cluster = calloc(1, sizeof(*cluster));
    if (cluster == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the cluster");
        return NULL;
    }
    cluster->url = *url;
    if (settings->ca_file != NULL)
        snprintf(cluster->ca_file, sizeof(cluster->ca_file), "%s", settings->ca_file);
    for (size_t i = 0; i < url->n_sentinels; i++)
        cluster->known[i].address = url->sentinels[i];
    cluster->n_known = url->n_sentinels;
    tl_watcher_init(&cluster->watcher);
    return cluster;
}

void tl_cluster_free(struct tl_cluster **cluster)
{
    struct tl_cluster *old = *cluster;
    *cluster = NULL;
    if (old == NULL)
        return;
    tl_watcher_end(&old->watcher);
    for (size_t i = 0; i < old->n_known; i++)
        tl_redis_free(&old->known[i].redis);
    explicit_bzero(&old->url, sizeof(old->url));
    free(old);
}
