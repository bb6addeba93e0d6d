/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "generated/worker_web.h"

#include "worker/page/page_assets.h"

#define ASSET(name, extension, content_type, symbol, hash)                                         \
    {                                                                                              \
        .path = TL_ASSET_PREFIX name "-" hash "." extension, .type = (content_type),               \
        .etag = "\"" hash "\"", .bytes = tl_web_##symbol, .length = sizeof(tl_web_##symbol),       \
        .gzip = tl_web_##symbol##_gzip, .gzip_length = sizeof(tl_web_##symbol##_gzip)              \
    }

const struct tl_asset tl_page_challenge = ASSET("challenge", "js", "text/javascript; charset=utf-8",
                                                challenge_js, TL_WEB_CHALLENGE_JS_HASH);
const struct tl_asset tl_page_icon =
    ASSET("favicon", "svg", "image/svg+xml", favicon_svg, TL_WEB_FAVICON_SVG_HASH);

const struct tl_asset tl_page_embed = {.path = TL_ASSET_PREFIX "tellerline.js",
                                       .type = "text/javascript; charset=utf-8",
                                       .etag = "\"" TL_WEB_TELLERLINE_JS_HASH "\"",
                                       .bytes = tl_web_tellerline_js,
                                       .length = sizeof(tl_web_tellerline_js),
                                       .gzip = tl_web_tellerline_js_gzip,
                                       .gzip_length = sizeof(tl_web_tellerline_js_gzip)};

const struct tl_asset tl_page_openapi = {.path = "/openapi.yaml",
                                         .type = "application/yaml; charset=utf-8",
                                         .etag = "\"" TL_WEB_OPENAPI_YAML_HASH "\"",
                                         .bytes = tl_web_openapi_yaml,
                                         .length = sizeof(tl_web_openapi_yaml),
                                         .gzip = tl_web_openapi_yaml_gzip,
                                         .gzip_length = sizeof(tl_web_openapi_yaml_gzip)};

const struct tl_asset *tl_page_asset(const char *path)
{
    static const struct tl_asset *const all[] = {&tl_page_challenge, &tl_page_icon};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (strcmp(path, all[i]->path) == 0)
            return all[i];
    }
    return NULL;
}

const struct tl_page_file tl_page_html = {tl_web_page_html, sizeof(tl_web_page_html)};
const struct tl_page_file tl_page_style = {tl_web_page_css, sizeof(tl_web_page_css)};
const struct tl_page_file tl_page_script = {tl_web_page_js, sizeof(tl_web_page_js)};
const struct tl_page_file tl_page_attention = {tl_web_attention_js, sizeof(tl_web_attention_js)};
const struct tl_page_file tl_page_refresh = {tl_web_refresh_js, sizeof(tl_web_refresh_js)};
