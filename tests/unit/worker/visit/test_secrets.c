/* SPDX-License-Identifier: Apache-2.0 */
/* The secrets of a worker, read from their files: the API keys of trusted callers. */
#include <fcntl.h>
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

#include "worker/visit/secrets.h"

#define KEY "0123456789abcdef0123456789abcdef"

/* All secrets in a folder of their own; api_keys: the text of that file, NULL: there is none. mode
 * 0: no file is named. */
static bool load(const char *api_keys, mode_t mode, struct tl_secrets *secrets,
                 struct tl_error *err)
{
    static struct tl_config config;
    char folder[] = "/tmp/tl-secrets-XXXXXX";
    static const char *const names[] = {"ticket.keys", "pass.keys", "api.keys"};
    char *const paths[] = {config.secrets.ticket_keys, config.secrets.pass_keys,
                           config.secrets.api_keys};
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < 3; i++)
        snprintf(paths[i], sizeof(config.secrets.api_keys), "%s/%s", folder, names[i]);
    if (mode == 0)
        config.secrets.api_keys[0] = '\0';
    if (api_keys != NULL) {
        int fd = open(config.secrets.api_keys, O_CREAT | O_WRONLY, mode);
        assert_int_equal(write(fd, api_keys, strlen(api_keys)), strlen(api_keys));
        assert_int_equal(fchmod(fd, mode), 0);
        close(fd);
    }
    bool ok = tl_secrets_load(secrets, &config, true, err);
    for (size_t i = 0; i < 3; i++)
        unlink(paths[i]);
    assert_int_equal(rmdir(folder), 0);
    return ok;
}

static void test_api_keys(void **state)
{
    (void)state;
    struct tl_error err = {0};
    struct tl_secrets secrets;
    assert_true(load("# callers\nshop " KEY "\n\napp\t" KEY "X # second\n", 0600, &secrets, &err));
    assert_string_equal(tl_callers_find(&secrets.callers, KEY), "shop");
    assert_string_equal(tl_callers_find(&secrets.callers, KEY "X"), "app");
    assert_null(tl_callers_find(&secrets.callers, KEY "Y"));
    assert_null(tl_callers_find(&secrets.callers, "0123456789abcdef"));
    assert_null(tl_callers_find(&secrets.callers, ""));
    tl_secrets_free(&secrets);
    assert_null(tl_callers_find(&secrets.callers, KEY));

    for (mode_t mode = 0; mode <= 0600; mode += 0600) {
        assert_true(load(NULL, mode, &secrets, &err));
        assert_null(tl_callers_find(&secrets.callers, KEY));
        assert_null(tl_callers_find(&secrets.callers, ""));
        tl_secrets_free(&secrets);
    }
}

static void test_bad_api_keys(void **state)
{
    (void)state;
    static const char *const cases[] = {"shop\n", "shop short\n", KEY "\n", "shop " KEY " more\n",
                                        "a-name-that-is-longer-than-any-sensible " KEY "\n"};
    struct tl_secrets secrets;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tl_error err = {0};
        assert_false(load(cases[i], 0600, &secrets, &err));
        assert_non_null(strstr(err.text, ":1: expected"));
        assert_null(strstr(err.text, KEY)); /* never the key itself */
    }
    struct tl_error err = {0};
    assert_false(load("shop " KEY "\n", 0644, &secrets, &err));
    assert_non_null(strstr(err.text, "chmod"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_api_keys),
        cmocka_unit_test(test_bad_api_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
