/* SPDX-License-Identifier: Apache-2.0 */
#include "common/config/table.h"
#include "common/base/origin.h"
#include "common/config/checks.h"
#include "common/config/durations.h"

/* Where a row's field is. */
#define PROCESS(member)                                                                            \
    .offset = offsetof(struct tl_config, member), .size = sizeof(((struct tl_config *)NULL)->member)

static const char *const level_names[] = {"debug", "info", "warn", "error", NULL};
static const char *const format_names[] = {"logfmt", "json", NULL};
static const char *const durability_names[] = {"memory", "fsync", "replicated", NULL};
static const char *const algorithm_names[] = {"HS256", "ES256", NULL};
static const char *const provider_names[] = {"turnstile", "hcaptcha", "recaptcha", NULL};
static const char *const admin_tls_names[] = {"none", "terminated", "loopback", NULL};
static const char *const unreachable_names[] = {"refuse", "work", NULL};

static const struct tl_setting process_rows[] = {
    {.path = "redis.url",
     .type = TL_SETTING_STRING,
     .fallback = "",
     .check = tl_check_redis_url,
     PROCESS(redis.url),
     .help = "Address of Redis: `redis://[user:password@]host[:port][/db]`, `rediss://...` (TLS), "
             "`unix:///path`, or `redis+sentinel://[user:password@]host[:port],.../master[/db]` "
             "(up to 9 sentinels). Empty: `tellerline up` starts a private Redis; the other "
             "programs need an address."},
    {.path = "redis.key_prefix",
     .type = TL_SETTING_STRING,
     .fallback = "tl:",
     .min = 1,
     .check = tl_check_prefix,
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
    {.path = "redis.changes_length",
     .type = TL_SETTING_NUMBER,
     .fallback = "10000",
     .min = 100,
     .max = 1000000,
     PROCESS(redis.changes_length),
     .help = "Entries kept in the record of changes of a queue, and in that of what belongs to no "
             "queue (`tellerline log`). About so many: Redis drops the oldest by the hundred."},
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
     .check = tl_check_public_url,
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
     .fallback = "16KiB",
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
             "(`LimitNOFILE`), and the process some 100 more. Above it, connections that wait "
             "for their client, for a request or to take an answer, are closed, longest first."},
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
     .help = "A connection without a request is closed after this time, and one whose client takes "
             "less than a kilobyte a second of an answer."},
    {.path = "http.joins_per_minute",
     .type = TL_SETTING_NUMBER,
     .fallback = "3000",
     .max = 1000000,
     PROCESS(http.joins_per_minute),
     .help =
         "Joins per minute from one address (IPv6: one /56, and 16 times as many from one /48) "
         "that the processes of a worker accept together; more get 429. A third of them may come "
         "at once, the others come evenly: who joins fastest does not shut out the rest of the "
         "address. Carriers put many visitors behind one IPv4 address: with 64 ports for each, "
         "about a thousand, who can all join at once. A join for which a challenge was passed is "
         "not counted. An address gets four times as many waiting pages. When joins come faster "
         "than they are applied, or Redis is nearly full, each address has the same share of every "
         "second, and what exceeds it gets 503. Trusted callers with an API key are not counted. "
         "0: no limit and no shares."},
    {.path = "http.trusted_proxies",
     .type = TL_SETTING_STRING,
     .fallback = "",
     .check = tl_check_networks,
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
    {.path = "bypass.networks",
     .type = TL_SETTING_STRING,
     .fallback = "",
     .check = tl_check_networks,
     PROCESS(bypass.networks),
     .help = "Addresses or networks, separated by spaces, whose visitors `check` lets in past "
             "every line: staff, monitoring, search engines. Empty: none."},
    {.path = "bypass.header",
     .type = TL_SETTING_STRING,
     .fallback = "",
     .check = tl_check_header,
     PROCESS(bypass.header),
     .help = "The name of a header: `check` lets every request in that has it and comes from one "
             "of `http.trusted_proxies`. The proxy must remove it from what visitors send. Empty: "
             "none."},
    {.path = "challenge_service.provider",
     .type = TL_SETTING_CHOICE,
     .fallback = "turnstile",
     .names = provider_names,
     PROCESS(challenge_service.provider),
     .help = "Who checks the visitors of queues with `challenge: external`: `turnstile` "
             "(Cloudflare), `hcaptcha` or `recaptcha` (Google; with `min_score` version 3, else "
             "the checkbox of version 2)."},
    {.path = "challenge_service.site_key",
     .type = TL_SETTING_STRING,
     .fallback = "",
     .check = tl_check_site_key,
     PROCESS(challenge_service.site_key),
     .help = "The provider's public key of your site, which pages show. Empty: there is no "
             "service, and no queue can have `challenge: external`. The secret is in the file "
             "`secrets.challenge_secret`."},
    {.path = "challenge_service.verify_url",
     .type = TL_SETTING_STRING,
     .fallback = "",
     .check = tl_check_service_url,
     PROCESS(challenge_service.verify_url),
     .help = "Where workers send tokens to be verified: `https://`, or `http://` on this machine. "
             "Empty: the provider's address."},
    {.path = "challenge_service.script_url",
     .type = TL_SETTING_STRING,
     .fallback = "",
     .check = tl_check_service_url,
     PROCESS(challenge_service.script_url),
     .help = "Where the waiting page loads the provider's script from. Empty: the provider's "
             "address."},
    {.path = "challenge_service.hostname",
     .type = TL_SETTING_STRING,
     .fallback = "",
     .check = tl_check_hostname,
     PROCESS(challenge_service.hostname),
     .help = "The host name of the page on which the check must have been done, as the provider "
             "reports it; tokens of another one are refused. Empty: any that the provider allows."},
    {.path = "challenge_service.min_score",
     .type = TL_SETTING_NUMBER,
     .fallback = "0",
     .max = 100,
     PROCESS(challenge_service.min_score),
     .help = "For reCAPTCHA version 3: the lowest score that is accepted, in hundredths; 50 is "
             "0.5. 0: the keys are of a version without a score."},
    {.path = "challenge_service.timeout",
     .type = TL_SETTING_DURATION,
     .fallback = "3s",
     .min = MILLISECONDS(100),
     .max = SECONDS(30),
     PROCESS(challenge_service.timeout_ms),
     .help = "How long a join waits for the verification of its token, including its wait for a "
             "free one of `max_concurrent`. After it the service counts as unreachable."},
    {.path = "challenge_service.on_unreachable",
     .type = TL_SETTING_CHOICE,
     .fallback = "refuse",
     .names = unreachable_names,
     PROCESS(challenge_service.on_unreachable),
     .help = "What a join gets while the service cannot be reached: `refuse` answers 503 and "
             "`Retry-After`, and the page tries again; `work` asks for proof of work instead."},
    {.path = "challenge_service.send_address",
     .type = TL_SETTING_BOOL,
     .fallback = "false",
     PROCESS(challenge_service.send_address),
     .help = "`true`: the provider also gets the visitor's IP address with the token. (It has "
             "seen the address already, as the browser loads the provider's script.)"},
    {.path = "challenge_service.max_concurrent",
     .type = TL_SETTING_NUMBER,
     .fallback = "64",
     .min = 1,
     .max = 1000,
     PROCESS(challenge_service.max_concurrent),
     .help = "Verifications under way at the same time, per worker process. Each has a connection "
             "of its own, which is used again."},
    {.path = "challenge_service.max_waiting",
     .type = TL_SETTING_NUMBER,
     .fallback = "1000",
     .max = 100000,
     PROCESS(challenge_service.max_waiting),
     .help = "Joins that wait for one of these, per worker process; more get 503 and "
             "`Retry-After`."},
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
    {.path = "page.transfer",
     .type = TL_SETTING_BOOL,
     .fallback = "true",
     PROCESS(page.transfer),
     .help = "A waiting place can be moved to another device. `false`: the page does not offer it, "
             "and `POST .../transfer` is refused; for the time in which programs of a version "
             "without it still run."},
    {.path = "page.languages",
     .type = TL_SETTING_STRING,
     .fallback = "",
     PROCESS(page.languages),
     .help =
         "Folder with files of texts (.yaml): each changes texts of the page in one language, or "
         "adds a language. Empty: none."},
    {.path = "page.timezone",
     .type = TL_SETTING_STRING,
     .fallback = "",
     .check = tl_check_timezone,
     PROCESS(page.timezone),
     .help = "In which time zone a page without JavaScript names times, such as `Asia/Seoul`; with "
             "it, the browser's own is used. Empty: UTC. Needs tzdata where the worker runs."},
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
     .help = "The admin API, the dashboard, `/livez`, `/readyz` and `/metrics` of the worker, one "
             "answer for all its processes. Port 0: any free port, which is logged. Empty: none."},
    {.path = "admin.dispatcher",
     .type = TL_SETTING_LISTEN,
     .fallback = "127.0.0.1:8082",
     PROCESS(admin.dispatcher),
     .help = "`/livez`, `/readyz` and `/metrics` of the dispatcher."},
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
    {.path = "admin.notifier",
     .type = TL_SETTING_LISTEN,
     .fallback = "127.0.0.1:8085",
     PROCESS(admin.notifier),
     .help = "The same for the notifier."},
    {.path = "admin.tls",
     .type = TL_SETTING_CHOICE,
     .fallback = "none",
     .names = admin_tls_names,
     PROCESS(admin.tls),
     .help = "`terminated`: a proxy in front of `admin.worker` speaks TLS with browsers, and "
             "nobody gets past it. `loopback`: it is published at a loopback address only, as the "
             "port of a container or by a port-forward. Browsers can sign in with one of these, or "
             "when `admin.worker` is a loopback address itself."},
    {.path = "admin.public_url",
     .type = TL_SETTING_STRING,
     .fallback = "",
     .check = tl_check_admin_url,
     PROCESS(admin.public_url),
     .help = "The address of the dashboard as browsers see it. They may use no other host name "
             "than this one's and `localhost`, but any IP address: so no other web site can reach "
             "the dashboard under a name of its own. Empty: there is no such address."},
    {.path = "admin.redis_url",
     .type = TL_SETTING_STRING,
     .fallback = "",
     .check = tl_check_redis_url,
     PROCESS(admin.redis_url),
     .help = "Address of Redis for the admin API, with a user who may change queues; the worker "
             "processes that visitors reach need no such user. Empty: that of `redis.url`."},
    {.path = "admin.session_ttl",
     .type = TL_SETTING_DURATION,
     .fallback = "12h",
     .min = MINUTES(1),
     .max = DAYS(7),
     PROCESS(admin.session_ttl_ms),
     .help = "How long a browser stays signed in to the dashboard."},
    {.path = "admin.trusted_proxies",
     .type = TL_SETTING_STRING,
     .fallback = "",
     .check = tl_check_networks,
     PROCESS(admin.trusted_proxies),
     .help =
         "Addresses or networks, separated by spaces, of proxies in front of the admin listener "
         "whose `X-Forwarded-For` is trusted, for the record of changes and the limit of wrong "
         "tokens. Those of `http.trusted_proxies` are not, unless they are named here, too."},
    {.path = "admin.failures_per_minute",
     .type = TL_SETTING_NUMBER,
     .fallback = "30",
     .max = 1000000,
     PROCESS(admin.failures_per_minute),
     .help = "Wrong tokens of one address (IPv6: one /56) that the admin API answers per minute. "
             "Further requests of the address get 429, but for those with the admin token, with a "
             "token that was right before, or with a session. 0: no limit."},
    {.path = "admin.max_queues",
     .type = TL_SETTING_NUMBER,
     .fallback = "1000",
     .min = 1,
     .max = 100000,
     PROCESS(admin.max_queues),
     .help = "The admin API and `tellerline queue create` make no more queues than this."},
    {.path = "worker.processes",
     .type = TL_SETTING_NUMBER,
     .fallback = "2",
     .max = 256,
     PROCESS(worker.processes),
     .help = "Worker processes that share the port of `http.listen`; about one per core. 0: a "
             "worker for operators only: it serves `admin.worker`, and no visitors."},
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
    {.path = "notifier.plain_hosts",
     .type = TL_SETTING_STRING,
     .fallback = "",
     .check = tl_check_hosts,
     PROCESS(notifier.plain_hosts),
     .help = "Names or addresses of hosts, separated by spaces, to which hooks may go by "
             "`http://`, beside this machine: of a network that nobody else can read. Empty: "
             "none."},
    {.path = "streams.events_length",
     .type = TL_SETTING_NUMBER,
     .fallback = "20000",
     .min = 10,
     .max = 10000000,
     PROCESS(streams.events_length),
     .help = "Entries kept in a queue's events stream. A worker that falls further behind takes a "
             "snapshot."},
    {.path = "streams.journal_length",
     .type = TL_SETTING_NUMBER,
     .fallback = "100000",
     .min = 100,
     .max = 10000000,
     PROCESS(streams.journal_length),
     .help = "Entries kept at most for hooks that do not answer, per queue. An entry takes about "
             "100 bytes; one of admissions also the ids of those admitted in one step. Beyond it "
             "the oldest are lost to those hooks, which are told how many."},
    {.path = "retention.ended",
     .type = TL_SETTING_DURATION,
     .fallback = "1h",
     .min = MINUTES(60),
     .max = DAYS(30),
     PROCESS(retention.ended_ms),
     .help = "How long Redis keeps, by the visitor's id, how a place or a session ended, so that "
             "visitors are told. At most the 500,000 last ones of a queue."},
    {.path = "retention.addresses",
     .type = TL_SETTING_DURATION,
     .fallback = "7d",
     .min = MINUTES(60),
     .max = DAYS(90),
     PROCESS(retention.addresses_ms),
     .help = "How long Redis keeps the signs of misuse, which name networks of visitors."},
    {.path = "retention.changes",
     .type = TL_SETTING_DURATION,
     .fallback = "365d",
     .min = DAYS(1),
     .max = DAYS(3650),
     PROCESS(retention.changes_ms),
     .help = "How long Redis keeps the record of changes, which names operators and the addresses "
             "they came from."},
    {.path = "retention.journal",
     .type = TL_SETTING_DURATION,
     .fallback = "1d",
     .min = MINUTES(1),
     .max = DAYS(7),
     PROCESS(retention.journal_ms),
     .help = "How long a hook is tried again, and what it was not told yet is kept, with the ids "
             "of visitors."},
    {.path = "metrics.queues",
     .type = TL_SETTING_NUMBER,
     .fallback = "100",
     .max = 10000,
     PROCESS(metrics.queues),
     .help = "Queues with series of their own in `/metrics` of a program, about 70 for each queue. "
             "The others are added up as `_other`."},
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
     PROCESS(secrets.admin_token),
     .help = "File with a token that is always an admin's, also while Redis is away: a "
             "line of 20 to 256 printable characters. Made by the worker if missing. Empty: none; "
             "with an empty `secrets.token_key`, too, there is no admin API."},
    {.path = "secrets.token_key",
     .type = TL_SETTING_STRING,
     .fallback = "secrets/token.key",
     PROCESS(secrets.token_key),
     .help =
         "File with the key of operators' tokens: Redis keeps a hash by this key. Made if it is "
         "missing. Every program that checks or makes tokens needs the same file. Empty: no "
         "operator has a token."},
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
    {.path = "secrets.challenge_secret",
     .type = TL_SETTING_STRING,
     .fallback = "",
     PROCESS(secrets.challenge_secret),
     .help = "File with the secret that the provider of `challenge_service` gave you, in one line. "
             "Read again on SIGHUP."},
    {.path = "secrets.draw_key",
     .type = TL_SETTING_STRING,
     .fallback = "secrets/draw.key",
     .min = 1,
     PROCESS(secrets.draw_key),
     .help = "File with the secret of the draws (`opening: draw`), which every admitter needs and "
             "no other program reads. Made when the first queue with a draw is announced."},
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

const struct tl_setting *tl_config_removed_table(size_t *n)
{
    *n = sizeof(removed_rows) / sizeof(removed_rows[0]);
    return removed_rows;
}
