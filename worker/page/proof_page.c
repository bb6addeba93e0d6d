/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "worker/page/page_assets.h"
#include "worker/page/page_text.h"
#include "worker/page/proof_page.h"
#include "worker/page/template.h"

/* ---- the texts ---- */

enum text {
    TITLE,
    INTRO,
    GOOD,
    BAD,
    UNABLE,
    OFFLINE,
    KEY_LABEL,
    SIGNED,
    UNSIGNED,
    UNABLE_KEY,
    DETAILS,
    SAVE,
    BACK,
    TEXTS
};

static const char *const names[] = {[TITLE] = "title",
                                    [INTRO] = ("intro"),
                                    [GOOD] = "good",
                                    [BAD] = "bad",
                                    [UNABLE] = "unable",
                                    [OFFLINE] = "offline",
                                    [KEY_LABEL] = "key_label",
                                    [SIGNED] = "signed",
                                    [UNSIGNED] = "unsigned",
                                    [UNABLE_KEY] = "unable_key",
                                    [DETAILS] = "details",
                                    [SAVE] = "save",
                                    [BACK] = "back"};

struct words {
    const char *code;
    const char *texts[TEXTS];
    const char *missing[TL_PROOF_REASONS];
    const char *found; /* when, lane, seq, index, size */
};

static const struct words english = {
    "en",
    {[TITLE] = "Your place in the record",
     [INTRO] = ("The operator keeps a public record of this line. It only grows, and no one can "
                "change it without being noticed. This page checks in your browser that your place "
                "is in it. It shows no one else's."),
     [GOOD] = "Checked: your place is in the record, as it is shown here.",
     [BAD] = "The proof is not right. Save it and ask the operator why.",
     [UNABLE] = "This browser cannot check it here. Save the proof to check it elsewhere.",
     [OFFLINE] = "To check it yourself, save the proof and run: tellerline verify place place.json",
     [KEY_LABEL] = "The operator's published key, if you have it:",
     [SIGNED] = "Checked: the record was signed with this key.",
     [UNSIGNED] = "The record was not signed with this key.",
     [UNABLE_KEY] = "This browser cannot check signatures of this kind.",
     [DETAILS] = "Details",
     [SAVE] = "Save the proof",
     [BACK] = "Back to the line"},
    {[TL_PROOF_NOT_YET] = "The record does not have your place yet. Please try again in a moment.",
     [TL_PROOF_NO_TICKET] = "Please open this page in the browser in which you joined the line.",
     [TL_PROOF_NONE] = "There is no public record of this line.",
     [TL_PROOF_AWAY] = "The record cannot be read right now. Your place is kept."},
    "Your place was recorded on %s: lane %u, number %" PRIu64 ". It is entry %" PRIu64
    " of %" PRIu64 ".",
};

static const struct words korean = {
    "ko",
    {[TITLE] = "기록에 남은 내 순서",
     [INTRO] =
         ("운영자는 이 대기열의 기록을 공개합니다. 기록은 늘어나기만 하며, 누구도 몰래 바꿀 수 "
          "없습니다. 이 페이지는 내 순서가 기록에 있는지 브라우저에서 직접 확인합니다. 다른 "
          "사람의 순서는 보이지 않습니다."),
     [GOOD] = "확인했습니다. 내 순서가 여기 표시된 그대로 기록에 있습니다.",
     [BAD] = "증명이 맞지 않습니다. 저장한 뒤 운영자에게 문의해 주세요.",
     [UNABLE] = "이 브라우저에서는 확인할 수 없습니다. 증명을 저장해 다른 곳에서 확인해 주세요.",
     [OFFLINE] =
         "직접 확인하려면 증명을 저장하고 다음을 실행하세요: tellerline verify place place.json",
     [KEY_LABEL] = "운영자가 공개한 키(있는 경우):",
     [SIGNED] = "확인했습니다. 이 키로 서명된 기록입니다.",
     [UNSIGNED] = "이 키로 서명된 기록이 아닙니다.",
     [UNABLE_KEY] = "이 브라우저는 이런 서명을 확인할 수 없습니다.",
     [DETAILS] = "자세히",
     [SAVE] = "증명 저장",
     [BACK] = "대기열로 돌아가기"},
    {[TL_PROOF_NOT_YET] = "아직 기록에 내 순서가 없습니다. 잠시 후 다시 시도해 주세요.",
     [TL_PROOF_NO_TICKET] = "줄을 선 브라우저에서 이 페이지를 열어 주세요.",
     [TL_PROOF_NONE] = "이 대기열은 기록을 공개하지 않습니다.",
     [TL_PROOF_AWAY] = "지금은 기록을 읽을 수 없습니다. 순서는 그대로 유지됩니다."},
    "내 순서는 %s에 기록되었습니다. 줄 %u, 번호 %" PRIu64 ". 기록의 %" PRIu64
    "번째 항목입니다(전체 %" PRIu64 "개).",
};

