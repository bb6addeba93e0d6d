/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/origin.h"
#include "common/config/checks.h"
#include "common/config/rows.h"

#define OWNER struct tl_config

static const char *const restore_names[] = {"auto", "manual", NULL};
static const char *const level_names[] = {"debug", "info", "warn", "error", NULL};
static const char *const format_names[] = {"logfmt", "json", NULL};
static const char *const durability_names[] = {"memory", "fsync", "replicated", NULL};
static const char *const algorithm_names[] = {"HS256", "ES256", NULL};
static const char *const provider_names[] = {"turnstile", "hcaptcha", "recaptcha", NULL};
static const char *const admin_tls_names[] = {"none", "terminated", "loopback", NULL};
static const char *const unreachable_names[] = {"refuse", "work", NULL};

static const struct tl_setting process_rows[] = {
    TEXT(redis.url, "",
         "`redis://[user:password@]host[:port][/db]`, `rediss://...` (TLS), `unix:///path`, or "
         "`redis+sentinel://[user:password@]host[:port],.../master[/db]` (up to 9 sentinels), or "
         "`redis+cluster://[user:password@]host[:port],...`. "
         "Empty: `tellerline up` starts a private Redis; the other programs need an address.",
         .check = tl_check_redis_url),
    TEXT(redis.key_prefix, "tl:",
         "Prefix of every key, so that installations can share one Redis. No spaces or braces.",
         .check = tl_check_prefix, .min = 1),
    PATH(redis.ca_file, "",
         "Certificates (PEM) that `rediss://` trusts. The certificate of Redis must name the host "
         "of `redis.url`. Empty: those of the system."),
    DURATION(redis.timeout, "2s", MILLISECONDS(10), MINUTES(5),
             "Limit of a connection attempt or a command; then the connection is closed."),
    CHOICE(redis.durability, "memory", durability_names,
           "When a worker tells visitors of a change: when it is in Redis's `memory`, on its disk "
           "(`fsync`; needs Redis 7.2 or Valkey and `appendonly yes`), or also in one replica "
           "(`replicated`)."),
    LISTEN(http.listen, "0.0.0.0:8080",
           "Where the worker serves visitors. Port 0: any free port, which is logged.", .min = 1),
    TEXT(http.public_url, "http://localhost:8080",
         "The address visitors use, without a slash at the end.", .check = tl_check_public_url,
         .min = 1),
    DURATION(http.join_wait, "3s", 0, MINUTES(1),
             "How long a join waits for its place; then the answer is `pending`."),
    SIZE(http.max_body, "16KiB", 256, 1024 * 1024, "A larger request body is refused."),
    NUMBER(http.max_connections, "19000", 1, 1000000,
           "Connections per worker process, event streams included. Each needs a file descriptor "
           "(`LimitNOFILE`), and the process some 100 more. Above it, those that wait for their "
           "client are closed, longest first."),
    NUMBER(
        http.connections_per_address, "4000", 0, 1000000,
        "Connections of one address (IPv6: one /56; a /48 may have four times as many) per worker "
        "process, without event streams; more are closed at once. Trusted proxies are not limited. "
        "A mobile carrier has thousands of visitors behind one IPv4 address. 0: no limit."),
    NUMBER(http.streams_per_address, "8000", 0, 1000000,
           "Event streams and long polls of one address (the same prefixes) per worker process; "
           "more end at once. 0: no limit."),
    NUMBER(http.streams_per_ticket, "10", 0, 1000000,
           "Event streams and long polls of one ticket per worker process. A newer stream replaces "
           "the oldest; a long poll beyond it ends at once. The tabs of a browser share one. 0: no "
           "limit."),
    DURATION(http.idle_timeout, "60s", SECONDS(1), DAYS(1),
             "A connection without a request is closed after this time, and one that takes less "
             "than a kilobyte a second of an answer."),
    NUMBER(http.joins_per_minute, "3000", 0, 1000000,
           "Joins per minute from one address (IPv6: one /56; a /48 may have 16 times as many) "
           "that a worker accepts; more get 429. A third may come at once, the rest evenly. "
           "Waiting pages: four times as many. Joins with a challenge or an API key are not "
           "counted. When joins come faster than they are applied, or Redis is nearly full, every "
           "address has the same share, and more gets 503. A carrier puts about a thousand "
           "visitors behind one IPv4 address. 0: no limit and no shares."),
    LIST(http.trusted_proxies, "",
         "Addresses or networks (`10.0.0.0/8`) of proxies whose `X-Forwarded-For` is trusted. "
         "Empty: all visitors behind a proxy count as one address.",
         .check = tl_check_networks),
    LIST(http.allowed_origins, "",
         "Web sites (`https://shop.example`) other than `http.public_url` whose pages may call the "
         "HTTP API from the browser (CORS with credentials). Exact origins, without a path.",
         .check = tl_origins_valid),
    LIST(
        http.return_urls, "",
        "Sites that the page may send visitors back to, besides that of the queue's `target_url`."),
    FLAG(http.transfer, "true", "Whether a waiting place can be moved to another device."),
    LIST(bypass.networks, "",
         "Addresses or networks whose visitors `check` lets in past every line: staff, monitoring, "
         "search engines.",
         .check = tl_check_networks),
    TEXT(bypass.header, "",
         "A header: `check` lets in every request that has it and comes from one of "
         "`http.trusted_proxies`. The proxy must remove it from what visitors send.",
         .characters = LETTERS_AND_DIGITS "-_",
         .form = "the name of a header, which has letters, digits, '-' and '_'"),
    CHOICE(challenge_service.provider, "turnstile", provider_names,
           "The service for `challenge: external`: `turnstile` (Cloudflare), `hcaptcha` or "
           "`recaptcha` (Google; with `min_score` version 3, else the checkbox of version 2)."),
    TEXT(challenge_service.site_key, "",
         "The provider's public key of your site. Empty: no queue can have `challenge: external`.",
         .characters = LETTERS_AND_DIGITS "_-",
         .form = "a site key: it has only letters, digits, \"_\" and \"-\""),
    TEXT(challenge_service.verify_url, "",
         "Where workers verify tokens: `https://`, or `http://` on this machine. Empty: the "
         "provider's address.",
         .check = tl_check_service_url),
    TEXT(challenge_service.script_url, "",
         "Where the page loads the provider's script from. Empty: the provider's address.",
         .check = tl_check_service_url),
    TEXT(challenge_service.hostname, "",
         "The host name on which the check must have been done; tokens of another one are refused. "
         "Empty: any that the provider allows.",
         .characters = LETTERS_AND_DIGITS "_-.",
         .form = "the name of a host, such as shop.example, without scheme and port"),
    DECIMAL(challenge_service.min_score, "0", 0, 1,
            "For reCAPTCHA version 3: the lowest score that is accepted, such as 0.5. 0: keys "
            "without a score."),
    DURATION(challenge_service.timeout, "3s", MILLISECONDS(100), SECONDS(30),
             "How long a join waits for the verification of its token; then the service counts as "
             "unreachable."),
    CHOICE(challenge_service.on_unreachable, "refuse", unreachable_names,
           "While the service is unreachable, `refuse` answers joins with 503, and the page tries "
           "again; `work` asks for proof of work instead."),
    FLAG(challenge_service.send_address, "false",
         "The provider also gets the visitor's IP address from the worker. (It sees it from the "
         "browser.)"),
    NUMBER(challenge_service.max_concurrent, "64", 1, 1000,
           "Verifications at the same time, per worker process."),
    NUMBER(challenge_service.max_queued, "1000", 0, 100000,
           "Joins that wait for one of these, per worker process; more get 503."),
    CHOICE(pass.algorithm, "HS256", algorithm_names,
           "How passes are signed: `HS256` (a secret shared with the site; fast) or `ES256` (the "
           "site needs public keys only)."),
    TEXT(brand.name, "", "Name of the site on the waiting page. Empty: the queue's name."),
    TEXT(brand.accent_light, "",
         "Colour (`#rrggbb`) of buttons, links and progress on a light page; refused below a "
         "contrast of 4.5 to 1."),
    TEXT(brand.accent_dark, "", "The same on a dark page."),
    PATH(brand.style, "",
         "Style sheet (.css, at most 64 KiB) that the page applies after the built-in one."),
    PATH(brand.logo, "", "Logo (.svg, .png or .webp, at most 100 KiB)."),
    PATH(brand.languages, "",
         "Folder with files of texts (.yaml): each changes texts of the page in one language, or "
         "adds a language."),
    TEXT(brand.timezone, "",
         "Time zone of a page without JavaScript, such as `Asia/Seoul`. Empty: UTC. Needs tzdata "
         "where the worker runs.",
         .check = tl_check_timezone),
    TEXTS(brand.text, 2000, "A sentence or two under the page."),
    LISTEN(admin.worker, "127.0.0.1:8081",
           "Admin API, dashboard, probes and metrics of the worker, for all its processes. Port 0: "
           "any free port, which is logged. Empty: none."),
    LISTEN(admin.dispatcher, "127.0.0.1:8082", "Probes and metrics of the dispatcher."),
    LISTEN(admin.admitter, "127.0.0.1:8083", "The same for the admitter."),
    LISTEN(admin.expirer, "127.0.0.1:8084", "The same for the expirer."),
    LISTEN(admin.notifier, "127.0.0.1:8085", "The same for the notifier."),
    LISTEN(admin.archiver, "127.0.0.1:8087", "The same for the archiver."),
    CHOICE(admin.tls, "none", admin_tls_names,
           "Browsers can sign in where `admin.worker` is a loopback address; with `terminated` "
           "behind a proxy that speaks TLS and that nobody gets past; with `loopback` where it is "
           "published at a loopback address only, as the port of a container."),
    TEXT(admin.public_url, "",
         "The address of the dashboard as browsers see it. They may use an IP address, or no host "
         "names but this one's and `localhost`, so that no other web site can reach the dashboard "
         "under a name of its own.",
         .check = tl_check_admin_url),
    TEXT(admin.redis_url, "",
         "Redis for the admin API, with a user who may change queues, which visitors' processes do "
         "not need. Empty: `redis.url`.",
         .check = tl_check_redis_url),
    DURATION(admin.session_ttl, "12h", MINUTES(1), DAYS(7), "How long a browser stays signed in."),
    LIST(admin.trusted_proxies, "",
         "Addresses or networks of proxies in front of the admin listener whose `X-Forwarded-For` "
         "is trusted. Those of `http.trusted_proxies` do not count here.",
         .check = tl_check_networks),
    NUMBER(
        admin.max_failed_logins_per_minute, "30", 0, 1000000,
        "Wrong tokens of one address (IPv6: one /56) per minute; then its requests get 429, except "
        "with a session, the admin token, or a token that was right before. 0: no limit."),
    NUMBER(admin.max_queues, "1000", 1, 100000, "Operators can create no more queues than this."),
    NUMBER(worker.processes, "2", 0, 256,
           "Processes that share the port of `http.listen`; about one per core. 0: a worker for "
           "operators only."),
    NUMBER(worker.max_pending, "100000", 1, 10000000,
           "Commands accepted but not yet applied, per worker process. Above it joins get 503."),
    DURATION(worker.max_lag, "30s", SECONDS(1), MINUTES(60),
             "How long commands of a queue may wait in Redis to be applied. Above it, as without a "
             "dispatcher, joins of this queue get 503."),
    NUMBER(
        admitter.batch, "1000", 1, 10000,
        "Visitors admitted in one atomic step at most. Redis serves nothing else during a step."),
    NUMBER(expirer.batch, "1000", 1, 10000,
           "Sessions and absent visitors ended in one atomic step at most."),
    LIST(notifier.http_hosts, "",
         "Hosts, besides this machine, to which webhooks may go by `http://`: in a network that "
         "nobody else can read.",
         .characters = LETTERS_AND_DIGITS "_-.:[] ",
         .form = "names of hosts, such as shop.internal, without scheme and port"),
    TEXT(archive.url, "",
         "Address of PostgreSQL (15 or later), where the archiver keeps what happened to each "
         "visitor: `postgresql://user:password@host/database`, with the parameters of libpq. "
         "Empty: there is no archive.",
         .check = tl_check_postgres_url),
    FLAG(archive.pseudonyms, "false",
         "`true`: PostgreSQL gets a pseudonym of each visitor instead of the id, by the key in "
         "`secrets.archive_key`."),
    NUMBER(archive.entries, "100000", 0, 10000000,
           "Entries of the record of a queue that Redis keeps for an archiver that is behind; each "
           "tells what one step did. Beyond it none are written, and the gap is recorded. 0: the "
           "record of every queue ends, and what is not in PostgreSQL yet is dropped."),
    SIZE(archive.bytes, "64MiB", 1024 * 1024, INT64_C(16) * 1024 * 1024 * 1024,
         "The same in bytes; a visitor takes about 35 at each step."),
    ROW(archive.kept, archive.kept_ms, DURATION, .fallback = "365d", .min = DAYS(1),
        .max = DAYS(3650),
        .help = "How long PostgreSQL keeps entries that have ended, gaps and changes."),
    ROW(archive.reconcile, archive.reconcile_ms, DURATION, .fallback = "1h", .min = 0,
        .max = DAYS(30),
        .help = "How long an archiver takes to compare all of a queue with PostgreSQL, again and "
                "again. 0: only when `tellerline audit --archive` asks for it."),
    CHOICE(archive.restore, "manual", restore_names,
           "`auto`: an archiver brings back the line of a queue whose data Redis has lost. "
           "`manual`: only `tellerline restore` does."),
    DURATION(retention.ended, "1h", MINUTES(60), DAYS(30),
             "How long Redis keeps, by the visitor's id, how a visit ended: at most the last "
             "500,000 of a queue."),
    DURATION(retention.misuse, "7d", MINUTES(60), DAYS(90),
             "How long Redis keeps the signs of misuse, which name networks of visitors."),
    DURATION(
        retention.changes, "365d", DAYS(1), DAYS(3650),
        "How long Redis keeps the record of changes, which names operators and their addresses."),
    DURATION(retention.webhooks, "1d", MINUTES(1), DAYS(7),
             "How long a webhook is tried again and undelivered events are kept, with the ids of "
             "visitors."),
    NUMBER(retention.changes_entries, "10000", 100, 1000000,
           "Entries kept in the record of changes of a queue, and in that of what belongs to no "
           "queue; approximate."),
    NUMBER(retention.events_entries, "20000", 10, 10000000,
           "Entries kept in a queue's events stream. A worker that falls further behind takes a "
           "snapshot."),
    NUMBER(retention.webhooks_entries, "100000", 100, 10000000,
           "Undelivered events kept per queue, about 100 bytes each, those of admissions more. "
           "Beyond it the oldest are lost, and the webhook is told how many."),
    NUMBER(metrics.max_queues, "100", 0, 10000,
           "Queues with series of their own in `/metrics` of a program. The others are added up as "
           "`_other`."),
    CHOICE(log.level, "info", level_names, "Lines below this level are not written."),
    CHOICE(log.format, "logfmt", format_names, "Format of the lines on standard error."),
    PATH(secrets.ticket_keys, "secrets/ticket.keys",
         "Keys that sign tickets. Made at a start without visitors.", .min = 1),
    PATH(secrets.api_keys, "secrets/api.keys",
         "API keys of trusted callers, who may name the visitor and the lane."),
    PATH(secrets.admin_token, "secrets/admin.token",
         "A token that is always an admin's, also while Redis is away: a line of 20 to 256 "
         "printable characters. Made by the worker if missing. Empty, as `secrets.token_key`: "
         "there is no admin API."),
    PATH(secrets.token_key, "secrets/token.key",
         "Key of operators' tokens, the same for every program that checks or makes them. Made if "
         "missing. Empty: no operator has a token."),
    PATH(secrets.pass_keys, "secrets/pass.keys",
         "Keys that sign passes. Made at a start without visitors.", .min = 1),
    PATH(secrets.invite_keys, "", "Keys that verify invites. Empty: no invite is accepted."),
    PATH(secrets.challenge_secret, "",
         "The secret from the provider of `challenge_service`, in one line."),
    PATH(secrets.draw_key, "secrets/draw.key",
         "Secret of the draws, the same for every admitter; no other program reads it. Made when "
         "the first draw is announced.",
         .min = 1),
    PATH(secrets.archive_key, "secrets/archive.key",
         "File with the key of `archive.pseudonyms` and of the names in the trail, the same for "
         "every archiver. Made if it is missing.",
         .min = 1),
    PATH(secrets.trail_key, "secrets/trail.key",
         "File with the key that signs the trail, the same for every archiver; no other program "
         "reads it. Made if it is missing.",
         .min = 1),
};

const struct tl_setting *tl_config_table(size_t *n)
{
    *n = sizeof(process_rows) / sizeof(process_rows[0]);
    return process_rows;
}

_Static_assert(sizeof(process_rows) / sizeof(process_rows[0]) <= TL_CONFIG_ROWS_MAX,
               "tl_config_read notes a place for each row");
