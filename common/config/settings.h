/* SPDX-License-Identifier: Apache-2.0 */
/* What the configuration holds: the settings of the processes and of the queues. */
#ifndef TL_SETTINGS_H
#define TL_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/auth/jwt_keys.h"
#include "common/base/log.h"
#include "common/config/yaml.h"
#include "common/wire/names.h"
#include "common/wire/place.h"
#include "common/wire/weights.h"

/* How the answer of a probe is read. */
enum tl_probe_format { TL_PROBE_JSON, TL_PROBE_PROMETHEUS };
enum tl_policy { TL_POLICY_COUNTER, TL_POLICY_RATE, TL_POLICY_BOTH };
/* Admission by rate: spread evenly over the period, or all at its start. */
enum tl_rate_shape { TL_RATE_SMOOTH, TL_RATE_BATCHES };
enum tl_challenge_mode { TL_CHALLENGE_NONE, TL_CHALLENGE_WORK, TL_CHALLENGE_EXTERNAL };
/* The service that verifies the tokens of `challenge: external`. */
enum tl_challenge_provider { TL_PROVIDER_TURNSTILE, TL_PROVIDER_HCAPTCHA, TL_PROVIDER_RECAPTCHA };
/* What a join gets while that service cannot be reached. */
enum tl_unreachable_mode { TL_UNREACHABLE_REFUSE, TL_UNREACHABLE_WORK };
enum tl_join_mode { TL_JOIN_OPEN, TL_JOIN_INVITED };
/* What must be true of a change in the store before visitors are told of it. */
enum tl_durability { TL_DURABILITY_MEMORY, TL_DURABILITY_FSYNC, TL_DURABILITY_REPLICATED };
/* What `check` does with a session that several clients use in turn. */
enum tl_sharing_mode { TL_SHARING_COUNT, TL_SHARING_WARN, TL_SHARING_REFUSE };
/* What the operator wants of a queue; common/config/mode.h has the rules. */
enum tl_queue_mode {
    TL_MODE_OPEN,        /* visitors join and are admitted */
    TL_MODE_PAUSED,      /* they join; no one is admitted */
    TL_MODE_DRAINING,    /* no one joins; the line is served */
    TL_MODE_CLOSED,      /* no one joins, no one is admitted */
    TL_MODE_SOLD_OUT,    /* likewise, and visitors are told so */
    TL_MODE_PASSTHROUGH, /* everyone gets in past the line */
    TL_MODES
};
/* What becomes of the line at closes_at. */
enum tl_after_close { TL_AFTER_CLOSE_DRAIN, TL_AFTER_CLOSE_STOP };
/* In which order those stand who joined before the opening. */
enum tl_order_rule { TL_ORDER_ARRIVAL, TL_ORDER_DRAW };
/* Where TLS ends for the admin listener of the worker. */
enum tl_admin_tls { TL_ADMIN_TLS_NONE, TL_ADMIN_TLS_TERMINATED, TL_ADMIN_TLS_LOOPBACK };
enum tl_store_error_mode { TL_STORE_ERROR_CLOSED, TL_STORE_ERROR_OPEN };

/* Settings of one queue. The file gives them at first start; afterwards the copy in Redis
 * applies. */