/* ---- the page ---- */

/* Behind the texts, in the order of their names in `fields`. */
enum {
    LANG = TEXTS,
    BRAND,
    SCRIPT_URL,
    MISSING,
    PROOF,
    FOUND,
    LEAF,
    CHECKPOINT,
    SAVE_URL,
    BACK_URL,
    PAGE_STYLE,
    COLOURS,
    OWN_STYLE,
    FIELDS
};
static const char *const fields[] = {
    "lang",       "brand",    "script_url", "missing",     "proof",    "found",     "leaf",
    "checkpoint", "save_url", "back_url",   ">page_style", ">colours", ">own_style"};
static const enum tl_page_sources styles[] = {TL_SOURCE_LOOK, TL_SOURCE_COLOURS, TL_SOURCE_OWN};
enum { STYLES = sizeof(styles) / sizeof(styles[0]) };

static void write_policy(const struct tl_brand *brand, struct tl_text *policy)
{
    tl_text_append(policy, "default-src 'none'; script-src 'self'; style-src");
    for (size_t i = 0; i < STYLES; i++)
        if (brand->sources[styles[i]].text != NULL)
            tl_text_append(policy, " %s", brand->sources[styles[i]].hash);
    tl_text_append(policy, "; frame-ancestors 'none'; base-uri 'none'; form-action 'none'");
}

static void write_found(const struct tl_proof_page *what, const struct words *words,
                        const struct tl_catalogue *language, bool in_zone, struct tl_text *found)
{
    struct tl_text time = {0};
    tl_write_time(what->ms, language, in_zone, &time);
    found->failed = found->failed || time.failed;
    if (!found->failed)
        tl_text_append(found, words->found, time.data, what->lane, what->seq, what->index + 1,
                       what->size);
    tl_text_free(&time);
}

/* An address of the queue: before and after its name; with the ticket, if the browser keeps none.
 */
static void write_address(const struct tl_proof_page *what, const char *before, const char *after,
                          struct tl_text *address)
{
    tl_text_append(address, "%s%s%s", before, what->queue, after);
    if (what->ticket != NULL)
        tl_text_append(address, "?ticket=%s", what->ticket);
}

void tl_proof_page_render(const struct tl_proof_page *what, const struct tl_brand *brand,
                          const struct tl_catalogue *language, struct tl_text *page,
                          struct tl_text *policy)
{
    const struct words *words = strncmp(language->code, "ko", 2) == 0 ? &korean : &english;
    const bool in_zone = brand->settings->timezone[0] != '\0';
    const char *all[FIELDS], *values[FIELDS] = {NULL};
    struct tl_text found = {0}, save = {0}, back = {0};
    memcpy(all, names, sizeof(names));
    memcpy(all + TEXTS, fields, sizeof(fields));
    memcpy(values, words->texts, sizeof(words->texts));
    if (what->missing == TL_PROOF_THERE)
        write_found(what, words, language, in_zone, &found);
    write_address(what, "/v1/queues/", "/trail/proof", &save);
    write_address(what, "/q/", "", &back);
    values[LANG] = words->code;
    values[BRAND] = brand->settings->name[0] != '\0' ? brand->settings->name : what->queue;
    values[SCRIPT_URL] = tl_page_proof.path;
    values[MISSING] = words->missing[what->missing];
    values[PROOF] = what->json;
    values[FOUND] = found.data;
    values[LEAF] = what->leaf;
    values[CHECKPOINT] = what->checkpoint;
    values[SAVE_URL] = save.data;
    values[BACK_URL] = back.data;
    for (size_t i = 0; i < STYLES; i++)
        values[PAGE_STYLE + i] = brand->sources[styles[i]].text;
    struct tl_template *template =
        tl_template_parse("proof.html", tl_page_proof_html.bytes, tl_page_proof_html.length, all,
                          FIELDS, &(struct tl_error){0});
    page->failed = page->failed || template == NULL || found.failed || save.failed || back.failed;
    if (!page->failed)
        tl_template_render(template, values, NULL, NULL, page);
    write_policy(brand, policy);
    tl_template_free(&template);
    tl_text_free(&found);
    tl_text_free(&save);
    tl_text_free(&back);
}
