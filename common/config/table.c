#include <string.h>

#include "common/base/networks.h"
#include "common/base/origin.h"
#include "common/config/redis_url.h"
#include "common/config/table.h"

#define MILLISECONDS(n) (n)
#define SECONDS(n)      INT64_C(n##000)
#define MINUTES(n)      (SECONDS(60) * (n))
#define DAYS(n)         (MINUTES(1440) * (n))

#define TIME_LAST_MS INT64_C(253402300799999) /* the end of the year 9999 */

/* Where a row's field is. */
#define PROCESS(member)                                                                            \
    .offset = offsetof(struct tl_config, member), .size = sizeof(((struct tl_config *)NULL)->member)
#define QUEUE(member)                                                                              \
    .offset = offsetof(struct tl_queue_settings, member),                                          \
    .size = sizeof(((struct tl_queue_settings *)NULL)->member)

static const char *const level_names[] = {"debug", "info", "warn", "error", NULL};
static const char *const format_names[] = {"logfmt", "json", NULL};
static const char *const durability_names[] = {"memory", "fsync", "replicated", NULL};
static const char *const policy_names[] = {"counter", "rate", "both", NULL};
static const char *const algorithm_names[] = {"HS256", "ES256", NULL};
static const char *const challenge_names[] = {"none", "work", NULL};
static const char *const join_names[] = {"open", "invited", NULL};
static const char *const sharing_names[] = {"count", "warn", "refuse", NULL};
static const char *const store_error_names[] = {"closed", "open", NULL};

static bool has_space(const char *value)
{
    for (; *value != '\0'; value++)
        if (*value <= ' ' || *value > '~')
            return true;
    return false;
}

/* An address a browser is sent to. Only these schemes: another (javascript:) would run in the
 * visitor's page. */
static bool check_url(const char *value, struct tl_error *err)
{
    const char *host = NULL;
    if (strncmp(value, "https://", 8) == 0)
        host = value + 8;
    else if (strncmp(value, "http://", 7) == 0)
        host = value + 7;
    if (*value != '\0' && (host == NULL || strchr("/?#", *host) != NULL || has_space(value)))
        return tl_error_set(err, TL_ERR_INVALID,
                            "not an address that starts with http:// or https:// and names a host, "
                            "in ASCII without spaces");
    return true;
}

/* Paths are appended to it. */
static bool check_public_url(const char *value, struct tl_error *err)
{
    if (!check_url(value, err))
        return false;
    if (strpbrk(value, "?#") != NULL || value[strlen(value) - 1] == '/')
        return tl_error_set(err, TL_ERR_INVALID,
                            "paths are appended to this address: leave off the \"/\" at its end, "
                            "\"?\" and \"#\"");
    return true;
}

static bool check_redis_url(const char *value, struct tl_error *err)
{
    struct tl_redis_url url;
    if (*value == '\0')
        return true;
    return tl_redis_url_parse(value, &url, err);
}

static bool check_networks(const char *value, struct tl_error *err)
{
    struct tl_networks *networks = tl_networks_parse(value, err);
    bool ok = networks != NULL;
    tl_networks_free(&networks);
    return ok;
}

/* A brace would move the hash tag that keeps the keys of a queue together. */
static bool check_prefix(const char *value, struct tl_error *err)
{
    if (has_space(value) || strpbrk(value, "{}") != NULL)
        return tl_error_set(err, TL_ERR_INVALID, "must be ASCII without spaces and braces");
    return true;
}

