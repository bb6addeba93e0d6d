/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <strings.h>

#include "common/wire/notice_text.h"

#include "ctl/calls/calls.h"

#include "worker/page/languages.h"

/* "en=TEXT": the length of the language's code; 0: no such word. */
static size_t language_of(const char *word)
{
    size_t length = strcspn(word, "=");
    return word[length] == '=' && tl_notice_language_valid(word, length) ? length : 0;
}

/* One word is the text for everyone, unless it is LANGUAGE=TEXT; several are that, and each
 * language once. */
static bool has_languages(const struct tl_ctl_options *options)
{
    return options->n_words > 2 || language_of(options->words[1]) > 0;
}

static bool texts_are_named(const struct tl_ctl_options *options)
{
    for (int i = 1; has_languages(options) && i < options->n_words; i++) {
        const char *word = options->words[i];
        size_t length = language_of(word);
        bool once = length > 0;
        for (int k = 1; once && k < i; k++)
            once = strncmp(options->words[k], word, length + 1) != 0;
        if (!once) {
            fputs("tellerline: several texts are given as en=TEXT ko=TEXT, each language once\n",
                  stderr);
            return false;
        }
    }
    return true;
}

/* Does a page of this language read a notice of that one: the same, or the one it is a kind of? */
static bool reads(const char *page, const char *code, size_t length)
{
    return strncasecmp(page, code, length) == 0 && (page[length] == '\0' || page[length] == '-');
}

/* A text in a language that no page has would never be read. */
static bool languages_are_read(const struct tl_ctl_options *options,
                               const struct tl_languages *languages)
{
    for (int i = 1; i < options->n_words; i++) {
        const char *word = options->words[i];
        size_t length = language_of(word), n = languages->n, at = 0;
        while (at < n && !reads(languages->all[at]->code, word, length))
            at++;
        if (at < n)
            continue;
        fprintf(stderr, "tellerline: no page is in \"%.*s\", so nobody would read it. Pages are in",
                (int)length, word);
        for (at = 0; at < n; at++)
            fprintf(stderr, " %s", languages->all[at]->code);
        fputs("; --config names the file of workers that have more (brand.languages). Nothing was "
              "changed\n",
              stderr);
        return false;
    }
    return true;
}

static int check_languages(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    if (!has_languages(options))
        return TL_EXIT_OK;
    const struct tl_config *config = tl_config_load(options->config, &err);
    struct tl_languages *languages =
        config != NULL ? tl_languages_new(config->brand.languages, &err) : NULL;
    int status = TL_EXIT_OK;
    if (languages == NULL)
        status = tl_ctl_fail(tl_ctl_file_status(&err), &err);
    else if (!languages_are_read(options, languages))
        status = TL_EXIT_PROBLEM;
    tl_languages_free(&languages);
    tl_config_free(&config);
    return status;
}

int tl_command_notice(const struct tl_ctl_options *options)
{
    if (!texts_are_named(options))
        return TL_EXIT_PROBLEM;
    int status = check_languages(options);
    if (status != TL_EXIT_OK)
        return status;
    json_t *arguments = json_pack("{s:s}", "queue", options->words[0]), *texts = json_object();
    for (int i = 1; has_languages(options) && i < options->n_words; i++) {
        const char *word = options->words[i];
        size_t length = language_of(word);
        (void)json_object_setn_new(texts, word, length, json_string(word + length + 1));
    }
    if (has_languages(options))
        (void)json_object_set(arguments, "texts", texts);
    else
        (void)json_object_set_new(arguments, "text", json_string(options->words[1]));
    json_decref(texts);
    return tl_ctl_run_with(options, options->command->operation, arguments);
}
