/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/config/config.h"

#include "ctl/calls/call.h"
#include "ctl/calls/tell.h"
#include "ctl/shell/json.h"

enum { SERVER_MAX = sizeof(((struct tl_listen *)NULL)->host) + 32 };

/* The admin listener of this machine, and the token in its file. */
static bool find_here(const struct tl_config *config, struct tl_ctl_options *options,
                      char server[SERVER_MAX], struct tl_error *err)
{
    const struct tl_listen *listen = &config->admin.worker;
    const char *host = listen->host;
    if (listen->port <= 0)
        return tl_error_set(err, TL_ERR_INVALID,
                            "admin.worker has no fixed port; say where the admin listener is with "
                            "--server");
    if (strcmp(host, "0.0.0.0") == 0)
        host = "127.0.0.1";
    else if (strcmp(host, "::") == 0)
        host = "::1";
    snprintf(server, SERVER_MAX, strchr(host, ':') != NULL ? "http://[%s]:%d" : "http://%s:%d",
             host, listen->port);
    options->server = server;
    if (options->token_file == NULL && getenv("TELLERLINE_TOKEN") == NULL)
        options->token_file = config->secrets.admin_token;
    return true;
}

/* Writes the address to standard output, alone, so that a shell can take it; the rest is for
 * people. */
static bool show(const char *server, const json_t *answer)
{
    const char *url = tl_json_text(answer, "url");
    size_t length = url[0] == '/' ? strlen(server) : 0;
    while (length > 0 && server[length - 1] == '/')
        length--;
    bool ok = printf("%.*s%s\n", (int)length, server, url) > 0 && fflush(stdout) == 0;
    fputs("Open it in a browser within ten minutes. It signs in once.\n", stderr);
    return ok;
}

int tl_command_dashboard(const struct tl_ctl_options *options)
{
    char server[SERVER_MAX];
    struct tl_error err = {0};
    struct tl_ctl_options there = *options;
    const struct tl_config *config = NULL;
    json_t *answer = NULL;
    bool found = options->server != NULL;
    if (!found) {
        config = tl_config_load(options->config, &err);
        found = config != NULL && find_here(config, &there, server, &err);
    }
    const struct tl_ctl_ask ask = {.method = "POST", .target = "/v1/admin/session/link"};
    int status =
        found ? tl_ctl_call_once(&there, &ask, &answer) : tl_ctl_fail(TL_EXIT_FAILED, &err);
    tl_config_free(&config);
    if (status != TL_EXIT_OK)
        return status;
    bool ok = options->json ? tl_json_write(json_incref(answer)) : show(there.server, answer);
    json_decref(answer);
    return tl_ctl_written(ok);
}
