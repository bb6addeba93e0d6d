/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/wire/notice_text.h"

#include "ctl/audit/audit.h"
#include "ctl/calls/calls.h"
#include "ctl/commands.h"
#include "ctl/plan/plan.h"
#include "ctl/report/report.h"
#include "ctl/trail/trail.h"
#include "ctl/up/up.h"

/* The columns of a list. */
#define LIST(...) ((const struct tl_member[]){__VA_ARGS__, {.title = NULL}})

#define COUNT(title, name) TL_MEMBER(title, name, NUMBER, "")

/* Said of more than one command. */
#define OPEN "{queue}: open: visitors join and are admitted"
#define WHAT_STAYS                                                                                 \
    "It is not known which places its visitors hold: Redis keeps no addresses. Those who wait "    \
    "are\nno longer seen and lose their places after waiting_ttl; sessions go on. "                \
    "`tellerline visitor\nremove` ends one at once."

static const struct tl_ctl_command commands[] = {
    /* ---- run ---- */
    {"up", NULL, TL_GROUP_RUN,
     TL_OPTION_CONFIG | TL_OPTION_DATA | TL_OPTION_PROCESSES | TL_OPTION_ARCHIVE, tl_command_up,
     .summary = "Run the whole system on this machine, until Ctrl-C",
     .details =
         "Starts worker, dispatcher, admitter and expirer, with webhooks the notifier and with "
         "archive.url or --archive the archiver, from the folder of this program, and restarts "
         "those that end. When no Redis is configured, it also runs a private redis-server on a "
         "socket in the data folder; with --archive and without archive.url, a private PostgreSQL "
         "(package postgresql), too."},
    {"db migrate", NULL, TL_GROUP_RUN, TL_OPTION_CONFIG, tl_command_migrate,
     .summary = "Make the tables of the archive, or bring them up to date",
     .details =
         "In the PostgreSQL of archive.url, as its user, in the schema tellerline. Archivers "
         "wait until the tables are those of their release."},
    {"restore", "QUEUE", TL_GROUP_RUN, TL_OPTIONS_STORE | TL_OPTION_SOURCE, tl_command_restore,
     .summary = "Bring the line of a queue back from the archive",
     .details =
         "After Redis lost the data of a queue, an archiver gives those who waited or were active "
         "their places and sessions again. The queue must be empty, or recover. No one is "
         "admitted meanwhile.",
     .status = "the archive has nothing to bring back, or the queue has visitors"},
    {"audit", NULL, TL_GROUP_RUN,
     TL_OPTIONS_STORE | TL_OPTION_QUEUE | TL_OPTION_OUTPUT | TL_OPTION_WORKER | TL_OPTION_COMPARE,
     tl_command_audit, .summary = "Verify the invariants of the live system",
     .details =
         "Counters, totals and capacity; places, order and lanes; streams, leases, settings and "
         "types; with --worker, the sizes that a worker shows; where there is an archive, what "
         "archivers found that it and Redis have differently. Says what to do about each finding.",
     .status = "a violation"},

    {"report", "QUEUE", TL_GROUP_RUN, TL_OPTION_CONFIG | TL_OPTION_DATA | TL_OPTION_REPORT,
     tl_command_report, .summary = "Report what happened in a queue, from the archive",
     .details =
         "Arrivals, admissions, waits, also by lane, abandonment, no-shows, what came true of the "
         "waits that visitors were told, and the use of the capacity; over time, with the changes "
         "by operators: by the minute; by the hour or day for more than two or sixty days. Of the "
         "visitors who came since the queue was created, also if Redis has lost it meanwhile; in "
         "an earlier sale, named QUEUE@SALE by the number that --sales lists; or between --since "
         "and --until. --with puts a second sale beside it, each from its opening on. `--format "
         "html >FILE` makes a page to print."},

    {"trail export", "QUEUE", TL_GROUP_RUN, TL_OPTION_CONFIG | TL_OPTION_DATA | TL_OPTION_TRAIL,
     tl_command_trail_export, .summary = "Write the trail of a queue, from the archive",
     .details =
         "Everything that was archived of a queue generation, with its hashes and the signed "
         "checkpoint, as text: `tellerline trail export concert >concert.trail`.",
     .status = "there is no such trail"},
    {"trail key", NULL, TL_GROUP_RUN, TL_OPTION_CONFIG | TL_OPTION_DATA, tl_command_trail_key,
     .summary = "Show the key by which others verify the trail",
     .details = "To be published. With an archive it is the one that archivers sign with, from "
                "PostgreSQL; else that of secrets.trail_key and the host of http.public_url."},
    {"verify trail", "FILE", TL_GROUP_RUN, TL_OPTION_VERIFY | TL_OPTION_CONFIG | TL_OPTION_DATA,
     tl_command_verify_trail, .summary = "Verify an exported trail, without the system",
     .details =
         "That nothing was altered, removed or inserted; that the checkpoint was signed with "
         "the key; that the trail begins with an older one; and that each admission was the "
         "turn of who was admitted, under the rules in force. With --archive also that "
         "PostgreSQL has the places that ended as the trail says.",
     .status = "a violation", .words_apart = 1},
    {"verify place", "FILE", TL_GROUP_RUN, TL_OPTION_PROOF, tl_command_verify_place,
     .summary = "Verify the proof of a visitor's place, without the system",
     .details = "FILE is what GET /v1/queues/QUEUE/trail/proof answers, or what the page of the "
                "proof saves.",
     .status = "it proves nothing", .words_apart = 1},

    /* ---- queues ---- */
    {"queue list", NULL, TL_GROUP_QUEUES, TL_OPTIONS_CALL, .operation = "listQueues",
     .list = "queues",
     .none =
         "no queues yet; `tellerline queue create` makes one, or add some under `queues` in the "
         "configuration file",
     .columns = LIST(TL_MEMBER("QUEUE", "queue", TEXT, ""), TL_MEMBER("MODE", "mode", TEXT, ""),
                     TL_MEMBER_SHOWN("PHASE", TEXT, tl_row_phase, tl_row_tint),
                     COUNT("WAITING", "waiting"), COUNT("ACTIVE", "active"),
                     TL_MEMBER_SHOWN("LIMIT", NUMBER, tl_row_limit, NULL),
                     COUNT("JOINED", "totals.joined"), COUNT("ADMITTED", "totals.admitted"),
                     COUNT("COMPLETED", "totals.completed"), COUNT("EXPIRED", "totals.expired"),
                     COUNT("LEFT", "totals.left")),
     .write = tl_write_troubles, .summary = "List the queues and their numbers"},
    {"queue show", "QUEUE", TL_GROUP_QUEUES, TL_OPTIONS_CALL, .operation = "getQueue",
     .write = tl_write_settings, .summary = "Show the settings of a queue"},
    {"queue create", "NAME [SETTING=VALUE...]", TL_GROUP_QUEUES, TL_OPTIONS_CALL,
     .operation = "createQueue",
     .say = {{NULL, "{name}: created; the waiting page is at /q/{name}"}},
     .summary = "Create a queue",
     .details = "Settings that are not given have their defaults. It is served within a second."},
    {"queue set", "QUEUE SETTING=VALUE...", TL_GROUP_QUEUES, TL_OPTIONS_CALL | TL_OPTION_YES,
     tl_command_set, .summary = "Change settings of a queue while it runs",
     .details = "Names and values are those of the configuration file, for example: capacity=20 "
                "session_ttl=5m rate.burst=10. All of them change in one step, or none. It prints "
                "what each was before. A time has a unit: 500ms, 10s, 5m, 2h, 1d. It asks if one "
                "becomes less than a tenth of what it was. A lower capacity ends no session."},
    {"queue open", "QUEUE", TL_GROUP_QUEUES, TL_OPTIONS_CALL, .operation = "openQueue",
     .say = {{NULL, OPEN}}, .summary = "Open a queue: visitors join and are admitted",
     .details = "After `queue sell-out`, close the queue first."},
    {"queue pause", "QUEUE", TL_GROUP_QUEUES, TL_OPTIONS_CALL, .operation = "pauseQueue",
     .say = {{NULL, "{queue}: paused: visitors join, no one is admitted"}},
     .summary = "Admit no one; visitors still join"},
    {"queue resume", "QUEUE", TL_GROUP_QUEUES, TL_OPTIONS_CALL, .operation = "resumeQueue",
     .say = {{NULL, OPEN}}, .summary = "End a pause: visitors join and are admitted"},
    {"queue drain", "QUEUE", TL_GROUP_QUEUES, TL_OPTIONS_CALL, .operation = "drainQueue",
     .say = {{NULL, "{queue}: draining: no one joins, the line is served"}},
     .summary = "Take no new visitors; serve the line"},
    {"queue close", "QUEUE", TL_GROUP_QUEUES, TL_OPTIONS_CALL, .operation = "closeQueue",
     .say = {{NULL, "{queue}: closed: no one joins, no one is admitted"}},
     .summary = "Take no new visitors and admit no one",
     .details = "The page says closed_text, if set."},
    {"queue sell-out", "QUEUE", TL_GROUP_QUEUES, TL_OPTIONS_CALL, .operation = "sellOutQueue",
     .say = {{NULL, "{queue}: sold_out: no one joins, no one is admitted"}},
     .summary = "Close a queue and show that it is sold out",
     .details = "In the words of sold_out_text, if set. Before it can be "
                "opened again it must be closed."},
    {"queue passthrough", "QUEUE", TL_GROUP_QUEUES, TL_OPTIONS_CALL,
     .operation = "passQueueThrough",
     .say = {{NULL, "{queue}: passthrough: everyone gets in past the line"}},
     .summary = "Let everyone in past the line",
     .details = "While Redis is away, write `mode: passthrough` into the file of the workers "
                "instead, and send them SIGHUP."},
    {"queue notice", "QUEUE TEXT|LANG=TEXT...", TL_GROUP_QUEUES, TL_OPTIONS_CALL,
     .run = tl_command_notice, .operation = "setNotice",
     .say = {{"notice=", "{queue}: notice removed"}, {NULL, "{queue}: notice set"}},
     .summary = "Show a notice to all waiting visitors; \"\" removes it",
     .details =
         "TEXT is for everyone. Or give each language of the pages its own, en=TEXT ko=TEXT: "
         "visitors read theirs, others the English one, or the first where there is none.",
     .most_words = 1 + TL_NOTICE_LANGUAGES},
    {"queue recover", "QUEUE", TL_GROUP_QUEUES, TL_OPTIONS_CALL | TL_OPTION_RECOVER,
     .run = tl_command_recover, .operation = "recoverQueue",
     .say = {{"wait_seconds",
              "{queue}: no one is admitted for {wait_seconds}; {restored} places came back so far"},
             {"was_recovering", "{queue}: the recovery ends; {restored} places came back"},
             {NULL, "{queue}: no recovery is under way; none begins by itself from now on"}},
     .summary = "End the recovery after a loss of data, or extend it",
     .details = "After Redis lost the data of a queue, no one is admitted for recovery_window, so "
                "that visitors come back to their places. --now admits at once: who comes later "
                "stands behind. --wait opens the window again or moves its end."},
    {"queue stats", "QUEUE", TL_GROUP_QUEUES, TL_OPTIONS_CALL, .operation = "getStats",
     .write = tl_write_stats,
     .summary = "Show the numbers of a queue, and the health of what serves it"},
    {"queue line", "QUEUE", TL_GROUP_QUEUES, TL_OPTIONS_CALL | TL_OPTION_FROM | TL_OPTION_LIMIT,
     .run = tl_command_line, .operation = "getLine", .write = tl_write_line,
     .summary = "List who waits, in the order of the line",
     .details = "A page of 100, or of --limit, from position --from on."},
    {"queue export", "QUEUE [FILE]", TL_GROUP_QUEUES,
     (TL_OPTIONS_CALL & ~(unsigned)TL_OPTION_OUTPUT) | TL_OPTION_EXPORT, tl_command_export,
     .summary = "Write all visitors of a queue, as CSV or JSON lines",
     .details = "Those who wait in the order of the line, those who are active, those who ended "
                "within retention.ended. FILE is complete, or it does not exist; without it, or "
                "with -, they go to the standard output."},
    {"queue delete", "QUEUE", TL_GROUP_QUEUES, TL_OPTIONS_CALL | TL_OPTION_YES,
     .operation = "deleteQueue", .also = "confirm",
     .confirm = "Queue {queue} will be deleted: {waiting} who wait lose their places, {active} who "
                "are active lose their sessions. This cannot be undone.",
     .confirm_by = "getStats", .confirm_typed = true, .say = {{NULL, "{queue}: deleted"}},
     .summary = "Delete a queue, with its line and its sessions",
     .details = "It asks for the name. Tickets and passes of the queue stop working."},
    {"draw show", "QUEUE [FILE]", TL_GROUP_QUEUES, TL_OPTIONS_CALL, tl_command_draw_show,
     .summary = "Show the draw of a queue, or write its list",
     .details = "Before the opening: the hash of the seed. After the draw: the seed, and with FILE "
                "(- is the standard output) the list of those who were drawn, by their draw ids, "
                "in their order."},
    {"draw schedule", "QUEUE [OPENS-AT]", TL_GROUP_QUEUES, TL_OPTIONS_CALL, .operation = "setDraw",
     .say =
         {{NULL,
           "{queue}: those who are in line at {settings.opens_at:the opening} are drawn by lot"}},
     .summary = "Draw lots at the opening among those who joined before it",
     .details =
         "OPENS-AT is when the queue opens, as 2026-12-01T20:00:00+09:00; without it, the opens_at "
         "that the queue has. From then on, `draw show` has the hash of the seed to publish."},
    {"draw verify", "FILE|ADDRESS [HASH [ID]]", TL_GROUP_QUEUES, 0, tl_command_draw_verify,
     .summary = "Verify the published list of a draw",
     .details =
         "It recomputes the order. FILE is such a list, or the pages of one; - reads the standard "
         "input. ADDRESS is where a site publishes it: https://wait.example/v1/queues/QUEUE/draw. "
         "HASH is the one that was published before the draw. With the ID of a visitor "
         "(`draw_id`), it says where that one stands. A FILE needs no running system.",
     .status = "the order is not right"},

    /* ---- visitors ---- */
    {"visitor show", "QUEUE [VISITOR]", TL_GROUP_VISITORS, TL_OPTIONS_CALL | TL_OPTION_REFERENCE,
     .run = tl_command_visitor_show, .operation = "getVisitor", .write = tl_write_members,
     .summary = "Show a visitor's place or session, or how the visit ended",
     .details = "VISITOR is the visitor's id, or the ticket. Or give the reference code that the "
                "visitor's page shows, with --reference. Ends are known for retention.ended.",
     .status = "there is no such visitor or queue"},
    {"visitor move", "QUEUE VISITOR LANE", TL_GROUP_VISITORS, TL_OPTIONS_CALL,
     .operation = "moveVisitor",
     .say = {{"was_in", "{queue}: visitor {visitor} is moved from lane {was_in} to {lane}"},
             {NULL,
              "{queue}: visitor {visitor} waits in lane {lane} already; nothing was changed"}},
     .summary = "Move a waiting visitor to another lane",
     .details = "The visitor is ahead of everyone in that lane who joined later. VISITOR is the "
                "visitor's id, or the ticket, which is verified with secrets.ticket_keys.",
     .status = "there is no such visitor, lane or queue"},
    {"visitor remove", "QUEUE VISITOR", TL_GROUP_VISITORS, TL_OPTIONS_CALL | TL_OPTION_YES,
     .operation = "removeVisitor",
     .confirm = "Visitor {visitor} of queue {queue} loses the place, or the session. This cannot "
                "be undone.",
     .say = {{"was=active", "{queue}: the session of visitor {visitor} is revoked"},
             {NULL, "{queue}: visitor {visitor} is removed from the line"}},
     .summary = "Take a visitor out of the line, or end the session, at once",
     .details =
         "Ticket and pass stop working, and the page says that the place was removed. "
         "VISITOR is the visitor's id, or the ticket, which is verified with secrets.ticket_keys.",
     .status = "there is no such visitor or queue"},
    {"visitor forget", "QUEUE VISITOR", TL_GROUP_VISITORS, TL_OPTIONS_CALL | TL_OPTION_YES,
     .operation = "forgetVisitor",
     .confirm = "Visitor {visitor} of queue {queue} loses the place, or the session, and the id is "
                "erased wherever it is kept. This cannot be undone.",
     .say = {{NULL, "{queue}: the visitor is forgotten: the id was erased in {places} places"}},
     .summary = "Remove a visitor and erase what is kept of them",
     .details =
         "VISITOR is the visitor's id, or the ticket, which is verified with secrets.ticket_keys. "
         "It cannot be undone: afterwards nobody can tell how this visit ended.",
     .status = "nothing is kept of the visitor, or there is no such queue"},
    {"block add", "PREFIX", TL_GROUP_VISITORS, TL_OPTIONS_CALL | TL_OPTION_QUEUE | TL_OPTION_FOR,
     .operation = "createBlock",
     .say = {{"for_seconds",
              "{prefix} is blocked from {queue:all queues}, for {for_seconds}\n" WHAT_STAYS},
             {NULL, "{prefix} is blocked from {queue:all queues}, until `tellerline block "
                    "remove`\n" WHAT_STAYS}},
     .summary = "Refuse joins and streams from an address or a network",
     .details =
         "PREFIX: 192.0.2.7, 192.0.2.0/24, 2001:db8::/48. Applies to all queues, or to --queue "
         "NAME, until `block remove`, or for --for TIME. Every worker knows it within a second."},
    {"block remove", "PREFIX", TL_GROUP_VISITORS, TL_OPTIONS_CALL | TL_OPTION_QUEUE,
     .operation = "deleteBlock",
     .say = {{NULL, "{prefix} is no longer blocked from {queue:all queues}"}},
     .summary = "Unblock a prefix",
     .details = "The same prefix, and the same --queue, as of `block add`."},
    {"block list", NULL, TL_GROUP_VISITORS, TL_OPTIONS_CALL, .operation = "listBlocks",
     .list = "blocks", .none = "no prefix is blocked",
     .columns =
         LIST(TL_MEMBER("PREFIX", "prefix", TEXT, ""), TL_MEMBER("QUEUE", "queue", TEXT, "all"),
              TL_MEMBER("UNTIL", "until", TIME, "unblocked")),
     .summary = "List the blocked prefixes"},

    /* ---- watch ---- */
    {"top", NULL, TL_GROUP_WATCH,
     TL_OPTIONS_STORE | TL_OPTION_SERVER | TL_OPTION_INTERVAL | TL_OPTION_COUNT, tl_command_top,
     .summary = "Show the queues live",
     .details = "How many wait and how long the first of them, how many a minute are admitted, who "
                "gave up, and who never came. On a terminal it redraws in place, as wide as that "
                "is, and `q` ends it; elsewhere it prints a table per interval. Below "
                "it are the signs of misuse in the last minute."},
    {"log", NULL, TL_GROUP_WATCH, TL_OPTIONS_CALL | TL_OPTION_QUEUE | TL_OPTION_LIMIT,
     tl_command_log, .summary = "List who changed what, when and from where",
     .details = "The last changes of one queue, or of all queues, tokens and blocks: 50, or "
                "--limit; the newest is the last."},
    {"webhook list", NULL, TL_GROUP_WATCH, TL_OPTIONS_CALL, .operation = "listWebhooks",
     .list = "webhooks",
     .none =
         "no webhook watches a queue; list some under `webhooks` in the configuration file, and "
         "run tellerline-notifier",
     .columns = LIST(TL_MEMBER("WEBHOOK", "name", TEXT, ""), TL_MEMBER("QUEUE", "queue", TEXT, ""),
                     COUNT("TOLD", "told"), COUNT("PENDING", "pending"),
                     TL_MEMBER("OLDEST", "oldest_pending_ms", WAIT, ""), COUNT("LOST", "lost"),
                     TL_MEMBER_SHOWN("STATE", TEXT, tl_webhook_words, tl_webhook_tint)),
     .summary = "List the webhooks and how far each was told",
     .details = "PENDING is how many entries of the journal wait for the webhook, and OLDEST since "
                "when. LOST is how many it was not told of, because it did not answer for too "
                "long. `dead` says that it loses some now."},
    {"webhook test", "NAME", TL_GROUP_WATCH, TL_OPTIONS_CALL | TL_OPTION_QUEUE,
     tl_command_webhook_test, .summary = "Send a webhook a test event and show what it answers",
     .details = "The event goes the way of all others: through the journal of a queue that the "
                "webhook watches (--queue NAME, else the first) and the notifier.",
     .status = "the webhook was not told"},

    /* ---- access ---- */
    {"dashboard", NULL, TL_GROUP_ACCESS, TL_OPTION_CONFIG | TL_OPTION_SERVER | TL_OPTION_OUTPUT,
     tl_command_dashboard,
     .summary = "Write an address that signs a browser in to the dashboard, once",
     .details = "Without --server: at the admin.worker of the configuration, as the bearer of the "
                "token in TELLERLINE_TOKEN or --token-file, else of that in secrets.admin_token."},
    {"token create", "NAME ROLE", TL_GROUP_ACCESS, TL_OPTIONS_CALL, .operation = "createToken",
     .alone = "token",
     .say =
         {{NULL,
           "This is the token of {name}, role {role}. It is not kept and cannot be shown again."}},
     .summary = "Create a token for an operator, and write it once",
     .details = "ROLE: viewer (sees everything), operator (runs queues), admin (also tokens, and "
                "deletes queues). The token is not kept and cannot be shown again."},
    {"token list", NULL, TL_GROUP_ACCESS, TL_OPTIONS_CALL, .operation = "listTokens",
     .list = "tokens", .none = "there are no tokens",
     .columns =
         LIST(TL_MEMBER("NAME", "name", TEXT, ""), TL_MEMBER("ROLE", "role", TEXT, ""),
              TL_MEMBER("CREATED", "created_at", TIME, ""), TL_MEMBER("BY", "created_by", TEXT, ""),
              TL_MEMBER("LAST USED", "last_used_at", TIME, "never")),
     .summary = "List the tokens: names, roles and last use"},
    {"token revoke", "NAME", TL_GROUP_ACCESS, TL_OPTIONS_CALL | TL_OPTION_YES,
     .operation = "revokeToken",
     .confirm = "The token {name} stops working. This cannot be undone.",
     .say = {{NULL, "the token {name} is revoked"}}, .summary = "Revoke a token",
     .status = "there is no such token"},
    {"key create", "api|invite NAME [FILE]", TL_GROUP_ACCESS, TL_OPTION_CONFIG,
     tl_command_key_create, .summary = "Create an API key or an invite key",
     .details = "Adds it to secrets.api_keys or secrets.invite_keys, or to FILE, and writes it. "
                "With FILE - it only writes the line. Workers read the files again on SIGHUP.",
     .words_apart = 3},

    /* ---- the configuration file ---- */
    {"check", NULL, TL_GROUP_FILE, TL_OPTIONS_STORE | TL_OPTION_CONNECT, tl_command_check,
     .summary = "Check the configuration, and with --connect the store",
     .details =
         "The store must be a master, take the functions of this release, keep its keys when it is "
         "full, and be able to keep redis.durability. Functions that are missing are loaded."},
    {"diff", NULL, TL_GROUP_FILE, TL_OPTIONS_CALL | TL_OPTION_QUEUE, tl_command_diff,
     .summary = "Show where the configuration file and the store differ",
     .details = "For a queue that exists the settings of the store apply, and what the file does "
                "not mention is left to the store.",
     .status = "something differs"},
    {"apply", NULL, TL_GROUP_FILE,
     TL_OPTIONS_CALL | TL_OPTION_QUEUE | TL_OPTION_DRY_RUN | TL_OPTION_YES, tl_command_apply,
     .summary = "Apply the queues of the configuration file to the store",
     .details = "Creates the queues that are missing, and changes each setting that the file "
                "mentions, all of a queue in one step. Queues that are in the store only are left "
                "alone. The settings of the programs themselves change at their next start. It "
                "asks if a time becomes less than a tenth of what it was."},

    /* ---- plan ---- */
    {"plan", NULL, TL_GROUP_PLAN, TL_OPTION_PLAN | TL_OPTION_CONFIG | TL_OPTION_OUTPUT,
     tl_command_plan, .summary = "Compute capacity, rate and waits; simulate a crowd",
     .details = "Says from the site's throughput and the visitors' behaviour how many to admit, "
                "and prints the configuration. For example:\n\n  tellerline plan --tps 1000 "
                "--session 5m --calls 6/session --failure-rate 15%\n  tellerline plan --tps 1000 "
                "--session 4m --calls 6/min --visitors 100000 --simulate\n\nLimits are rounded "
                "down: --safety is taken off, then two significant digits stay."},
    {"rehearse", "QUEUE", TL_GROUP_PLAN, TL_OPTION_REHEARSE | TL_OPTIONS_STORE | TL_OPTION_OUTPUT,
     tl_command_rehearse, .summary = "Send a described crowd through a copy of a queue",
     .details = "Makes a scratch queue with the settings of QUEUE, lets the crowd join, wait, come "
                "and go over HTTP, removes the queue, and reports what happened beside what "
                "`tellerline plan --simulate` says. For example:\n\n  tellerline rehearse sale "
                "--visitors 2000 --over 5m --session 3m --speed 20",
     .status = "not all was kept that the settings promise, or the rehearsal failed"},
    {"config-doc", NULL, TL_GROUP_PLAN, 0, tl_command_config_doc,
     .summary = "Write the reference of all settings", .hidden = true},
};

