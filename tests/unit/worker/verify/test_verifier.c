/* SPDX-License-Identifier: Apache-2.0 */
/* A challenge service is asked: a small server on this machine stands for it. */
#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "worker/report/worker_metrics.h"
#include "worker/verify/verifier.h"

enum { LONG_MS = 60000, QUESTIONS = 300 };

static _Alignas(64) unsigned char metrics_memory[16384];

/* Serves one connection at a time. A token that begins with "good" is; "late" has no answer. */
struct service {
    int fd;
    char url[64];
    pthread_t thread;
    bool started;
    _Atomic unsigned connections, questions;
    char form[256]; /* the last one; read it when the thread has ended */
};

/* Reads a request and answers it. False at the end of the connection. */
static bool serve_one(struct service *service, int fd)
{
    static const char good[] = "HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{\"success\":true}";
    static const char bad[] = "HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n{\"success\":false}";
    char text[4096];
    size_t length = 0;
    const char *body = NULL;
    do {
        ssize_t n = recv(fd, text + length, sizeof(text) - 1 - length, 0);
        if (n <= 0)
            return false;
        length += (size_t)n;
        text[length] = '\0';
        body = strstr(text, "\r\n\r\n");
    } while (body == NULL || length < (size_t)(body + 4 - text) +
                                          strtoul(strstr(text, "Content-Length: ") + 16, NULL, 10));
    service->questions++;
    snprintf(service->form, sizeof(service->form), "%s", body + 4);
    if (strstr(body, "response=late") != NULL)
        return recv(fd, text, sizeof(text), 0) > 0; /* until the client ends it */
    const char *answer = strstr(body, "response=good") != NULL ? good : bad;
    return send(fd, answer, strlen(answer), MSG_NOSIGNAL) > 0;
}

static void *serve(void *context)
{
    struct service *service = context;
    int fd;
    while ((fd = accept(service->fd, NULL, NULL)) >= 0) {
        service->connections++;
        while (serve_one(service, fd))
            continue;
        close(fd);
    }
    return NULL;
}

