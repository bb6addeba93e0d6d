#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "ctl/signs.h"

/* As in the log of the workers: carriers and offices put many people behind one address. */
enum { MANY = 60 };

/* The line that is written now. */
struct line {
    struct tl_text *out;
    const char *queue;
    size_t length; /* 0: nothing is written yet */
};

static void add(struct line *line, const char *sign)
{
    const char *separator = line->length == 0 ? " " : ", ";
    if (line->length == 0) {
        tl_text_append(line->out, "! %s:", line->queue);
        line->length = strlen("! :") + strlen(line->queue);
    }
    if (line->length + strlen(separator) + strlen(sign) > TL_CTL_SIGNS_COLUMNS) {
        separator = "\n  ";
        line->length = 0;
    }
    tl_text_append(line->out, "%s%s", separator, sign);
    line->length += strlen(separator) + strlen(sign);
}

static void add_networks(struct line *line, const struct tl_sign_networks *networks,
                         const char *what)
{
    char prefix[TL_PREFIX_TEXT_MAX], sign[128];
    for (size_t i = 0; i < networks->n; i++) {
        if (networks->list[i].count <= MANY)
            continue;
        tl_prefix_format(&networks->list[i].prefix, prefix);
        snprintf(sign, sizeof(sign), "%" PRIu64 " %s from %s", networks->list[i].count, what,
                 prefix);
        add(line, sign);
    }
}

static void add_count(struct line *line, uint64_t count, const char *what)
{
    char sign[64];
    if (count == 0)
        return;
    snprintf(sign, sizeof(sign), "%" PRIu64 " %s", count, what);
    add(line, sign);
}

void tl_ctl_signs_write(const char *queue, const struct tl_signs *signs, struct tl_text *out)
{
    struct line line = {.out = out, .queue = queue};
    add_networks(&line, &signs->joins, "joins");
    add_networks(&line, &signs->failures, "failed checks");
    add_count(&line, signs->shared, "shared sessions");
    add_count(&line, signs->fast, "fast sessions");
    if (line.length == 0)
        return; /* sessions that run out fail checks, too */
    add_count(&line, signs->failed, "failed checks in all");
    tl_text_append(out, "\n");
}
