/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/auth/hex.h"
#include "common/base/clock.h"
#include "common/base/origin.h"

#include "ctl/calls/draw_page.h"
#include "ctl/shell/command.h"
#include "ctl/shell/json.h"
#include "ctl/shell/progress.h"
#include "lab/http.h"

enum {
    TARGET_MAX = 1024,
    TRIES = 120,   /* of a page that the server refuses because it is busy... */
    PAUSE_MS = 500 /* ...after so long */
};

/* ---- from the address ---- */

/* A page on its way. */
struct fetch {
    bool done;
    unsigned status; /* 0: there is no answer */
    json_t *page;    /* owned; of a good answer */
    char problem[256];
};

static void fetched(void *context, unsigned status, const char *body, size_t length)
{
    struct fetch *fetch = context;
    fetch->done = true;
    fetch->status = status;
    json_t *answer = status != 0 ? json_loadb(body, length, 0, NULL) : NULL;
    const char *detail = tl_json_text(answer, "detail");
    if (status == 0)
        snprintf(fetch->problem, sizeof(fetch->problem), "%.*s", (int)length, body);
    else if (status != 200)
        snprintf(fetch->problem, sizeof(fetch->problem), "the server answered %u %s", status,
                 detail[0] != '\0' ? detail : tl_json_text(answer, "title"));
    if (status == 200)
        fetch->page = answer;
    else
        json_decref(answer);
}

/* Asks for a page until the server has time for it. *page is owned. */
static bool fetch_page(struct tl_http *http, const char *target, json_t **page,
                       struct tl_error *err)
{
    for (int i = 0; i < TRIES; i++) {
        struct fetch fetch = {0};
        const struct tl_http_call call = {.path = target, .context = &fetch, .done = fetched};
        if (tl_http_start(http, &call) == NULL)
            return tl_error_set(err, TL_ERR_NOMEM, "no memory for a request");
        while (!fetch.done)
            if (!tl_http_turn(http, PAUSE_MS, err))
                return false;
        *page = fetch.page;
        if (fetch.page != NULL)
            return true;
        if (fetch.status == 200)
            return tl_error_set(err, TL_ERR_INVALID, "the answer of the server is no page");
        if (fetch.status != 429 && fetch.status != 503)
            return tl_error_set(err, fetch.status == 0 ? TL_ERR_CONNECT : TL_ERR_INVALID, "%s",
                                fetch.problem);
        tl_error_set(err, TL_ERR_CONNECT, "%s", fetch.problem);
        if (!tl_http_turn(http, PAUSE_MS, err)) /* nothing is under way: it waits */
            return false;
    }
    return false;
}

/* All pages of the list, by the address of the first one. */
static bool fetch_list(struct tl_http *http, const char *path, struct tl_draw_copy *copy,
                       struct tl_error *err)
{
    struct tl_progress progress;
    uint64_t before;
    bool ok = true;
    tl_progress_begin(&progress, "list", tl_clock_ms());
    do {
        char target[TARGET_MAX + 64];
        json_t *page = NULL;
        before = copy->written;
        snprintf(target, sizeof(target), "%s?from=%" PRIu64 "&limit=%d", path, before + 1,
                 TL_DRAW_PAGE_IDS);
        ok = fetch_page(http, target, &page, err) && tl_draw_copy_add(copy, page, err);
        json_decref(page);
        tl_progress_at(&progress, copy->written, copy->head.drawn, tl_clock_ms());
    } while (ok && copy->written > before && copy->written < copy->head.drawn);
    tl_progress_end(&progress);
    return ok;
}

static bool is_address(const char *word)
{
    return strncmp(word, "http://", 7) == 0 || strncmp(word, "https://", 8) == 0;
}

/* The list at an address, as a temporary file of text. NULL with err. */
static FILE *open_address(const char *address, struct tl_error *err)
{
    const char *path = strchr(strstr(address, "//") + 2, '/');
    char base[TL_ADDRESS_MAX];
    int length = path != NULL ? (int)(path - address) : 0;
    if (length == 0 || (size_t)length >= sizeof(base) || strlen(path) > TARGET_MAX ||
        path[strcspn(path, "?# ")] != '\0') {
        tl_error_set(err, TL_ERR_SYSTEM,
                     "expected an address such as https://wait.example/v1/queues/QUEUE/draw");
        return NULL;
    }
    snprintf(base, sizeof(base), "%.*s", length, address);
    struct tl_http *http = tl_http_new(base, -1, err);
    struct tl_draw_copy copy = {.out = http != NULL ? tmpfile() : NULL};
    if (http != NULL && copy.out == NULL)
        tl_error_set(err, TL_ERR_SYSTEM, "no temporary file: %s", strerror(errno));
    bool ok = copy.out != NULL && fetch_list(http, path, &copy, err);
    if (ok && fflush(copy.out) != 0)
        ok = tl_error_set(err, TL_ERR_SYSTEM, "the temporary file: %s", strerror(errno));
    if (ok)
        rewind(copy.out);
    else if (copy.out != NULL)
        fclose(copy.out);
    tl_http_free(&http);
    return ok ? copy.out : NULL;
}

/* ---- from a file ---- */

static void close_file(FILE *file)
{
    if (file != NULL && file != stdin)
        fclose(file);
}

/* The list as text. NULL with err. */
static FILE *open_file(const char *path, struct tl_error *err)
{
    FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    if (in == NULL) {
        tl_error_set(err, TL_ERR_SYSTEM, "%s: %s", path, strerror(errno));
        return NULL;
    }
    FILE *list = tl_draw_copy_open(in, err);
    if (list != in)
        close_file(in);
    return list;
}

/* ---- the command ---- */

static bool parse_word(const struct tl_ctl_options *options, int i, const char *what,
                       unsigned char *bytes, size_t n, struct tl_error *err)
{
    const char *word = options->words[i];
    return tl_hex_parse(word, strlen(word), bytes, n) ||
           tl_error_set(err, TL_ERR_INVALID, "%s is %zu hex digits", what, 2 * n);
}

/* Tells what was found. Returns the exit status. */
static int report(const struct tl_draw_check *check)
{
    struct tl_error err = {0};
    printf("%s: the order of %" PRIu64 " visitors is that of the seed%s\n", check->head.queue,
           check->head.drawn,
           check->hash != NULL ? ", which has the published hash"
                               : "; compare its hash with the one published before the draw");
    if (check->id != NULL && check->rank == 0) {
        tl_error_set(&err, TL_ERR_INVALID, "this draw id is not in the list");
        return tl_ctl_fail(TL_EXIT_PROBLEM, &err);
    }
    if (check->id != NULL)
        printf("  this draw id stands at %" PRIu64 "\n", check->rank);
    return TL_EXIT_OK;
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
    FILE *list = is_address(source) ? open_address(source, &err) : open_file(source, &err);
    if (list == NULL)
        return tl_ctl_fail(err.kind == TL_ERR_INVALID ? TL_EXIT_PROBLEM : TL_EXIT_FAILED, &err);
    bool ok = tl_draw_list_verify(list, &check, &err);
    close_file(list);
    return ok ? report(&check) : tl_ctl_fail(tl_ctl_file_status(&err), &err);
}
