/*
 * The waiting page of any view: no text of a visitor or an operator breaks out of the HTML. The
 * input: state, language, flags and a number of eight bytes, then visitor, ticket, notice and
 * addresses, each ended by a zero byte.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire/names.h"
#include "worker/page/page.h"
#include "worker/page/return_address.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 11, TEXTS = 5 };

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* The control character is in no page of ours, so each of these is markup of somebody else's. */
static const char *const hostile[] = {"\x01<\x01", "\x01>\x01", "\x01\"\x01", "\x01'\x01"};

static void render(const struct tl_page_view *view, enum tl_language language)
{
    static struct tl_brand *brand;
    if (brand == NULL)
        brand = tl_brand_load(&(struct tl_brand_settings){.name = "Hall"}, NULL);
    require(brand != NULL);
    struct tl_text out = {0};
    tl_page_render(view, brand, language, &out);
    require(!out.failed && strncmp(out.data, "<!doctype html>", 15) == 0);
    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++)
        require(strstr(out.data, hostile[i]) == NULL);
    tl_text_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < HEAD)
        return 0;
    char *texts = calloc(1, size - HEAD + TEXTS), *text[TEXTS];
    uint64_t number;
    require(texts != NULL);
    memcpy(texts, data + HEAD, size - HEAD);
    memcpy(&number, data + 3, sizeof(number));
    char *next = texts;
    for (size_t i = 0; i < TEXTS; i++) {
        text[i] = next;
        next += strlen(next) + 1;
    }
    const struct tl_page_view view = {
        .state = data[0] % TL_PAGE_STATES,
        .queue = "door",
        .visitor = tl_visitor_valid(text[0], strlen(text[0])) ? text[0] : NULL,
        .ticket = tl_visitor_valid(text[1], strlen(text[1])) ? text[1] : NULL,
        .position = number,
        .ahead = number >> 1,
        .from = number >> 2,
        .has_eta = (data[2] & 1) != 0,
        .eta_low_s = (int64_t)(number >> 34),
        .eta_high_s = (int64_t)(number >> 32),
        .paused = (data[2] & 2) != 0,
        .recovering = (data[2] & 4) != 0,
        .opens_at_ms = (int64_t)(number >> 20),
        .now_ms = (int64_t)(number >> 22),
        .as_of_ms = (int64_t)(number >> 23),
        .expires_at_ms = (int64_t)(number >> 21),
        .waiting_ttl_ms = (int64_t)(number >> 40),
        .poll_after_ms = (int64_t)(number >> 48),
        .notice = text[2],
        .target_url = tl_address_valid(text[3]) ? text[3] : NULL,
        .return_url = tl_address_valid(text[4]) ? text[4] : NULL,
    };
    render(&view, data[1] % TL_LANGUAGES);
    free(texts);
    return 0;
}
