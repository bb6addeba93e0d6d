/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Renders the waiting page outside of the worker, for the tests of its function in a real browser.
 *
 *     page_tool page LANGUAGE NAME=VALUE...
 *         the HTML, and on the error output its policy; names are those of struct tl_page_view, and
 *         brand-*
 *     page_tool asset PATH
 *         the content of a static file
 *     page_tool range LANGUAGE LOW HIGH
 *         how a range of seconds is written
 *     page_tool numbers LANGUAGE
 *         each number of the tests, its plural form, and how it is written; "-" where no catalogue
 *         has this language
 *     page_tool languages
 *         checks that every language has every text, as each build does
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/page/page.h"
#include "worker/page/page_assets.h"
#include "worker/page/page_text.h"
#include "worker/page/plural.h"

static const char *const state_names[TL_PAGE_STATES] = {
    [TL_PAGE_WAITING] = "waiting",     [TL_PAGE_PENDING] = "pending",
    [TL_PAGE_ACTIVE] = "active",       [TL_PAGE_COMPLETED] = "completed",
    [TL_PAGE_LEFT] = "left",           [TL_PAGE_EXPIRED] = "expired",
    [TL_PAGE_UNCLAIMED] = "unclaimed", [TL_PAGE_ABSENT] = "absent",
    [TL_PAGE_ENDED] = "ended",         [TL_PAGE_LOST] = "lost",
    [TL_PAGE_CLOSED] = "closed",       [TL_PAGE_INVITED] = "invited",
    [TL_PAGE_FULL] = "full",           [TL_PAGE_DOWN] = "down",
    [TL_PAGE_REMOVED] = "removed",     [TL_PAGE_BLOCKED] = "blocked",
    [TL_PAGE_OUTSIDE] = "outside",     [TL_PAGE_CHALLENGE] = "challenge",
};

static bool set_state(struct tl_page_view *view, const char *value)
{
    for (size_t i = 0; i < TL_PAGE_STATES; i++) {
        if (strcmp(state_names[i], value) == 0) {
            view->state = (enum tl_page_state)i;
            return true;
        }
    }
    return false;
}

static bool set_text(struct tl_page_view *view, struct tl_brand_settings *brand, const char *name,
                     const char *value)
{
    const struct {
        const char *name;
        const char **text;
    } texts[] = {
        {"queue", &view->queue},
        {"visitor", &view->visitor},
        {"ticket", &view->ticket},
        {"notice", &view->notice},
        {"target_url", &view->target_url},
        {"return_url", &view->return_url},
        {"brand-name", &brand->name},
        {"brand-accent-light", &brand->accent_light},
        {"brand-accent-dark", &brand->accent_dark},
        {"brand-style", &brand->style_file},
        {"brand-logo", &brand->logo_file},
        {"brand-text-en", &brand->text_en},
        {"brand-text-ko", &brand->text_ko},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (strcmp(texts[i].name, name) == 0) {
            *texts[i].text = value;
            return true;
        }
    }
    return false;
}

static bool set_number(struct tl_page_view *view, const char *name, const char *value)
{
    int64_t number = strtoll(value, NULL, 10);
    const struct {
        const char *name;
        int64_t *number;
    } numbers[] = {
        {"eta_low_s", &view->eta_low_s},         {"eta_high_s", &view->eta_high_s},
        {"opens_at_ms", &view->opens_at_ms},     {"now_ms", &view->now_ms},
        {"expires_at_ms", &view->expires_at_ms}, {"waiting_ttl_ms", &view->waiting_ttl_ms},
        {"poll_after_ms", &view->poll_after_ms}, {"claim_ttl_ms", &view->claim_ttl_ms},
        {"session_ms", &view->session_ms},       {"as_of_ms", &view->as_of_ms},
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (strcmp(numbers[i].name, name) == 0) {
            *numbers[i].number = number;
            view->has_eta = view->has_eta || strcmp(name, "eta_high_s") == 0;
            return true;
        }
    }
    if (strcmp(name, "position") == 0)
        view->position = (uint64_t)number;
    else if (strcmp(name, "ahead") == 0)
        view->ahead = (uint64_t)number;
    else if (strcmp(name, "from") == 0)
        view->from = (uint64_t)number;
    else if (strcmp(name, "paused") == 0)
        view->paused = number != 0;
    else
        return false;
    return true;
}

