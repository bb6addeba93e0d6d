/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/store/reply.h"
#include "common/store/sentinel.h"
#include "common/store/watcher.h"

enum {
    WATCH_MS = 1000,
    TIMEOUT_MS = 500, /* to connect, and for an answer */
    /* Sentinels tell each other of a failover within two seconds. Most of them that still name an
     * older one after this time were set up again. */
    OLDER_MS = 5000,
};

/* What a sentinel says. The epoch counts the failovers that sentinels have agreed on. */
struct answer {
    struct tl_redis_address master;
    uint64_t epoch;
};

/* Connections to all sentinels, used by one thread. */
struct links {
    struct tl_redis *links[TL_SENTINELS_MAX];
    bool login[TL_SENTINELS_MAX]; /* this one asks for a password */
};

struct tl_sentinel {
    struct tl_redis_url url;
    char ca_file[256];
    size_t next; /* the sentinel that is asked first */
    bool failed; /* the thread could not be started */
    struct tl_watcher watcher;
    /* Under its lock: */
    struct answer best; /* its host is "" until there was an answer */
    bool moved;         /* since it was found */
    int64_t older_ms;   /* since when most name an older one and none the best; 0: it is not so */
};

struct tl_sentinel *tl_sentinel_new(const struct tl_redis_url *url,
                                    const struct tl_redis_settings *settings, struct tl_error *err)
{
    struct tl_sentinel *sentinel = calloc(1, sizeof(*sentinel));
    if (sentinel == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the sentinels");
        return NULL;
    }
    sentinel->url = *url;
    if (settings->ca_file != NULL)
        snprintf(sentinel->ca_file, sizeof(sentinel->ca_file), "%s", settings->ca_file);
    tl_watcher_init(&sentinel->watcher);
    return sentinel;
}

void tl_sentinel_free(struct tl_sentinel **sentinel)
{
    struct tl_sentinel *old = *sentinel;
    *sentinel = NULL;
    if (old == NULL)
        return;
    tl_watcher_end(&old->watcher);
    explicit_bzero(&old->url, sizeof(old->url));
    free(old);
}

/* ---- one sentinel ---- */

static bool open_link(const struct tl_sentinel *sentinel, struct links *links, size_t i,
                      struct tl_error *err)
{
    if (links->links[i] == NULL) {
        const struct tl_redis_settings settings = {.ca_file = sentinel->ca_file,
                                                   .timeout_ms = TIMEOUT_MS};
        struct tl_redis_url url = {.tls = sentinel->url.tls,
                                   .port = sentinel->url.sentinels[i].port};
        snprintf(url.host, sizeof(url.host), "%s", sentinel->url.sentinels[i].host);
        if (links->login[i]) {
            memcpy(url.user, sentinel->url.user, sizeof(url.user));
            memcpy(url.password, sentinel->url.password, sizeof(url.password));
        }
        links->links[i] = tl_redis_new_at(&url, &settings, err);
        explicit_bzero(&url, sizeof(url));
    }
    return links->links[i] != NULL && tl_redis_connect(links->links[i], err);
}

static void close_links(struct links *links)
{
    for (size_t i = 0; i < TL_SENTINELS_MAX; i++)
        tl_redis_free(&links->links[i]);
}

static bool read_master(const struct tl_reply *reply, struct tl_redis_address *master)
{
    size_t length;
    const char *host = tl_reply_string(tl_reply_at(reply, 0), &length);
    int64_t port = tl_reply_signed(reply, 1);
    if (length == 0 || length >= sizeof(master->host) || port < 1 || port > 65535)
        return false;
    memcpy(master->host, host, length + 1);
    master->port = (int)port;
    return true;
}

static bool ask_once(const struct tl_sentinel *sentinel, struct links *links, size_t i,
                     struct answer *answer, struct tl_error *err)
{
    static const char *const questions[] = {"GET-MASTER-ADDR-BY-NAME", "MASTER"};
    struct tl_reply *replies[2] = {NULL, NULL};
    struct tl_args args = {0};
    bool ok = open_link(sentinel, links, i, err);
    for (size_t k = 0; k < 2 && ok; k++) {
        tl_args_reset(&args);
        tl_args_strs(&args, "SENTINEL", questions[k], sentinel->url.master, NULL);
        ok = tl_redis_append(links->links[i], &args, err);
    }
    tl_args_free(&args);
    if (!ok)
        return false;
    replies[0] = tl_redis_next(links->links[i], err);
    replies[1] = tl_redis_next(links->links[i], NULL); /* a name it does not know is an error */
    ok = replies[0] != NULL;
    if (ok && !read_master(replies[0], &answer->master))
        ok = tl_error_set(err, TL_ERR_CONNECT, "it knows no master named %s", sentinel->url.master);
    answer->epoch = (uint64_t)tl_reply_integer(tl_reply_of(replies[1], "config-epoch"));
    tl_reply_free(replies[0]);
    tl_reply_free(replies[1]);
    return ok;
}

