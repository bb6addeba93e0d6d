#include <stdlib.h>
#include <string.h>

#include "worker/http/json_text.h"
#include "worker/queue/notice.h"

bool tl_notice_set(struct tl_notice *notice, const char *text, size_t length)
{
    if (length > TL_NOTICE_MAX)
        length = TL_NOTICE_MAX; /* written by a newer version */
    if (strlen(notice->text) == length && memcmp(notice->text, text, length) == 0)
        return true;
    size_t size = TL_JSON_ESCAPED_MAX(length) + 16;
    char *json_text = malloc(size);
    if (json_text == NULL)
        return false;
    memcpy(notice->text, text, length);
    notice->text[length] = '\0';
    struct tl_json json;
    tl_json_begin(&json, json_text, size);
    tl_json_string(&json, "text", notice->text);
    json_text[tl_json_end(&json)] = '\0';
    free(notice->json);
    notice->json = json_text;
    notice->version++;
    return true;
}
