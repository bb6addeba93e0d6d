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
    PAUSE_MS = 500 /* ...after so long */
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

/* The list, from the answer without ids on. */
static int copy_list(struct tl_ctl_call *call, const char *queue, const json_t *draw, FILE *out)
{
    struct tl_progress progress;
    struct tl_error err = {0};
    struct tl_draw_pages copy = {.out = out};
    if (!tl_draw_pages_add(&copy, draw, &err))
        return tl_ctl_fail(TL_EXIT_PROBLEM, &err);
    int status = TL_EXIT_OK;
    tl_progress_begin(&progress, "list", tl_clock_ms());
    while (status == TL_EXIT_OK && copy.n < copy.head.drawn) {
        char number[24];
        json_t *page = NULL;
        const uint64_t before = copy.n;
        struct tl_ctl_ask ask = tl_ctl_ask("GET", NULL, "/queues/%s/draw", queue);
        snprintf(number, sizeof(number), "%" PRIu64, before);
        tl_ctl_ask_query(&ask, "starting_after", number);
        snprintf(number, sizeof(number), "%d", TL_DRAW_PAGE_IDS);
        tl_ctl_ask_query(&ask, "limit", number);
        status = tl_ctl_call_body(call, &ask, &page);
        if (status == TL_EXIT_OK && !tl_draw_pages_add(&copy, page, &err))
            status = tl_ctl_fail(TL_EXIT_PROBLEM, &err);
        else if (status == TL_EXIT_OK && copy.n == before)
            status = tl_ctl_refuse(TL_EXIT_PROBLEM, "the list has not all of the %" PRIu64,
                                   copy.head.drawn);
        json_decref(page);
        tl_progress_at(&progress, copy.n, copy.head.drawn, tl_clock_ms());
    }
    tl_progress_end(&progress);
    return status;
}

static int write_list(const struct tl_ctl_options *options, struct tl_ctl_call *call,
                      const json_t *draw)
{
    const char *path = options->words[1];
    bool to_stdout = strcmp(path, "-") == 0;
    if (strcmp(tl_json_text(draw, "phase"), "done") != 0)
        return tl_ctl_refuse(TL_EXIT_PROBLEM, "there is no list before the draw is done");
    FILE *out = to_stdout ? stdout : fopen(path, "we");
    if (out == NULL)
        return tl_ctl_refuse(TL_EXIT_FAILED, "%s: %s", path, strerror(errno));
    int status = copy_list(call, options->words[0], draw, out);
    int closed = to_stdout ? fflush(out) : fclose(out);
    if (closed != 0 && status == TL_EXIT_OK)
        status = tl_ctl_refuse(TL_EXIT_FAILED, "%s: %s", path, strerror(errno));
    return status;
}

int tl_command_draw(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    json_t *draw = NULL;
    bool lists = options->n_words > 1;
    struct tl_ctl_ask ask = tl_ctl_ask("GET", NULL, "/queues/%s/draw", options->words[0]);
    if (ask.method == NULL)
        return TL_EXIT_PROBLEM;
    struct tl_ctl_call *call = tl_ctl_call_open(options, &err);
    if (call == NULL)
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    int status = tl_ctl_call_body(call, &ask, &draw);
    if (status == TL_EXIT_OK && lists)
        status = write_list(options, call, draw);
    if (status == TL_EXIT_OK && options->output != TL_OUTPUT_TABLE && !lists)
        tl_data_write(options->output, json_incref(draw));
    else if (status == TL_EXIT_OK && !(lists && strcmp(options->words[1], "-") == 0))
        report(options->words[0], draw);
    json_decref(draw);
    tl_ctl_call_close(&call);
    return status;
}

/* ---- draw schedule ---- */

int tl_command_draw_schedule(const struct tl_ctl_options *options)
{
    char at[TL_UNITS_TEXT_MAX];
    json_t *answer;
    const char *opens_at = options->n_words > 1 ? options->words[1] : NULL;
    struct tl_ctl_ask ask = tl_ctl_ask("POST", json_pack("{s:s*}", "opens_at", opens_at),
                                       "/queues/%s/draw", options->words[0]);
    int status = tl_ctl_call_once(options, &ask, &answer);
    if (status != TL_EXIT_OK)
        return status;
    tl_terminal_time_of(tl_json_text(json_object_get(answer, "settings"), "opens_at"), at,
                        sizeof(at));
    return tl_ctl_tell(options, answer, "%s: those who are in line at %s are drawn by lot",
                       options->words[0], at);
}

/* ---- draw verify: from an address ---- */

/* A page on its way. */
struct fetch {
    unsigned status; /* 0: there is no answer */
    json_t *page;    /* owned */
    char problem[256];
};

static void fetched(void *context, const struct tl_http_answer *answer)
{
    struct fetch *fetch = context;
    fetch->status = answer->status;
    fetch->page = json_loadb(answer->body, answer->length, 0, NULL);
    snprintf(fetch->problem, sizeof(fetch->problem), "%s", answer->problem);
}

/* Asks for a page until the server has time for it. *page is owned. */
static bool fetch_page(struct tl_http *http, const char *target, json_t **page,
                       struct tl_error *err)
{
    for (int i = 0; i < TRIES; i++) {
        struct fetch fetch = {0};
        const struct tl_http_call call = {.path = target, .context = &fetch, .done = fetched};
        if (!tl_http_ask(http, &call, err))
            return false;
        *page = fetch.page;
        if (fetch.status == 200)
            return fetch.page != NULL ||
                   tl_error_set(err, TL_ERR_INVALID, "the answer of the server is no page");
        const char *detail = tl_json_text(fetch.page, "detail");
        if (fetch.status == 0)
            tl_error_set(err, TL_ERR_CONNECT, "%s", fetch.problem);
        else
            tl_error_set(err, TL_ERR_INVALID, "the server answered %u %s", fetch.status,
                         detail[0] != '\0' ? detail : tl_json_text(fetch.page, "title"));
        json_decref(fetch.page);
        *page = NULL;
        if (fetch.status != 429 && fetch.status != 503)
            return false;
        err->kind = TL_ERR_CONNECT; /* busy, and so nothing is known of the list */
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
    struct tl_draw_pages pages = {.check = check};
    struct tl_progress progress;
    uint64_t before;
    bool ok;
    tl_progress_begin(&progress, "list", tl_clock_ms());
    do {
        char target[TARGET_MAX + 64];
        json_t *page = NULL;
        before = pages.n;
        snprintf(target, sizeof(target), "%s?starting_after=%" PRIu64 "&limit=%d", path, before,
                 TL_DRAW_PAGE_IDS);
        ok = fetch_page(http, target, &page, err) && tl_draw_pages_add(&pages, page, err);
        json_decref(page);
        tl_progress_at(&progress, pages.n, pages.head.drawn, tl_clock_ms());
    } while (ok && pages.n > before && pages.n < pages.head.drawn);
    tl_progress_end(&progress);
    tl_http_free(&http);
    return ok && tl_draw_check_end(check, err);
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

int tl_command_verify_draw(const struct tl_ctl_options *options)
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
