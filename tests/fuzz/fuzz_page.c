/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The waiting page of any view: no text of a visitor or an operator breaks out of the HTML. The
 * input: state, language, flags and a number of eight bytes, then visitor, ticket, notice,
 * addresses and the texts of an event, each ended by a zero byte.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/config/texts.h"
#include "common/wire/names.h"
#include "worker/page/look.h"
#include "worker/page/page.h"
#include "worker/page/page_address.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 11, EVENT = 5, TEXTS = EVENT + TL_EVENT_TEXTS };

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* The control character is in no page of ours, so each of these is markup of somebody else's. */
static const char *const hostile[] = {"\x01<\x01", "\x01>\x01", "\x01\"\x01", "\x01'\x01"};

static void render(const struct tl_view *view, uint8_t number)
{
    static struct tl_languages *languages;
    static struct tl_brand *brand;
    static const struct tl_brand_settings settings = {.name = "Hall"};
    if (brand == NULL) {
        languages = tl_languages_new(NULL, NULL);
        require(languages != NULL);
        brand = tl_brand_load(&settings, languages, NULL);
    }
    require(brand != NULL);
    const struct tl_catalogue *language = languages->all[number % languages->n];
    struct tl_text out = {0};
    tl_page_render(view, brand, language, &out);
    require(!out.failed && strncmp(out.data, "<!doctype html>", 15) == 0);
    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++)
        require(strstr(out.data, hostile[i]) == NULL);
    tl_text_free(&out);
}

/* A text is for everyone, or in one of these languages. */
static void put(char *texts, size_t size, uint64_t number, const char *text)
{
    static const char *const codes[] = {"*", "en", "ko", "ar"};
    (void)tl_texts_put(texts, size, codes[number % (sizeof(codes) / sizeof(codes[0]))], text,
                       strlen(text));
}

/* Page lives as long as the event. */
static void make_event(struct tl_event_look *event, struct tl_event_page *page, char *const text[],
                       uint64_t number)
{
    *event = (struct tl_event_look){.page = page, .has_head = true};
    if (number % 3 == 1)
        event->date_ms = (int64_t)(number >> 20);
    char *const texts[TL_EVENT_TEXTS] = {page->title,        page->place,         page->date,
                                         page->texts.before, page->texts.waiting, page->texts.turn,
                                         page->texts.after};
    for (unsigned i = 0; i < TL_EVENT_TEXTS; i++)
        put(texts[i], i < TL_EVENT_BEFORE ? sizeof(page->title) : sizeof(page->texts.before),
            number >> (2 * i), text[i]);
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
    char address[TL_ADDRESS_MAX] = "";
    bool encoded = tl_address_append(address, text[4], false);
    require(strpbrk(address, " \"<>\\\r\n") == NULL && strlen(address) < TL_ADDRESS_MAX);
    struct tl_event_look event;
    struct tl_event_page event_page = {0};
    make_event(&event, &event_page, text + EVENT, number);
    struct tl_queue_settings settings = {.opens_at_ms = (int64_t)(number >> 20),
                                         .waiting_ttl_ms = (int64_t)(number >> 40)};
    const char *closed = (data[2] & 16) != 0 ? text[2] : "";
    put(settings.closed_text, sizeof(settings.closed_text), number, closed);
    put(settings.sold_out_text, sizeof(settings.sold_out_text), number >> 2, closed);
    snprintf(settings.target_url, sizeof(settings.target_url), "%s", text[3]);
    const struct tl_view view = {
        .page = data[0] % TL_PAGE_STATES,
        .queue = "door",
        .event = (data[2] & 8) != 0 ? &event : NULL,
        .drawing = (data[2] & 32) != 0,
        .claimed = (data[2] & 128) != 0,
        .visitor = tl_visitor_valid(text[0], strlen(text[0])) ? text[0] : NULL,
        .ticket = tl_visitor_valid(text[1], strlen(text[1])) ? text[1] : NULL,
        .state = {.status = TL_LINE_WAITING,
                  .ahead = number,
                  .deadline_ms = (int64_t)(number >> 21),
                  .called = (data[2] & 64) != 0},
        .settings = &settings,
        .from = number >> 2,
        .has_eta = (data[2] & 1) != 0,
        .eta_low_s = (double)(number >> 34),
        .eta_high_s = (double)(number >> 32),
        .mode = (data[2] & 2) != 0 ? TL_MODE_PAUSED : TL_MODE_OPEN,
        .recovering = (data[2] & 4) != 0,
        .store_ms = (int64_t)(number >> 22),
        .as_of_ms = (int64_t)(number >> 23),
        .poll_after_ms = (int64_t)(number >> 48),
        .notice = text[2],
        .return_url = encoded ? tl_address_or_null(address) : NULL,
    };
    render(&view, data[1]);
    free(texts);
    return 0;
}
