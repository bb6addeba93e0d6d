/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <qrencode.h>

#include "worker/page/qr.h"

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
