#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "common/config/config.h"
#include "common/role/options.h"
#include "common/role/probe.h"

#define N_COMMON             5
#define HEALTH_TIMEOUT_MS    3000
#define HEALTH_PATH          "/livez"
#define CONFIG_PATH_VARIABLE "TELLERLINE_CONFIG"

enum {
    OPTION_CONFIG = 256,
    OPTION_CHECK,
    OPTION_HEALTHCHECK,
    OPTION_VERSION,
    OPTION_HELP,
    OPTION_OWN
};

static const struct option common_options[N_COMMON] = {
    {"config", required_argument, NULL, OPTION_CONFIG},
    {"check", no_argument, NULL, OPTION_CHECK},
    {"healthcheck", no_argument, NULL, OPTION_HEALTHCHECK},
    {"version", no_argument, NULL, OPTION_VERSION},
    {"help", no_argument, NULL, OPTION_HELP},
};

static size_t count_own(const struct tl_program *program)
{
    size_t n = 0;
    while (program->options != NULL && program->options[n].name != NULL)
        n++;
    if (n > TL_OPTIONS_MAX)
        abort(); /* the program's table outgrew TL_OPTIONS_MAX */
    return n;
}

static void print_option(const char *name, const char *argument, const char *help, FILE *out)
{
    char left[64];
    snprintf(left, sizeof(left), "--%s%s%s", name, argument != NULL ? " " : "",
             argument != NULL ? argument : "");
    fprintf(out, "  %-20s %s\n", left, help);
}

static bool has_healthcheck(const struct tl_program *program)
{
    for (size_t i = 0; i < TL_LISTENERS_MAX; i++) {
        if (program->listeners[i] != NULL)
            return true;
    }
    return false;
}

static void print_help(const struct tl_program *program, FILE *out)
{
    fprintf(out, "Usage: %s [OPTION...]%s%s\n%s\n\n", program->name,
            program->operands != NULL ? " " : "",
            program->operands != NULL ? program->operands : "", program->summary);
    print_option("config", "FILE", "the configuration (YAML); without it defaults and environment",
                 out);
    print_option("check", NULL, "only check the configuration; exit status 1 if it is wrong", out);
    if (has_healthcheck(program))
        print_option("healthcheck", NULL,
                     "ask the running program whether it is alive; exit status 1 if not", out);
    for (const struct tl_option *own = program->options; own != NULL && own->name != NULL; own++)
        print_option(own->name, own->argument, own->help, out);
    print_option("version", NULL, "print the version", out);
    print_option("help", NULL, "print this", out);
    fputs("\nTELLERLINE_* variables override the configuration: TELLERLINE_REDIS_URL, "
          "TELLERLINE_HTTP_LISTEN, ...\n" CONFIG_PATH_VARIABLE
          " names the file when --config does not.\n",
          out);
}

static int check_config(const char *path, FILE *out, FILE *errors)
{
    struct tl_error err = {0};
    const struct tl_config *config = tl_config_load(path, &err);
    if (config == NULL) {
        fprintf(errors, "%s\n", err.text);
        return 1;
    }
    tl_config_free(&config);
    fprintf(out, "%s: ok\n", path != NULL ? path : "environment");
    return 0;
}

/* The first listener that can be asked: configured, with a port known before the start. */
static const struct tl_listen *find_listener(const struct tl_program *program,
                                             const struct tl_config *config)
{
    for (size_t i = 0; i < TL_LISTENERS_MAX; i++) {
        if (program->listeners[i] != NULL && program->listeners[i](config)->port > 0)
            return program->listeners[i](config);
    }
    return NULL;
}

static int ask_listener(const struct tl_program *program, const struct tl_config *config, FILE *out,
                        FILE *errors)
{
    const struct tl_listen *listen = find_listener(program, config);
    if (listen == NULL) {
        fprintf(errors, "%s: no listener with a fixed port is configured, nobody to ask\n",
                program->name);
        return 1;
    }
    bool is_ipv6 = strchr(listen->host, ':') != NULL;
    char address[sizeof(listen->host) + 32];
    snprintf(address, sizeof(address), is_ipv6 ? "[%s]:%d" : "%s:%d", listen->host, listen->port);
    int status = tl_http_probe(listen->host, listen->port, HEALTH_PATH, HEALTH_TIMEOUT_MS);
    if (status == 200) {
        fprintf(out, "%s at %s is alive\n", program->name, address);
        return 0;
    }
    if (status < 0)
        fprintf(errors, "%s at %s does not answer\n", program->name, address);
    else
        fprintf(errors, "%s at %s answers " HEALTH_PATH " with %d\n", program->name, address,
                status);
    return 1;
}

