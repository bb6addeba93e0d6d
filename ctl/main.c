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
     "paused=true. A lower capacity ends no session.",
     TL_OPTIONS_STORE, 2, INT_MAX, false, tl_command_set},
    {"notice", "QUEUE TEXT", "Shows a notice to all waiting visitors; \"\" removes it.", "",
     TL_OPTIONS_STORE, 2, 2, false, tl_command_notice},
    {"audit", "", "Checks the invariants on the live system.",
     "Counters against sets, capacity, no visitor both waiting and active, the order of the "
     "lanes,\n"
     "and that no visitor is unaccounted for. Exit status: 0 all hold, 1 a violation, 2 failed.",
     TL_OPTIONS_STORE | TL_OPTION_QUEUE | TL_OPTION_JSON, 0, 0, false, tl_command_audit},
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
            fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].summary);
    }
    fprintf(out, "\n`tellerline COMMAND --help` shows its options. Exit status: 0 ok, 1 problem "
                 "found, 2 failed.\n");
}

static int run(const struct tl_ctl_command *command, int argc, char **argv)
{
    struct tl_ctl_options options;
    struct tl_error err = {0};
    if (!tl_ctl_options_parse(command, argc, argv, &options, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    if (options.help) {
        tl_ctl_options_help(command, stdout);
        return TL_EXIT_OK;
    }
    return command->run(&options);
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
        if (strcmp(argv[1], commands[i].name) == 0)
            return run(&commands[i], argc - 1, argv + 1);
    }
    char quoted[80];
    tl_quote(argv[1], quoted, sizeof(quoted));
    fprintf(stderr, "tellerline: no such command: %s; `tellerline --help` lists them\n", quoted);
    return TL_EXIT_FAILED;
}