/* Most sentinels ask for no password, and refuse one that they did not ask for. */
static bool ask(const struct tl_sentinel *sentinel, struct links *links, size_t i,
                struct answer *answer, struct tl_error *err)
{
    struct tl_error first = {0};
    if (ask_once(sentinel, links, i, answer, &first))
        return true;
    if (!links->login[i] && strstr(first.text, "NOAUTH") != NULL) {
        links->login[i] = true;
        tl_redis_free(&links->links[i]);
        if (ask_once(sentinel, links, i, answer, &first))
            return true;
    }
    *err = first;
    return tl_error_prefix(err, "the sentinel at %s:%d", sentinel->url.sentinels[i].host,
                           sentinel->url.sentinels[i].port);
}

/* ---- all of them ---- */

/* A question to all sentinels. */
struct round {
    struct answer best;
    size_t answers;
};

static void count_answer(struct round *round, const struct answer *answer)
{
    if (round->answers++ == 0 || answer->epoch > round->best.epoch)
        round->best = *answer;
}

/* Under the lock. An older answer counts only when no sentinel knows better, and for long enough if
 * some cannot be asked: they were set up again. */
static bool were_set_up_again(struct tl_sentinel *sentinel, const struct round *round,
                              int64_t now_ms)
{
    size_t n = sentinel->url.n_sentinels;
    if (round->answers * 2 <= n)
        return false;
    if (sentinel->older_ms == 0)
        sentinel->older_ms = now_ms;
    return round->answers == n || now_ms - sentinel->older_ms >= OLDER_MS;
}

/* Under the lock. */
static bool accept(struct tl_sentinel *sentinel, const struct round *round, int64_t now_ms)
{
    struct answer *best = &sentinel->best;
    bool older = round->best.epoch < best->epoch && best->master.host[0] != '\0';
    if (round->answers == 0 || (older && !were_set_up_again(sentinel, round, now_ms)))
        return false;
    sentinel->older_ms = 0;
    const struct tl_redis_address *master = &round->best.master;
    if (best->master.port != master->port || strcmp(best->master.host, master->host) != 0) {
        tl_info("the sentinels name %s:%d as the master %s", master->host, master->port,
                sentinel->url.master);
        sentinel->moved = true;
    }
    *best = round->best;
    return true;
}

bool tl_sentinel_find(struct tl_sentinel *sentinel, int64_t now_ms, struct tl_redis_address *master,
                      struct tl_error *err)
{
    struct links links = {0};
    struct round round = {0};
    struct tl_error problem = {0};
    size_t n = sentinel->url.n_sentinels, first = sentinel->next;
    bool found = false;
    for (size_t k = 0; k < n && !found; k++) {
        struct answer answer = {0};
        if (!ask(sentinel, &links, (first + k) % n, &answer, &problem))
            continue;
        count_answer(&round, &answer);
        tl_watcher_lock(&sentinel->watcher);
        found = accept(sentinel, &round, now_ms);
        *master = sentinel->best.master;
        sentinel->moved = sentinel->moved && !found;
        tl_watcher_unlock(&sentinel->watcher);
    }
    sentinel->next = first + 1 < n ? first + 1 : 0; /* it may be out of date and sound certain */
    close_links(&links);
    if (!found && round.answers > 0)
        return tl_error_set(err, TL_ERR_CONNECT,
                            "only sentinels that know of an older master can be reached");
    if (!found)
        return tl_error_set(err, TL_ERR_CONNECT, "none of %zu sentinels names a master; %.200s", n,
                            problem.text);
    return true;
}

/* ---- the thread ---- */

static void *watch(void *context)
{
    struct tl_sentinel *sentinel = context;
    struct links links = {0};
    bool goes_on = true, woken;
    while (goes_on) {
        struct round round = {0};
        for (size_t i = 0; i < sentinel->url.n_sentinels; i++) {
            struct answer answer = {0};
            struct tl_error problem;
            if (ask(sentinel, &links, i, &answer, &problem))
                count_answer(&round, &answer);
        }
        tl_watcher_lock(&sentinel->watcher);
        (void)accept(sentinel, &round, tl_clock_ms());
        goes_on = tl_watcher_sleep(&sentinel->watcher, WATCH_MS, &woken);
        tl_watcher_unlock(&sentinel->watcher);
    }
    close_links(&links);
    return NULL;
}

bool tl_sentinel_moved(struct tl_sentinel *sentinel)
{
    if (!sentinel->watcher.started && !sentinel->failed) {
        sentinel->failed = tl_watcher_start(&sentinel->watcher, watch, sentinel) != 0;
        if (sentinel->failed)
            tl_warn("cannot start a thread that watches the sentinels; a new master is found only "
                    "after an error");
    }
    tl_watcher_lock(&sentinel->watcher);
    bool moved = sentinel->moved;
    tl_watcher_unlock(&sentinel->watcher);
    return moved;
}
