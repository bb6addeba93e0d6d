#include <stdio.h>
#include <string.h>

#include "common/auth/reference.h"
#include "common/control/reference_find.h"
#include "common/store/queue.h"
#include "common/store/records.h"
#include "common/store/reply.h"

/* A line may have places of this stretch of seqs and of the one before. */
enum { STRETCHES = 2, SEQS_MAX = STRETCHES * TL_KEYRING_MAX, SESSIONS_AT_ONCE = 1000 };
#define STRETCH (UINT64_C(1) << TL_REFERENCE_BITS)

/* The seqs that the code may stand for. */
struct wanted {
    uint64_t seqs[SEQS_MAX];
    size_t n;
};

/* The greatest whole seqs up to the last one given that end like these. */
static void make_whole(const uint64_t ends[], size_t n, uint64_t last, struct wanted *wanted)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t back = (last - ends[i]) & (STRETCH - 1);
        for (unsigned stretch = 0; stretch < STRETCHES; stretch++, back += STRETCH)
            if (back < last)
                wanted->seqs[wanted->n++] = last - back;
    }
}

static bool read_code(const struct tl_config *config, const char *queue, const char *code,
                      uint64_t last, struct wanted *wanted, struct tl_error *err)
{
    uint64_t ends[TL_KEYRING_MAX];
    struct tl_error problem = {0};
    struct tl_keyring *keyring = tl_keyring_load(config->secrets.ticket_keys, false, &problem);
    if (keyring == NULL) {
        *err = problem;
        err->kind = TL_ERR_INVALID;
        return tl_error_prefix(err, "the code cannot be read, give the visitor's id instead");
    }
    size_t n = tl_reference_read(keyring, queue, code, ends);
    tl_keyring_free(&keyring);
    make_whole(ends, n, last, wanted);
    return n > 0 || tl_error_set(err, TL_ERR_INVALID,
                                 "a reference code has 8 letters and digits, like Q5T9-4XDR");
}

static void take(const struct tl_reply *name, char visitor[TL_VISITOR_MAX + 1])
{
    if (name != NULL)
        snprintf(visitor, TL_VISITOR_MAX + 1, "%s", tl_reply_string(name, NULL));
}

/* In every lane, since a visitor may have been moved: one pipeline of small replies. */
static bool look_in_line(struct tl_redis *redis, const struct tl_keys *keys,
                         const struct wanted *wanted, char visitor[TL_VISITOR_MAX + 1],
                         struct tl_error *err)
{
    bool ok = true;
    size_t asked = 0;
    for (size_t i = 0; ok && i < wanted->n * TL_LANES_MAX; i++) {
        tl_place place =
            tl_place_make((unsigned)(i % TL_LANES_MAX), wanted->seqs[i / TL_LANES_MAX]);
        struct tl_args args = {0};
        tl_args_strs(&args, "ZRANGEBYSCORE", keys->names[TL_KEY_WAITING], NULL);
        tl_args_uint(&args, place);
        tl_args_uint(&args, place);
        ok = tl_redis_append(redis, &args, err);
        tl_args_free(&args);
        asked += ok;
    }
    for (; asked > 0 && tl_redis_connected(redis); asked--) {
        struct tl_error problem = {0};
        struct tl_reply *reply = tl_redis_next(redis, &problem);
        if (reply == NULL && ok)
            *err = problem; /* the other replies must still be received */
        ok = ok && reply != NULL;
        take(tl_reply_at(reply, 0), visitor);
        tl_reply_free(reply);
    }
    return ok;
}

static bool is_wanted(const struct wanted *wanted, const struct tl_reply *text)
{
    struct tl_session_record session;
    if (!tl_record_session(tl_reply_string(text, NULL), &session))
        return false;
    for (size_t i = 0; i < wanted->n; i++)
        if (tl_place_seq(session.place) == wanted->seqs[i])
            return true;
    return false;
}

static bool look_at_sessions(struct tl_redis *redis, const struct tl_keys *keys,
                             const struct wanted *wanted, char visitor[TL_VISITOR_MAX + 1],
                             struct tl_error *err)
{
    char cursor[24] = "0";
    do {
        struct tl_args args = {0};
        tl_args_strs(&args, "HSCAN", keys->names[TL_KEY_SESSIONS], cursor, "COUNT", NULL);
        tl_args_uint(&args, SESSIONS_AT_ONCE);
        struct tl_reply *reply = tl_redis_call(redis, &args, err);
        tl_args_free(&args);
        if (reply == NULL)
            return false;
        const struct tl_reply *page = tl_reply_at(reply, 1);
        for (size_t i = 0; i + 1 < tl_reply_count(page); i += 2)
            if (is_wanted(wanted, tl_reply_at(page, i + 1)))
                take(tl_reply_at(page, i), visitor);
        snprintf(cursor, sizeof(cursor), "%s", tl_reply_string(tl_reply_at(reply, 0), NULL));
        tl_reply_free(reply);
    } while (visitor[0] == '\0' && strcmp(cursor, "0") != 0);
    return true;
}

bool tl_reference_find(struct tl_redis *redis, const struct tl_keys *keys,
                       const struct tl_config *config, const char *code,
                       char visitor[TL_VISITOR_MAX + 1], struct tl_error *err)
{
    struct wanted wanted = {0};
    struct tl_queue_numbers numbers;
    visitor[0] = '\0';
    return tl_queue_numbers(redis, keys, &numbers, err) &&
           read_code(config, keys->queue, code, numbers.seq, &wanted, err) &&
           look_in_line(redis, keys, &wanted, visitor, err) &&
           (visitor[0] != '\0' || look_at_sessions(redis, keys, &wanted, visitor, err)) &&
           visitor[0] != '\0';
}
