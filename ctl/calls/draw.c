/* SPDX-License-Identifier: Apache-2.0 */
/* `draw show`, `schedule` and `verify`. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/auth/hex.h"
#include "common/base/clock.h"
#include "common/base/origin.h"
#include "common/base/units.h"
#include "common/client/http.h"

#include "ctl/calls/calls.h"

enum {
    TARGET_MAX = 1024,
    TRIES = 120,   /* of a page that the server refuses because it is busy... */
    PAUSE_MS = 500 /* ...after this pause */
};

/* ---- draw show ---- */

static void report(const char *queue, const json_t *draw)
{
    char opens_at[TL_UNITS_TEXT_MAX];
    const char *phase = tl_json_text(draw, "phase"), *hash = tl_json_text(draw, "hash");
    bool done = strcmp(phase, "done") == 0;
    tl_terminal_time_of(tl_json_text(draw, "opens_at"), opens_at, sizeof(opens_at));
    if (done)
        printf("%s: %" PRIu64 " visitors were drawn at the opening of %s\n", queue,
               tl_json_count(draw, "drawn"), opens_at);
    else if (strcmp(tl_json_text(draw, "order"), "draw") != 0)
        printf("%s: no draw; visitors stand in the order of arrival (order: arrival)\n", queue);
    else
        printf("%s: %s at %s\n", queue,
               strcmp(phase, "none") == 0 ? "the draw is held" : "the draw is under way, since",
               opens_at);
    if (*hash != '\0')
        printf("  hash of the seed: %s\n", hash);
    if (done)
        printf("  seed:             %s\n", tl_json_text(draw, "seed"));
}

/* Where the pages of a list are asked for: of the control room, or at an address. */
struct source {
    struct tl_ctl_call *call; /* NULL: */
    const char *queue;
    struct tl_http *http;
    const char *path;
    unsigned status; /* of the last page; 0: there was no answer */
    char problem[160];
    json_t *page;
};

static bool fetch_of_call(void *context, uint64_t after, json_t **page, struct tl_error *err)
{
    const struct source *source = context;
    const struct tl_ctl_ask ask = {.operation = "getDraw",
                                   .arguments = json_pack("{s:s, s:I, s:i}", "queue", source->queue,
                                                          "starting_after", (json_int_t)after,
                                                          "limit", TL_DRAW_PAGE_IDS)};
    *page = tl_ctl_call_get(source->call, &ask, err);
    return *page != NULL;
}

static int write_list(struct tl_ctl_call *call, const char *queue, const char *path)
{
    struct tl_error err = {0};
    bool to_stdout = strcmp(path, "-") == 0;
    struct source source = {.call = call, .queue = queue};
    struct tl_draw_check check = {.out = to_stdout ? stdout : fopen(path, "we")};
    if (check.out == NULL)
        return tl_ctl_refuse(TL_EXIT_FAILED, "%s: %s", path, strerror(errno));
    int status = TL_EXIT_OK;
    if (!tl_draw_verify_pages(&check, fetch_of_call, &source, &err))
        status = tl_ctl_fail(tl_ctl_status_of(&err), &err);
    int closed = to_stdout ? fflush(check.out) : fclose(check.out);
    if (closed != 0 && status == TL_EXIT_OK)
        status = tl_ctl_refuse(TL_EXIT_FAILED, "%s: %s", path, strerror(errno));
    return status;
}

int tl_command_draw_show(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    json_t *draw = NULL;
    const char *queue = options->words[0];
    const char *path = options->n_words > 1 ? options->words[1] : NULL;
    struct tl_ctl_call *call = tl_ctl_call_open(options, &err);
    if (call == NULL)
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    const struct tl_ctl_ask ask = {.operation = "getDraw",
                                   .arguments = json_pack("{s:s}", "queue", queue)};
    int status = tl_ctl_call_body(call, &ask, &draw);
    if (status == TL_EXIT_OK && path != NULL && strcmp(tl_json_text(draw, "phase"), "done") != 0)
        status = tl_ctl_refuse(TL_EXIT_PROBLEM, "there is no list before the draw is done");
    else if (status == TL_EXIT_OK && path != NULL)
        status = write_list(call, queue, path);
    if (status == TL_EXIT_OK && options->output != TL_OUTPUT_TABLE && path == NULL)
        tl_data_write(options->output, json_incref(draw));
    else if (status == TL_EXIT_OK && (path == NULL || strcmp(path, "-") != 0))
        report(queue, draw);
    json_decref(draw);
    tl_ctl_call_close(&call);
    return status;
}

/* ---- draw verify: from an address ---- */

static void fetched(void *context, const struct tl_http_answer *answer)
{
    struct source *source = context;
    source->status = answer->status;
    source->page = json_loadb(answer->body, answer->length, 0, NULL);
    snprintf(source->problem, sizeof(source->problem), "%s", answer->problem);
}

