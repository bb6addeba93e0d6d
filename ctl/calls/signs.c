/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/reply.h"

#include "ctl/calls/calls.h"

enum {
    WINDOW_MS = 60000, /* what is added up */
    MANY = 60, /* as in the log of the workers: offices put many people behind one address */
};

/* ---- the last minute ---- */

/* All networks of one kind in the entries. */
struct sums {
    size_t n;
    struct tl_sign_network list[TL_SIGNS_KEPT * TL_SIGNS_NETWORKS];
};

static void add_up(struct sums *sums, const struct tl_sign_networks *networks)
{
    for (size_t i = 0; i < networks->n; i++) {
        const struct tl_sign_network *more = &networks->list[i];
        size_t at = 0;
        while (at < sums->n && !tl_prefix_equal(&sums->list[at].prefix, &more->prefix))
            at++;
        if (at == sums->n)
            sums->list[sums->n++] = (struct tl_sign_network){.prefix = more->prefix};
        sums->list[at].count += more->count;
    }
}

static void keep_most(const struct sums *sums, struct tl_sign_networks *networks)
{
    for (size_t i = 0; i < sums->n; i++)
        tl_sign_networks_add(networks, &sums->list[i].prefix, sums->list[i].count);
}

static struct tl_reply *ask(struct tl_redis *redis, const struct tl_keys *keys, int64_t since_ms,
                            struct tl_error *err)
{
    char key[TL_KEY_MAX];
    struct tl_args args = {0};
    tl_args_strs(&args, "XREVRANGE", tl_key(keys, TL_KEY_SIGNS, key), "+", NULL);
    tl_args_int(&args, since_ms > 0 ? since_ms : 0);
    tl_args_strs(&args, "COUNT", NULL);
    tl_args_int(&args, TL_SIGNS_KEPT);
    return tl_redis_once(redis, &args, err);
}

bool tl_ctl_signs_read(struct tl_redis *redis, const struct tl_keys *keys, int64_t now_ms,
                       struct tl_signs *signs, struct tl_error *err)
{
    *signs = (struct tl_signs){0};
    struct sums *sums = tl_xalloc(2, sizeof(*sums));
    struct tl_reply *reply = ask(redis, keys, now_ms - WINDOW_MS, err);
    size_t n = reply != NULL ? tl_reply_count(reply) : 0;
    for (size_t i = 0; i < n && i < TL_SIGNS_KEPT; i++) {
        struct tl_signs one;
        const struct tl_reply *fields = tl_reply_at(tl_reply_at(reply, i), 1); /* "d", text */
        if (!tl_signs_parse(tl_reply_text(fields, 1), &one))
            continue; /* of another release */
        signs->failed += one.failed;
        signs->shared += one.shared;
        signs->fast += one.fast;
        add_up(&sums[0], &one.joins);
        add_up(&sums[1], &one.failures);
    }
    keep_most(&sums[0], &signs->joins);
    keep_most(&sums[1], &signs->failures);
    bool ok = reply != NULL;
    free(sums);
    tl_reply_free(reply);
    return ok;
}

/* ---- lines ---- */

/* The line that is written now. */
struct line {
    struct tl_text *out;
    const char *queue;
    size_t length; /* 0: nothing is written yet */
};

static void add(struct line *line, const char *sign)
{
    const char *separator = line->length == 0 ? " " : ", ";
    if (line->length == 0) {
        tl_text_append(line->out, "! %s:", line->queue);
        line->length = strlen("! :") + strlen(line->queue);
    }
    if (line->length + strlen(separator) + strlen(sign) > TL_CTL_SIGNS_COLUMNS) {
        separator = "\n  ";
        line->length = 0;
    }
    tl_text_append(line->out, "%s%s", separator, sign);
    line->length += strlen(separator) + strlen(sign);
}

static void add_networks(struct line *line, const struct tl_sign_networks *networks,
                         const char *what)
{
    char prefix[TL_PREFIX_TEXT_MAX], sign[128];
    for (size_t i = 0; i < networks->n; i++) {
        if (networks->list[i].count <= MANY)
            continue;
        tl_prefix_format(&networks->list[i].prefix, prefix);
        snprintf(sign, sizeof(sign), "%" PRIu64 " %s from %s", networks->list[i].count, what,
                 prefix);
        add(line, sign);
    }
}

static void add_count(struct line *line, uint64_t count, const char *what)
{
    char sign[64];
    if (count == 0)
        return;
    snprintf(sign, sizeof(sign), "%" PRIu64 " %s", count, what);
    add(line, sign);
}

void tl_ctl_signs_write(const char *queue, const struct tl_signs *signs, struct tl_text *out)
{
    struct line line = {.out = out, .queue = queue};
    add_networks(&line, &signs->joins, "joins");
    add_networks(&line, &signs->failures, "failed checks");
    add_count(&line, signs->shared, "shared sessions");
    add_count(&line, signs->fast, "fast sessions");
    if (line.length == 0)
        return; /* sessions that run out fail checks, too */
    add_count(&line, signs->failed, "failed checks in all");
    tl_text_append(out, "\n");
}
