#include <string.h>

#include "generated/worker_web.h"

#include "worker/page/page_assets.h"

#define ASSET(name, extension, content_type, symbol, hash)                                         \
    {                                                                                              \
        .path = TL_ASSET_PREFIX name "-" hash "." extension, .type = (content_type),               \
        .etag = "\"" hash "\"", .bytes = tl_web_##symbol, .length = sizeof(tl_web_##symbol),       \
        .gzip = tl_web_##symbol##_gzip, .gzip_length = sizeof(tl_web_##symbol##_gzip)              \
    }

const struct tl_asset tl_page_style =
    ASSET("page", "css", "text/css; charset=utf-8", page_css, TL_WEB_PAGE_CSS_HASH);
const struct tl_asset tl_page_script =
    ASSET("page", "js", "text/javascript; charset=utf-8", page_js, TL_WEB_PAGE_JS_HASH);
const struct tl_asset tl_page_challenge = ASSET("challenge", "js", "text/javascript; charset=utf-8",
                                                challenge_js, TL_WEB_CHALLENGE_JS_HASH);
const struct tl_asset tl_page_icon =
    ASSET("favicon", "svg", "image/svg+xml", favicon_svg, TL_WEB_FAVICON_SVG_HASH);

const struct tl_asset tl_page_openapi = {.path = "/openapi.yaml",
                                         .type = "application/yaml; charset=utf-8",
                                         .etag = "\"" TL_WEB_OPENAPI_YAML_HASH "\"",
                                         .bytes = tl_web_openapi_yaml,
                                         .length = sizeof(tl_web_openapi_yaml),
                                         .gzip = tl_web_openapi_yaml_gzip,
                                         .gzip_length = sizeof(tl_web_openapi_yaml_gzip)};

const struct tl_asset *tl_page_asset(const char *path)
{
    static const struct tl_asset *const all[] = {&tl_page_style, &tl_page_script,
                                                 &tl_page_challenge, &tl_page_icon};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(path, all[i]->path) == 0)
            return all[i];
    }
    return NULL;
}

const void *tl_page_html(size_t *length)
{
    *length = sizeof(tl_web_page_html);
    return tl_web_page_html;
}
