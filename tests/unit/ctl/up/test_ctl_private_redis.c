/* SPDX-License-Identifier: Apache-2.0 */
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "ctl/up/up.h"

/* A fresh folder with an executable that looks like a redis-server, which is all that PATH offers.
 */
static char base[] = "/tmp/tellerline-test-XXXXXX";

/* A server that nothing prepared, and its data folder. */
struct private_redis {
    struct tl_private_server server;
    struct tl_data_folder folder;
};

static bool prepare(struct private_redis *made, const char *data, struct tl_error *err)
{
    *made = (struct private_redis){.folder = {.given = data, .lock = -1}};
    return tl_private_redis_prepare(&made->server, &made->folder, err);
}

static void release(struct private_redis *made)
{
    tl_private_server_release(&made->server);
    tl_data_folder_close(&made->folder);
}

static void make_program(const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", base, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    assert_int_equal(chmod(path, 0700), 0);
}

static int setup(void **state)
{
    (void)state;
    snprintf(base, sizeof(base), "/tmp/tellerline-test-XXXXXX");
    assert_non_null(mkdtemp(base));
    assert_int_equal(setenv("PATH", base, 1), 0);
    return 0;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *position)
{
    (void)status;
    (void)kind;
    (void)position;
    return remove(path);
}

static int teardown(void **state)
{
    (void)state;
    return nftw(base, remove_one, 4, FTW_DEPTH | FTW_PHYS);
}

/* The socket of a server with its data there; one elsewhere is removed at once. */
static const char *socket_of(const char *data)
{
    static struct tl_private_server server;
    struct tl_data_folder folder = {.lock = -1};
    struct tl_error err = {0};
    server = (struct tl_private_server){.folder = &folder, .url_file = "none"};
    snprintf(server.data, sizeof(server.data), "%s", data);
    assert_true(tl_private_server_socket(&server, "redis.sock", &err));
    tl_private_server_release(&server);
    return server.socket_folder[0] != '\0' ? "elsewhere" : server.socket;
}

static void test_socket_path(void **state)
{
    (void)state;
    char folder[200] = "/";
    assert_string_equal(socket_of("/srv/data"), "/srv/data/redis.sock");
    assert_string_equal(socket_of("/srv/a?b"), "elsewhere");
    assert_string_equal(socket_of("/srv/a,b"), "elsewhere");
    memset(folder + 1, 'x', sizeof(folder) - 2);
    folder[107 - strlen("/redis.sock")] = '\0'; /* just fits */
    assert_int_equal(strlen(socket_of(folder)), 107);
    folder[107 - strlen("/redis.sock")] = 'x';
    folder[108 - strlen("/redis.sock")] = '\0'; /* one byte too long */
    assert_string_equal(socket_of(folder), "elsewhere");
}

static void test_absent_program_names_the_package(void **state)
{
    (void)state;
    struct private_redis redis;
    struct tl_error err = {0};
    assert_false(prepare(&redis, "/nonexistent/data", &err));
    assert_non_null(strstr(err.text, "apt-get install redis-server"));
}

static void test_folder_is_private_and_locked(void **state)
{
    (void)state;
    struct private_redis first;
    struct private_redis second;
    struct tl_error err = {0};
    char data[PATH_MAX];
    struct stat status;
    make_program("valkey-server");
    snprintf(data, sizeof(data), "%s/data", base);
    assert_true(prepare(&first, data, &err));
    assert_non_null(strstr(first.server.program, "/valkey-server"));
    assert_int_equal(stat(data, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);

    assert_false(prepare(&second, data, &err));
    assert_non_null(strstr(err.text, "already runs"));
    release(&first);
    assert_true(prepare(&second, data, &err));
    release(&second);
    release(&second); /* once is enough, twice does no harm */
}

static void test_open_folder_is_refused(void **state)
{
    (void)state;
    struct private_redis redis;
    struct tl_error err = {0};
    char data[PATH_MAX];
    make_program("redis-server");
    snprintf(data, sizeof(data), "%s/data", base);
    assert_int_equal(mkdir(data, 0700), 0);
    assert_int_equal(chmod(data, 0777), 0);
    assert_false(prepare(&redis, data, &err));
    assert_non_null(strstr(err.text, "chmod 700"));
}

static void test_long_path_gets_a_socket_elsewhere(void **state)
{
    (void)state;
    struct private_redis redis;
    struct tl_error err = {0};
    char data[PATH_MAX];
    make_program("redis-server");
    snprintf(data, sizeof(data), "%s/%0110d", base, 0);
    assert_int_equal(unsetenv("XDG_RUNTIME_DIR"), 0);
    assert_true(prepare(&redis, data, &err));
    assert_int_equal(strncmp(redis.server.socket, "/tmp/tellerline-", 16), 0);
    assert_int_equal(strncmp(redis.server.url, "unix:///tmp/tellerline-", 23), 0);
    assert_int_equal(access(redis.server.socket_folder, F_OK), 0);
    release(&redis);
    assert_int_equal(access(redis.server.socket_folder, F_OK), -1);
}

static void test_address_is_published_and_taken_back(void **state)
{
    (void)state;
    struct private_redis redis;
    struct tl_error err = {0};
    char data[PATH_MAX];
    char path[PATH_MAX + 16];
    char line[200] = "";
    make_program("redis-server");
    snprintf(data, sizeof(data), "%s/data", base);
    snprintf(path, sizeof(path), "%s/redis.url", data);
    assert_true(prepare(&redis, data, &err));
    assert_true(tl_private_server_publish(&redis.server, &err));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof(line), file));
    fclose(file);
    line[strcspn(line, "\n")] = '\0';
    assert_string_equal(line, redis.server.url);
    release(&redis);
    assert_int_equal(access(path, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_socket_path),
        cmocka_unit_test_setup_teardown(test_absent_program_names_the_package, setup, teardown),
        cmocka_unit_test_setup_teardown(test_folder_is_private_and_locked, setup, teardown),
        cmocka_unit_test_setup_teardown(test_open_folder_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_long_path_gets_a_socket_elsewhere, setup, teardown),
        cmocka_unit_test_setup_teardown(test_address_is_published_and_taken_back, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
