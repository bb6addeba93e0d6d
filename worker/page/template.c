#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "worker/page/template.h"

#define NAME_MAX_BYTES 40

enum node_kind { NODE_TEXT, NODE_VALUE, NODE_OPEN, NODE_CLOSE };

struct node {
    enum node_kind kind;
    int number;           /* of the name; TEXT: none */
    size_t start, length; /* TEXT: the bytes */
    size_t close;         /* OPEN: the index of the node that closes it */
};

struct tl_template {
    char *bytes;
    struct node *nodes;
    size_t n_nodes, nodes_capacity;
};

/* Where in the HTML the reader is. */
enum spot { SPOT_TEXT, SPOT_TAG, SPOT_DOUBLE_QUOTES, SPOT_SINGLE_QUOTES, SPOT_COMMENT, SPOT_RAW };

struct open_section {
    size_t node;
    enum spot spot;
};

struct reader {
    struct tl_template *template;
    const char *label;
    const char *bytes;
    size_t length, at;
    tl_template_find *find;
    enum spot spot;
    bool raw_tag; /* the tag being read opens a script or style */
    struct open_section open[TL_TEMPLATE_DEPTH];
    size_t n_open;
    struct tl_error *err;
};

/* ---- messages ---- */

static bool refuse(const struct reader *reader, size_t at, const char *what, const char *name,
                   size_t name_length)
{
    size_t line = 1;
    size_t line_start = 0;
    for (size_t i = 0; i < at; i++) {
        if (reader->bytes[i] == '\n') {
            line++;
            line_start = i + 1;
        }
    }
    char shown[NAME_MAX_BYTES + 1] = "";
    for (size_t i = 0; i < name_length && i < NAME_MAX_BYTES; i++)
        shown[i] = (char)(name[i] >= ' ' && name[i] < 127 ? name[i] : '?');
    return tl_error_set(reader->err, TL_ERR_INVALID, "%s:%zu:%zu: %s%s%s%s", reader->label, line,
                        at - line_start + 1, what, shown[0] == '\0' ? "" : " \"", shown,
                        shown[0] == '\0' ? "" : "\"");
}

/* ---- following the HTML ---- */

static bool starts_with(const struct reader *reader, const char *text)
{
    size_t n = strlen(text);
    return reader->length - reader->at >= n &&
           strncasecmp(reader->bytes + reader->at, text, n) == 0;
}

static void follow_text(struct reader *reader)
{
    char next = reader->at + 1 < reader->length ? reader->bytes[reader->at + 1] : '\0';
    if (starts_with(reader, "<!--")) {
        reader->spot = SPOT_COMMENT;
    } else if (next == '/' || next == '!' || next == '{' || (next >= 'a' && next <= 'z') ||
               (next >= 'A' && next <= 'Z')) {
        reader->spot = SPOT_TAG;
        reader->raw_tag = starts_with(reader, "<script") || starts_with(reader, "<style");
    }
}

/* Takes the byte at `at` into account. */
static void follow(struct reader *reader)
{
    char c = reader->bytes[reader->at];
    switch (reader->spot) {
    case SPOT_TEXT:
        if (c == '<')
            follow_text(reader);
        break;
    case SPOT_TAG:
        if (c == '"')
            reader->spot = SPOT_DOUBLE_QUOTES;
        else if (c == '\'')
            reader->spot = SPOT_SINGLE_QUOTES;
        else if (c == '>')
            reader->spot = reader->raw_tag ? SPOT_RAW : SPOT_TEXT;
        break;
    case SPOT_DOUBLE_QUOTES:
        if (c == '"')
            reader->spot = SPOT_TAG;
        break;
    case SPOT_SINGLE_QUOTES:
        if (c == '\'')
            reader->spot = SPOT_TAG;
        break;
    case SPOT_COMMENT:
        if (starts_with(reader, "-->"))
            reader->spot = SPOT_TEXT;
        break;
    case SPOT_RAW:
        if (starts_with(reader, "</script") || starts_with(reader, "</style")) {
            reader->spot = SPOT_TAG;
            reader->raw_tag = false;
        }
        break;
    }
}

/* ---- reading ---- */

static bool add_node(struct reader *reader, const struct node *node)
{
    struct tl_template *template = reader->template;
    if (template->n_nodes == template->nodes_capacity) {
        size_t capacity = template->nodes_capacity == 0 ? 64 : 2 * template->nodes_capacity;
        struct node *nodes = realloc(template->nodes, capacity * sizeof(*nodes));
        if (nodes == NULL)
            return tl_error_set(reader->err, TL_ERR_NOMEM, "%s: out of memory", reader->label);
        template->nodes = nodes;
        template->nodes_capacity = capacity;
    }
    template->nodes[template->n_nodes++] = *node;
    return true;
}

static bool value_may_stand(enum spot spot)
{
    return spot == SPOT_TEXT || spot == SPOT_DOUBLE_QUOTES || spot == SPOT_SINGLE_QUOTES;
}

static bool open_section(struct reader *reader, size_t at, int number)
{
    if (reader->n_open == TL_TEMPLATE_DEPTH)
        return refuse(reader, at, "too many sections in sections, at most 16", NULL, 0);
    reader->open[reader->n_open++] =
        (struct open_section){.node = reader->template->n_nodes, .spot = reader->spot};
    return add_node(reader, &(struct node){.kind = NODE_OPEN, .number = number});
}

