#include <stdio.h>
#include <string.h>

#include "common/config/mode.h"
#include "common/wire/notice_text.h"

#include "ctl/call.h"
#include "ctl/tell.h"

/* The call, and what it changes for visitors. */
static const struct {
    const char *call, *meaning;
} modes[TL_MODES] = {
    [TL_MODE_OPEN] = {"open", "visitors join and are admitted"},
    [TL_MODE_PAUSED] = {"pause", "visitors join, no one is admitted"},
    [TL_MODE_DRAINING] = {"drain", "no one joins, the line is served"},
    [TL_MODE_CLOSED] = {"close", "no one joins, no one is admitted"},
    [TL_MODE_SOLD_OUT] = {"sell-out", "no one joins, no one is admitted"},
    [TL_MODE_PASSTHROUGH] = {"passthrough", "everyone gets in past the line"},
};

static int change(const struct tl_ctl_options *options, enum tl_queue_mode mode)
{
    char target[TL_CTL_TARGET_MAX];
    const char *queue = options->words[0];
    json_t *answer;
    if (!tl_ctl_target(target, "queues", queue, modes[mode].call, NULL))
        return TL_EXIT_PROBLEM;
    const struct tl_ctl_ask ask = {.method = "POST", .target = target};
    int status = tl_ctl_call_once(options, &ask, &answer);
    return status == TL_EXIT_OK ? tl_ctl_tell(options, answer, "%s: %s: %s", queue,
                                              tl_mode_name(mode), modes[mode].meaning)
                                : status;
}

int tl_command_open(const struct tl_ctl_options *options)
{
    return change(options, TL_MODE_OPEN);
}

int tl_command_pause(const struct tl_ctl_options *options)
{
    return change(options, TL_MODE_PAUSED);
}

int tl_command_drain(const struct tl_ctl_options *options)
{
    return change(options, TL_MODE_DRAINING);
}

int tl_command_close(const struct tl_ctl_options *options)
{
    return change(options, TL_MODE_CLOSED);
}

int tl_command_sold_out(const struct tl_ctl_options *options)
{
    return change(options, TL_MODE_SOLD_OUT);
}

int tl_command_passthrough(const struct tl_ctl_options *options)
{
    return change(options, TL_MODE_PASSTHROUGH);
}

/* "en=TEXT": the length of the language's code; 0: no such word. */
static size_t language_of(const char *word)
{
    size_t length = strcspn(word, "=");
    return word[length] == '=' && tl_notice_language_valid(word, length) ? length : 0;
}

/* One word is the text for everyone; several are LANGUAGE=TEXT each, and each language once. */
static bool texts_are_named(const struct tl_ctl_options *options)
{
    for (int i = 1; options->n_words > 2 && i < options->n_words; i++) {
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

/* NULL: no memory. */
static json_t *notice_of(const struct tl_ctl_options *options)
{
    if (options->n_words == 2)
        return json_pack("{s:s}", "text", options->words[1]);
    json_t *texts = json_object();
    for (int i = 1; texts != NULL && i < options->n_words; i++) {
        const char *word = options->words[i];
        size_t length = language_of(word);
        char code[TL_NOTICE_LANGUAGE_MAX + 1] = "";
        memcpy(code, word, length);
        if (json_object_set_new(texts, code, json_string(word + length + 1)) != 0) {
            json_decref(texts);
            return NULL;
        }
    }
    return texts != NULL ? json_pack("{s:o}", "texts", texts) : NULL;
}

int tl_command_notice(const struct tl_ctl_options *options)
{
    char target[TL_CTL_TARGET_MAX];
    const char *queue = options->words[0];
    json_t *answer;
    if (!tl_ctl_target(target, "queues", queue, "notice", NULL) || !texts_are_named(options))
        return TL_EXIT_PROBLEM;
    json_t *body = notice_of(options);
    const struct tl_ctl_ask ask = {.method = "POST", .target = target, .body = body, .sends = true};
    int status = tl_ctl_call_once(options, &ask, &answer);
    json_decref(body);
    return status == TL_EXIT_OK
               ? tl_ctl_tell(options, answer, "%s: %s", queue,
                             options->words[1][0] != '\0' ? "notice set" : "notice removed")
               : status;
}
