/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>
#define ZLIB_CONST /* it does not change its input */
#include <zlib.h>

#include "worker/page/page_source.h"

#define BYTE_ORDER_MARK "\xef\xbb\xbf"

/* CR LF and CR become LF, as in the input of an HTML parser. */
static void unify_lines(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        if (*from == '\r' && from[1] == '\n')
            continue;
        *to++ = (char)(*from == '\r' ? '\n' : *from);
    }
    *to = '\0';
}

static void make_hash(const char *text, char hash[TL_SOURCE_HASH_MAX])
{
    unsigned char digest[crypto_hash_sha256_BYTES];
    char base64[sodium_base64_ENCODED_LEN(sizeof(digest), sodium_base64_VARIANT_ORIGINAL)];
    crypto_hash_sha256(digest, (const unsigned char *)text, strlen(text));
    sodium_bin2base64(base64, sizeof(base64), digest, sizeof(digest),
                      sodium_base64_VARIANT_ORIGINAL);
    snprintf(hash, TL_SOURCE_HASH_MAX, "'sha256-%s'", base64);
}

void tl_page_source_deinit(struct tl_page_source *source)
{
    free(source->text);
    free(source->deflated);
    *source = (struct tl_page_source){0};
}

static bool compress_source(struct tl_page_source *source)
{
    z_stream stream = {.next_in = (const Bytef *)source->text, .avail_in = (uInt)source->length};
    if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, MAX_MEM_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    size_t size = deflateBound(&stream, (uLong)source->length) + 16; /* and a flush */
    source->deflated = malloc(size);
    if (source->deflated != NULL) {
        stream.next_out = source->deflated;
        stream.avail_out = (uInt)size;
        (void)deflate(&stream, Z_FULL_FLUSH); /* writes all of it: there is room */
        source->deflated_length = size - stream.avail_out;
    }
    (void)deflateEnd(&stream);
    source->crc = crc32(crc32(0, NULL, 0), (const Bytef *)source->text, (uInt)source->length);
    return source->deflated != NULL;
}

bool tl_page_source_init(struct tl_page_source *source, enum tl_source_kind kind, const char *name,
                         const void *bytes, size_t length, struct tl_error *err)
{
    const char *end_tag = kind == TL_SOURCE_SCRIPT ? "</script" : "</style";
    const char *what = NULL;
    char *text = malloc(length + 1);
    if (text == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "%s: out of memory", name);
    memcpy(text, bytes, length);
    text[length] = '\0';
    if (strlen(text) != length)
        what = "has a zero byte";
    else if (!tl_utf8_valid(text))
        what = "is not UTF-8";
    else if (strcasestr(text, end_tag) != NULL)
        what = kind == TL_SOURCE_SCRIPT ? "holds </script" : "holds </style, which would end it";
    else if (kind == TL_SOURCE_SCRIPT && strstr(text, "<!--") != NULL)
        what = "holds <!--";
    if (what != NULL) {
        free(text);
        return tl_error_set(err, TL_ERR_INVALID, "%s: %s", name, what);
    }
    if (strncmp(text, BYTE_ORDER_MARK, 3) == 0)
        memmove(text, text + 3, strlen(text + 3) + 1);
    unify_lines(text);
    source->text = text;
    source->length = strlen(text);
    make_hash(text, source->hash);
    if (compress_source(source))
        return true;
    tl_page_source_deinit(source);
    return tl_error_set(err, TL_ERR_NOMEM, "%s: out of memory", name);
}

/* ---- a page with its sources ---- */

/* Raw deflate with a window of 8 KiB and little memory: what changes from page to page is short. */
enum { LEVEL = 4, WINDOW_BITS = -13, MEMORY_LEVEL = 7 };
/* The large ones of a page, as they stand in it. */
static const enum tl_page_sources large[] = {TL_SOURCE_LOOK, TL_SOURCE_OWN, TL_SOURCE_PAGE,
                                             TL_SOURCE_CHALLENGE};
enum { HEAD_BYTES = 10, TAIL_BYTES = 8, FLUSH_BYTES = 16 };

struct output {
    z_stream stream;
    unsigned char *bytes;
    size_t length, size;
    uLong crc;
};

/* Compresses text that changes. Nothing after it refers to it, so that a source may follow. */
static bool put_text(struct output *out, const char *text, size_t length, bool last)
{
    out->stream.next_in = (const Bytef *)text;
    out->stream.avail_in = (uInt)length;
    out->stream.next_out = out->bytes + out->length;
    out->stream.avail_out = (uInt)(out->size - out->length);
    int result = deflate(&out->stream, last ? Z_FINISH : Z_FULL_FLUSH);
    out->length = out->size - out->stream.avail_out;
    out->crc = crc32(out->crc, (const Bytef *)text, (uInt)length);
    return result == (last ? Z_STREAM_END : Z_OK) && out->stream.avail_in == 0 &&
           out->stream.avail_out > 0;
}

static void put_source(struct output *out, const struct tl_page_source *source)
{
    memcpy(out->bytes + out->length, source->deflated, source->deflated_length);
    out->length += source->deflated_length;
    out->crc = crc32_combine(out->crc, source->crc, (z_off_t)source->length);
}

static void put_number(struct output *out, uLong number)
{
    for (int shift = 0; shift < 32; shift += 8)
        out->bytes[out->length++] = (unsigned char)(number >> shift & 0xFF);
}

static bool put_page(struct output *out, const struct tl_text *html,
                     const struct tl_page_source sources[TL_PAGE_SOURCES])
{
    static const unsigned char head[HEAD_BYTES] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255};
    const char *at = html->data;
    bool ok = true;
    memcpy(out->bytes, head, sizeof(head));
    out->length = sizeof(head);
    for (size_t i = 0; ok && i < sizeof(large) / sizeof(large[0]); i++) {
        const struct tl_page_source *source = &sources[large[i]];
        const char *found = source->text == NULL ? NULL : strstr(at, source->text);
        if (found == NULL)
            continue;
        ok = put_text(out, at, (size_t)(found - at), false);
        put_source(out, source);
        at = found + source->length;
    }
    ok = ok && put_text(out, at, (size_t)(html->data + html->length - at), true);
    if (ok) {
        put_number(out, out->crc);
        put_number(out, (uLong)html->length);
    }
    return ok;
}

bool tl_page_gzip(const struct tl_text *html, const struct tl_page_source sources[TL_PAGE_SOURCES],
                  unsigned char **bytes, size_t *length)
{
    struct output out = {.crc = crc32(0, NULL, 0)};
    *bytes = NULL;
    if (html->length > UINT32_MAX / 2 || deflateInit2(&out.stream, LEVEL, Z_DEFLATED, WINDOW_BITS,
                                                      MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    out.size = deflateBound(&out.stream, (uLong)html->length) + HEAD_BYTES + TAIL_BYTES;
    for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++)
        out.size += sources[large[i]].deflated_length + FLUSH_BYTES;
    out.bytes = malloc(out.size);
    bool ok = out.bytes != NULL && put_page(&out, html, sources);
    (void)deflateEnd(&out.stream);
    if (!ok) {
        free(out.bytes);
        return false;
    }
    *bytes = out.bytes;
    *length = out.length;
    return true;
}