/* Listens; answers only once it is started. */
static void service_open(struct service *service)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof(address);
    *service = (struct service){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_true(service->fd >= 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(service->fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(getsockname(service->fd, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(listen(service->fd, 16), 0);
    snprintf(service->url, sizeof(service->url), "http://127.0.0.1:%u/verify",
             (unsigned)ntohs(address.sin_port));
}

static void service_start(struct service *service)
{
    assert_int_equal(pthread_create(&service->thread, NULL, serve, service), 0);
    service->started = true;
}

static void service_close(struct service *service)
{
    shutdown(service->fd, SHUT_RDWR);
    if (service->started)
        pthread_join(service->thread, NULL);
    close(service->fd);
}

struct asker {
    uv_loop_t loop;
    struct tl_verifier *verifier;
    struct tl_fetch *fetches[QUESTIONS + 1]; /* by their numbers */
    unsigned verdicts;
    uint64_t last; /* its number */
    struct tl_verdict verdict;
    unsigned kinds[TL_VERDICT_NO_SECRET + 1];
};

static void on_ended(void *context)
{
    struct asker *asker = context;
    for (uint64_t i = 0; i <= QUESTIONS; i++) {
        if (asker->fetches[i] == NULL ||
            !tl_verifier_judge(asker->verifier, asker->fetches[i], &asker->verdict))
            continue;
        tl_fetch_end(&asker->fetches[i]);
        asker->verdicts++;
        asker->kinds[asker->verdict.kind]++;
        asker->last = i;
    }
}

static void asker_open(struct asker *asker, const char *url, uint64_t max_concurrent)
{
    struct tl_error err = {0};
    memset(asker, 0, sizeof(*asker));
    memset(metrics_memory, 0, sizeof(metrics_memory));
    assert_true(tl_metrics_size(tl_worker_metrics, TL_WORKER_METRICS) <= sizeof(metrics_memory));
    assert_int_equal(uv_loop_init(&asker->loop), 0);
    asker->verifier = tl_verifier_new(
        &asker->loop,
        &(struct tl_verifier_settings){
            .url = url,
            .rules = {.hostname = ""},
            .max_concurrent = max_concurrent,
            .metrics = tl_metrics_init(metrics_memory, tl_worker_metrics, TL_WORKER_METRICS),
            .context = asker,
            .ended = on_ended},
        &err);
    if (asker->verifier == NULL)
        fail_msg("%s", err.text);
}

static void asker_close(struct asker *asker)
{
    for (uint64_t i = 0; i <= QUESTIONS; i++)
        tl_fetch_end(&asker->fetches[i]);
    tl_verifier_free(&asker->verifier);
    assert_null(asker->verifier);
    uv_run(&asker->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&asker->loop), 0);
}

static void ask(struct asker *asker, uint64_t number, const char *token, int64_t wait_ms)
{
    asker->fetches[number] = tl_verifier_ask(
        asker->verifier, &(struct tl_question){.secret = "a secret",
                                               .token = token,
                                               .address = "::1",
                                               .until_ms = tl_clock_ms() + wait_ms});
    assert_non_null(asker->fetches[number]);
}

/* Runs the loop until there are so many verdicts; its descriptor keeps it alive. */
static void run_until(struct asker *asker, unsigned verdicts)
{
    while (asker->verdicts < verdicts)
        uv_run(&asker->loop, UV_RUN_ONCE);
}

static void each_question_has_a_verdict(void **state)
{
    (void)state;
    struct service service;
    struct asker asker;
    service_open(&service);
    service_start(&service);
    asker_open(&asker, service.url, 1);
    for (uint64_t i = 0; i < QUESTIONS; i++)
        ask(&asker, i, i % 3 == 0 ? "good&x=\"1\"" : "bad", LONG_MS);
    run_until(&asker, QUESTIONS);
    assert_int_equal(asker.verdicts, QUESTIONS);
    assert_int_equal(asker.kinds[TL_VERDICT_PASSED], QUESTIONS / 3);
    assert_int_equal(asker.kinds[TL_VERDICT_REFUSED], QUESTIONS - QUESTIONS / 3);
    ask(&asker, QUESTIONS, "good&x=\"1\"", LONG_MS);
    run_until(&asker, QUESTIONS + 1);
    assert_int_equal(asker.last, QUESTIONS);
    asker_close(&asker);
    service_close(&service);
    assert_string_equal(service.form,
                        "secret=a%20secret&response=good%26x%3D%221%22&remoteip=%3A%3A1");
    assert_int_equal(service.connections, 1);
    assert_int_equal(service.questions, QUESTIONS + 1);
}

static void a_service_that_is_not_there(void **state)
{
    (void)state;
    struct service service;
    struct asker asker;
    service_open(&service);
    service_close(&service); /* no one listens there now */
    asker_open(&asker, service.url, 4);
    ask(&asker, 7, "good", LONG_MS);
    run_until(&asker, 1);
    assert_int_equal(asker.verdict.kind, TL_VERDICT_UNREACHABLE);
    assert_true(asker.verdict.why[0] != '\0');
    assert_int_equal(asker.last, 7);
    asker_close(&asker);
}

/* Also one that waits for another. */
static void no_question_takes_longer_than_it_may(void **state)
{
    (void)state;
    struct service service;
    struct asker asker;
    service_open(&service); /* its backlog accepts, and nothing answers */
    asker_open(&asker, service.url, 1);
    for (uint64_t i = 0; i < 3; i++)
        ask(&asker, i, "good", 50);
    run_until(&asker, 3);
    assert_int_equal(asker.kinds[TL_VERDICT_TIMED_OUT], 3);
    asker_close(&asker);
    service_close(&service);
}

static void a_question_that_is_cancelled_makes_room(void **state)
{
    (void)state;
    struct service service;
    struct asker asker;
    service_open(&service);
    service_start(&service);
    asker_open(&asker, service.url, 1);
    ask(&asker, 1, "late", LONG_MS);
    ask(&asker, 2, "good-2", LONG_MS);
    ask(&asker, 3, "good-3", LONG_MS);
    while (service.questions == 0)
        usleep(1000);
    tl_fetch_end(&asker.fetches[2]);
    tl_fetch_end(&asker.fetches[1]);
    tl_fetch_end(&asker.fetches[99]); /* which nobody asked */
    run_until(&asker, 1);
    assert_int_equal(asker.last, 3);
    assert_int_equal(asker.verdict.kind, TL_VERDICT_PASSED);
    assert_int_equal(asker.verdicts, 1);
    asker_close(&asker);
    service_close(&service);
}

static void it_stops_in_the_middle(void **state)
{
    (void)state;
    struct service service;
    struct asker asker;
    service_open(&service);
    asker_open(&asker, service.url, 2);
    for (uint64_t i = 0; i < 20; i++)
        ask(&asker, i, "good", LONG_MS);
    asker_close(&asker);
    assert_int_equal(asker.verdicts, 0);
    service_close(&service);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_question_has_a_verdict),
        cmocka_unit_test(a_service_that_is_not_there),
        cmocka_unit_test(no_question_takes_longer_than_it_may),
        cmocka_unit_test(a_question_that_is_cancelled_makes_room),
        cmocka_unit_test(it_stops_in_the_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
