/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to the store, against a scripted server that breaks the protocol. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/store/redis.h"
#include "common/store/reply.h"

#define PING_BYTES 14 /* "*1\r\n$4\r\nPING\r\n" */
#define SOON_MS    100
#define NEVER_MS   60000 /* never reached: the server answers at once, even on a busy machine */

struct fake {
    char folder[64];
    char url[128];
    int listener;
    pthread_t thread;
    const char *answer; /* NULL: closes without an answer */
    size_t answer_length;
    bool hold; /* keeps the connection open until the other side closes */
};

static void *serve(void *context)
{
    const struct fake *fake = context;
    char bytes[PING_BYTES];
    int peer = accept(fake->listener, NULL, NULL);
    if (peer < 0)
        return NULL;
    bool told =
        recv(peer, bytes, sizeof(bytes), MSG_WAITALL) == (ssize_t)sizeof(bytes) &&
        send(peer, fake->answer, fake->answer_length, MSG_NOSIGNAL) == (ssize_t)fake->answer_length;
    if (told && fake->hold)            /* otherwise the client has given up */
        (void)recv(peer, bytes, 1, 0); /* returns when the client has closed */
    close(peer);
    return NULL;
}

static void start(struct fake *fake, const char *answer, bool hold)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    *fake = (struct fake){.answer = answer, .answer_length = strlen(answer), .hold = hold};
    snprintf(fake->folder, sizeof(fake->folder), "/tmp/tellerline-test-XXXXXX");
    assert_non_null(mkdtemp(fake->folder));
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", fake->folder);
    snprintf(fake->url, sizeof(fake->url), "unix://%s", address.sun_path);
    fake->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fake->listener >= 0);
    assert_int_equal(bind(fake->listener, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fake->listener, 1), 0);
    assert_int_equal(pthread_create(&fake->thread, NULL, serve, fake), 0);
}

static void stop(struct fake *fake)
{
    char path[96];
    assert_int_equal(pthread_join(fake->thread, NULL), 0);
    close(fake->listener);
    snprintf(path, sizeof(path), "%s/s", fake->folder);
    unlink(path);
    rmdir(fake->folder);
}

/* Sends a PING to a server with this answer. Returns the kind of the error, TL_OK for a reply. A
 * broken connection must be closed and an intact one open. */
static enum tl_error_kind ping(const char *answer, bool hold, int64_t timeout_ms)
{
    struct fake fake;
    struct tl_error err = {0};
    start(&fake, answer, hold);
    const struct tl_redis_settings settings = {.url = fake.url, .timeout_ms = timeout_ms};
    struct tl_redis *redis = tl_redis_new(&settings, &err);
    assert_non_null(redis);
    assert_true(tl_redis_connect(redis, &err));
    struct tl_args args = {0};
    tl_args_str(&args, "PING");
    struct tl_reply *reply = tl_redis_call(redis, &args, &err);
    tl_args_free(&args);
    assert_true((reply == NULL) == (err.kind != TL_OK));
    assert_true((err.kind == TL_OK) == (err.text[0] == '\0'));
    bool intact = err.kind == TL_OK || err.kind == TL_ERR_STORE;
    assert_int_equal(tl_redis_connected(redis), intact);
    tl_reply_free(reply);
    tl_redis_free(&redis);
    stop(&fake);
    return err.kind;
}

static void a_proper_answer_is_taken(void **state)
{
    (void)state;
    assert_int_equal(ping("+PONG\r\n", true, NEVER_MS), TL_OK);
    assert_int_equal(ping("-ERR no\r\n", true, NEVER_MS), TL_ERR_STORE);
    assert_int_equal(ping("-\r\n", true, NEVER_MS), TL_ERR_STORE);
}

static void nonsense_is_a_protocol_error(void **state)
{
    static const char *const nonsense[] = {
        "HTTP/1.1 400 Bad Request\r\n\r\n", "?what\r\n", ":twelve\r\n",    "$-7\r\n\r\n",
        "*99999999999999999999\r\n",        "\r\n",      "$3x\r\nabc\r\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++)
        if (ping(nonsense[i], true, NEVER_MS) != TL_ERR_PROTOCOL)
            fail_msg("taken for something else: %s", nonsense[i]);
}

static void half_an_answer_and_a_close_is_a_broken_connection(void **state)
{
    static const char *const halves[] = {"", "+PO", "$100\r\nonly this", "*2\r\n:1\r\n", "*3\r\n$"};
    (void)state;
    for (size_t i = 0; i < sizeof(halves) / sizeof(halves[0]); i++)
        if (ping(halves[i], false, NEVER_MS) != TL_ERR_CONNECT)
            fail_msg("taken for something else: %s", halves[i]);
}

static void half_an_answer_and_silence_is_a_timeout(void **state)
{
    static const char *const halves[] = {"", "+PO", "$100\r\nonly this", "*2\r\n:1\r\n"};
    (void)state;
    for (size_t i = 0; i < sizeof(halves) / sizeof(halves[0]); i++)
        if (ping(halves[i], true, SOON_MS) != TL_ERR_TIMEOUT)
            fail_msg("taken for something else: %s", halves[i]);
}

static void a_closed_port_is_a_connect_error(void **state)
{
    (void)state;
    const struct tl_redis_settings settings = {.url = "unix:///nowhere/at/all",
                                               .timeout_ms = SOON_MS};
    struct tl_error err = {0};
    struct tl_redis *redis = tl_redis_new(&settings, &err);
    assert_false(tl_redis_connect(redis, &err));
    assert_int_equal(err.kind, TL_ERR_CONNECT);
    assert_non_null(strstr(err.text, "/nowhere/at/all"));
    assert_false(tl_redis_connected(redis));
    tl_redis_free(&redis);
    assert_null(redis);
    tl_redis_free(&redis);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_proper_answer_is_taken),
        cmocka_unit_test(nonsense_is_a_protocol_error),
        cmocka_unit_test(half_an_answer_and_a_close_is_a_broken_connection),
        cmocka_unit_test(half_an_answer_and_silence_is_a_timeout),
        cmocka_unit_test(a_closed_port_is_a_connect_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
