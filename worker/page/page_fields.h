/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of the waiting page: values that its template can insert, made from a view. Private to
 * worker/page. */
#ifndef TL_PAGE_FIELDS_H
#define TL_PAGE_FIELDS_H

#include "common/config/event_page.h"
#include "worker/page/catalogue.h"
#include "worker/page/page_source.h"
#include "worker/page/template.h"
#include "worker/page/view.h"

/* {{lang}} is FIELD_lang. */
#define TL_PAGE_FIELDS(F)                                                                          \
    F(lang)                                                                                        \
    F(dir)         /* of the writing: ltr or rtl */                                                \
    F(locale)      /* for the browser's Intl */                                                    \
    F(plurals)     /* the names of the plural forms, joined */                                     \
    F(language)    /* the name of the page's own */                                                \
    F(languages)   /* a list, as the next three */                                                 \
    F(over_states) /* the plain states of these kinds: a heading and a text */                     \
    F(refused_states)                                                                              \
    F(last_states)                                                                                 \
    F(item_code) /* of each item of a list, as the next five */                                    \
    F(item_name)                                                                                   \
    F(item_url)                                                                                    \
    F(item_current)                                                                                \
    F(item_head)                                                                                   \
    F(item_text)                                                                                   \
    F(title)                                                                                       \
    F(brand)                                                                                       \
    F(brand_text)                                                                                  \
    F(brand_lang) /* of the text, where it is not the page's */                                    \
    F(logo_url)                                                                                    \
    F(says_brand) /* where there is no logo */                                                     \
    F(name)       /* of the event, else of the brand */                                            \
    F(logo_dark_url)                                                                               \
    F(event)       /* is there anything for the head of the card? */                               \
    F(event_title) /* the first of TL_EVENT_TEXTS */                                               \
    F(event_place)                                                                                 \
    F(event_date)                                                                                  \
    F(event_before)                                                                                \
    F(event_waiting)                                                                               \
    F(event_turn)                                                                                  \
    F(event_after)                                                                                 \
    F(event_title_lang) /* likewise; set if not the page's */                                      \
    F(event_place_lang)                                                                            \
    F(event_date_lang)                                                                             \
    F(event_before_lang)                                                                           \
    F(event_waiting_lang)                                                                          \
    F(event_turn_lang)                                                                             \
    F(event_after_lang)                                                                            \
    F(event_date_ms) /* absent: the date is a text */                                              \
    F(event_date_iso)                                                                              \
    F(event_image_url)                                                                             \
    F(has_event_style)                                                                             \
    F(help_url)                                                                                    \
    F(favicon_url)                                                                                 \
    F(has_colours)                                                                                 \
    F(has_own_style)                                                                               \
    F(refresh)                                                                                     \
    F(refresh_every)                                                                               \
    F(self_url)                                                                                    \
    F(join_url)                                                                                    \
    F(leave_url)                                                                                   \
    F(transfer_url)                                                                                \
    F(move_url)                                                                                    \
    F(move_code_value)                                                                             \
    F(move_device)                                                                                 \
    F(code_address)                                                                                \
    F(code_left)                                                                                   \
    F(qr_view)                                                                                     \
    F(qr_path)                                                                                     \
    F(join_label)                                                                                  \
    F(queue)                                                                                       \
    F(state)                                                                                       \
    F(visitor)                                                                                     \
    F(position_raw)                                                                                \
    F(from_raw)                                                                                    \
    F(progress)                                                                                    \
    F(ahead)                                                                                       \
    F(eta)                                                                                         \
    F(eta_why)                                                                                     \
    F(shows_why)                                                                                   \
    F(shows_eta) /* not if something else says why nothing is known */                             \
    F(poll_ms)                                                                                     \
    F(now_ms)                                                                                      \
    F(opens_ms)                                                                                    \
    F(opens_iso)                                                                                   \
    F(opens)                                                                                       \
    F(countdown)                                                                                   \
    F(paused)                                                                                      \
    F(recovering)                                                                                  \
    F(draining)                                                                                    \
    F(closing)                                                                                     \
    F(sold_out)                                                                                    \
    F(no_capacity)                                                                                 \
    F(shut_says)                                                                                   \
    F(shut_lang) /* where it is not the page's */                                                  \
    F(sold_out_says)                                                                               \
    F(sold_out_lang)                                                                               \
    F(drawing)                                                                                     \
    F(called)                                                                                      \
    F(kept_ms)                                                                                     \
    F(kept)                                                                                        \
    F(absent) /* the text of that state */                                                         \
    F(updated)                                                                                     \
    F(reference)                                                                                   \
    F(notice)                                                                                      \
    F(target_url)                                                                                  \
    F(return_url)                                                                                  \
    F(challenge_url)                                                                               \
    F(puzzle)                                                                                      \
    F(puzzle_parts)                                                                                \
    F(puzzle_bits)                                                                                 \
    F(wait_url)                                                                                    \
    F(challenge_wait)                                                                              \
    F(service)                                                                                     \
    F(service_key)                                                                                 \
    F(service_script)                                                                              \
    F(service_scored)                                                                              \
    F(service_by)                                                                                  \
    F(almost)                                                                                      \
    F(progress_text)                                                                               \
    F(admitted)                                                                                    \
    F(has_admitted)                                                                                \
    F(claimed)                                                                                     \
    F(session_then)                                                                                \
    F(next_step)                                                                                   \
    F(stale)                                                                                       \
    F(preview)                                                                                     \
    F(eta_low) /* seconds, for the script */                                                       \
    F(eta_high)                                                                                    \
    F(ends_ms)                                                                                     \
    F(until)                                                                                       \
    F(may_join)                                                                                    \
    F(in_line)    /* waiting or pending */                                                         \
    F(is_waiting) /* the states whose parts of the page are not plain */                           \
    F(is_pending)                                                                                  \
    F(is_active)                                                                                   \
    F(is_move_here)                                                                                \
    F(is_transfer)                                                                                 \
    F(is_challenge)                                                                                \
    F(is_shut)                                                                                     \
    F(is_sold_out)                                                                                 \
    F(refresh_script) /* the sources, in the order of enum tl_page_sources */                      \
    F(page_script)                                                                                 \
    F(attention_script)                                                                            \
    F(challenge_script)                                                                            \
    F(page_style)                                                                                  \
    F(colours)                                                                                     \
    F(event_style)                                                                                 \
    F(own_style)

#define TL_PAGE_FIELD(name) FIELD_##name,
enum { TL_PAGE_FIELDS(TL_PAGE_FIELD) N_FIELDS, FIRST_SOURCE = FIELD_refresh_script };

/* The name by which the template refers to each field. */
extern const char *const tl_page_field_names[N_FIELDS];

/* Parses the built-in template. In it, a number below N_FIELDS is a field; text i of the catalogues
 * has the number N_FIELDS + i. NULL on failure; freed with tl_template_free. */
struct tl_template *tl_page_template_new(const struct tl_catalogue *source, struct tl_error *err);

#endif
