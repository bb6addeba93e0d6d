/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Renders the waiting page outside of the worker, for the tests of its function in a real browser.
 *
 *     page_tool page LANGUAGE NAME=VALUE...
 *         the HTML, and on the error output its policy; names are those of what the page
 *         says of a place, and brand-*
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

#include "worker/page/catalogue.h"
#include "worker/page/page.h"
#include "worker/page/page_assets.h"
#include "worker/page/page_text.h"

/* What an option names. */
struct input {
    struct tl_view view;
    struct tl_queue_settings settings;
    struct tl_brand_settings brand;
};

static bool set_state(struct tl_view *view, const char *value)
{
    for (size_t i = 0; i < TL_PAGE_STATES; i++) {
        if (strcmp(tl_page_states[i].page, value) == 0) {
            view->page = (enum tl_page_state)i;
            if (view->page == TL_PAGE_WAITING)
                view->state.status = TL_LINE_WAITING;
            return true;
        }
    }
    return false;
}

static bool set_text(struct input *input, const char *name, const char *value)
{
    struct tl_view *view = &input->view;
    struct tl_brand_settings *brand = &input->brand;
    const struct {
        const char *name;
        const char **text;
    } texts[] = {
        {"queue", &view->queue},   {"visitor", &view->visitor},       {"ticket", &view->ticket},
        {"notice", &view->notice}, {"return_url", &view->return_url},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (strcmp(texts[i].name, name) == 0) {
            *texts[i].text = value;
            return true;
        }
    }
    const struct {
        const char *name;
        char *text;
        size_t size;
    } copies[] = {
        {"target_url", input->settings.target_url, sizeof(input->settings.target_url)},
        {"brand-name", brand->name, sizeof(brand->name)},
        {"brand-accent-light", brand->accent_light, sizeof(brand->accent_light)},
        {"brand-accent-dark", brand->accent_dark, sizeof(brand->accent_dark)},
        {"brand-style", brand->style, sizeof(brand->style)},
        {"brand-logo", brand->logo, sizeof(brand->logo)},
    };
    for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++) {
        if (strcmp(copies[i].name, name) == 0)
            return snprintf(copies[i].text, copies[i].size, "%s", value) < (int)copies[i].size;
    }
    return false;
}

static bool set_number(struct input *input, const char *name, const char *value)
{
    struct tl_view *view = &input->view;
    struct tl_queue_settings *settings = &input->settings;
    int64_t number = strtoll(value, NULL, 10);
    const struct {
        const char *name;
        int64_t *number;
    } numbers[] = {
        {"opens_at_ms", &settings->opens_at_ms},       {"now_ms", &view->store_ms},
        {"expires_at_ms", &view->state.deadline_ms},   {"as_of_ms", &view->as_of_ms},
        {"waiting_ttl_ms", &settings->waiting_ttl_ms}, {"poll_after_ms", &view->poll_after_ms},
        {"claim_ttl_ms", &settings->claim_ttl_ms},     {"session_ms", &settings->session_ttl_ms},
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (strcmp(numbers[i].name, name) == 0) {
            *numbers[i].number = number;
            return true;
        }
    }
    if (strcmp(name, "ahead") == 0)
        view->state.ahead = (uint64_t)number;
    else if (strcmp(name, "from") == 0)
        view->from = (uint64_t)number;
    else if (strcmp(name, "eta_low_s") == 0)
        view->eta_low_s = (double)number;
    else if (strcmp(name, "eta_high_s") == 0)
        view->eta_high_s = (double)(number - 1); /* the page says the second that it is within */
    else if (strcmp(name, "paused") == 0)
        view->mode = number != 0 ? TL_MODE_PAUSED : TL_MODE_OPEN;
    else
        return false;
    view->has_eta = view->has_eta || strcmp(name, "eta_high_s") == 0;
    return true;
}

static int render(const struct tl_languages *languages, int argc, char **argv)
{
    struct input input = {.view = {.queue = "concert", .visitor = ""}, .settings = {.capacity = 1}};
    struct tl_text out = {0};
    struct tl_text policy = {0};
    struct tl_error err;
    for (int i = 3; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (value == NULL)
            return 2;
        *value++ = '\0';
        bool known = strcmp(argv[i], "state") == 0
                         ? set_state(&input.view, value)
                         : set_text(&input, argv[i], value) || set_number(&input, argv[i], value);
        if (!known) {
            fprintf(stderr, "page_tool: %s=%s?\n", argv[i], value);
            return 2;
        }
    }
    struct tl_brand *brand = tl_brand_load(&input.brand, languages, &err);
    if (brand == NULL) {
        fprintf(stderr, "page_tool: %s\n", err.text);
        return 1;
    }
    input.view.settings = &input.settings;
    tl_page_render(&input.view, brand, tl_languages_choose(languages, argv[2], NULL, NULL), &out);
    tl_page_policy(&input.view, brand, &policy);
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
    for (size_t i = 0; i < languages->n; i++) {
        const struct tl_catalogue *language = languages->all[i];
        const char *missing = tl_catalogue_missing(language);
        if (missing != NULL) {
            fprintf(stderr, "worker/page/languages/%s.yaml: the text \"%s\" is missing\n",
                    language->code, missing);
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
        struct tl_text text = {0};
        if (language != NULL)
            tl_write_number(number, language, &text);
        printf("%" PRIu64 " %s %s\n", number, tl_plural_name(tl_plural_of(rule, number)),
               text.data != NULL ? text.data : "-");
        tl_text_free(&text);
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
        struct tl_text text = {0};
        tl_write_range(strtoll(argv[3], NULL, 10), strtoll(argv[4], NULL, 10),
                       tl_languages_choose(languages, argv[2], NULL, NULL), &text);
        printf("%s\n", text.data);
        tl_text_free(&text);
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
