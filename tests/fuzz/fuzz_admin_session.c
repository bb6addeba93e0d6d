/* SPDX-License-Identifier: Apache-2.0 */
/* The cookie of a session: any text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/admin/sessions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct tl_token_key key;
    static const struct tl_token_hash hash;
    static struct tl_admin_sessions *sessions;
    struct tl_admin_session session;
    if (sessions == NULL)
        sessions = tl_admin_sessions_new(NULL);
    char *text = malloc(size + 1);
    if (text == NULL || sessions == NULL)
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    /* Nobody can seal one without the key. */
    if (tl_admin_session_parse(text, &session) && session.name[0] == '\0')
        abort();
    if (session.name[0] != '\0')
        (void)tl_admin_sessions_check(sessions, &session, &key, &hash, 0);
    free(text);
    return 0;
}
