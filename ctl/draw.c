#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/units.h"

#include "ctl/call.h"
#include "ctl/draw_list.h"
#include "ctl/json.h"
#include "ctl/progress.h"
#include "ctl/rows.h"
#include "ctl/terminal.h"

enum { IDS_AT_ONCE = 1000 };

/* ---- tellerline draw ---- */

static void report(const char *queue, const json_t *draw)
{
    char opens_at[TL_UNITS_TEXT_MAX];
    const char *phase = tl_json_text(draw, "phase"), *hash = tl_json_text(draw, "hash");
    bool done = strcmp(phase, "done") == 0;
    tl_terminal_time_of(tl_json_text(draw, "opens_at"), opens_at, sizeof(opens_at));
    if (done)
        printf("%s: %" PRIu64 " visitors were drawn at the opening of %s\n", queue,
               tl_row_number(draw, "drawn"), opens_at);
    else if (strcmp(tl_json_text(draw, "opening"), "draw") != 0)
        printf("%s: no draw; visitors stand in the order of arrival (opening: fifo)\n", queue);
    else
        printf("%s: %s at %s\n", queue,
               strcmp(phase, "none") == 0 ? "the draw is held" : "the draw is under way, since",
               opens_at);
    if (*hash != '\0')
        printf("  hash of the seed: %s\n", hash);
    if (done)
        printf("  seed:             %s\n", tl_json_text(draw, "seed"));
}

/* The ids of these places of the list, as the answer has them. */
static bool write_page(const json_t *page, FILE *out)
{
    size_t i;
    json_t *id;
    json_array_foreach(json_object_get(page, "ids"), i, id)
    {
        unsigned char bytes[TL_DRAW_ID_BYTES];
        const char *hex = json_string_value(id);
        if (hex == NULL || !tl_draw_parse_hex(hex, strlen(hex), bytes, sizeof(bytes)))
            return false;
        tl_draw_list_write_id(out, bytes);
    }
    return true;
}

static int write_ids(struct tl_ctl_call *call, const char *path, uint64_t drawn, FILE *out)
{
    struct tl_progress progress;
    struct tl_error err = {0};
    int status = TL_EXIT_OK;
    tl_progress_begin(&progress, "list", tl_clock_ms());
    for (uint64_t from = 1; status == TL_EXIT_OK && from <= drawn; from += IDS_AT_ONCE) {
        char target[TL_CTL_TARGET_MAX + 64];
        json_t *page = NULL;
        snprintf(target, sizeof(target), "%s?from=%" PRIu64 "&limit=%d", path, from, IDS_AT_ONCE);
        const struct tl_ctl_ask ask = {.method = "GET", .target = target};
        status = tl_ctl_call_body(call, &ask, &page);
        if (status != TL_EXIT_OK)
            break;
        size_t n = json_array_size(json_object_get(page, "ids"));
        uint64_t missing = drawn - from + 1;
        bool whole = n == (missing < IDS_AT_ONCE ? missing : IDS_AT_ONCE) && write_page(page, out);
        json_decref(page);
        if (!whole) {
            tl_error_set(&err, TL_ERR_INVALID, "the list has not all of the %" PRIu64, drawn);
            status = tl_ctl_fail(TL_EXIT_PROBLEM, &err);
        }
        tl_progress_at(&progress, from - 1 + n, drawn, tl_clock_ms());
    }
    tl_progress_end(&progress);
    return status;
}

/* What the list begins with. */
static bool read_head(const char *queue, const json_t *draw, struct tl_draw_head *head,
                      struct tl_error *err)
{
    const char *hash = tl_json_text(draw, "hash"), *seed = tl_json_text(draw, "seed");
    *head = (struct tl_draw_head){.drawn = tl_row_number(draw, "drawn")};
    snprintf(head->queue, sizeof(head->queue), "%s", queue);
    if (strcmp(tl_json_text(draw, "phase"), "done") != 0)
        return tl_error_set(err, TL_ERR_INVALID, "there is no list before the draw is done");
    if (!tl_time_parse(tl_json_text(draw, "opens_at"), &head->opens_at_ms, NULL) ||
        !tl_draw_parse_hex(hash, strlen(hash), head->hash, sizeof(head->hash)) ||
        !tl_draw_parse_hex(seed, strlen(seed), head->seed, sizeof(head->seed)))
        return tl_error_set(err, TL_ERR_INVALID, "the seed of the draw is gone from the store");
    return true;
}

static int write_list(const struct tl_ctl_options *options, struct tl_ctl_call *call,
                      const char *target, const json_t *draw)
{
    const char *path = options->words[1];
    bool to_stdout = strcmp(path, "-") == 0;
    struct tl_error err = {0};
    struct tl_draw_head head;
    if (!read_head(options->words[0], draw, &head, &err))
        return tl_ctl_fail(TL_EXIT_PROBLEM, &err);
    FILE *out = to_stdout ? stdout : fopen(path, "we");
    if (out == NULL) {
        tl_error_set(&err, TL_ERR_SYSTEM, "%s: %s", path, strerror(errno));
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    }
    tl_draw_list_write_head(out, &head);
    int status = write_ids(call, target, head.drawn, out);
    int closed = to_stdout ? fflush(out) : fclose(out);
    if (closed != 0 && status == TL_EXIT_OK) {
        tl_error_set(&err, TL_ERR_SYSTEM, "%s: %s", path, strerror(errno));
        status = tl_ctl_fail(TL_EXIT_FAILED, &err);
    }
    return status;
}

int tl_command_draw(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    char target[TL_CTL_TARGET_MAX];
    json_t *draw = NULL;
    bool lists = options->n_words > 1;
    if (!tl_ctl_target(target, "queues", options->words[0], "draw", NULL))
        return TL_EXIT_PROBLEM;
    struct tl_ctl_call *call = tl_ctl_call_open(options, &err);
    if (call == NULL)
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    const struct tl_ctl_ask ask = {.method = "GET", .target = target};
    int status = tl_ctl_call_body(call, &ask, &draw);
    if (status == TL_EXIT_OK && lists)
        status = write_list(options, call, target, draw);
    if (status == TL_EXIT_OK && options->json && !lists)
        status = tl_json_write(json_incref(draw)) ? TL_EXIT_OK : TL_EXIT_FAILED;
    else if (status == TL_EXIT_OK && !(lists && strcmp(options->words[1], "-") == 0))
        report(options->words[0], draw);
    json_decref(draw);
    tl_ctl_call_close(&call);
    return status;
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