static bool close_section(struct reader *reader, size_t at, int number, const char *name,
                          size_t length)
{
    if (reader->n_open == 0)
        return refuse(reader, at, "nothing is open to be closed by", name, length);
    const struct open_section *open = &reader->open[reader->n_open - 1];
    if (reader->template->nodes[open->node].number != number)
        return refuse(reader, at, "another section must be closed before", name, length);
    if (reader->spot != open->spot)
        return refuse(reader, at,
                      "the section ends in another part of a tag than it began in:", name, length);
    reader->template->nodes[open->node].close = reader->template->n_nodes;
    reader->n_open--;
    return add_node(reader, &(struct node){.kind = NODE_CLOSE, .number = number});
}

/* What stands in the braces at `at`. Moves behind them. */
static bool read_braces(struct reader *reader)
{
    size_t at = reader->at;
    const char *inside = reader->bytes + at + 2;
    const char *end = memmem(inside, reader->length - at - 2, "}}", 2);
    if (end == NULL)
        return refuse(reader, at, "{{ without }}", NULL, 0);
    reader->at = (size_t)(end + 2 - reader->bytes);
    char sign = *inside == '#' || *inside == '/' ? *inside : '\0';
    const char *name = inside + (sign != '\0');
    size_t length = (size_t)(end - name);
    int number = length == 0 || length > NAME_MAX_BYTES ? -1 : reader->find(name, length);
    if (number < 0)
        return refuse(reader, at, "there is no such name:", name, length);
    if (sign == '#')
        return open_section(reader, at, number);
    if (sign == '/')
        return close_section(reader, at, number, name, length);
    if (!value_may_stand(reader->spot))
        return refuse(reader, at,
                      "only text and quoted attributes can hold a value, not this:", name, length);
    return add_node(reader, &(struct node){.kind = NODE_VALUE, .number = number});
}

static bool read_text(struct reader *reader)
{
    size_t start = reader->at;
    while (reader->at < reader->length && !starts_with(reader, "{{")) {
        if (reader->bytes[reader->at] == '\0')
            return refuse(reader, reader->at, "a zero byte", NULL, 0);
        follow(reader);
        reader->at++;
    }
    return add_node(
        reader, &(struct node){
                    .kind = NODE_TEXT, .number = -1, .start = start, .length = reader->at - start});
}

static bool read_all(struct reader *reader)
{
    while (reader->at < reader->length) {
        bool read = starts_with(reader, "{{") ? read_braces(reader) : read_text(reader);
        if (!read)
            return false;
    }
    if (reader->n_open > 0)
        return refuse(reader, reader->length, "a section is not closed", NULL, 0);
    return true;
}

struct tl_template *tl_template_parse(const char *label, const void *bytes, size_t length,
                                      tl_template_find *find, struct tl_error *err)
{
    if (length > TL_TEMPLATE_MAX) {
        tl_error_set(err, TL_ERR_INVALID, "%s: %zu bytes, at most %zu", label, length,
                     TL_TEMPLATE_MAX);
        return NULL;
    }
    struct tl_template *template = calloc(1, sizeof(*template));
    char *copy = malloc(length + 1);
    if (template == NULL || copy == NULL) {
        free(template);
        free(copy);
        tl_error_set(err, TL_ERR_NOMEM, "%s: out of memory", label);
        return NULL;
    }
    if (length > 0)
        memcpy(copy, bytes, length);
    copy[length] = '\0';
    template->bytes = copy;
    struct reader reader = {.template = template,
                            .label = label,
                            .bytes = copy,
                            .length = length,
                            .find = find,
                            .err = err};
    if (!read_all(&reader))
        tl_template_free(&template);
    return template;
}

void tl_template_free(struct tl_template **template)
{
    if (*template == NULL)
        return;
    free((*template)->bytes);
    free((*template)->nodes);
    free(*template);
    *template = NULL;
}

/* ---- rendering ---- */

static void append(struct tl_text *out, const char *bytes, size_t length)
{
    while (length > 0) { /* a precision is an int */
        int part = length > INT_MAX ? INT_MAX : (int)length;
        tl_text_append(out, "%.*s", part, bytes);
        bytes += part;
        length -= (size_t)part;
    }
}

static const char *escape_of(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    default:
        return "&#39;";
    }
}

void tl_html_escape(const char *text, struct tl_text *out)
{
    while (*text != '\0') {
        size_t plain = strcspn(text, "&<>\"'");
        append(out, text, plain);
        text += plain;
        if (*text != '\0') {
            tl_text_append(out, "%s", escape_of(*text));
            text++;
        }
    }
}

void tl_template_render(const struct tl_template *template, tl_template_value *value,
                        const void *context, struct tl_text *out)
{
    for (size_t i = 0; i < template->n_nodes; i++) {
        const struct node *node = &template->nodes[i];
        if (node->kind == NODE_TEXT) {
            append(out, template->bytes + node->start, node->length);
            continue;
        }
        const char *text = value(context, node->number);
        bool empty = text == NULL || text[0] == '\0';
        if (node->kind == NODE_VALUE && !empty)
            tl_html_escape(text, out);
        else if (node->kind == NODE_OPEN && empty)
            i = node->close;
    }
}
