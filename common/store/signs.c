#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/store/reply.h"
#include "common/store/signs.h"

void tl_sign_networks_add(struct tl_sign_networks *networks, const struct tl_prefix *prefix,
                          uint64_t count)
{
    size_t at = networks->n;
    while (at > 0 && networks->list[at - 1].count < count)
        at--;
    if (at == TL_SIGNS_NETWORKS)
        return;
    if (networks->n < TL_SIGNS_NETWORKS)
        networks->n++;
    memmove(&networks->list[at + 1], &networks->list[at],
            (networks->n - at - 1) * sizeof(networks->list[0]));
    networks->list[at] = (struct tl_sign_network){.prefix = *prefix, .count = count};
}

/* ---- text: "FAILED SHARED FAST", then " joins PREFIX COUNT" and " failed PREFIX COUNT" ---- */

static const char joins_word[] = "joins", failed_word[] = "failed";

static int format_networks(const struct tl_sign_networks *networks, const char *word, char *text,
                           size_t size)
{
    int length = 0;
    char prefix[TL_PREFIX_TEXT_MAX];
    for (size_t i = 0; i < networks->n; i++) {
        tl_prefix_format(&networks->list[i].prefix, prefix);
        length += snprintf(text + length, size - (size_t)length, " %s %s %" PRIu64, word, prefix,
                           networks->list[i].count);
    }
    return length;
}

/* The longest: three numbers of 20 digits, six networks of 6 + 52 + 22 bytes. */
void tl_signs_format(const struct tl_signs *signs, char text[TL_SIGNS_TEXT_MAX])
{
    int length = snprintf(text, TL_SIGNS_TEXT_MAX, "%" PRIu64 " %" PRIu64 " %" PRIu64,
                          signs->failed, signs->shared, signs->fast);
    length += format_networks(&signs->joins, joins_word, text + length,
                              TL_SIGNS_TEXT_MAX - (size_t)length);
    (void)format_networks(&signs->failures, failed_word, text + length,
                          TL_SIGNS_TEXT_MAX - (size_t)length);
}

static bool parse_number(const char *word, uint64_t *number)
{
    char *end;
    if (word == NULL || word[0] < '0' || word[0] > '9' || strlen(word) > 15)
        return false;
    *number = strtoull(word, &end, 10);
    return *end == '\0';
}

bool tl_signs_parse(const char *text, struct tl_signs *signs)
{
    char copy[TL_SIGNS_TEXT_MAX];
    char *rest = NULL;
    *signs = (struct tl_signs){0};
    if (strlen(text) >= sizeof(copy))
        return false;
    memcpy(copy, text, strlen(text) + 1);
    if (!parse_number(strtok_r(copy, " ", &rest), &signs->failed) ||
        !parse_number(strtok_r(NULL, " ", &rest), &signs->shared) ||
        !parse_number(strtok_r(NULL, " ", &rest), &signs->fast))
        return false;
    for (const char *kind; (kind = strtok_r(NULL, " ", &rest)) != NULL;) {
        struct tl_prefix prefix;
        uint64_t count;
        const char *network = strtok_r(NULL, " ", &rest);
        bool joins = strcmp(kind, joins_word) == 0;
        if ((!joins && strcmp(kind, failed_word) != 0) || network == NULL ||
            !tl_prefix_parse(network, &prefix, NULL) ||
            !parse_number(strtok_r(NULL, " ", &rest), &count))
            return false;
        tl_sign_networks_add(joins ? &signs->joins : &signs->failures, &prefix, count);
    }
    return true;
}

/* ---- the sum ---- */

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
    struct tl_args args = {0};
    tl_args_strs(&args, "XREVRANGE", keys->signs, "+", NULL);
    tl_args_int(&args, since_ms > 0 ? since_ms : 0);
    tl_args_strs(&args, "COUNT", NULL);
    tl_args_int(&args, TL_SIGNS_KEPT);
    struct tl_reply *reply = tl_redis_call(redis, &args, err);
    tl_args_free(&args);
    return reply;
}

bool tl_signs_read(struct tl_redis *redis, const struct tl_keys *keys, int64_t now_ms,
                   struct tl_signs *signs, struct tl_error *err)
{
    *signs = (struct tl_signs){0};
    struct tl_reply *reply = ask(redis, keys, now_ms - TL_SIGNS_WINDOW_MS, err);
    struct sums *sums = calloc(2, sizeof(*sums));
    bool ok = reply != NULL &&
              (sums != NULL ||
               tl_error_set(err, TL_ERR_NOMEM, "no memory for the signs of %s", keys->queue));
    size_t n = ok ? tl_reply_count(reply) : 0;
    for (size_t i = 0; i < n && i < TL_SIGNS_KEPT; i++) {
        struct tl_signs one;
        const struct tl_reply *fields = tl_reply_at(tl_reply_at(reply, i), 1); /* "d", text */
        if (!tl_signs_parse(tl_reply_string(tl_reply_at(fields, 1), NULL), &one))
            continue; /* of another release */
        signs->failed += one.failed;
        signs->shared += one.shared;
        signs->fast += one.fast;
        add_up(&sums[0], &one.joins);
        add_up(&sums[1], &one.failures);
    }
    if (ok) {
        keep_most(&sums[0], &signs->joins);
        keep_most(&sums[1], &signs->failures);
    }
    free(sums);
    tl_reply_free(reply);
    return ok;
}