static const struct tl_setting process_rows[] = {
    {.path = "redis.url",
     .type = TL_SETTING_STRING,
     .fallback = "",
     .check = check_redis_url,
     PROCESS(redis.url),
     .help = "Address of Redis: `redis://[user:password@]host[:port][/db]`, `rediss://...` (TLS), "
             "`unix:///path`, or `redis+sentinel://[user:password@]host[:port],.../master[/db]` "
             "(up to 9 sentinels). Empty: `tellerline up` starts a private Redis; the other "
             "programs need an address."},
    {.path = "redis.key_prefix",
     .type = TL_SETTING_STRING,
     .fallback = "tl:",
     .min = 1,
     .check = check_prefix,
     PROCESS(redis.key_prefix),
     .help = "Prefix of every key, so that several installations can share one Redis. No spaces or "
             "braces."},
    {.path = "redis.ca_file",
     .type = TL_SETTING_STRING,
     .fallback = "",
     PROCESS(redis.ca_file),
     .help =
         "Certificates (PEM) that `rediss://` trusts. The certificate of Redis must come from one "
         "of them, and name the host (or IP address) of `redis.url`. Empty: those of the system."},
    {.path = "redis.timeout",
     .type = TL_SETTING_DURATION,
     .fallback = "2s",
     .min = MILLISECONDS(10),
     .max = MINUTES(5),
     PROCESS(redis.timeout_ms),
     .help = "Time limit of a connection attempt or a command; after it the connection is closed."},
    {.path = "redis.durability",
     .type = TL_SETTING_CHOICE,
     .fallback = "memory",
     .names = durability_names,
     PROCESS(redis.durability),
     .help = "What must have happened to a change before a worker tells visitors of it: `memory` "
             "(Redis has it), `fsync` (Redis has written it to its disk; needs Redis 7.2 or Valkey "
             "and `appendonly yes`) or `replicated` (one replica has it, too)."},
    {.path = "http.listen",
     .type = TL_SETTING_LISTEN,
     .fallback = "0.0.0.0:8080",
     .min = 1,
     PROCESS(http.listen),
     .help = "Where the worker serves visitors. Port 0: any free port, which is logged."},
    {.path = "http.public_url",
     .type = TL_SETTING_STRING,
     .fallback = "http://localhost:8080",
     .min = 1,
     .check = check_public_url,
     PROCESS(http.public_url),
     .help = "The address visitors use, as seen from outside, without a slash at the end."},
    {.path = "http.join_wait",
     .type = TL_SETTING_DURATION,
     .fallback = "3s",
     .min = 0,
     .max = MINUTES(1),
     PROCESS(http.join_wait_ms),
     .help =
         "How long a join is held until its place is known; after that the answer is `pending`."},
    {.path = "http.max_body",
     .type = TL_SETTING_SIZE,
     .fallback = "4KiB",
     .min = 256,
     .max = 1024 * 1024,
     PROCESS(http.max_body),
     .help = "A larger request body is refused."},
    {.path = "http.max_connections",
     .type = TL_SETTING_NUMBER,
     .fallback = "19000",
     .min = 1,
     .max = 1000000,
     PROCESS(http.max_connections),
     .help = "Connections per worker process, event streams included. Each needs a file descriptor "
             "(`LimitNOFILE`), and the process some 100 more. Above it, connections without a "
             "request are closed, oldest first."},
    {.path = "http.connections_per_address",
     .type = TL_SETTING_NUMBER,
     .fallback = "4000",
     .max = 1000000,
     PROCESS(http.connections_per_address),
     .help = "Connections of one address (IPv6: one /56; a /48 may have four times as many) per "
             "worker process, without event streams; more are closed at once. Trusted proxies are "
             "not limited. A mobile carrier has thousands of visitors behind one IPv4 address. 0: "
             "no limit."},
    {.path = "http.streams_per_address",
     .type = TL_SETTING_NUMBER,
     .fallback = "8000",
     .max = 1000000,
     PROCESS(http.streams_per_address),
     .help = "Event streams and long polls of one visitor's address (the same prefixes) per worker "
             "process; more are answered at once and end. 0: no limit."},
    {.path = "http.streams_per_ticket",
     .type = TL_SETTING_NUMBER,
     .fallback = "10",
     .max = 1000000,
     PROCESS(http.streams_per_ticket),
     .help = "Event streams and long polls of one ticket per worker process. The oldest stream "
             "gives way to a newer one; a long poll beyond it is answered at once. The tabs of a "
             "browser share one. 0: no limit."},
    {.path = "http.idle_timeout",
     .type = TL_SETTING_DURATION,
     .fallback = "60s",
     .min = SECONDS(1),
     .max = DAYS(1),
     PROCESS(http.idle_timeout_ms),
     .help = "A connection without a request is closed after this time."},
    {.path = "http.joins_per_minute",
     .type = TL_SETTING_NUMBER,
     .fallback = "3000",
     .max = 1000000,
     PROCESS(http.joins_per_minute),
     .help = "Joins per minute from one address (IPv6: one /56, and 16 times as many from one /48) "
             "that the processes of a worker accept together; more get 429. Carriers put many "
             "visitors behind one IPv4 address: with 64 ports for each, about a thousand. The "
             "default lets all of them join three times in the same minute, and keeps one client "
             "from filling Redis. When joins come faster than they are applied, or Redis is nearly "
             "full, each address has the same share of every second, and what exceeds it gets 503. "
             "Trusted callers with an API key are not counted. 0: no limit and no shares."},
    {.path = "http.trusted_proxies",
     .type = TL_SETTING_STRING,
     .fallback = "",
     .check = check_networks,
     PROCESS(http.trusted_proxies),
     .help = "Addresses or networks (`10.0.0.0/8`), separated by spaces, of proxies whose "
             "`X-Forwarded-For` is trusted. Empty: none; then all visitors behind a proxy count as "
             "one address."},
    {.path = "http.allowed_origins",
     .type = TL_SETTING_STRING,
     .fallback = "",
     .check = tl_origins_valid,
     PROCESS(http.allowed_origins),
     .help = "Web sites (`https://shop.example`), separated by spaces, whose pages may call the "
             "HTTP API from the browser, beside the pages of `http.public_url`: they get CORS with "
             "credentials, and may send POST. Exact origins, without a path. Empty: none."},
    {.path = "pass.algorithm",
     .type = TL_SETTING_CHOICE,
     .fallback = "HS256",
     .names = algorithm_names,
     PROCESS(pass.algorithm),
     .help = "How passes are signed: `HS256` (a secret shared with the site; fast) or `ES256` (the "
             "site needs public keys only)."},
    {.path = "page.name",
     .type = TL_SETTING_STRING,
     .fallback = "",
     PROCESS(page.name),
     .help = "Name of the site on the waiting page. Empty: the queue's name."},
    {.path = "page.accent_light",
     .type = TL_SETTING_STRING,
     .fallback = "",
     PROCESS(page.accent_light),
     .help = "Colour (`#rrggbb`) of buttons, links and progress on a light page; refused below a "
             "contrast of 4.5 to 1. Empty: the built-in colour."},
    {.path = "page.accent_dark",
     .type = TL_SETTING_STRING,
     .fallback = "",
     PROCESS(page.accent_dark),
     .help = "The same on a dark page."},
    {.path = "page.style",
     .type = TL_SETTING_STRING,
     .fallback = "",
     PROCESS(page.style),
     .help = "File with a style sheet (.css, at most 64 KiB) that the page applies after the "
             "built-in one. Empty: none."},
    {.path = "page.logo",
     .type = TL_SETTING_STRING,
     .fallback = "",
     PROCESS(page.logo),
     .help = "File with the logo (.svg, .png or .webp, at most 100 KiB). Empty: none."},
    {.path = "page.text_en",
     .type = TL_SETTING_STRING,
     .fallback = "",
     PROCESS(page.text_en),
     .help = "A sentence or two of your own under the page, in English."},
    {.path = "page.text_ko",
     .type = TL_SETTING_STRING,
     .fallback = "",
     PROCESS(page.text_ko),
     .help = "The same in Korean."},
    {.path = "page.return_urls",
     .type = TL_SETTING_STRING,
     .fallback = "",
     PROCESS(page.return_urls),
     .help = "Sites, separated by spaces, that the page may send visitors back to, beside the one "
             "of the queue's "
             "`target_url`."},
    {.path = "admin.worker",
     .type = TL_SETTING_LISTEN,
     .fallback = "127.0.0.1:8081",
     PROCESS(admin.worker),
     .help = "`/livez`, `/readyz` and `/metrics` of the worker, one answer for all its processes. "
             "Port 0: any free port, which is logged. Empty: none."},
    {.path = "admin.dispatcher",
     .type = TL_SETTING_LISTEN,
     .fallback = "127.0.0.1:8082",
     PROCESS(admin.dispatcher),
     .help = "The same for the dispatcher."},
    {.path = "admin.admitter",
     .type = TL_SETTING_LISTEN,
     .fallback = "127.0.0.1:8083",
     PROCESS(admin.admitter),
     .help = "The same for the admitter."},
    {.path = "admin.expirer",
     .type = TL_SETTING_LISTEN,
     .fallback = "127.0.0.1:8084",
     PROCESS(admin.expirer),
     .help = "The same for the expirer."},
    {.path = "worker.processes",
     .type = TL_SETTING_NUMBER,
     .fallback = "2",
     .min = 1,
     .max = 256,
     PROCESS(worker.processes),
     .help = "Worker processes that share the port of `http.listen`; about one per core."},
    {.path = "worker.max_pending",
     .type = TL_SETTING_NUMBER,
     .fallback = "100000",
     .min = 1,
     .max = 10000000,
     PROCESS(worker.max_pending),
     .help = "Limit of commands accepted but not yet applied, per worker process. Above it joins "
             "are answered with 503 and `Retry-After`."},
    {.path = "worker.max_lag",
     .type = TL_SETTING_DURATION,
     .fallback = "30s",
     .min = SECONDS(1),
     .max = MINUTES(60),
     PROCESS(worker.max_lag_ms),
     .help =
         "How long commands of a queue may wait in Redis to be applied. While they wait longer, "
         "as without a dispatcher, joins of this queue are answered with 503 and "
         "`Retry-After`."},
    {.path = "admitter.batch",
     .type = TL_SETTING_NUMBER,
     .fallback = "1000",
     .min = 1,
     .max = 10000,
     PROCESS(admitter.batch),
     .help =
         "Visitors admitted in one atomic step at most. Redis serves nothing else during a step."},
    {.path = "expirer.batch",
     .type = TL_SETTING_NUMBER,
     .fallback = "1000",
     .min = 1,
     .max = 10000,
     PROCESS(expirer.batch),
     .help = "Sessions and absent visitors ended in one atomic step at most."},
    {.path = "streams.events_length",
     .type = TL_SETTING_NUMBER,
     .fallback = "20000",
     .min = 10,
     .max = 10000000,
     PROCESS(streams.events_length),
     .help = "Entries kept in a queue's events stream. A worker that falls further behind takes a "
             "snapshot."},
    {.path = "log.level",
     .type = TL_SETTING_CHOICE,
     .fallback = "info",
     .names = level_names,
     PROCESS(log.level),
     .help = "Lines below this level are not written."},
    {.path = "log.format",
     .type = TL_SETTING_CHOICE,
     .fallback = "logfmt",
     .names = format_names,
     PROCESS(log.format),
     .help = "Format of the lines on standard error."},
    {.path = "secrets.ticket_keys",
     .type = TL_SETTING_STRING,
     .fallback = "secrets/ticket.keys",
     .min = 1,
     PROCESS(secrets.ticket_keys),
     .help = "File with the keys that sign tickets. Made at a start without visitors. A relative "
             "path starts at the folder of the configuration file; without a file, at the current "
             "directory."},
    {.path = "secrets.api_keys",
     .type = TL_SETTING_STRING,
     .fallback = "secrets/api.keys",
     PROCESS(secrets.api_keys),
     .help = "File with the API keys of trusted callers, who may name the visitor and the lane. "
             "Empty: there are none."},
    {.path = "secrets.admin_token",
     .type = TL_SETTING_STRING,
     .fallback = "secrets/admin.token",
     .min = 1,
     PROCESS(secrets.admin_token),
     .help = "Reserved for an admin API, which does not exist yet. Nothing reads this file."},
    {.path = "secrets.pass_keys",
     .type = TL_SETTING_STRING,
     .fallback = "secrets/pass.keys",
     .min = 1,
     PROCESS(secrets.pass_keys),
     .help = "File with the keys that sign passes. Made at a start without visitors."},
    {.path = "secrets.invite_keys",
     .type = TL_SETTING_STRING,
     .fallback = "",
     PROCESS(secrets.invite_keys),
     .help = "File with the keys that verify invites. Empty: no invite is accepted."},
};

