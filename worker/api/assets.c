/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "worker/api/assets.h"
#include "worker/api/context.h"
#include "worker/page/page_assets.h"

#define SHORT_CACHE_CONTROL "public, max-age=300"

static void send_asset(struct tl_request *request, const struct tl_asset *asset, const char *cache)
{
    const char *encodings = tl_request_header(request, "Accept-Encoding");
    const char *known = tl_request_header(request, "If-None-Match");
    bool gzip = asset->gzip != NULL && encodings != NULL && strstr(encodings, "gzip") != NULL;
    struct tl_answer answer = {.status = 200,
                               .type = asset->type,
                               .cache = cache,
                               .body = gzip ? asset->gzip : asset->bytes,
                               .length = gzip ? asset->gzip_length : asset->length};
    if (known != NULL && strstr(known, asset->etag) != NULL)
        answer = (struct tl_answer){.status = 304, .cache = cache};
    tl_answer_header(&answer, "ETag", asset->etag);
    tl_answer_header(&answer, "Vary", "Accept-Encoding");
    tl_answer_header(&answer, "X-Content-Type-Options", "nosniff");
    tl_answer_header(&answer, "Content-Security-Policy",
                     strncmp(asset->type, "text/javascript", strlen("text/javascript")) == 0
                         ? TL_ASSET_SCRIPT_POLICY
                         : TL_ASSET_POLICY);
    /* For pages of other origins, also those that load it with an integrity hash. */
    if (asset == &tl_page_embed) {
        tl_answer_header(&answer, "Access-Control-Allow-Origin", "*");
        tl_answer_header(&answer, "Cross-Origin-Resource-Policy", "cross-origin");
    }
    if (gzip && answer.status == 200)
        tl_answer_header(&answer, "Content-Encoding", "gzip");
    tl_request_answer(request, &answer);
}

bool tl_handle_asset(void *context, struct tl_request *request, const char *queue,
                     struct tl_refusal *refusal)
{
    (void)queue;
    (void)refusal;
    const struct tl_api *api = context;
    const char *path = tl_request_path(request);
    if (strcmp(path, tl_page_embed.path) == 0) {
        send_asset(request, &tl_page_embed, SHORT_CACHE_CONTROL);
        return true;
    }
    const struct tl_asset *asset = tl_page_asset(path);
    if (asset == NULL)
        asset = tl_brand_asset(api->brand, path);
    if (asset == NULL)
        asset = tl_event_looks_asset(api->events, path);
    if (asset != NULL) {
        send_asset(request, asset, TL_ASSET_CACHE_CONTROL);
        return true;
    }
    static const char nothing[] = "not found\n";
    tl_request_answer(request, &(struct tl_answer){.status = 404,
                                                   .type = "text/plain; charset=utf-8",
                                                   .body = nothing,
                                                   .length = sizeof(nothing) - 1});
    return true;
}

bool tl_handle_openapi(void *context, struct tl_request *request, const char *queue,
                       struct tl_refusal *refusal)
{
    (void)context;
    (void)queue;
    (void)refusal;
    send_asset(request, &tl_page_openapi, SHORT_CACHE_CONTROL);
    return true;
}
