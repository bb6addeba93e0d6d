/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/grow.h"
#include "worker/page/template.h"

#define NAME_MAX_BYTES 40

/* What a node is, beside a sign of its braces: '#', '^', '*', '/' or '>'. */
enum { NODE_TEXT = 't', NODE_VALUE = 'v' };

struct node {
    char kind;
    size_t name;          /* its place in the list of names; TEXT: none */
    size_t start, length; /* TEXT: the bytes */
    size_t close;         /* '#', '^', '*': the index of the node that closes it */
};

struct tl_template {
    const char *bytes; /* borrowed */
    struct node *nodes;
    size_t n_nodes, nodes_capacity;
};

/* The part of HTML that the parser is in. */
enum html_part {
    HTML_TEXT,
    HTML_TAG,
    HTML_COMMENT,
    HTML_RAW, /* the content of a script or style */
    HTML_DOUBLE_QUOTES = '"',
    HTML_SINGLE_QUOTES = '\'',
};

struct open_section {
    size_t node;
    enum html_part part;
};

struct parser {
    struct tl_template *template;
    const char *label;
    const char *bytes;
    size_t length, at;
    const char *const *names;
    size_t n_names;
    enum html_part part;
    bool raw_tag; /* the current tag opens a script or style */
    struct open_section open[TL_TEMPLATE_DEPTH];
    size_t n_open;
    struct tl_error *err;
};

struct braces {
    size_t at;
    const char *name;
    size_t length;
    struct node node; /* that they make */
};

/* ---- errors ---- */

/* Fails with the position and the sentence. */
static bool fail_at(const struct parser *parser, size_t at, const char *what)
{
    size_t line = 1, start = 0;
    for (size_t i = 0; i < at; i++) {
        if (parser->bytes[i] == '\n') {
            line++;
            start = i + 1;
        }
    }
    return tl_error_set(parser->err, TL_ERR_INVALID, "%s:%zu:%zu: %s", parser->label, line,
                        at - start + 1, what);
}

/* The same, with the name in the braces. */
static bool fail_braces(const struct parser *parser, const struct braces *braces, const char *what)
{
    char name[NAME_MAX_BYTES + 1], quoted[2 * NAME_MAX_BYTES], sentence[4 * NAME_MAX_BYTES];
    snprintf(name, sizeof(name), "%.*s", (int)braces->length, braces->name);
    tl_quote(name, quoted, sizeof(quoted));
    snprintf(sentence, sizeof(sentence), "%s %s", what, quoted);
    return fail_at(parser, braces->at, sentence);
}

/* ---- tracking the HTML ---- */

static bool starts_with(const struct parser *parser, const char *text)
{
    size_t n = strlen(text);
    return parser->length - parser->at >= n &&
           strncasecmp(parser->bytes + parser->at, text, n) == 0;
}

/* A "<" in text: it opens a comment, a tag or nothing. */
static void track_less_than(struct parser *parser)
{
    char next = parser->at + 1 < parser->length ? parser->bytes[parser->at + 1] : '\0';
    if (starts_with(parser, "<!--")) {
        parser->part = HTML_COMMENT;
    } else if (next == '/' || next == '!' || next == '{' || (next >= 'a' && next <= 'z') ||
               (next >= 'A' && next <= 'Z')) {
        parser->part = HTML_TAG;
        parser->raw_tag = starts_with(parser, "<script") || starts_with(parser, "<style");
    }
}