struct tl_queue_settings {
    enum tl_policy policy;
    uint64_t capacity;     /* active tokens at most (counter, both) */
    uint64_t capacity_min; /* above 0: steered between this and `capacity`... */
    struct {
        uint64_t load_max;      /* ...while the site reports at most this load, per cent, ... */
        int64_t latency_max_ms; /* ...this latency (0: not judged)... */
        uint64_t errors_max;    /* ...and this share of errors, per cent */
        int64_t every_ms;       /* between two raises */
        uint64_t raise;         /* per cent of `capacity` */
        uint64_t cut;           /* per cent of those active */
        int64_t hold_ms;        /* after a cut */
        int64_t fresh_ms;       /* how long a report counts */
    } adaptive;
    /* No setting: what the state says of a steered capacity (tl_queue_capacity). */
    struct tl_capacity_now {
        uint64_t capacity;
        bool stale; /* the site reports nothing */
    } now;
    /* No setting: when an operator changed the settings last, in us of the store's clock; 0: never,
     * they are those of the file. So the newest are known when the store has lost some. */
    int64_t changed_us;
    uint64_t overbook; /* how many may be called beyond capacity, for no-shows */
    struct {
        uint64_t admit;   /* this many... (rate, both); 0: no rate is set */
        int64_t every_ms; /* ...in this time */
        uint64_t burst;   /* how many more in one period (smooth) */
        enum tl_rate_shape shape;
    } rate;
    bool session_sliding;
    int64_t session_ttl_ms;
    int64_t session_max_ms; /* only with session_sliding */
    int64_t claim_ttl_ms;
    int64_t waiting_ttl_ms;
    int64_t recovery_window_ms; /* 0: a lost queue begins empty at once */
    size_t n_lanes;             /* at least 1 */
    char lanes[TL_LANES_MAX][TL_LANE_NAME_MAX + 1];
    struct tl_weights lane_weights; /* of no lane, or of each */
    unsigned default_lane;          /* index into lanes */
    int64_t opens_at_ms;            /* Unix time in ms; 0: open at once */
    int64_t closes_at_ms; /* Unix time in ms: no one joins from then on; 0: no such time */
    enum tl_after_close after_close;
    enum tl_order_rule order;
    enum tl_join_mode join;
    uint64_t max_waiting; /* visitors in the line; 0: any number */
    struct {
        uint64_t margin;  /* share of max_waiting, per cent, that is free again... */
        int64_t after_ms; /* ...and after how long, before a full line takes joins */
    } reopen;
    enum tl_challenge_mode challenge; /* before a new place is given */
    enum tl_store_error_mode on_store_error;
    enum tl_sharing_mode session_sharing;
    enum tl_queue_mode mode;
    char closed_text[2000];   /* what visitors read (common/config/texts.h); "": the built-in */
    char sold_out_text[2000]; /* likewise */
    char target_url[1024];    /* "" when absent */
};

/* Where the admitter asks how loaded the site is. In the file only, never in the store: no request
 * can choose whom a program asks. */
struct tl_probe_config {
    char url[512]; /* "": there is no probe */
    enum tl_probe_format format;
    char value[256]; /* the path in the JSON, or the series */
    double full;     /* the value that is a load of 1, above 0 */
    int64_t every_ms;
    int64_t timeout_ms;
};

/* The event that a queue's waiting page is for. In the file only, never in the store: it names
 * files of the machine. What the values mean is checked where pages are made (worker/page/look.h).
 * Texts are by language (common/config/texts.h), "" is nothing. */
enum {
    TL_EVENT_COLOURS_MAX = 3,
    TL_EVENT_HEAD_MAX = 200,   /* bytes of title, place and date in a language */
    TL_EVENT_MOMENT_MAX = 1000 /* bytes of a text of a moment */
};
struct tl_event_page {
    char title[2048], place[2048], date[2048];
    struct {
        char before[4096], waiting[4096], turn[4096], after[4096]; /* moments of a visitor */
    } texts;
    char gradient[64]; /* colours, separated by spaces */
    char accent[16];
    char image[512], logo[512], logo_dark[512]; /* paths of files */
    char help[512];
    struct tl_yaml_place places[16]; /* where each is written, by the rows of tl_page_table */
};

/* Its texts that may differ by language. */
enum tl_event_text {
    TL_EVENT_TITLE,
    TL_EVENT_PLACE,
    TL_EVENT_DATE,
    TL_EVENT_BEFORE, /* the opening; from here on the moments of a visitor */
    TL_EVENT_WAITING,
    TL_EVENT_TURN,
    TL_EVENT_AFTER, /* the sale */
    TL_EVENT_TEXTS
};