static int check_health(const struct tl_program *program, const char *path, FILE *out, FILE *errors)
{
    struct tl_error err = {0};
    const struct tl_config *config = tl_config_load(path, &err);
    if (config == NULL) {
        fprintf(errors, "%s\n", err.text);
        return 1;
    }
    int status = ask_listener(program, config, out, errors);
    tl_config_free(&config);
    return status;
}

const char *tl_options_config_path(const char *given)
{
    const char *named = getenv(CONFIG_PATH_VARIABLE);
    if (given != NULL)
        return given;
    return named != NULL && *named != '\0' ? named : NULL;
}

static enum tl_options_next fail_usage(const struct tl_program *program, const char *what,
                                       const char *word, int *status, FILE *errors)
{
    fprintf(errors, "%s: %s%s; --help lists the options\n", program->name, what, word);
    *status = 2;
    return TL_OPTIONS_EXIT;
}

static enum tl_options_next fail_unknown(const struct tl_program *program, const char *word,
                                         int *status, FILE *errors)
{
    /* A single letter: getopt may still stand inside its word (-xyz). */
    char letter[] = {'-', (char)optopt, '\0'};
    bool single = optopt > 0 && optopt < OPTION_CONFIG;
    return fail_usage(program, "cannot make sense of ", single ? letter : word, status, errors);
}

static enum tl_options_next apply_own(const struct tl_program *program, const struct tl_option *own,
                                      const char *value, int *status, FILE *errors)
{
    struct tl_error err = {0};
    if (own->apply(program->context, value, &err))
        return TL_OPTIONS_RUN;
    fprintf(errors, "%s: --%s: %s\n", program->name, own->name, err.text);
    *status = 2;
    return TL_OPTIONS_EXIT;
}

/* All options up to the operands; *asked is OPTION_CHECK or OPTION_HEALTHCHECK when that is among
 * them. */
static enum tl_options_next read_options(const struct tl_program *program, int argc, char **argv,
                                         const struct option *table, struct tl_options *options,
                                         int *asked, int *status, FILE *out, FILE *errors)
{
    const char *mode = program->operands != NULL ? "+:" : ":";
    enum tl_options_next next = TL_OPTIONS_RUN;
    opterr = 0;
    optind = 0; /* glibc: start from the beginning */
    *status = 0;
    while (next == TL_OPTIONS_RUN) {
        int found = getopt_long(argc, argv, mode, table, NULL);
        switch (found) {
        case -1:
            return TL_OPTIONS_RUN;
        case OPTION_CONFIG:
            options->config_path = optarg;
            break;
        case OPTION_CHECK:
            *asked = OPTION_CHECK;
            break;
        case OPTION_HEALTHCHECK:
            if (!has_healthcheck(program))
                return fail_unknown(program, argv[optind - 1], status, errors);
            *asked = OPTION_HEALTHCHECK;
            break;
        case OPTION_VERSION:
            fprintf(out, "%s %s\n", program->name, TELLERLINE_VERSION);
            return TL_OPTIONS_EXIT;
        case OPTION_HELP:
            print_help(program, out);
            return TL_OPTIONS_EXIT;
        case ':':
            return fail_usage(program, "an argument is missing after ", argv[optind - 1], status,
                              errors);
        case '?':
            return fail_unknown(program, argv[optind - 1], status, errors);
        default:
            next =
                apply_own(program, &program->options[found - OPTION_OWN], optarg, status, errors);
        }
    }
    return next;
}

enum tl_options_next tl_options_parse(const struct tl_program *program, int argc, char **argv,
                                      struct tl_options *options, int *status, FILE *out,
                                      FILE *errors)
{
    struct option table[N_COMMON + TL_OPTIONS_MAX + 1] = {0};
    size_t n_own = count_own(program);
    int asked = 0;
    memcpy(table, common_options, sizeof(common_options));
    for (size_t i = 0; i < n_own; i++)
        table[N_COMMON + i] = (struct option){
            .name = program->options[i].name,
            .has_arg = program->options[i].argument != NULL ? required_argument : no_argument,
            .val = OPTION_OWN + (int)i};
    *options = (struct tl_options){.first_operand = argc};
    enum tl_options_next next =
        read_options(program, argc, argv, table, options, &asked, status, out, errors);
    if (next == TL_OPTIONS_EXIT)
        return TL_OPTIONS_EXIT;
    options->config_path = tl_options_config_path(options->config_path);
    options->first_operand = optind;
    if (program->operands == NULL && optind < argc)
        return fail_usage(program, "unexpected argument ", argv[optind], status, errors);
    if (asked == 0)
        return TL_OPTIONS_RUN;
    *status = asked == OPTION_CHECK ? check_config(options->config_path, out, errors)
                                    : check_health(program, options->config_path, out, errors);
    return TL_OPTIONS_EXIT;
}
