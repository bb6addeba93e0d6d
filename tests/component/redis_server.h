/* A real redis-server of the test's own, on a private socket in a folder of its own; gone when the
 * test ends. */
#ifndef TL_TEST_REDIS_SERVER_H
#define TL_TEST_REDIS_SERVER_H

#include "common/store/keys.h"
#include "common/store/redis.h"

struct test_redis;

/* Starts one (empty) and waits until it answers. Fails the test if there is none to start. */
struct test_redis *test_redis_start(void);
void test_redis_stop(struct test_redis **server);
/* Stops the process hard (SIGKILL) / starts it again on the same folder. */
void test_redis_kill(struct test_redis *server);
void test_redis_restart(struct test_redis *server);
/* Starts it again with one setting more ("key-load-delay", "100"), without waiting until it
 * answers. */
void test_redis_restart_with(struct test_redis *server, const char *setting, const char *value);
/* Stops it in its tracks (SIGSTOP): connections stay open and nobody answers / lets it go on. */
void test_redis_freeze(struct test_redis *server);
void test_redis_thaw(struct test_redis *server);
const char *test_redis_url(const struct test_redis *server);
/* Where it keeps its data. */
const char *test_redis_folder(const struct test_redis *server);

/* A connection to it, made by the caller's own module under test. */
struct tl_redis *test_redis_connect(const struct test_redis *server);

/* Any other connection, not yet open. */
struct tl_redis *test_redis_open(const char *url, int64_t timeout_ms);
bool test_redis_ping(struct tl_redis *redis, struct tl_error *err);

/* Runs a command given as words ("HGET key field"), fails the test on an error. Caller frees the
 * reply. */
struct tl_reply *test_redis_call(struct tl_redis *redis, const char *words);
/* The same for an answer that is a number (integer or digits), or -1 for nil. */
long long test_redis_number(struct tl_redis *redis, const char *words);

/* The same for words made as printf makes them. */
long long test_redis_ask(struct tl_redis *redis, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Runs a command that must be refused; returns the kind of the error. */
enum tl_error_kind test_redis_refusal(struct tl_redis *redis, const char *words);
/* A number over all keys and what they hold, streams with their groups included: it stays the same
 * as long as nothing is written. */
uint64_t test_redis_fingerprint(struct tl_redis *redis);

/* Checks on queue `keys` what must hold after every step (sizes, nobody twice, the sum of all
 * fates). */
void test_invariants(struct tl_redis *redis, const struct tl_keys *keys);

/* Makes queue "q" with the given settings ("capacity=3 session_ttl=5s") and fills keys. */
void test_queue(struct tl_redis *redis, const char *settings, struct tl_keys *keys);

/* Calls a script with all keys and the words in `arguments` as ARGV; NULL for an error, whose
 * sentence goes to error (320 bytes; may be NULL). */
struct tl_reply *test_script(struct tl_redis *redis, const char *source, const struct tl_keys *keys,
                             const char *arguments, char *error);

/* The server's clock, Unix ms. */
long long test_redis_ms(struct tl_redis *redis);
/* Lets the server's clock pass ms milliseconds: polls TIME, the only clock the scripts know. */
void test_redis_pass_time(struct tl_redis *redis, long long ms);

#endif
