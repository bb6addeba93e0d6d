/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "common/base/text.h"
#include "common/words/words.h"

#include "lab/report.h"

#include "ctl/plan/plan.h"

/* The settings of a queue of the configuration file. */
static bool use_queue(const struct tl_ctl_options *options, struct tl_queue_settings *settings,
                      struct tl_error *err)
{
    const struct tl_config *config = tl_config_load(options->config, err);
    if (config == NULL)
        return false;
    const struct tl_queue_settings *queue =
        tl_config_queue(config->queues, config->n_queues, options->plan.queue);
    if (queue == NULL) {
        char quoted[80];
        tl_quote(options->plan.queue, quoted, sizeof(quoted));
        tl_error_set(err, TL_ERR_INVALID, "there is no queue %s in %s", quoted,
                     options->config != NULL ? options->config
                                             : "the environment; name a file with --config");
    } else {
        *settings = *queue;
    }
    tl_config_free(&config);
    return queue != NULL;
}

/* The crowd, in a sentence. */
static void describe(const struct tl_plan_options *options, struct tl_plan_crowd *crowd)
{
    static const char *const shapes[] = {
        [TL_CROWD_EVEN] = "evenly", [TL_CROWD_RUSH] = "in a rush", [TL_CROWD_WAVE] = "in a wave"};
    const struct tl_arrivals *arrivals = &crowd->arrivals;
    const struct tl_words number = tl_words_whole(arrivals->n);
    char patience[TL_WORDS_MAX + 40] = "";
    if (options->patience_ms > 0)
        snprintf(patience, sizeof(patience), ", who give up after %s on average",
                 tl_words_time(options->patience_ms).text);
    if (options->arrivals != NULL)
        snprintf(crowd->words, sizeof(crowd->words), "%s of %.200s, within %s%s", number.text,
                 options->arrivals, tl_words_time(arrivals->list[arrivals->n - 1].at_ms).text,
                 patience);
    else
        snprintf(crowd->words, sizeof(crowd->words), "%s come %s within %s%s (seed %llu)",
                 number.text, shapes[options->input.crowd.shape],
                 tl_words_time(options->input.crowd.over_ms).text, patience,
                 (unsigned long long)options->seed);
}

bool tl_plan_gather(const struct tl_plan_options *options, const struct tl_queue_settings *queue,
                    struct tl_plan_crowd *crowd, struct tl_error *err)
{
    struct tl_arrivals *arrivals = &crowd->arrivals;
    const struct tl_plan_input *input = &options->input;
    *crowd = (struct tl_plan_crowd){.visitors = {.session_ms = input->session_ms,
                                                 .spread = options->spread,
                                                 .no_shows = input->no_shows,
                                                 .patience_ms = options->patience_ms,
                                                 .seed = options->seed}};
    if (!tl_lanes_shares(options->lanes, queue, crowd->visitors.lanes, err))
        return false;
    if (options->arrivals == NULL)
        tl_arrivals_draw(&input->crowd, options->seed, arrivals);
    else if (!tl_arrivals_read(options->arrivals, arrivals, err))
        return false;
    if (input->crowd.visitors > 0 && input->crowd.visitors < arrivals->n)
        arrivals->n = (size_t)input->crowd.visitors;
    for (size_t i = 0; input->session_ms == 0 && i < arrivals->n; i++) {
        if (arrivals->list[i].session_ms < 0) {
            tl_arrivals_free(arrivals);
            return tl_error_set(err, TL_ERR_INVALID,
                                "--session is missing, for example --session 5m: not every arrival "
                                "has a session of its own");
        }
    }
    describe(options, crowd);
    return true;
}

static bool write_svg(const char *path, const struct tl_plan_report *report, struct tl_error *err)
{
    struct tl_text svg = {0};
    tl_chart_svg(&(struct tl_chart){.series = &report->simulation->series,
                                    .title = "The line over time",
                                    .description = report->visitors},
                 &svg);
    const char *bytes = tl_xtext(&svg);
    FILE *file = fopen(path, "we");
    bool ok = file != NULL ||
              tl_error_set(err, TL_ERR_SYSTEM, "cannot create %s: %s", path, strerror(errno));
    bool written = file != NULL && fwrite(bytes, 1, svg.length, file) == svg.length;
    if (file != NULL && (fclose(file) != 0 || !written))
        ok = tl_error_set(err, TL_ERR_SYSTEM, "cannot write %s: %s", path, strerror(errno));
    tl_text_free(&svg);
    return ok;
}

static void write_report(const struct tl_ctl_options *options, const struct tl_plan_report *report)
{
    struct tl_text out = {0};
    json_t *json = tl_plan_report_json(report);
    if (options->output != TL_OUTPUT_TABLE) {
        tl_data_write(options->output, json_incref(json));
    } else if (options->plan.yaml) {
        for (size_t i = 0; i < report->warnings->n; i++)
            fprintf(stderr, "tellerline: warning: %s\n", report->warnings->texts[i]);
        tl_plan_report_yaml(&report->plan->settings, &out);
    } else {
        tl_plan_report_text(report, json, &out);
    }
    json_decref(json);
    tl_text_print(&out);
}

/* Replays the visitors, and completes the report. */
static int simulate(const struct tl_ctl_options *options, struct tl_plan_report report,
                    struct tl_error *err)
{
    const struct tl_plan_options *plan = &options->plan;
    struct tl_queue_settings settings;
    struct tl_plan_crowd crowd;
    if (plan->queue == NULL)
        settings = report.plan->settings;
    else if (!use_queue(options, &settings, err))
        return TL_EXIT_PROBLEM;
    settings.opens_at_ms = plan->opens_after_ms;
    if (!tl_plan_gather(plan, &settings, &crowd, err))
        return plan->arrivals != NULL && err->kind == TL_ERR_INVALID ? TL_EXIT_PROBLEM
                                                                     : TL_EXIT_FAILED;
    struct tl_simulation *simulation =
        tl_simulation_run(&settings, &crowd.visitors, &crowd.arrivals);
    tl_arrivals_free(&crowd.arrivals);
    report.visitors = crowd.words;
    report.settings = &settings;
    report.simulation = simulation;
    bool ok = plan->svg == NULL || write_svg(plan->svg, &report, err);
    if (ok)
        write_report(options, &report);
    tl_simulation_free(&simulation);
    return ok ? TL_EXIT_OK : TL_EXIT_FAILED;
}

int tl_command_plan(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    const struct tl_plan_input *input = &options->plan.input;
    struct tl_plan plan;
    struct tl_sentences warnings = {0};
    struct tl_plan_report report = {
        .input = input, .warnings = &warnings, .colour = tl_terminal_colour(stdout)};
    if (!tl_plan_options_check(&options->plan, options->output != TL_OUTPUT_TABLE, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    /* A queue of the configuration can be simulated without knowing what the site serves. */
    if (options->plan.queue == NULL || input->tps > 0 || input->calls > 0) {
        if (!tl_plan_compute(input, &plan, &err))
            return tl_ctl_fail(TL_EXIT_FAILED, &err);
        tl_plan_warn(input, &plan, &warnings);
        report.plan = &plan;
    }
    if (!options->plan.simulate) {
        write_report(options, &report);
        return TL_EXIT_OK;
    }
    int status = simulate(options, report, &err);
    return status == TL_EXIT_OK ? status : tl_ctl_fail(status, &err);
}
