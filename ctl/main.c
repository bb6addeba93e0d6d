#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/base/quote.h"

#include "ctl/command.h"
#include "ctl/options.h"

static const struct tl_ctl_command commands[] = {
    {"up", "", "Runs the whole system on this machine, until Ctrl-C.",
     "Starts worker, dispatcher, admitter and expirer from the folder of this program, and "
     "restarts those\n"
     "that end. When no Redis is configured, it also runs a private redis-server on a socket in "
     "the "
     "data folder.",
     TL_OPTION_CONFIG | TL_OPTION_DATA | TL_OPTION_PROCESSES, 0, 0, false, tl_command_up},
    {"queues", "", "Shows the queues and their numbers.", "", TL_OPTIONS_STORE | TL_OPTION_JSON, 0,
     0, false, tl_command_queues},
    {"top", "", "Shows the queues live, with rates per second.",
     "On a terminal it redraws in place, and `q` ends it; elsewhere it prints a table per "
     "interval.",
     TL_OPTIONS_STORE | TL_OPTION_INTERVAL | TL_OPTION_COUNT, 0, 0, false, tl_command_top},
    {"set", "QUEUE NAME=VALUE...", "Changes settings of a queue while it runs.",
     "Names and values are those of the configuration file, for example: capacity=20 "
     "session_ttl=5m\n"
     "rate.burst=10. A lower capacity ends no session.",
     TL_OPTIONS_STORE, 2, INT_MAX, false, tl_command_set},
    {"open", "QUEUE", "Opens a queue: visitors join and are admitted.",
     "After `sold-out`, close the queue first.", TL_OPTIONS_STORE, 1, 1, false, tl_command_open},
    {"pause", "QUEUE", "Admits no one; visitors still join.", "", TL_OPTIONS_STORE, 1, 1, false,
     tl_command_pause},
    {"drain", "QUEUE", "Takes no new visitors; serves the line.", "", TL_OPTIONS_STORE, 1, 1, false,
     tl_command_drain},
    {"close", "QUEUE", "Takes no new visitors and admits no one.",
     "The page says closed_text_en or closed_text_ko, if set.", TL_OPTIONS_STORE, 1, 1, false,
     tl_command_close},
    {"sold-out", "QUEUE", "The same, and the page says that it is sold out.",
     "In the words of sold_out_text_en and sold_out_text_ko, if set. Before it can be opened "
     "again\n"
     "it must be closed.",
     TL_OPTIONS_STORE, 1, 1, false, tl_command_sold_out},
    {"passthrough", "QUEUE", "Lets everyone in past the line.",
     "While Redis is away, write `mode: passthrough` into the file of the workers instead, and\n"
     "send them SIGHUP.",
     TL_OPTIONS_STORE, 1, 1, false, tl_command_passthrough},
    {"notice", "QUEUE TEXT", "Shows a notice to all waiting visitors; \"\" removes it.", "",
     TL_OPTIONS_STORE, 2, 2, false, tl_command_notice},
    {"visitor", "remove QUEUE VISITOR | move QUEUE VISITOR LANE",
     "Takes a visitor out of the line, or ends the session, at once; or moves one to a lane.",
     "Who is moved stands in that lane before everyone who joined later. Only who waits can be "
     "moved.\n"
     "VISITOR is the visitor's id, or the ticket. Who is removed: ticket and pass open nothing any "
     "more, "
     "and the\n"
     "page says that the place was removed. A ticket is verified with secrets.ticket_keys. Put -- "
     "before an "
     "id "
     "that\n"
     "begins with -.\n"
     "Exit status: 0 done, 1 there is no such visitor, lane or queue, 2 failed.",
     TL_OPTIONS_STORE, 3, 4, false, tl_command_visitor},
    {"block", "PREFIX", "Refuses joins and streams from an address or a network.",
     "PREFIX: 192.0.2.7, 192.0.2.0/24, 2001:db8::/48. Applies to all queues, or to --queue NAME, "
     "until\n"
     "`tellerline unblock`, or for --for TIME. Every worker knows it within a second.",
     TL_OPTIONS_STORE | TL_OPTION_QUEUE | TL_OPTION_FOR, 1, 1, false, tl_command_block},
    {"unblock", "PREFIX", "Ends a block of the same prefix and --queue.", "",
     TL_OPTIONS_STORE | TL_OPTION_QUEUE, 1, 1, false, tl_command_unblock},
    {"blocks", "", "Shows the blocked prefixes.", "", TL_OPTIONS_STORE | TL_OPTION_JSON, 0, 0,
     false, tl_command_blocks},
    {"recover", "QUEUE", "Ends the recovery after a loss of data, or gives it more time.",
     "After Redis lost the data of a queue, no one is admitted for recovery_window, so that "
     "visitors\n"
     "come back to their places. --now admits at once: who comes later stands behind. --wait opens "
     "the\n"
     "window again or moves its end.",
     TL_OPTIONS_STORE | TL_OPTION_RECOVER, 1, 1, false, tl_command_recover},
    {"draw", "QUEUE [FILE]", "Shows the draw of a queue, or writes its list.",
     "Before the opening: the hash of the seed. After the draw: the seed, and with FILE (- is the\n"
     "standard output) the list of those who were drawn, by their draw ids, in their order.",
     TL_OPTIONS_STORE, 1, 2, false, tl_command_draw},
    {"verify-draw", "FILE [HASH [ID]]", "Recomputes the order of the published list of a draw.",
     "FILE is such a list; - reads the standard input. HASH is the one that was published before "
     "the\n"
     "draw. With the ID of a visitor (`draw_id`), it says where that one stands. Needs no running\n"
     "system.\n"
     "Exit status: 0 the order is right, 1 it is not, 2 failed.",
     0, 1, 3, false, tl_command_verify_draw},
    {"audit", "", "Checks on the live system what must always hold.",
     "Counters, totals and capacity; places, order and lanes; streams, leases, settings and "
     "types;\n"
     "with --worker, the sizes that a worker shows. Says what to do about each finding.\n"
     "Exit status: 0 all holds, 1 a violation, 2 failed.",
     TL_OPTIONS_STORE | TL_OPTION_QUEUE | TL_OPTION_JSON | TL_OPTION_WORKER, 0, 0, false,
     tl_command_audit},
    {"plan", "", "Computes capacity, rate and waits; simulates a crowd.",
     "Says from the site's throughput and the visitors' behaviour how many to admit, and prints\n"
     "the configuration. For example:\n"
     "\n"
     "  tellerline plan --tps 1000 --session 5m --calls 6/session --failure-rate 15%\n"
     "  tellerline plan --tps 1000 --session 4m --calls 6/min --visitors 100000 --simulate\n"
     "\n"
     "Limits are rounded down: --safety is taken off, then two significant digits stay.",
     TL_OPTION_PLAN | TL_OPTION_CONFIG | TL_OPTION_JSON, 0, 0, false, tl_command_plan},
    {"rehearse", "QUEUE", "Sends a described crowd through a copy of a queue.",
     "Makes a scratch queue with the settings of QUEUE, lets the crowd join, wait, come and go "
     "over\n"
     "HTTP, removes the queue, and reports what happened beside what `tellerline plan --simulate`\n"
     "says. For example:\n"
     "\n"
     "  tellerline rehearse sale --visitors 2000 --over 5m --session 3m --speed 20\n"
     "\n"
     "Exit status: 0 all was kept that the settings promise, 1 it was not, or the rehearsal "
     "failed,\n"
     "2 usage, or no store.",
     TL_OPTION_REHEARSE | TL_OPTIONS_STORE | TL_OPTION_JSON, 1, 1, false, tl_command_rehearse},
    {"check", "", "Checks the configuration.", "", TL_OPTION_CONFIG, 0, 0, false, tl_command_check},
    {"config-doc", "", "Writes the reference of all settings.", "", 0, 0, 0, true,
     tl_command_config_doc},
};