/* Asks for a page until the server has time for it. */
static bool fetch_of_address(void *context, uint64_t after, json_t **page, struct tl_error *err)
{
    struct source *source = context;
    char target[TARGET_MAX + 64];
    const struct tl_http_call call = {.path = target, .context = source, .done = fetched};
    snprintf(target, sizeof(target), "%s?starting_after=%" PRIu64 "&limit=%d", source->path, after,
             TL_DRAW_PAGE_IDS);
    for (int i = 0; i < TRIES; i++) {
        if (!tl_http_ask(source->http, &call, err))
            return false;
        *page = source->page;
        source->page = NULL;
        if (source->status == 200)
            return *page != NULL ||
                   tl_error_set(err, TL_ERR_INVALID, "the answer of the server is no page");
        bool is_busy = source->status == 429 || source->status == 503; /* nothing is known of it */
        const char *detail = tl_json_text(*page, "detail");
        if (source->status == 0)
            tl_error_set(err, TL_ERR_CONNECT, "%s", source->problem);
        else
            tl_error_set(err, is_busy ? TL_ERR_CONNECT : TL_ERR_INVALID,
                         "the server answered %u %s", source->status,
                         detail[0] != '\0' ? detail : tl_json_text(*page, "title"));
        json_decref(*page);
        *page = NULL;
        if (!is_busy)
            return false;
        tl_ctl_pause(PAUSE_MS);
    }
    return false;
}

static bool is_address(const char *word)
{
    return strncmp(word, "http://", 7) == 0 || strncmp(word, "https://", 8) == 0;
}

/* Verifies all pages of the list at an address, that of the first one. */
static bool verify_at(const char *address, struct tl_draw_check *check, struct tl_error *err)
{
    const char *path = strchr(strstr(address, "//") + 2, '/');
    char base[TL_ADDRESS_MAX];
    int length = path != NULL ? (int)(path - address) : 0;
    if (length == 0 || (size_t)length >= sizeof(base) || strlen(path) > TARGET_MAX ||
        path[strcspn(path, "?# ")] != '\0')
        return tl_error_set(
            err, TL_ERR_SYSTEM,
            "expected an address such as https://wait.example/v1/queues/QUEUE/draw");
    snprintf(base, sizeof(base), "%.*s", length, address);
    struct tl_http *http = tl_http_new(base, -1, err);
    if (http == NULL)
        return false;
    struct source source = {.http = http, .path = path};
    bool ok = tl_draw_verify_pages(check, fetch_of_address, &source, err);
    tl_http_free(&http);
    return ok;
}

/* ---- draw verify ---- */

static bool verify_file(const char *path, struct tl_draw_check *check, struct tl_error *err)
{
    FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (in == NULL)
        return tl_error_set(err, TL_ERR_SYSTEM, "%s: %s", path, strerror(errno));
    bool ok = tl_draw_verify(in, check, err);
    if (in != stdin)
        fclose(in);
    return ok;
}

static bool parse_word(const struct tl_ctl_options *options, int i, const char *what,
                       unsigned char *bytes, size_t n, struct tl_error *err)
{
    const char *word = options->words[i];
    return tl_hex_parse(word, strlen(word), bytes, n) ||
           tl_error_set(err, TL_ERR_INVALID, "%s is %zu hex digits", what, 2 * n);
}

int tl_command_draw_verify(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    unsigned char hash[TL_DRAW_KEY_BYTES], id[TL_DRAW_ID_BYTES];
    const char *source = options->words[0];
    bool has_hash = options->n_words > 1, has_id = options->n_words > 2;
    struct tl_draw_check check = {.hash = has_hash ? hash : NULL, .id = has_id ? id : NULL};
    if ((has_hash && !parse_word(options, 1, "the hash of the seed", hash, sizeof(hash), &err)) ||
        (has_id && !parse_word(options, 2, "a draw id", id, sizeof(id), &err)))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    if (!(is_address(source) ? verify_at : verify_file)(source, &check, &err))
        return tl_ctl_fail(err.kind == TL_ERR_INVALID ? TL_EXIT_PROBLEM : TL_EXIT_FAILED, &err);
    printf("%s: the order of %" PRIu64 " visitors is that of the seed%s\n", check.head.queue,
           check.head.drawn,
           has_hash ? ", which has the published hash"
                    : "; compare its hash with the one published before the draw");
    if (has_id && check.rank == 0)
        return tl_ctl_refuse(TL_EXIT_PROBLEM, "this draw id is not in the list");
    if (has_id)
        printf("  this draw id stands at %" PRIu64 "\n", check.rank);
    return TL_EXIT_OK;
}
