/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/config/redis_url.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void urls_are_taken_apart(void **state)
{
    static const struct {
        const char *text;
        struct tl_redis_url url;
    } good[] = {
        {"redis://localhost", {.host = "localhost", .port = 6379}},
        {"redis://localhost/", {.host = "localhost", .port = 6379}},
        {"redis://10.0.0.7:7000/15", {.host = "10.0.0.7", .port = 7000, .db = 15}},
        {"rediss://cache.example:1", {.tls = true, .host = "cache.example", .port = 1}},
        {"redis://h:65535", {.host = "h", .port = 65535}},
        {"redis://anna:secret@h",
         {.user = "anna", .password = "secret", .host = "h", .port = 6379}},
        {"redis://anna@h", {.user = "anna", .host = "h", .port = 6379}},
        {"redis://:secret@h", {.password = "secret", .host = "h", .port = 6379}},
        {"redis://a:b:c@h", {.user = "a", .password = "b:c", .host = "h", .port = 6379}},
        {"redis://a:b@c@h", {.user = "a", .password = "b@c", .host = "h", .port = 6379}},
        {"redis://%61:%2F%3a%40%C3%A4@h/2",
         {.user = "a", .password = "/:@\xc3\xa4", .host = "h", .port = 6379, .db = 2}},
        {"redis://[::1]", {.host = "::1", .port = 6379}},
        {"redis://u:p@[fe80::1]:6380/1",
         {.user = "u", .password = "p", .host = "fe80::1", .port = 6380, .db = 1}},
        {"redis+sentinel://s1/line",
         {.sentinels = {{"s1", 26379}}, .n_sentinels = 1, .master = "line", .port = 6379}},
        {"rediss+sentinel://u:p%2c@s1:1,[::1]:2,10.0.0.3/a.B-c_9/4",
         {.tls = true,
          .user = "u",
          .password = "p,",
          .sentinels = {{"s1", 1}, {"::1", 2}, {"10.0.0.3", 26379}},
          .n_sentinels = 3,
          .master = "a.B-c_9",
          .port = 6379,
          .db = 4}},
        {"redis+sentinel://a,b,c,d,e,f,g,h,i/m/",
         {.sentinels = {{"a", 26379}}, .n_sentinels = 9, .master = "m", .port = 6379}},
        {"unix:///run/redis.sock", {.unix_path = "/run/redis.sock", .port = 6379}},
        {"unix:///run/r?db=1000000", {.unix_path = "/run/r", .port = 6379, .db = 1000000}},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        struct tl_redis_url url;
        struct tl_error err = {0};
        if (!tl_redis_url_parse(good[i].text, &url, &err))
            fail_msg("%s: %s", good[i].text, err.text);
        assert_int_equal(url.tls, good[i].url.tls);
        assert_string_equal(url.unix_path, good[i].url.unix_path);
        assert_string_equal(url.host, good[i].url.host);
        assert_int_equal(url.port, good[i].url.port);
        assert_int_equal(url.db, good[i].url.db);
        assert_string_equal(url.user, good[i].url.user);
        assert_string_equal(url.password, good[i].url.password);
        assert_int_equal(url.n_sentinels, good[i].url.n_sentinels);
        assert_string_equal(url.master, good[i].url.master);
        for (size_t k = 0; k < url.n_sentinels && good[i].url.sentinels[k].port != 0; k++) {
            assert_string_equal(url.sentinels[k].host, good[i].url.sentinels[k].host);
            assert_int_equal(url.sentinels[k].port, good[i].url.sentinels[k].port);
        }
    }
}

static const struct {
    const char *text, *says;
} nonsense[] = {
    {"", "unknown scheme"},
    {"localhost:6379", "unknown scheme"},
    {"http://hidden@h", "unknown scheme"},
    {"Redis://h", "unknown scheme"},
    {"redis:/h", "unknown scheme"},
    {"redis://", "host is missing"},
    {"redis://:6379", "host is missing"},
    {"redis://:hidden@", "host is missing"},
    {"redis://:hidden@:6379", "host is missing"},
    {"redis://h:", "port"},
    {"redis://h:0", "port"},
    {"redis://h:65536", "port"},
    {"redis://h:4294967297", "port"},
    {"redis://h:-1", "port"},
    {"redis://h:6379x", "port"},
    {"redis://:hidden@h:63 79", "port"},
    {"redis://h/x", "number"},
    {"redis://h/1/2", "number"},
    {"redis://h/1000001", "number"},
    {"redis://h/0?x=1", "number"},
    {"redis://:hidden%@h", "password"},
    {"redis://:hidden%4@h", "password"},
    {"redis://:hidden%zz@h", "password"},
    {"redis://:hidden%00@h", "password"},
    {"redis://us%er:hidden@h", "user name"},
    {"redis://[::1", "without ']'"},
    {"redis://[::1]6379", "may follow"},
    {"redis://[]", "host is missing"},
    {"redis://[::1]:", "port"},
    {"redis+sentinel://", "host is missing"},
    {"redis+sentinel://:hidden@/m", "host is missing"},
    {"redis+sentinel://s1,/m", "host is missing"},
    {"redis+sentinel://,s1/m", "host is missing"},
    {"redis+sentinel://s1:0/m", "port"},
    {"redis+sentinel://s1", "name of the master"},
    {"redis+sentinel://s1/", "name of the master"},
    {"redis+sentinel://s1//1", "name of the master"},
    {"redis+sentinel://s1/m m", "holds only"},
    {"redis+sentinel://s1/m/x", "number"},
    {"redis+sentinel://:hidden@a,b,c,d,e,f,g,h,i,j/m", "more than 9"},
    {"redis+sentinels://s1/m", "unknown scheme"},
    {"unix://", "absolute"},
    {"unix://run/redis.sock", "absolute"},
    {"unix://?db=1", "absolute"},
    {"unix:///r?db=", "NUMBER"},
    {"unix:///r?db=1x", "NUMBER"},
    {"unix:///r?password=hidden", "NUMBER"},
};

static void nonsense_is_refused_without_the_password(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(nonsense); i++) {
        struct tl_redis_url url;
        struct tl_error err = {0};
        if (tl_redis_url_parse(nonsense[i].text, &url, &err) || err.kind != TL_ERR_INVALID ||
            strstr(err.text, nonsense[i].says) == NULL || strstr(err.text, "hidden") != NULL)
            fail_msg("%s: %s", nonsense[i].text, err.text);
        assert_non_null(strstr(err.text, "expected redis://"));
    }
}

/* Exactly as long as fits is taken, one more is refused. */
static void lengths_are_bounded(void **state)
{
    static const struct {
        const char *before, *after;
        size_t most;
    } parts[] = {
        {"unix:///", "", 106},
        {"redis://", "", 255},
        {"redis://", "@h", 127},
        {"redis://:", "@h", 255},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(parts); i++)
        for (size_t extra = 0; extra < 2; extra++) {
            char text[512], middle[300];
            struct tl_redis_url url;
            memset(middle, 'x', sizeof(middle));
            middle[parts[i].most + extra] = '\0';
            snprintf(text, sizeof(text), "%s%s%s", parts[i].before, middle, parts[i].after);
            assert_int_equal(tl_redis_url_parse(text, &url, NULL), extra == 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_are_taken_apart),
        cmocka_unit_test(nonsense_is_refused_without_the_password),
        cmocka_unit_test(lengths_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