static int render(const struct tl_languages *languages, int argc, char **argv)
{
    struct tl_page_view view = {.queue = "concert"};
    struct tl_brand_settings settings = {.name = NULL};
    struct tl_text out = {0};
    struct tl_text policy = {0};
    struct tl_error err;
    for (int i = 3; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (value == NULL)
            return 2;
        *value++ = '\0';
        bool known = strcmp(argv[i], "state") == 0 ? set_state(&view, value)
                                                   : set_text(&view, &settings, argv[i], value) ||
                                                         set_number(&view, argv[i], value);
        if (!known) {
            fprintf(stderr, "page_tool: %s=%s?\n", argv[i], value);
            return 2;
        }
    }
    struct tl_brand *brand = tl_brand_load(&settings, languages, &err);
    if (brand == NULL) {
        fprintf(stderr, "page_tool: %s\n", err.text);
        return 1;
    }
    tl_page_render(&view, brand, tl_languages_choose(languages, argv[2], NULL, NULL), &out);
    tl_page_policy(&view, brand, &policy);
    bool written = !out.failed && !policy.failed &&
                   fwrite(out.data, 1, out.length, stdout) == out.length &&
                   fprintf(stderr, "%s", policy.data) > 0;
    tl_text_free(&out);
    tl_text_free(&policy);
    tl_brand_free(&brand);
    return written ? 0 : 1;
}

static int check_languages(const struct tl_languages *languages)
{
    int status = 0;
    for (size_t i = 0; i < tl_languages_count(languages); i++) {
        const struct tl_catalogue *language = tl_languages_get(languages, i);
        const char *missing = tl_catalogue_missing(language);
        if (missing != NULL) {
            fprintf(stderr, "worker/page/languages/%s.yaml: the text \"%s\" is missing\n",
                    tl_catalogue_code(language), missing);
            status = 1;
        }
    }
    return status;
}

static int print_numbers(const struct tl_languages *languages, const char *code)
{
    static const uint64_t large[] = {999,    1000,    1001,    9999,   10000,
                                     123456, 1000000, 1000001, 2000000};
    const struct tl_plural_rule *rule = tl_plural_rule_find(code);
    const struct tl_catalogue *language = tl_languages_find(languages, code);
    for (size_t i = 0; rule != NULL && i <= 200 + sizeof(large) / sizeof(large[0]); i++) {
        uint64_t number = i <= 200 ? i : large[i - 201];
        char text[TL_PAGE_NUMBER_MAX] = "-";
        if (language != NULL)
            tl_write_number(number, language, text, sizeof(text));
        printf("%" PRIu64 " %s %s\n", number, tl_plural_name(tl_plural_of(rule, number)), text);
    }
    return rule != NULL ? 0 : 2;
}

static int run(const struct tl_languages *languages, int argc, char **argv)
{
    if (argc >= 3 && strcmp(argv[1], "page") == 0)
        return render(languages, argc, argv);
    if (argc == 3 && strcmp(argv[1], "numbers") == 0)
        return print_numbers(languages, argv[2]);
    if (argc == 2 && strcmp(argv[1], "languages") == 0)
        return check_languages(languages);
    if (argc == 3 && strcmp(argv[1], "asset") == 0) {
        const struct tl_asset *asset = tl_page_asset(argv[2]);
        return asset != NULL && fwrite(asset->bytes, 1, asset->length, stdout) == asset->length ? 0
                                                                                                : 1;
    }
    if (argc == 5 && strcmp(argv[1], "range") == 0) {
        char text[TL_PAGE_TEXT_MAX];
        tl_write_range(strtoll(argv[3], NULL, 10), strtoll(argv[4], NULL, 10),
                       tl_languages_choose(languages, argv[2], NULL, NULL), text, sizeof(text));
        printf("%s\n", text);
        return 0;
    }
    fprintf(stderr, "page_tool: see the head of its source for its use\n");
    return 2;
}

int main(int argc, char **argv)
{
    struct tl_error err;
    struct tl_languages *languages = tl_languages_new(NULL, &err);
    if (languages == NULL) {
        fprintf(stderr, "page_tool: worker/page/languages: %s\n", err.text);
        return 1;
    }
    int status = run(languages, argc, argv);
    tl_languages_free(&languages);
    return status;
}
