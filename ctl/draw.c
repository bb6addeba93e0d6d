#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/units.h"
#include "common/store/draw_record.h"
#include "common/store/queue.h"
#include "common/store/reply.h"

#include "ctl/command.h"
#include "ctl/draw_list.h"
#include "ctl/session.h"

enum { IDS_AT_ONCE = 4096 };

/* ---- tellerline draw ---- */

static void report(const char *queue, const struct tl_queue_settings *settings,
                   const struct tl_draw_record *draw)
{
    char opens_at[TL_UNITS_TEXT_MAX];
    bool done = draw->phase == TL_DRAW_DONE;
    tl_time_format(done ? draw->opens_at_ms : settings->opens_at_ms, opens_at, sizeof(opens_at));
    if (done)
        printf("%s: %" PRIu64 " visitors were drawn at the opening of %s\n", queue, draw->drawn,
               opens_at);
    else if (settings->opening != TL_OPENING_DRAW)
        printf("%s: no draw; visitors stand in the order of arrival (opening: fifo)\n", queue);
    else
        printf("%s: %s at %s\n", queue,
               draw->phase == TL_DRAW_NONE ? "the draw is held" : "the draw is under way, since",
               opens_at);
    if (draw->announced_for_ms != 0 && (done || settings->opening == TL_OPENING_DRAW))
        printf("  hash of the seed: %s\n", draw->hash);
    if (done)
        printf("  seed:             %s\n", draw->seed);
}

/* tl:{q}:drawn: 16 bytes that are no id, then the ids. */
static bool write_ids(struct tl_redis *redis, const struct tl_keys *keys, uint64_t drawn, FILE *out,
                      struct tl_error *err)
{
    struct tl_args args = {0};
    bool ok = true;
    for (uint64_t from = 0; ok && from < drawn; from += IDS_AT_ONCE) {
        char key[TL_KEY_MAX];
        size_t length;
        tl_keys_drawn(keys, key);
        tl_args_reset(&args);
        tl_args_strs(&args, "GETRANGE", key, NULL);
        tl_args_uint(&args, (from + 1) * TL_DRAW_ID_BYTES);
        tl_args_uint(&args, (from + 1 + IDS_AT_ONCE) * TL_DRAW_ID_BYTES - 1);
        struct tl_reply *reply = tl_redis_call(redis, &args, err);
        ok = reply != NULL;
        const char *ids = tl_reply_string(reply, &length);
        for (size_t i = 0; i + TL_DRAW_ID_BYTES <= length; i += TL_DRAW_ID_BYTES)
            tl_draw_list_write_id(out, (const unsigned char *)ids + i);
        if (ok && length == 0)
            ok = tl_error_set(err, TL_ERR_INVALID, "the list has only %" PRIu64 " of %" PRIu64,
                              from, drawn);
        tl_reply_free(reply);
    }
    tl_args_free(&args);
    return ok;
}

static bool write_list(struct tl_redis *redis, const struct tl_keys *keys,
                       const struct tl_draw_record *draw, const char *path, struct tl_error *err)
{
    struct tl_draw_head head = {.opens_at_ms = draw->opens_at_ms, .drawn = draw->drawn};
    bool to_stdout = strcmp(path, "-") == 0;
    if (draw->phase != TL_DRAW_DONE)
        return tl_error_set(err, TL_ERR_INVALID, "there is no list before the draw is done");
    snprintf(head.queue, sizeof(head.queue), "%s", keys->queue);
    if (!tl_draw_parse_hex(draw->hash, strlen(draw->hash), head.hash, sizeof(head.hash)) ||
        !tl_draw_parse_hex(draw->seed, strlen(draw->seed), head.seed, sizeof(head.seed)))
        return tl_error_set(err, TL_ERR_INVALID, "the seed of the draw is gone from the store");
    FILE *out = to_stdout ? stdout : fopen(path, "w");
    if (out == NULL)
        return tl_error_set(err, TL_ERR_SYSTEM, "%s: %s", path, strerror(errno));
    tl_draw_list_write_head(out, &head);
    bool ok = write_ids(redis, keys, draw->drawn, out, err);
    int closed = to_stdout ? fflush(out) : fclose(out);
    return ok && (closed == 0 || tl_error_set(err, TL_ERR_SYSTEM, "%s: %s", path, strerror(errno)));
}

int tl_command_draw(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    struct tl_ctl_session session;
    struct tl_keys keys;
    struct tl_draw_record draw;
    struct tl_queue_settings settings;
    const char *queue = options->words[0], *path = options->n_words > 1 ? options->words[1] : NULL;
    if (!tl_ctl_session_open(&session, options, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    struct tl_redis *redis = tl_ctl_session_redis(&session, queue, &err);
    bool ok = redis != NULL && tl_ctl_session_keys(&session, queue, &keys, &err) &&
              tl_queue_load(redis, &keys, &settings, &err) &&
              tl_draw_record_read(redis, &keys, &draw, &err) &&
              (path == NULL || write_list(redis, &keys, &draw, path, &err));
    tl_ctl_session_close(&session);
    if (!ok)
        return tl_ctl_fail(tl_ctl_status_of(&err), &err);
    if (path == NULL || strcmp(path, "-") != 0)
        report(queue, &settings, &draw);
    return TL_EXIT_OK;
}

/* ---- tellerline verify-draw ---- */

static bool parse_word(const struct tl_ctl_options *options, int i, const char *what,
                       unsigned char *bytes, size_t n, struct tl_error *err)
{
    const char *word = options->words[i];
    return tl_draw_parse_hex(word, strlen(word), bytes, n) ||
           tl_error_set(err, TL_ERR_INVALID, "%s is %zu hex digits", what, 2 * n);
}

int tl_command_verify_draw(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    unsigned char hash[TL_DRAW_KEY_BYTES], id[TL_DRAW_ID_BYTES];
    bool has_hash = options->n_words > 1, has_id = options->n_words > 2;
    struct tl_draw_check check = {.hash = has_hash ? hash : NULL, .id = has_id ? id : NULL};
    if ((has_hash && !parse_word(options, 1, "the hash of the seed", hash, sizeof(hash), &err)) ||
        (has_id && !parse_word(options, 2, "a draw id", id, sizeof(id), &err)))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    FILE *in = strcmp(options->words[0], "-") == 0 ? stdin : fopen(options->words[0], "r");
    if (in == NULL) {
        tl_error_set(&err, TL_ERR_SYSTEM, "%s: %s", options->words[0], strerror(errno));
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    }
    bool ok = tl_draw_list_verify(in, &check, &err);
    if (in != stdin)
        fclose(in);
    if (!ok)
        return tl_ctl_fail(TL_EXIT_PROBLEM, &err);
    printf("%s: the order of %" PRIu64 " visitors is that of the seed%s\n", check.head.queue,
           check.head.drawn,
           has_hash ? ", which has the published hash"
                    : "; compare its hash with the one published before the draw");
    if (has_id && check.rank == 0) {
        tl_error_set(&err, TL_ERR_INVALID, "this draw id is not in the list");
        return tl_ctl_fail(TL_EXIT_PROBLEM, &err);
    }
    if (has_id)
        printf("  this draw id stands at %" PRIu64 "\n", check.rank);
    return TL_EXIT_OK;
}
