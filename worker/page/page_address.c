/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <qrencode.h>

#include "worker/page/page_address.h"

const char *tl_address_or_null(const char *address)
{
    struct tl_origin origin;
    return address != NULL && tl_origin_parse(address, &origin) ? address : NULL;
}

bool tl_return_address_allowed(const char *address, const char *target_url, const char *allowed)
{
    struct tl_origin wanted;
    struct tl_origin known;
    if (address == NULL || !tl_origin_parse(address, &wanted))
        return false;
    if (target_url != NULL && tl_origin_parse(target_url, &known) &&
        tl_origin_same(&wanted, &known))
        return true;
    for (size_t n; *allowed != '\0'; allowed += n + strspn(allowed + n, " ")) {
        char one[TL_ADDRESS_MAX];
        n = strcspn(allowed, " ");
        snprintf(one, sizeof(one), "%.*s", (int)n, allowed);
        if (tl_origin_parse(one, &known) && tl_origin_same(&wanted, &known))
            return true;
    }
    return false;
}

bool tl_address_append(char address[TL_ADDRESS_MAX], const char *text, bool part)
{
    static const char hex[] = "0123456789ABCDEF";
    const char *encoded = part ? " \"<>^`{|}&=+%#?" : " \"<>^`{|}";
    size_t n = strlen(address);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < ' ' || c == 127 || c == '\\' || n + 3 >= TL_ADDRESS_MAX)
            return false;
        if (c < 128 && strchr(encoded, c) == NULL) {
            address[n++] = (char)c;
        } else {
            address[n++] = '%';
            address[n++] = hex[c >> 4];
            address[n++] = hex[c & 15];
        }
        address[n] = '\0';
    }
    return true;
}

/* ---- the page itself ---- */

/* Appends "?name=value" or "&name=value", encoded; nothing when there is no value. */
static void append_parameter(struct tl_text *out, bool *first, const char *name, const char *value)
{
    if (value == NULL || value[0] == '\0')
        return;
    tl_text_append(out, "%c%s=", *first ? '?' : '&', name);
    *first = false;
    for (; *value != '\0'; value++) {
        unsigned char c = (unsigned char)*value;
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     c == '-' || c == '.' || c == '_' || c == '~';
        tl_text_append(out, plain ? "%c" : "%%%02X", c);
    }
}

void tl_page_address(const struct tl_view *view, const char *action, const char *language,
                     const char *solution, struct tl_text *out)
{
    bool first = true;
    char from[24] = "";
    if (view->preview != NULL) { /* whatever a visitor would do, it shows the same page */
        tl_text_append(out, "/preview/%s", view->queue);
        append_parameter(out, &first, "state", view->preview_name);
        append_parameter(out, &first, "lang", language);
        return;
    }
    bool waiting = view->page == TL_PAGE_WAITING || view->page == TL_PAGE_DOWN;
    if (waiting && tl_view_first_position(view) > 0)
        snprintf(from, sizeof(from), "%" PRIu64, tl_view_first_position(view));
    tl_text_append(out, "/q/%s%s", view->queue, action);
    append_parameter(out, &first, "lang", language);
    append_parameter(out, &first, "ticket", view->ticket);
    append_parameter(out, &first, "invite", view->invite);
    append_parameter(out, &first, "from", from);
    append_parameter(out, &first, "place", action[0] != '\0' ? view->place_name : NULL);
    append_parameter(out, &first, "return", tl_address_or_null(view->return_url));
    append_parameter(out, &first, "solution", solution);
    append_parameter(out, &first, "cookies", view->asks_for_cookies ? "1" : NULL);
}

/* ---- QR codes ---- */

/* Appends the dark runs of each row, each relative to the end of the one before it. */
static void append_runs(const QRcode *code, struct tl_text *path)
{
    int width = code->width, at_x = 0, at_y = 0;
    tl_text_append(path, "M%d %d.5", TL_QR_QUIET, TL_QR_QUIET);
    for (int y = 0; y < width; y++) {
        const unsigned char *row = code->data + y * width;
        for (int x = 0; x < width; x++) {
            int from = x;
            while (x < width && (row[x] & 1) != 0)
                x++;
            if (x == from)
                continue;
            tl_text_append(path, "m%d %dh%d", from - at_x, y - at_y, x - from);
            at_x = x;
            at_y = y;
        }
    }
}

void tl_qr_make(const char *text, struct tl_qr *qr)
{
    *qr = (struct tl_qr){0};
    QRcode *code =
        strlen(text) <= TL_QR_TEXT_MAX ? QRcode_encodeString8bit(text, 0, QR_ECLEVEL_M) : NULL;
    if (code == NULL) {
        qr->path.failed = true;
        return;
    }
    qr->size = (unsigned)code->width + 2 * TL_QR_QUIET;
    append_runs(code, &qr->path);
    QRcode_free(code);
}

void tl_qr_free(struct tl_qr *qr)
{
    tl_text_free(&qr->path);
}

void tl_qr_svg(const struct tl_qr *qr, struct tl_text *out)
{
    if (qr->path.failed) {
        out->failed = true;
        return;
    }
    tl_text_append(out,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %u %u\" "
                   "shape-rendering=\"crispEdges\"><path fill=\"#fff\" d=\"M0 0h%uv%uH0z\"/>"
                   "<path stroke=\"#000\" d=\"%s\"/></svg>",
                   qr->size, qr->size, qr->size, qr->size, qr->path.data);
}