/* Rows of the table of a queue's settings at most. */
#define TL_QUEUE_ROWS_MAX 64

struct tl_queue_config {
    char name[TL_QUEUE_NAME_MAX + 1];
    struct tl_queue_settings settings;
    /* Where each setting is written, by the rows of tl_queue_table; line 0: the file has it not. */
    struct tl_yaml_place places[TL_QUEUE_ROWS_MAX];
    bool passthrough; /* `mode: passthrough` in the file, whatever the store says */
    struct tl_probe_config probe;
    struct tl_event_page *page; /* owned by the configuration; NULL: none */
    struct tl_yaml_place place; /* where it is written */
};

enum { TL_WEBHOOKS_MAX = 20, TL_WEBHOOK_NAME_MAX = 32, TL_WEBHOOK_QUEUES_MAX = 256 };

/* The events of a webhook: bits of `events`, in the order of tl_webhook_event_name. */
enum tl_webhook_event {
    TL_WEBHOOK_OPENED,
    TL_WEBHOOK_DRAWN,
    TL_WEBHOOK_PAUSED,
    TL_WEBHOOK_RESUMED,
    TL_WEBHOOK_DRAINING,
    TL_WEBHOOK_DRAINED,
    TL_WEBHOOK_CLOSED,
    TL_WEBHOOK_SOLD_OUT,
    TL_WEBHOOK_PASSTHROUGH,
    TL_WEBHOOK_THRESHOLD,
    TL_WEBHOOK_STORE_LOST,
    TL_WEBHOOK_STORE_BACK,
    TL_WEBHOOK_ADMITTED,
    TL_WEBHOOK_EVENTS
};

/* Whom the notifier tells what happens. In the file only: no request can choose whom a program
 * calls. */
struct tl_webhook_config {
    char name[TL_WEBHOOK_NAME_MAX + 1];
    char url[512];
    char secret_file[256];
    uint64_t events;                        /* a bit for each enum tl_webhook_event */
    char queues[TL_WEBHOOK_QUEUES_MAX + 1]; /* patterns, separated by spaces */
    uint64_t threshold;                     /* waiting visitors; 0: none */
    int64_t timeout_ms;
};

struct tl_listen {
    char host[256]; /* "" together with port -1: no listener */
    int port;       /* 0: any free port, logged */
};

/* Rows of the table of the programs' settings at most. */
#define TL_CONFIG_ROWS_MAX 96