/* Updates `part` for the byte at `at`. */
static void track(struct parser *parser)
{
    char c = parser->bytes[parser->at];
    switch (parser->part) {
    case HTML_TEXT:
        if (c == '<')
            track_less_than(parser);
        break;
    case HTML_TAG:
        if (c == '"' || c == '\'')
            parser->part = (enum html_part)c;
        else if (c == '>')
            parser->part = parser->raw_tag ? HTML_RAW : HTML_TEXT;
        break;
    case HTML_DOUBLE_QUOTES:
    case HTML_SINGLE_QUOTES:
        if (c == (char)parser->part)
            parser->part = HTML_TAG;
        break;
    case HTML_COMMENT:
        if (starts_with(parser, "-->"))
            parser->part = HTML_TEXT;
        break;
    case HTML_RAW:
        if (starts_with(parser, "</script") || starts_with(parser, "</style")) {
            parser->part = HTML_TAG;
            parser->raw_tag = false;
        }
        break;
    }
}

/* ---- parsing ---- */

static bool add_node(struct parser *parser, const struct node *node)
{
    struct tl_template *template = parser->template;
    struct node *nodes =
        tl_grow(template->nodes, &template->nodes_capacity, template->n_nodes + 1, sizeof(*nodes));
    if (nodes == NULL)
        return tl_error_set(parser->err, TL_ERR_NOMEM, "%s: out of memory", parser->label);
    template->nodes = nodes;
    template->nodes[template->n_nodes++] = *node;
    return true;
}

static bool open_section(struct parser *parser, const struct braces *braces)
{
    const struct tl_template *template = parser->template;
    if (parser->n_open == TL_TEMPLATE_DEPTH)
        return fail_at(parser, braces->at, "too many nested sections, at most 16");
    for (size_t i = 0; i < parser->n_open && braces->node.kind == '*'; i++) {
        if (template->nodes[parser->open[i].node].kind == '*')
            return fail_braces(parser, braces, "a list cannot stand in a list:");
    }
    parser->open[parser->n_open++] =
        (struct open_section){.node = template->n_nodes, .part = parser->part};
    return add_node(parser, &braces->node);
}

static bool close_section(struct parser *parser, const struct braces *braces)
{
    struct node *nodes = parser->template->nodes;
    if (parser->n_open == 0 || nodes == NULL)
        return fail_braces(parser, braces, "no section is open, but this closes");
    const struct open_section *open = &parser->open[parser->n_open - 1];
    if (nodes[open->node].name != braces->node.name)
        return fail_braces(parser, braces, "another section must be closed before");
    if (parser->part != open->part)
        return fail_braces(parser, braces,
                           "the section ends in another part of a tag than it began in:");
    nodes[open->node].close = parser->template->n_nodes;
    parser->n_open--;
    return add_node(parser, &braces->node);
}

static bool find_name(const struct parser *parser, struct braces *braces)
{
    const bool is_source = braces->node.kind == '>'; /* whose name has the sign */
    const char *name = braces->name - is_source;
    const size_t length = braces->length + is_source;
    size_t *known = &braces->node.name;
    while (*known < parser->n_names && (strlen(parser->names[*known]) != length ||
                                        memcmp(parser->names[*known], name, length) != 0))
        ++*known;
    return *known < parser->n_names;
}

/* Parses the braces at `at` and moves past them. */
static bool parse_braces(struct parser *parser)
{
    const char *inside = parser->bytes + parser->at + 2;
    const char *end = memmem(inside, parser->length - parser->at - 2, "}}", 2);
    if (end == NULL)
        return fail_at(parser, parser->at, "{{ without }}");
    const bool has_sign = *inside != '\0' && strchr("#^*/>", *inside) != NULL;
    struct braces braces = {.at = parser->at, .name = inside + has_sign};
    braces.length = (size_t)(end - braces.name);
    braces.node.kind = has_sign ? *inside : (char)NODE_VALUE;
    const bool is_known = find_name(parser, &braces);
    parser->at = (size_t)(end + 2 - parser->bytes);
    if (!is_known)
        return fail_braces(parser, &braces, "there is no such name:");
    if (braces.node.kind == '/')
        return close_section(parser, &braces);
    if (has_sign && braces.node.kind != '>')
        return open_section(parser, &braces);
    if (has_sign && parser->part != HTML_RAW)
        return fail_braces(parser, &braces, "only a script or style can hold a source:");
    if (!has_sign && parser->part != HTML_TEXT && parser->part != HTML_DOUBLE_QUOTES &&
        parser->part != HTML_SINGLE_QUOTES)
        return fail_braces(parser, &braces,
                           "only text and quoted attributes can hold a value, not this:");
    return add_node(parser, &braces.node);
}