enum { N_COMMANDS = sizeof(commands) / sizeof(commands[0]) };

const struct tl_ctl_command *tl_ctl_commands(size_t *n)
{
    *n = N_COMMANDS;
    return commands;
}

const char *tl_ctl_group_title(enum tl_ctl_group group)
{
    static const char *const titles[TL_GROUPS] = {
        [TL_GROUP_RUN] = "Run",           [TL_GROUP_QUEUES] = "Queues",
        [TL_GROUP_VISITORS] = "Visitors", [TL_GROUP_WATCH] = "Watch",
        [TL_GROUP_ACCESS] = "Access",     [TL_GROUP_FILE] = "The configuration file",
        [TL_GROUP_PLAN] = "Plan",
    };
    return titles[group];
}

/* How many of the words are this name; 0: they are not. */
static int match(const char *name, int n_words, char *const *words)
{
    size_t length = strcspn(name, " ");
    if (strncmp(words[0], name, length) != 0 || words[0][length] != '\0')
        return 0;
    if (name[length] == '\0')
        return 1;
    return n_words > 1 && strcmp(words[1], name + length + 1) == 0 ? 2 : 0;
}

const struct tl_ctl_command *tl_ctl_command_find(int n_words, char *const *words, int *used)
{
    for (size_t i = 0; n_words > 0 && i < N_COMMANDS; i++) {
        *used = match(commands[i].name, n_words, words);
        if (*used > 0)
            return &commands[i];
    }
    return NULL;
}

bool tl_ctl_command_begins(const char *word)
{
    size_t length = strlen(word);
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (strncmp(commands[i].name, word, length) == 0 && commands[i].name[length] == ' ')
            return true;
    }
    return false;
}
