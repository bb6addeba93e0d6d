/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "worker/http/framing.h"

/* libmicrohttpd 1.0 refuses bare LF itself (MHD_OPTION_CLIENT_DISCIPLINE_LVL). */
#define LINES_ARE_CHECKED_HERE (MHD_VERSION < 0x01000000)

struct head {
    unsigned lengths, encodings; /* how many headers of this name */
    bool chunked;
    bool named;       /* no name so far has white space in it */
    bool sound;       /* each line so far ended with CR LF, and none has a CR in it */
    const char *last; /* the end of the last value in memory */
};

static bool is_named(const char *name, size_t length, const char *wanted)
{
    return length == strlen(wanted) && strncasecmp(name, wanted, length) == 0;
}

/* The library ends each value with zeros in the place of its line's end: two for CR LF, one for a
 * bare LF. At least one more line end follows every value, so both bytes are the request's. */
static enum MHD_Result look(void *context, enum MHD_ValueKind kind, const char *name,
                            size_t name_length, const char *value, size_t length)
{
    struct head *head = context;
    (void)kind;
    head->named = head->named && memchr(name, ' ', name_length) == NULL &&
                  memchr(name, '\t', name_length) == NULL;
    if (is_named(name, name_length, "Content-Length")) {
        head->lengths++;
    } else if (is_named(name, name_length, "Transfer-Encoding")) {
        head->encodings++;
        head->chunked = value != NULL && is_named(value, length, "chunked");
    }
    if (value == NULL)
        return MHD_YES;
    head->sound = head->sound && value[length + 1] == '\0' && memchr(value, '\r', length) == NULL;
    if (head->last == NULL || value + length > head->last)
        head->last = value + length;
    return MHD_YES;
}

/* The request line, the last header and the empty line behind it end with CR LF, too. The header
 * size tells where the head ends. */
static bool lines_are_sound(struct MHD_Connection *connection, const struct head *head,
                            const char *method, const char *version)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    if (!LINES_ARE_CHECKED_HERE)
        return true;
    if (!head->sound || info == NULL || version[strlen(version) + 1] != '\0')
        return false;
    const char *end = method + info->header_size;
    const char *last = head->last != NULL ? head->last : version + strlen(version);
    return end - last == 4;
}

const char *tl_framing_problem(struct MHD_Connection *connection, const char *method,
                               const char *version)
{
    struct head head = {.named = true, .sound = true};
    (void)MHD_get_connection_values_n(connection, MHD_HEADER_KIND, look, &head);
    if (head.lengths > 1)
        return "There is more than one Content-Length";
    if (head.encodings > 0 && head.lengths > 0)
        return "There are both Content-Length and Transfer-Encoding";
    if (head.encodings > 1 || (head.encodings == 1 && !head.chunked))
        return "The only Transfer-Encoding is chunked";
    if (!head.named)
        return "There is white space before a colon";
    if (!lines_are_sound(connection, &head, method, version))
        return "Each line of the head must end with CR LF";
    return NULL;
}