static bool parse(struct parser *parser)
{
    while (parser->at < parser->length) {
        if (starts_with(parser, "{{")) {
            if (!parse_braces(parser))
                return false;
            continue;
        }
        struct node text = {.kind = NODE_TEXT, .start = parser->at};
        for (; parser->at < parser->length && !starts_with(parser, "{{"); parser->at++) {
            if (parser->bytes[parser->at] == '\0')
                return fail_at(parser, parser->at, "a zero byte");
            track(parser);
        }
        text.length = parser->at - text.start;
        if (!add_node(parser, &text))
            return false;
    }
    if (parser->n_open > 0)
        return fail_at(parser, parser->length, "a section is not closed");
    return true;
}

struct tl_template *tl_template_parse(const char *label, const void *bytes, size_t length,
                                      const char *const names[], size_t n, struct tl_error *err)
{
    if (length > TL_TEMPLATE_MAX) {
        tl_error_set(err, TL_ERR_INVALID, "%s: %zu bytes, at most %zu", label, length,
                     TL_TEMPLATE_MAX);
        return NULL;
    }
    struct tl_template *template = calloc(1, sizeof(*template));
    if (template == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "%s: out of memory", label);
        return NULL;
    }
    template->bytes = bytes;
    struct parser parser = {.template = template,
                            .label = label,
                            .bytes = bytes,
                            .length = length,
                            .names = names,
                            .n_names = n,
                            .err = err};
    if (!parse(&parser))
        tl_template_free(&template);
    return template;
}

void tl_template_free(struct tl_template **template)
{
    if (*template == NULL)
        return;
    free((*template)->nodes);
    free(*template);
    *template = NULL;
}

/* ---- rendering ---- */

static void append_escaped(struct tl_text *out, const char *text)
{
    static const char special[] = "&<>\"'";
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    while (*text != '\0') {
        int plain = (int)strcspn(text, special);
        tl_text_append(out, "%.*s", plain, text);
        text += plain;
        if (*text != '\0') {
            tl_text_append(out, "%s", entities[strchr(special, *text) - special]);
            text++;
        }
    }
}

struct renderer {
    const struct tl_template *template;
    const char *const *values;
    tl_template_item *item;
    void *context;
    struct tl_text *out;
};

/* The nodes from `start` up to `end`. */
static void render(const struct renderer *renderer, size_t start, size_t end)
{
    const struct tl_template *template = renderer->template;
    struct tl_text *out = renderer->out;
    for (size_t i = start; i < end; i++) {
        const struct node *node = &template->nodes[i];
        if (node->kind == NODE_TEXT) {
            tl_text_append(out, "%.*s", (int)node->length, template->bytes + node->start);
            continue;
        }
        if (node->kind == '*') {
            for (size_t n = 0; renderer->item(renderer->context, node->name, n); n++)
                render(renderer, i + 1, node->close);
            i = node->close;
            continue;
        }
        const char *text = renderer->values[node->name];
        bool empty = text == NULL || text[0] == '\0';
        if (node->kind == NODE_VALUE && !empty)
            append_escaped(out, text);
        else if (node->kind == '>' && !empty)
            tl_text_append(out, "%s", text);
        else if (node->kind == '#' ? empty : node->kind == '^' && !empty)
            i = node->close;
    }
}

void tl_template_render(const struct tl_template *template, const char *const values[],
                        tl_template_item *item, void *context, struct tl_text *out)
{
    const struct renderer renderer = {
        .template = template, .values = values, .item = item, .context = context, .out = out};
    render(&renderer, 0, template->n_nodes);
}
