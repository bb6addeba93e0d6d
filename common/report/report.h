/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happened in a queue, from the archive. PostgreSQL counts and makes the report, as JSON
 * (report.sql); the other forms are written from that, so that all say the same. A sale is all
 * generations of a queue from one creation to the next (queue_sales).
 */
#ifndef TL_REPORT_H
#define TL_REPORT_H

#include <jansson.h>

#include "common/archive/postgres.h"
#include "common/wire/names.h"
#include "common/words/chart.h"
#include "common/words/words.h"

enum { TL_REPORT_SALES = 20 }; /* of a list, at most */

/* ---- from PostgreSQL ---- */

/* A connection for reports. A zeroed struct is closed. */
struct tl_report_archive {
    struct tl_postgres postgres;
    int64_t until_ms; /* tl_clock_ms; what is not answered by then has failed */
};

/* Connects for what follows, all of which has this time together. TL_ERR_INVALID: there are no
 * tables of an archive. The caller closes it, also after false. */
bool tl_report_open(struct tl_report_archive *archive, const char *url, int64_t limit_ms,
                    struct tl_error *err);
void tl_report_close(struct tl_report_archive *archive);

/* What a report is about. */
struct tl_report_wish {
    const char *queue;
    uint64_t sale;              /* any generation of it; 0: the newest */
    int64_t since_ms, until_ms; /* only visitors who came then; 0: all. since: of all sales */
};
/* *report: owned; NULL when nobody came, or the archive does not know the queue. False with err. */
bool tl_report_ask(struct tl_report_archive *archive, const struct tl_report_wish *wish,
                   json_t **report, struct tl_error *err);
/* The sales of a queue in which anyone came, the newest first: {"queue", "sales": [...],
 * "has_more"}; none is added once this much time has passed. *sales: owned. False with err. */
bool tl_report_sales(struct tl_report_archive *archive, const char *queue, int64_t limit_ms,
                     json_t **sales, struct tl_error *err);

/* ---- in words ---- */

/* How people call it: the queue, and the day on which it opened. */
void tl_report_name(const json_t *report, char name[TL_QUEUE_NAME_MAX + 16]);
/* From when until when. */
void tl_report_when(const json_t *report, char text[96]);
void tl_report_say(const json_t *report, struct tl_sentences *sentences);

/* A number of the report with its label. */
struct tl_report_figure {
    const char *label;
    struct tl_words value;
};
enum { TL_REPORT_FIGURES = 13 };
void tl_report_figures(const json_t *report, struct tl_report_figure figures[TL_REPORT_FIGURES]);

/* Numbers of its steps ("steps"), and of its lanes as far as those have them. */
struct tl_report_column {
    const char *name, *title;
    bool is_wait, of_lane;
};
const struct tl_report_column *tl_report_columns(size_t *n);
/* The number of a step or a lane as people read it. */
struct tl_words tl_report_cell(const json_t *row, const struct tl_report_column *column);

/* The line over time, and a mark for each change, of one report or of two: then both
 * have one length, and one beginning by the opening of each. other NULL: there is one. */
void tl_report_series(const json_t *report, const json_t *other, struct tl_series *series,
                      struct tl_series *other_series);

/* ---- as a page ---- */

/* One page that prints well, and takes nothing from elsewhere. other: a second sale beside it, or
 * NULL. */
void tl_report_page(const json_t *report, const json_t *other, struct tl_text *out);

#endif
