/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generated/worker_languages.h"

#include "worker/page/languages.h"
#include "worker/page/page_assets.h"

#include "common/base/file.h"
#include "common/base/log.h"

#define WEIGHT_ONE 1000 /* weights in thousandths, the precision of RFC 9110 */
#define RANGES_MAX 16   /* of a header: browsers send a few, and what follows is not read */

/* ---- loading ---- */

#define FILE_ROW(file_name, symbol, extension, hash)                                               \
    {.name = (file_name), .bytes = tl_web_##symbol, .length = sizeof(tl_web_##symbol)},
static const struct tl_page_file files[] = {TL_WEB_FILES(FILE_ROW)};

struct tl_catalogue *tl_languages_find(const struct tl_languages *languages, const char *code)
{
    for (size_t i = 0; i < languages->n; i++) {
        if (strcmp(languages->all[i]->code, code) == 0)
            return languages->all[i];
    }
    return NULL;
}

/* Adds an empty catalogue; the first is the source. NULL on failure. */
static struct tl_catalogue *add(struct tl_languages *languages, struct tl_error *err)
{
    struct tl_catalogue **all =
        realloc(languages->all, (languages->n + 1) * sizeof(struct tl_catalogue *));
    if (all == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the languages of the pages");
        return NULL;
    }
    languages->all = all;
    all[languages->n] = tl_catalogue_new(languages->n > 0 ? all[0] : NULL, err);
    return all[languages->n] != NULL ? all[languages->n++] : NULL;
}

/* Reads a file into the catalogue of its language, which is made where there is none. */
static bool take_file(struct tl_languages *languages, const char *name, const void *bytes,
                      size_t length, struct tl_error *err)
{
    char code[TL_LANGUAGE_CODE_MAX + 1];
    if (!tl_catalogue_read_code(name, bytes, length, code, err))
        return false;
    struct tl_catalogue *catalogue = tl_languages_find(languages, code);
    if (catalogue == NULL)
        catalogue = add(languages, err);
    return catalogue != NULL && tl_catalogue_read(catalogue, name, bytes, length, err);
}

static bool load(struct tl_languages *languages, struct tl_error *err)
{
    bool ok = take_file(languages, "en.yaml", tl_web_en_yaml, sizeof(tl_web_en_yaml), err);
    for (size_t i = 0; ok && i < sizeof(files) / sizeof(files[0]); i++)
        ok = files[i].bytes == tl_web_en_yaml ||
             take_file(languages, files[i].name, files[i].bytes, files[i].length, err);
    return ok;
}

/* ---- the operator's files ---- */

static bool read_own_file(struct tl_languages *languages, const char *folder, const char *name,
                          struct tl_error *err)
{
    char path[PATH_MAX];
    size_t length = 0;
    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
        return tl_error_set(err, TL_ERR_INVALID, "brand.languages: the path of %s is too long",
                            name);
    char *bytes = tl_file_read("", path, TL_CATALOGUE_BYTES_MAX, &length, err);
    if (bytes == NULL)
        return tl_error_prefix(err, "brand.languages");
    bool ok = take_file(languages, path, bytes, length, err);
    free(bytes);
    return ok;
}

static int is_catalogue(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return entry->d_name[0] != '.' && length > 5 &&
           strcmp(entry->d_name + length - 5, ".yaml") == 0;
}

static bool load_folder(struct tl_languages *languages, const char *folder, struct tl_error *err)
{
    struct dirent **entries;
    int n = scandir(folder, &entries, is_catalogue, alphasort);
    if (n < 0)
        return tl_error_set(err, TL_ERR_SYSTEM, "brand.languages: cannot read the folder %s: %s",
                            folder, strerror(errno));
    bool ok = true;
    for (int i = 0; i < n; i++) {
        ok = ok && read_own_file(languages, folder, entries[i]->d_name, err);
        free(entries[i]);
    }
    free(entries);
    if (n == 0)
        return tl_error_set(err, TL_ERR_INVALID, "brand.languages: no .yaml file is in %s", folder);
    return ok;
}

/* What a language lacks stands on its pages in English. The build refuses that of our files. */
static void report_missing(const struct tl_languages *languages)
{
    for (size_t i = 0; i < languages->n; i++) {
        const struct tl_catalogue *language = languages->all[i];
        const char *missing = tl_catalogue_missing(language);
        if (missing != NULL)
            tl_log(TL_LOG_WARN, NULL,
                   "the page's texts in %s (%s) lack \"%s\": visitors read it in English",
                   language->name, language->code, missing);
    }
}

struct tl_languages *tl_languages_new(const char *folder, struct tl_error *err)
{
    struct tl_languages *languages = calloc(1, sizeof(*languages));
    if (languages == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the languages of the pages");
        return NULL;
    }
    bool has_folder = folder != NULL && folder[0] != '\0';
    if (!load(languages, err) || (has_folder && !load_folder(languages, folder, err)))
        tl_languages_free(&languages);
    else
        report_missing(languages);
    return languages;
}

void tl_languages_free(struct tl_languages **languages)
{
    if (*languages == NULL)
        return;
    for (size_t i = (*languages)->n; i > 0; i--) /* the source last */
        tl_catalogue_free(&(*languages)->all[i - 1]);
    free((*languages)->all);
    free(*languages);
    *languages = NULL;
}

/* ---- choosing ---- */

/* The language that a range of length bytes asks for: the one that more of it names, so that
 * "zh-TW" is not just "zh". NULL: none. */
static const struct tl_catalogue *asked_for(const struct tl_languages *languages, const char *range,
                                            size_t length)
{
    const struct tl_catalogue *best = NULL;
    size_t best_match = 0;
    for (size_t i = 0; i < languages->n; i++) {
        size_t match = tl_catalogue_match(languages->all[i], range, length);
        if (match > best_match) {
            best = languages->all[i];
            best_match = match;
        }
    }
    return best;
}

/* "q=0.8" to 800; -1 when it is not a valid weight. */
static int parse_weight(const char *text, size_t length)
{
    int weight = 0;
    int worth = WEIGHT_ONE; /* of the next digit */
    if (length < 3 || length > 7 || (text[0] != 'q' && text[0] != 'Q') || text[1] != '=' ||
        (length > 3 && text[3] != '.'))
        return -1;
    for (size_t i = 2; i < length; i += i == 2 ? 2 : 1, worth /= 10) { /* not the point */
        if (text[i] < '0' || text[i] > '9')
            return -1;
        weight += (text[i] - '0') * worth;
    }
    return weight <= WEIGHT_ONE ? weight : -1;
}

static void trim(const char **text, size_t *length)
{
    while (*length > 0 && (**text == ' ' || **text == '\t')) {
        (*text)++;
        (*length)--;
    }
    while (*length > 0 && ((*text)[*length - 1] == ' ' || (*text)[*length - 1] == '\t'))
        (*length)--;
}

/* One member of the list, "ko-KR;q=0.9". Returns its weight, or 0 when it names none of our
 * languages. */
static int weigh(const struct tl_languages *languages, const char *member, size_t length,
                 const struct tl_catalogue **language)
{
    int weight = WEIGHT_ONE;
    const char *semicolon = memchr(member, ';', length);
    if (semicolon != NULL) {
        const char *text = semicolon + 1;
        size_t n = length - (size_t)(text - member);
        trim(&text, &n);
        weight = parse_weight(text, n);
        length = (size_t)(semicolon - member);
    }
    trim(&member, &length);
    *language = asked_for(languages, member, length);
    return *language != NULL && weight > 0 ? weight : 0;
}

const struct tl_catalogue *tl_languages_choose(const struct tl_languages *languages,
                                               const char *query, const char *cookie,
                                               const char *accept)
{
    const char *const chosen[] = {query, cookie};
    for (size_t i = 0; i < 2; i++) {
        const struct tl_catalogue *language =
            chosen[i] != NULL ? asked_for(languages, chosen[i], strlen(chosen[i])) : NULL;
        if (language != NULL)
            return language;
    }
    const struct tl_catalogue *best = languages->all[0];
    int best_weight = 0;
    for (size_t i = 0; i < RANGES_MAX && accept != NULL && *accept != '\0'; i++) {
        size_t length = strcspn(accept, ",");
        const struct tl_catalogue *language;
        int weight = weigh(languages, accept, length, &language);
        if (weight > best_weight) {
            best = language;
            best_weight = weight;
        }
        accept += length;
        if (*accept == ',')
            accept++;
    }
    return best;
}