static const struct tl_setting queue_rows[] = {
    {.path = "policy",
     .key = "policy",
     .type = TL_SETTING_CHOICE,
     .fallback = "counter",
     .names = policy_names,
     QUEUE(policy),
     .help = "What limits admission: `counter` (the number of active visitors). `rate` and `both` "
             "are reserved names, which this version refuses."},
    {.path = "capacity",
     .key = "capacity",
     .type = TL_SETTING_NUMBER,
     .fallback = "300",
     .max = 10000000,
     QUEUE(capacity),
     .help = "How many visitors may be active at the same time. Lowering it ends no session."},
    {.path = "rate.admit",
     .key = "rate_admit",
     .type = TL_SETTING_NUMBER,
     .fallback = "1400",
     .min = 1,
     .max = 10000000,
     QUEUE(rate_admit),
     .help = "Reserved for policy `rate`: so many visitors..."},
    {.path = "rate.every",
     .key = "rate_every",
     .type = TL_SETTING_DURATION,
     .fallback = "10s",
     .min = MILLISECONDS(100),
     .max = DAYS(1),
     QUEUE(rate_every_ms),
     .help = "...in this time."},
    {.path = "session_ttl",
     .key = "session_ttl",
     .type = TL_SETTING_DURATION,
     .fallback = "10m",
     .min = MILLISECONDS(100),
     .max = DAYS(7),
     QUEUE(session_ttl_ms),
     .help = "How long a session lasts."},
    {.path = "session_sliding",
     .key = "session_sliding",
     .type = TL_SETTING_BOOL,
     .fallback = "false",
     QUEUE(session_sliding),
     .help = "`true`: `session_ttl` counts from the visitor's last request, at most until "
             "`session_max`."},
    {.path = "session_max",
     .key = "session_max",
     .type = TL_SETTING_DURATION,
     .fallback = "1h",
     .min = MILLISECONDS(100),
     .max = DAYS(7),
     QUEUE(session_max_ms),
     .help = "The longest a sliding session may last; at least `session_ttl`."},
    {.path = "claim_ttl",
     .key = "claim_ttl",
     .type = TL_SETTING_DURATION,
     .fallback = "2m",
     .min = MILLISECONDS(100),
     .max = DAYS(7),
     QUEUE(claim_ttl_ms),
     .help = "How long an admitted visitor who makes no request keeps the slot."},
    {.path = "waiting_ttl",
     .key = "waiting_ttl",
     .type = TL_SETTING_DURATION,
     .fallback = "10m",
     .min = SECONDS(1),
     .max = DAYS(7),
     QUEUE(waiting_ttl_ms),
     .help = "A waiting visitor not seen for this long loses the place."},
    {.path = "recovery_window",
     .key = "recovery_window",
     .type = TL_SETTING_DURATION,
     .fallback = "1m",
     .min = 0,
     .max = DAYS(1),
     QUEUE(recovery_window_ms),
     .help =
         "After Redis lost the data of the queue: how long no one is admitted, so that visitors "
         "come back with their tickets and stand as before. `0s`: the queue begins empty."},
    {.path = "lanes",
     .key = "lanes",
     .type = TL_SETTING_LANES,
     .fallback = "vip,normal",
     .min = 1,
     .max = TL_LANES_MAX,
     QUEUE(lanes),
     .help = "The lanes of the line; a lane is served only while those before it are empty."},
    {.path = "default_lane",
     .key = "default_lane",
     .type = TL_SETTING_LANE,
     .fallback = "normal",
     QUEUE(default_lane),
     .help = "The lane of visitors for whom none was named. When `lanes` is given without it: the "
             "last lane."},
    {.path = "opens_at",
     .key = "opens_at",
     .type = TL_SETTING_TIME,
     .fallback = "",
     .max = TIME_LAST_MS,
     QUEUE(opens_at_ms),
     .help = "No one is admitted before this time. Empty: open at once."},
    {.path = "join",
     .key = "join",
     .type = TL_SETTING_CHOICE,
     .fallback = "open",
     .names = join_names,
     QUEUE(join),
     .help =
         "Who may join: `open` (everyone), or `invited` (with an invite, or by a trusted caller)."},
    {.path = "max_waiting",
     .key = "max_waiting",
     .type = TL_SETTING_NUMBER,
     .fallback = "0",
     .max = 1000000000,
     QUEUE(max_waiting),
     .help =
         "How many visitors may wait at most; a join beyond it is answered with 503 `full`, and "
         "the page tries again by itself. 0: any number. Set it when all workers are of a "
         "version that has it."},
    {.path = "challenge",
     .key = "challenge",
     .type = TL_SETTING_CHOICE,
     .fallback = "none",
     .names = challenge_names,
     QUEUE(challenge),
     .help = "What a join without an invite or API key must bring: `none`, or `work` (proof of "
             "work: the waiting page solves a puzzle, about half a second on an old phone and up "
             "to 16 times as long while many join)."},
    {.path = "on_store_error",
     .key = "on_store_error",
     .type = TL_SETTING_CHOICE,
     .fallback = "closed",
     .names = store_error_names,
     QUEUE(on_store_error),
     .help = "What `check` answers while Redis cannot be reached, about visitors the worker does "
             "not know: `closed` refuses them, `open` lets them through."},
    {.path = "shared_sessions",
     .key = "shared_sessions",
     .type = TL_SETTING_CHOICE,
     .fallback = "count",
     .names = sharing_names,
     QUEUE(shared_sessions),
     .help =
         "What `check` does when several clients use one session in turn: `count` it, `warn` in "
         "the log too, or also `refuse` the clients that came later."},
    {.path = "paused",
     .key = "paused",
     .type = TL_SETTING_BOOL,
     .fallback = "false",
     QUEUE(paused),
     .help = "`true`: no one is admitted; visitors can still join."},
    {.path = "target_url",
     .key = "target_url",
     .type = TL_SETTING_STRING,
     .fallback = "",
     .check = check_url,
     QUEUE(target_url),
     .help = "Where an admitted visitor continues, `http://` or `https://`. Empty: the answers "
             "have no address."},
};

static const struct tl_setting removed_rows[] = {
    {.path = "page.template",
     .help = "page templates were removed; adapt the built-in page with page.style, page.logo and "
             "the texts of page"},
};

const struct tl_setting *tl_config_table(size_t *n)
{
    *n = sizeof(process_rows) / sizeof(process_rows[0]);
    return process_rows;
}

const struct tl_setting *tl_queue_table(size_t *n)
{
    *n = sizeof(queue_rows) / sizeof(queue_rows[0]);
    return queue_rows;
}

const struct tl_setting *tl_config_removed_table(size_t *n)
{
    *n = sizeof(removed_rows) / sizeof(removed_rows[0]);
    return removed_rows;
}
