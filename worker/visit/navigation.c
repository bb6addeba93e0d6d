/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>

#include "worker/visit/navigation.h"

/* What is in the User-Agent of crawlers and of programs that make previews of links. Listed in
 * docs/integrators/waiting-page.md. ("bot" alone is in the name of a phone.) */
static const char *const crawlers[] = {
    "bot/",        "bot-",        "crawler",   "spider",   "slurp",       "facebookexternalhit",
    "BingPreview", "TelegramBot", "WhatsApp/", "PetalBot", "ia_archiver", "Google-InspectionTool",
    "Yeti/",       "Daumoa",
};

static bool is_crawler(const struct tl_request *request)
{
    const char *agent = tl_request_header(request, "User-Agent");
    for (size_t i = 0; agent != NULL && i < sizeof(crawlers) / sizeof(crawlers[0]); i++) {
        if (strcasestr(agent, crawlers[i]) != NULL)
            return true;
    }
    return false;
}

static bool is_ahead(const struct tl_request *request)
{
    static const char *const names[] = {"Sec-Purpose", "Purpose", "X-Moz"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *purpose = tl_request_header(request, names[i]);
        if (purpose != NULL &&
            (strstr(purpose, "prefetch") != NULL || strstr(purpose, "prerender") != NULL))
            return true;
    }
    return strcmp(tl_request_method(request), "HEAD") == 0;
}

/* Is the header absent, or has it this value? */
static bool fits(const struct tl_request *request, const char *name, const char *value)
{
    const char *header = tl_request_header(request, name);
    return header == NULL || strcmp(header, value) == 0;
}

enum tl_navigation tl_navigation_of(const struct tl_request *request)
{
    if (is_ahead(request))
        return TL_NAVIGATION_AHEAD;
    if (!fits(request, "Sec-Fetch-Dest", "document") ||
        !fits(request, "Sec-Fetch-Mode", "navigate") || is_crawler(request))
        return TL_NAVIGATION_EMBEDDED;
    return TL_NAVIGATION_PERSON;
}

const struct tl_catalogue *tl_language_of(const struct tl_languages *languages,
                                          const struct tl_request *request)
{
    return tl_languages_choose(languages, tl_request_query(request, "lang"),
                               tl_request_cookie(request, "tellerline_lang"),
                               tl_request_header(request, "Accept-Language"));
}
