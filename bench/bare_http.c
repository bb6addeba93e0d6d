/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bare HTTP library answering a constant: what a worker is measured against. libmicrohttpd with
 * one epoll thread, keep-alive, and a body as long as a visitor's view.
 *
 *     bare_http PORT      serves 127.0.0.1 until it is killed
 */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <microhttpd.h>

#if MHD_VERSION >= 0x00097002
#define MHD_RESULT enum MHD_Result
#else
#define MHD_RESULT int
#endif

static const char view[] =
    "{\"queue\":\"bench\",\"visitor\":\"0123456789012345678901\",\"status\":\"waiting\","
    "\"ticket\":\"AXh2Y2IABi0tLS0tLS0AAAAAAAAAAWkAAAAWMDEyMzQ1Njc4OTAxMjM0NTY3ODkwMQAAAAAAAAAAAAAA"
    "AAAAAAAAAAAAAAAA\",\"position\":500000,\"ahead\":499999,\"waiting\":1000000,\"active\":300,"
    "\"capacity\":300,\"poll_after_ms\":10000}\n";

static MHD_RESULT handle(void *context, struct MHD_Connection *connection, const char *url,
                         const char *method, const char *version, const char *upload,
                         size_t *upload_size, void **request)
{
    (void)url;
    (void)method;
    (void)version;
    (void)upload;
    static int seen;
    if (*request == NULL) { /* the head alone: the library asks again with the body */
        *request = &seen;
        return MHD_YES;
    }
    if (*upload_size > 0) {
        *upload_size = 0;
        return MHD_YES;
    }
    return MHD_queue_response(connection, MHD_HTTP_OK, context);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fputs("usage: bare_http PORT\n", stderr);
        return 2;
    }
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port =
                                            htons((unsigned short)strtoul(argv[1], NULL, 10)),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct MHD_Response *response = MHD_create_response_from_buffer(
        sizeof(view) - 1, (void *)(uintptr_t)view, MHD_RESPMEM_PERSISTENT);
    if (response == NULL ||
        MHD_add_response_header(response, "Content-Type", "application/json") != MHD_YES)
        return 1;
    struct MHD_Daemon *daemon =
        MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, handle, response,
                         MHD_OPTION_SOCK_ADDR, (const struct sockaddr *)&address, MHD_OPTION_END);
    if (daemon == NULL) {
        perror("bare_http");
        return 1;
    }
    for (;;)
        pause();
}
