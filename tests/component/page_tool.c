/*
 * Renders the waiting page outside of the worker, for the tests of its script in a real browser.
 *
 *     page_tool page LANGUAGE NAME=VALUE...
 *         the HTML; names are those of struct tl_page_view, and brand-*
 *     page_tool asset PATH
 *         the content of a static file
 *     page_tool asset-paths
 *         the paths of style, script and icon, one in each line
 *     page_tool range LANGUAGE LOW HIGH
 *         how a range of seconds is written
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/page/page.h"
#include "worker/page/page_assets.h"
#include "worker/page/page_text.h"

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
        {"brand-text-en", &brand->text[TL_LANGUAGE_EN]},
        {"brand-text-ko", &brand->text[TL_LANGUAGE_KO]},
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
        {"poll_after_ms", &view->poll_after_ms},
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

static int render(int argc, char **argv)
{
    struct tl_page_view view = {.queue = "concert"};
    struct tl_brand_settings settings = {.name = NULL};
    struct tl_text out = {0};
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
    struct tl_brand *brand = tl_brand_load(&settings, &err);
    if (brand == NULL) {
        fprintf(stderr, "page_tool: %s\n", err.text);
        return 1;
    }
    tl_page_render(&view, brand, tl_language_choose(argv[2], NULL, NULL), &out);
    const struct tl_asset *colours = tl_brand_look(brand)->colours;
    if (colours != NULL)
        fprintf(stderr, "%s\n%.*s", colours->path, (int)colours->length,
                (const char *)colours->bytes);
    bool written = !out.failed && fwrite(out.data, 1, out.length, stdout) == out.length;
    tl_text_free(&out);
    tl_brand_free(&brand);
    return written ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc >= 3 && strcmp(argv[1], "page") == 0)
        return render(argc, argv);
    if (argc == 3 && strcmp(argv[1], "asset") == 0) {
        const struct tl_asset *asset = tl_page_asset(argv[2]);
        return asset != NULL && fwrite(asset->bytes, 1, asset->length, stdout) == asset->length ? 0
                                                                                                : 1;
    }
    if (argc == 2 && strcmp(argv[1], "asset-paths") == 0) {
        printf("%s\n%s\n%s\n", tl_page_style.path, tl_page_script.path, tl_page_icon.path);
        return 0;
    }
    if (argc == 5 && strcmp(argv[1], "range") == 0) {
        char text[TL_PAGE_TEXT_MAX];
        tl_write_range(strtoll(argv[3], NULL, 10), strtoll(argv[4], NULL, 10),
                       tl_language_choose(argv[2], NULL, NULL), text, sizeof(text));
        printf("%s\n", text);
        return 0;
    }
    fprintf(stderr, "page_tool: see the head of its source for its use\n");
    return 2;
}
