/* SPDX-License-Identifier: Apache-2.0 */
/* A real redis-server for one test, on a private socket in a private folder. It is removed when the
 * test ends. */
#ifndef TL_TEST_REDIS_SERVER_H
#define TL_TEST_REDIS_SERVER_H

#include "common/store/actor.h"
#include "common/store/keys.h"
#include "common/store/library.h"
#include "common/store/redis.h"

struct test_redis;

/* Who changes something in a test. */
extern const struct tl_actor test_actor;
/* Of a queue in a store of one server. */
#define TEST_SITE(redis) ((struct tl_queue_site){(redis), (redis)})

/* Starts one (empty) and waits until it answers. Fails the test if none is installed. */
struct test_redis *test_redis_start(void);
/* The same, and what it holds is still there after test_redis_restart: to write a history costs
 * more than most commands. */
struct test_redis *test_redis_start_kept(void);
/* The same: a cluster of one node, which has all slots. / One that joins it, without slots. / Gives
 * it a slot in which no key is. / The address of a node for tl_store_new. */
struct test_redis *test_redis_start_node(void);
struct test_redis *test_redis_join_node(const struct test_redis *first);
void test_redis_give_slot(struct tl_redis *from, struct tl_redis *to, unsigned slot);
void test_redis_node_url(const struct test_redis *server, char url[64]);
void test_redis_stop(struct test_redis **server);
/* Stops the process hard (SIGKILL) / starts it again on the same folder, empty unless it was
 * started by test_redis_start_kept. */
void test_redis_kill(struct test_redis *server);
void test_redis_restart(struct test_redis *server);
/* Of a kept one: how long its history is now. / Kills it, removes all of its history behind that
 * length, as a power cut does to what was not on the disk yet, and starts it again. */
long long test_redis_history(const struct test_redis *server);
void test_redis_lose_tail(struct test_redis *server, long long history);
/* Starts it again with one setting more ("key-load-delay", "100"), without waiting until it
 * answers. */
void test_redis_restart_with(struct test_redis *server, const char *setting, const char *value);
/* Pauses the process (SIGSTOP): connections stay open without an answer / resumes it. */
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

/* Changes one setting of a queue ("capacity", "20"), as the test actor. */
bool test_queue_set(struct tl_redis *redis, const struct tl_keys *keys, const char *name,
                    const char *value, struct tl_error *err);

/* Runs a command given as words ("HGET key field"), fails the test on an error. Caller frees the
 * reply. */
struct tl_reply *test_redis_call(struct tl_redis *redis, const char *words);
/* The same for an answer that is a number (integer or digits), or -1 for nil. */
long long test_redis_number(struct tl_redis *redis, const char *words);

/* The same for words formatted as by printf. */
long long test_redis_ask(struct tl_redis *redis, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Runs a command that must be refused; returns the kind of the error. */
enum tl_error_kind test_redis_refusal(struct tl_redis *redis, const char *words);
/* A checksum of all keys and their content, including streams and their groups. It stays the same
 * while nothing is written. */
uint64_t test_redis_fingerprint(struct tl_redis *redis);

/* Checks the invariants of queue `keys` that hold after every step (sizes, no visitor twice, the
 * sum of all outcomes). */
void test_invariants(struct tl_redis *redis, const struct tl_keys *keys);

/* Makes queue "q" with the given settings ("capacity=3 session_ttl=5s") and fills keys. Its seqs,
 * events and fences count from 1, while those of any other queue start at a base that depends on
 * the time. */
void test_queue(struct tl_redis *redis, const char *settings, struct tl_keys *keys);

/* Calls a function of the library on a queue with the words in `arguments`, and test_actor where it
 * records changes. `error` NULL: the test fails with it. */
struct tl_reply *test_function(struct tl_redis *redis, const char *function,
                               const struct tl_keys *keys, const char *arguments, char *error);
/* Runs Lua of a test: KEYS are those of the queue, in the order of enum tl_key. */
struct tl_reply *test_eval(struct tl_redis *redis, const char *source, const struct tl_keys *keys,
                           char *error);
/* Loads the library once more as another one, unless it is there: its functions are tl_<name>_admit
 * and so on. pairs: texts, each followed by what takes its place; ends with NULL. */
void test_library_variant(struct tl_redis *redis, const char *name, const char *const pairs[]);
/* Such a pair: the functions read the clock of a list, "test:clock", as TIME answers it. */
#define TEST_CLOCK "redis.call('TIME')", "redis.call('LRANGE', 'test:clock', 0, -1)"

/* The server's clock, Unix ms. */
long long test_redis_ms(struct tl_redis *redis);
/* Waits until the server's clock has advanced by ms: polls TIME, the only clock of the functions.
 */
void test_redis_pass_time(struct tl_redis *redis, long long ms);

#endif