struct tl_config {
    struct {
        char url[512];       /* "" when absent */
        char key_prefix[32]; /* "tl:" */
        char ca_file[256];   /* for rediss:// */
        int64_t timeout_ms;  /* connect and command */
        enum tl_durability durability;
    } redis;
    struct {
        struct tl_listen listen;
        char public_url[256];
        int64_t join_wait_ms;             /* how long a join is held until it is numbered */
        uint64_t max_body;                /* bytes */
        uint64_t max_connections;         /* per worker process, event streams included */
        uint64_t connections_per_address; /* per worker process; 0: no limit */
        uint64_t streams_per_address;     /* the same, event streams and long polls */
        uint64_t streams_per_ticket;      /* the same */
        int64_t idle_timeout_ms;          /* of a connection without a request under way */
        uint64_t joins_per_minute;        /* of one address (IPv6: one /56); 0: no limit */
        char trusted_proxies[1024];       /* networks, separated by spaces, whose X-Forwarded-For is
                                             believed */
        char allowed_origins[1024];       /* separated by spaces: whose pages may call the API */
        char return_urls[1024];           /* addresses, separated by spaces, beside target_url */
        bool transfer;                    /* places move to other devices */
    } http;
    struct {
        char networks[1024]; /* separated by spaces: whose checks pass without a place */
        char header[64];     /* a trusted proxy's, whose checks pass likewise; "": none */
    } bypass;
    struct {
        enum tl_challenge_provider provider;
        char verify_url[512]; /* "": the provider's */
        char script_url[512]; /* likewise */
        char site_key[256];   /* "": there is no service */
        char hostname[256];   /* of the site where the check was done; "": any */
        double min_score;     /* 0 to 1; 0: none, as there is no score */
        int64_t timeout_ms;
        enum tl_unreachable_mode on_unreachable;
        bool send_address;
        uint64_t max_concurrent; /* verifications under way, per worker process */
        uint64_t max_queued;     /* those that wait for one of these to end */
    } challenge_service;
    struct {
        enum tl_jwt_algorithm algorithm;
    } pass;
    struct tl_brand_settings {
        char name[81]; /* the site's, instead of the queue's; "": none */
        char
            accent_light[16]; /* "#rrggbb" for buttons, links and progress on a light page; or "" */
        char accent_dark[16]; /* ...and on a dark one */
        char style[256];      /* file paths; "": none */
        char logo[256];
        char languages[256]; /* folder; "": none */
        char timezone[64];   /* "Asia/Seoul"; "": UTC */
        char text[4096];     /* a sentence or two at the foot of the page, by language */
    } brand;
    struct {
        struct tl_listen worker, dispatcher, admitter, expirer, notifier, archiver;
        enum tl_admin_tls tls;
        char public_url[256];                  /* "": there is none */
        char redis_url[512];                   /* "": that of `redis.url` */
        int64_t session_ttl_ms;                /* of a sign-in in a browser */
        uint64_t max_failed_logins_per_minute; /* of one address; 0: no limit */
        char trusted_proxies[1024];            /* networks, as those of http */
        uint64_t max_queues;                   /* that the admin API creates */
    } admin;
    struct {
        uint64_t processes;
        uint64_t max_pending; /* commands accepted but not yet applied, per process; above it joins
                                 get 503 */
        int64_t max_lag_ms;   /* how long a batch may wait to be applied; above it joins get 503 */
    } worker;
    struct {
        uint64_t batch; /* promotions per step of the function */
    } admitter;
    struct {
        uint64_t batch; /* ends per step of the function */
    } expirer;
    struct {
        char http_hosts[1024]; /* separated by spaces: where webhooks may go without TLS */
    } notifier;
    struct {
        char url[512];        /* of PostgreSQL; "": there is no archive */
        bool pseudonyms;      /* instead of the ids of visitors */
        uint64_t entries;     /* of the record of a queue that wait at most */
        uint64_t bytes;       /* the same */
        int64_t kept_ms;      /* in PostgreSQL */
        int64_t reconcile_ms; /* how long it takes to compare all of a queue; 0: it is not done */
        enum tl_archive_restore { TL_RESTORE_AUTO, TL_RESTORE_MANUAL } restore;
    } archive;
    struct {
        int64_t ended_ms;          /* how a place or session ended */
        int64_t misuse_ms;         /* its signs, which name networks */
        int64_t changes_ms;        /* the record of changes */
        int64_t webhooks_ms;       /* the journal, which names visitors and waits for its readers */
        uint64_t changes_entries;  /* of a record of changes */
        uint64_t events_entries;   /* of the events stream of a queue */
        uint64_t webhooks_entries; /* of the journal */
    } retention;
    struct {
        uint64_t max_queues; /* with series of their own */
    } metrics;
    struct {
        enum tl_log_level level;
        enum tl_log_format format;
    } log;
    struct {
        char ticket_keys[256];
        char api_keys[256];
        char admin_token[256];
        char pass_keys[256];
        char invite_keys[256];
        char challenge_secret[256];
        char draw_key[256];
        char token_key[256];
        char archive_key[256];
        char trail_key[256];
    } secrets; /* file paths; tl_config_load completes relative ones */
    size_t n_webhooks;
    struct tl_webhook_config *webhooks; /* in the file's order */
    size_t n_queues;
    struct tl_queue_config *queues; /* in the file's order */
    char queues_source[256];        /* the file or variable that they are from, for messages */
};

#endif
