/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/origin.h"
#include "common/config/checks.h"
#include "common/config/rows.h"

#define OWNER struct tl_config

static const char *const level_names[] = {"debug", "info", "warn", "error", NULL};
static const char *const format_names[] = {"logfmt", "json", NULL};
static const char *const durability_names[] = {"memory", "fsync", "replicated", NULL};
static const char *const algorithm_names[] = {"HS256", "ES256", NULL};
static const char *const provider_names[] = {"turnstile", "hcaptcha", "recaptcha", NULL};
static const char *const admin_tls_names[] = {"none", "terminated", "loopback", NULL};
static const char *const unreachable_names[] = {"refuse", "work", NULL};

static const struct tl_setting process_rows[] = {
    TEXT(redis.url, "",
         "Address of Redis: `redis://[user:password@]host[:port][/db]`, `rediss://...` (TLS), "
         "`unix:///path`, or `redis+sentinel://[user:password@]host[:port],.../master[/db]` (up to "
         "9 sentinels). Empty: `tellerline up` starts a private Redis; the other programs need an "
         "address.",
         .check = tl_check_redis_url),
    TEXT(redis.key_prefix, "tl:",
         "Prefix of every key, so that several installations can share one Redis. No spaces or "
         "braces.",
         .check = tl_check_prefix, .min = 1),
    TEXT(redis.ca_file, "",
         "Certificates (PEM) that `rediss://` trusts. The certificate of Redis must come from one "
         "of them, and name the host (or IP address) of `redis.url`. Empty: those of the system."),
    DURATION(redis.timeout, "2s", MILLISECONDS(10), MINUTES(5),
             "Time limit of a connection attempt or a command; after it the connection is closed."),
    CHOICE(redis.durability, "memory", durability_names,
           "What must have happened to a change before a worker tells visitors of it: `memory` "
           "(Redis has it), `fsync` (Redis has written it to its disk; needs Redis 7.2 or Valkey "
           "and `appendonly yes`) or `replicated` (one replica has it, too)."),
    LISTEN(http.listen, "0.0.0.0:8080",
           "Where the worker serves visitors. Port 0: any free port, which is logged.", .min = 1),
    TEXT(http.public_url, "http://localhost:8080",
         "The address visitors use, as seen from outside, without a slash at the end.",
         .check = tl_check_public_url, .min = 1),
    DURATION(
        http.join_wait, "3s", 0, MINUTES(1),
        "How long a join is held until its place is known; after that the answer is `pending`."),
    SIZE(http.max_body, "16KiB", 256, 1024 * 1024, "A larger request body is refused."),
    NUMBER(http.max_connections, "19000", 1, 1000000,
           "Connections per worker process, event streams included. Each needs a file descriptor "
           "(`LimitNOFILE`), and the process some 100 more. Above it, connections that wait for "
           "their client, for a request or to take an answer, are closed, longest first."),
    NUMBER(
        http.connections_per_address, "4000", 0, 1000000,
        "Connections of one address (IPv6: one /56; a /48 may have four times as many) per worker "
        "process, without event streams; more are closed at once. Trusted proxies are not limited. "
        "A mobile carrier has thousands of visitors behind one IPv4 address. 0: no limit."),
    NUMBER(http.streams_per_address, "8000", 0, 1000000,
           "Event streams and long polls of one visitor's address (the same prefixes) per worker "
           "process; more are answered at once and end. 0: no limit."),
    NUMBER(http.streams_per_ticket, "10", 0, 1000000,
           "Event streams and long polls of one ticket per worker process. The oldest stream gives "
           "way to a newer one; a long poll beyond it is answered at once. The tabs of a browser "
           "share one. 0: no limit."),
    DURATION(http.idle_timeout, "60s", SECONDS(1), DAYS(1),
             "A connection without a request is closed after this time, and one whose client takes "
             "less than a kilobyte a second of an answer."),
    NUMBER(http.joins_per_minute, "3000", 0, 1000000,
           "Joins per minute from one address (IPv6: one /56, and 16 times as many from one /48) "
           "that the processes of a worker accept together; more get 429. A third of them may come "
           "at once, the others come evenly: who joins fastest does not shut out the rest of the "
           "address. Carriers put many visitors behind one IPv4 address: with 64 ports for each, "
           "about a thousand, who can all join at once. A join for which a challenge was passed is "
           "not counted. An address gets four times as many waiting pages. When joins come faster "
           "than they are applied, or Redis is nearly full, each address has the same share of "
           "every second, and what exceeds it gets 503. Trusted callers with an API key are not "
           "counted. 0: no limit and no shares."),
    LIST(http.trusted_proxies, "",
         "Addresses or networks (`10.0.0.0/8`) of proxies whose "
         "`X-Forwarded-For` is trusted. Empty: none; then all visitors behind a proxy count as one "
         "address.",
         .check = tl_check_networks),
    LIST(http.allowed_origins, "",
         "Web sites (`https://shop.example`) whose pages may call the HTTP "
         "API from the browser, beside the pages of `http.public_url`: they get CORS with "
         "credentials, and may send POST. Exact origins, without a path. Empty: none.",
         .check = tl_origins_valid),
    LIST(http.return_urls, "",
         "Sites that the page may send visitors back to, beside the one of "
         "the queue's `target_url`."),
    FLAG(http.transfer, "true",
         "A waiting place can be moved to another device. `false`: the page does not offer it, and "
         "`POST .../transfer` is refused."),
    LIST(bypass.networks, "",
         "Addresses or networks whose visitors `check` lets in past every "
         "line: staff, monitoring, search engines. Empty: none.",
         .check = tl_check_networks),
    TEXT(bypass.header, "",
         "The name of a header: `check` lets every request in that has it and comes from one of "
         "`http.trusted_proxies`. The proxy must remove it from what visitors send. Empty: none.",
         .check = tl_check_header),
    CHOICE(challenge_service.provider, "turnstile", provider_names,
           "The service that checks visitors of queues with `challenge: external`: `turnstile` "
           "(Cloudflare), `hcaptcha` or `recaptcha` (Google; with `min_score` version 3, else the "
           "checkbox of version 2)."),
    TEXT(challenge_service.site_key, "",
         "The provider's public key of your site, which pages show. Empty: there is no service, "
         "and no queue can have `challenge: external`. The secret is in the file "
         "`secrets.challenge_secret`.",
         .check = tl_check_site_key),
    TEXT(challenge_service.verify_url, "",
         "Where workers send tokens to be verified: `https://`, or `http://` on this machine. "
         "Empty: the provider's address.",
         .check = tl_check_service_url),
    TEXT(challenge_service.script_url, "",
         "Where the waiting page loads the provider's script from. Empty: the provider's address.",
         .check = tl_check_service_url),
    TEXT(challenge_service.hostname, "",
         "The host name of the page on which the check must have been done, as the provider "
         "reports it; tokens of another one are refused. Empty: any that the provider allows.",
         .check = tl_check_hostname),
    DECIMAL(challenge_service.min_score, "0", 0, 1,
            "For reCAPTCHA version 3: the lowest score that is accepted, such as 0.5. 0: the keys "
            "are of a version without a score."),
    DURATION(challenge_service.timeout, "3s", MILLISECONDS(100), SECONDS(30),
             "How long a join waits for the verification of its token, including its wait for a "
             "free one of `max_concurrent`. After it the service counts as unreachable."),
    CHOICE(challenge_service.on_unreachable, "refuse", unreachable_names,
           "What a join gets while the service cannot be reached: `refuse` answers 503 and "
           "`Retry-After`, and the page tries again; `work` asks for proof of work instead."),
    FLAG(challenge_service.send_address, "false",
         "`true`: the provider also gets the visitor's IP address with the token. (It has seen the "
         "address already, as the browser loads the provider's script.)"),
    NUMBER(challenge_service.max_concurrent, "64", 1, 1000,
           "Verifications under way at the same time, per worker process. Each has a connection of "
           "its own, which is used again."),
    NUMBER(challenge_service.max_queued, "1000", 0, 100000,
           "Joins that wait for one of these, per worker process; more get 503 and `Retry-After`."),
    CHOICE(pass.algorithm, "HS256", algorithm_names,
           "How passes are signed: `HS256` (a secret shared with the site; fast) or `ES256` (the "
           "site needs public keys only)."),
    TEXT(brand.name, "", "Name of the site on the waiting page. Empty: the queue's name."),
    TEXT(brand.accent_light, "",
         "Colour (`#rrggbb`) of buttons, links and progress on a light page; refused below a "
         "contrast of 4.5 to 1. Empty: the built-in colour."),
    TEXT(brand.accent_dark, "", "The same on a dark page."),
    TEXT(brand.style, "",
         "File with a style sheet (.css, at most 64 KiB) that the page applies after the built-in "
         "one. Empty: none."),
    TEXT(brand.logo, "", "File with the logo (.svg, .png or .webp, at most 100 KiB). Empty: none."),
    TEXT(brand.languages, "",
         "Folder with files of texts (.yaml): each changes texts of the page in one language, or "
         "adds a language. Empty: none."),
    TEXT(brand.timezone, "",
         "In which time zone a page without JavaScript names times, such as `Asia/Seoul`; with it, "
         "the browser's own is used. Empty: UTC. Needs tzdata where the worker runs.",
         .check = tl_check_timezone),
    TEXTS(brand.text, 2000,
          "A sentence or two of your own under the page: `{en: ..., ko: ...}`, or one text for "
          "everyone."),
    LISTEN(admin.worker, "127.0.0.1:8081",
           "The admin API, the dashboard, `/livez`, `/readyz` and `/metrics` of the worker, one "
           "answer for all its processes. Port 0: any free port, which is logged. Empty: none."),
    LISTEN(admin.dispatcher, "127.0.0.1:8082",
           "`/livez`, `/readyz` and `/metrics` of the dispatcher."),
    LISTEN(admin.admitter, "127.0.0.1:8083", "The same for the admitter."),
    LISTEN(admin.expirer, "127.0.0.1:8084", "The same for the expirer."),
    LISTEN(admin.notifier, "127.0.0.1:8085", "The same for the notifier."),
    CHOICE(admin.tls, "none", admin_tls_names,
           "`terminated`: a proxy in front of `admin.worker` speaks TLS with browsers, and nobody "
           "gets past it. `loopback`: it is published at a loopback address only, as the port of a "
           "container or by a port-forward. Browsers can sign in with one of these, or when "
           "`admin.worker` is a loopback address itself."),
    TEXT(admin.public_url, "",
         "The address of the dashboard as browsers see it. They may use no other host name than "
         "this one's and `localhost`, but any IP address: so no other web site can reach the "
         "dashboard under a name of its own. Empty: there is no such address.",
         .check = tl_check_admin_url),
    TEXT(admin.redis_url, "",
         "Address of Redis for the admin API, with a user who may change queues; the worker "
         "processes that visitors reach need no such user. Empty: that of `redis.url`.",
         .check = tl_check_redis_url),
    DURATION(admin.session_ttl, "12h", MINUTES(1), DAYS(7),
             "How long a browser stays signed in to the dashboard."),
    LIST(admin.trusted_proxies, "",
         "Addresses or networks of proxies in front of the admin listener "
         "whose `X-Forwarded-For` is trusted, for the record of changes and the limit of wrong "
         "tokens. Those of `http.trusted_proxies` are not, unless they are named here, too.",
         .check = tl_check_networks),
    NUMBER(admin.max_failed_logins_per_minute, "30", 0, 1000000,
           "Wrong tokens of one address (IPv6: one /56) that the admin API answers per minute. "
           "Further requests of the address get 429, but for those with the admin token, with a "
           "token that was right before, or with a session. 0: no limit."),
    NUMBER(admin.max_queues, "1000", 1, 100000,
           "The admin API and `tellerline queue create` make no more queues than this."),
    NUMBER(worker.processes, "2", 0, 256,
           "Worker processes that share the port of `http.listen`; about one per core. 0: a worker "
           "for operators only: it serves `admin.worker`, and no visitors."),
    NUMBER(worker.max_pending, "100000", 1, 10000000,
           "Limit of commands accepted but not yet applied, per worker process. Above it joins are "
           "answered with 503 and `Retry-After`."),
    DURATION(
        worker.max_lag, "30s", SECONDS(1), MINUTES(60),
        "How long commands of a queue may wait in Redis to be applied. While they wait longer, as "
        "without a dispatcher, joins of this queue are answered with 503 and `Retry-After`."),
    NUMBER(
        admitter.batch, "1000", 1, 10000,
        "Visitors admitted in one atomic step at most. Redis serves nothing else during a step."),
    NUMBER(expirer.batch, "1000", 1, 10000,
           "Sessions and absent visitors ended in one atomic step at most."),
    LIST(notifier.http_hosts, "",
         "Names or addresses of hosts to which webhooks may go by `http://`, "
         "beside this machine: of a network that nobody else can read. Empty: none.",
         .check = tl_check_hosts),
    DURATION(retention.ended, "1h", MINUTES(60), DAYS(30),
             "How long Redis keeps, by the visitor's id, how a place or a session ended, so that "
             "visitors are told. At most the 500,000 last ones of a queue."),
    DURATION(retention.misuse, "7d", MINUTES(60), DAYS(90),
             "How long Redis keeps the signs of misuse, which name networks of visitors."),
    DURATION(retention.changes, "365d", DAYS(1), DAYS(3650),
             "How long Redis keeps the record of changes, which names operators and the addresses "
             "they came from."),
    DURATION(
        retention.webhooks, "1d", MINUTES(1), DAYS(7),
        "How long a webhook is tried again, and what it was not told yet is kept, with the ids "
        "of visitors."),
    NUMBER(retention.changes_entries, "10000", 100, 1000000,
           "Entries kept in the record of changes of a queue, and in that of what belongs to no "
           "queue (`tellerline log`). The number is approximate: Redis drops the oldest by the "
           "hundred."),
    NUMBER(retention.events_entries, "20000", 10, 10000000,
           "Entries kept in a queue's events stream. A worker that falls further behind takes a "
           "snapshot."),
    NUMBER(retention.webhooks_entries, "100000", 100, 10000000,
           "Entries kept at most for webhooks that do not answer, per queue. An entry takes about "
           "100 bytes; one of admissions also the ids of those admitted in one step. Beyond it the "
           "oldest are lost to those webhooks, which are told how many."),
    NUMBER(metrics.max_queues, "100", 0, 10000,
           "Queues with series of their own in `/metrics` of a program, about 70 for each queue. "
           "The others are added up as `_other`."),
    CHOICE(log.level, "info", level_names, "Lines below this level are not written."),
    CHOICE(log.format, "logfmt", format_names, "Format of the lines on standard error."),
    TEXT(
        secrets.ticket_keys, "secrets/ticket.keys",
        "File with the keys that sign tickets. Made at a start without visitors. A relative path "
        "starts at the folder of the configuration file; without a file, at the current directory.",
        .min = 1),
    TEXT(secrets.api_keys, "secrets/api.keys",
         "File with the API keys of trusted callers, who may name the visitor and the lane. Empty: "
         "there are none."),
    TEXT(secrets.admin_token, "secrets/admin.token",
         "File with a token that is always an admin's, also while Redis is away: a line of 20 to "
         "256 printable characters. Made by the worker if missing. Empty: none; with an empty "
         "`secrets.token_key`, too, there is no admin API."),
    TEXT(secrets.token_key, "secrets/token.key",
         "File with the key of operators' tokens: Redis keeps a hash by this key. Made if it is "
         "missing. Every program that checks or makes tokens needs the same file. Empty: no "
         "operator has a token."),
    TEXT(secrets.pass_keys, "secrets/pass.keys",
         "File with the keys that sign passes. Made at a start without visitors.", .min = 1),
    TEXT(secrets.invite_keys, "",
         "File with the keys that verify invites. Empty: no invite is accepted."),
    TEXT(secrets.challenge_secret, "",
         "File with the secret that the provider of `challenge_service` gave you, in one line. "
         "Read again on SIGHUP."),
    TEXT(secrets.draw_key, "secrets/draw.key",
         "File with the secret of the draws (`order: draw`), which every admitter needs and no "
         "other program reads. Made when the first queue with a draw is announced.",
         .min = 1),
};

const struct tl_setting *tl_config_table(size_t *n)
{
    *n = sizeof(process_rows) / sizeof(process_rows[0]);
    return process_rows;
}

_Static_assert(sizeof(process_rows) / sizeof(process_rows[0]) <= TL_CONFIG_ROWS_MAX,
               "tl_config_read notes a place for each row");