enum { N_COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static void write_help(FILE *out)
{
    fprintf(out, "Usage: tellerline COMMAND [options]\n\nTellerline, a self-hosted virtual waiting "
                 "room.\n\n");
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (!commands[i].hidden)
            fprintf(out, "  %-11s %s\n", commands[i].name, commands[i].summary);
    }
    fprintf(out, "\n`tellerline COMMAND --help` shows its options. Exit status: 0 ok, 1 problem "
                 "found, 2 failed.\n");
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        write_help(stderr);
        return TL_EXIT_FAILED;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        write_help(stdout);
        return TL_EXIT_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("tellerline %s\n", TELLERLINE_VERSION);
        return TL_EXIT_OK;
    }
    for (size_t i = 0; i < N_COMMANDS; i++) {
        struct tl_ctl_options options;
        struct tl_error err = {0};
        if (strcmp(argv[1], commands[i].name) != 0)
            continue;
        if (!tl_ctl_options_parse(&commands[i], argc - 1, argv + 1, &options, &err))
            return tl_ctl_fail(TL_EXIT_FAILED, &err);
        if (!options.help)
            return commands[i].run(&options);
        tl_ctl_options_help(&commands[i], stdout);
        return TL_EXIT_OK;
    }
    char quoted[80];
    tl_quote(argv[1], quoted, sizeof(quoted));
    fprintf(stderr, "tellerline: no such command: %s; `tellerline --help` lists them\n", quoted);
    return TL_EXIT_FAILED;
}
