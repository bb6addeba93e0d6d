/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "common/base/text.h"
#include "common/base/units.h"
#include "common/config/queue_settings.h"

#include "lab/report.h"

#include "ctl/plan/plan.h"

void tl_plan_settings_of(const struct tl_queue_settings *queue,
                         struct tl_simulation_settings *settings)
{
    *settings = (struct tl_simulation_settings){
        .policy = queue->policy,
        .capacity = queue->capacity,
        .admit = queue->rate.admit,
        .every_ms = queue->rate.every_ms,
        .lumps = queue->rate.shape == TL_RATE_LUMPS,
        .burst = queue->rate.burst,
        .session_limit_ms = tl_queue_session_longest_ms(queue),
        .claim_ttl_ms = queue->claim_ttl_ms,
        .waiting_ttl_ms = queue->waiting_ttl_ms,
        .max_waiting = queue->max_waiting,
        .lanes = {.n = queue->n_lanes,
                  .weights = queue->lane_weights,
                  .standard = queue->default_lane},
    };
    memcpy(settings->lanes.names, queue->lanes, sizeof(queue->lanes));
}

/* The settings of a queue of the configuration file. */
static bool use_queue(const struct tl_ctl_options *options, struct tl_simulation_settings *settings,
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
        tl_plan_settings_of(queue, settings);
    }
    tl_config_free(&config);
    return queue != NULL;
}

void tl_plan_describe(const struct tl_plan_options *options, const struct tl_arrivals *arrivals,
                      char *text, size_t size)
{
    static const char *const shapes[] = {
        [TL_CROWD_EVEN] = "evenly", [TL_CROWD_RUSH] = "in a rush", [TL_CROWD_WAVE] = "in a wave"};
    const struct tl_words number = tl_words_whole(arrivals->n);
    char patience[TL_WORDS_MAX + 40] = "";
    if (options->patience_ms > 0)
        snprintf(patience, sizeof(patience), ", who give up after %s on average",
                 tl_words_time(options->patience_ms).text);
    if (options->arrivals != NULL)
        snprintf(text, size, "%s of %.200s, within %s%s", number.text, options->arrivals,
                 tl_words_time(arrivals->list[arrivals->n - 1].at_ms).text, patience);
    else
        snprintf(text, size, "%s come %s within %s%s (seed %llu)", number.text,
                 shapes[options->input.crowd.shape],
                 tl_words_time(options->input.crowd.over_ms).text, patience,
                 (unsigned long long)options->seed);
}

bool tl_plan_gather(const struct tl_plan_options *options, struct tl_arrivals *arrivals,
                    struct tl_error *err)
{
    if (options->arrivals == NULL)
        tl_arrivals_draw(&options->input.crowd, options->seed, arrivals);
    else if (!tl_arrivals_read(options->arrivals, arrivals, err))
        return false;
    for (size_t i = 0; options->input.session_ms == 0 && i < arrivals->n; i++) {
        if (arrivals->list[i].session_ms < 0) {
            tl_arrivals_free(arrivals);
            return tl_error_set(err, TL_ERR_INVALID,
                                "--session is missing, for example --session 5m: not every arrival "
                                "has a session of its own");
        }
    }
    return true;
}

static bool write_svg(const char *path, const struct tl_plan_report *report, struct tl_error *err)
{
    struct tl_text svg = {0};
    tl_chart_svg(&report->simulation->series, "The line over time", report->visitors, &svg);
    if (svg.failed)
        tl_no_memory();
    FILE *file = fopen(path, "we");
    bool ok = file != NULL ||
              tl_error_set(err, TL_ERR_SYSTEM, "cannot create %s: %s", path, strerror(errno));
    bool written = file != NULL && fwrite(svg.data, 1, svg.length, file) == svg.length;
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
        tl_plan_report_yaml(report->input, report->plan, &out);
    } else {
        tl_plan_report_text(report, json, &out);
    }
    json_decref(json);
    tl_text_print(&out);
}

/* Replays the visitors and reports. */
static int simulate(const struct tl_ctl_options *options, struct tl_plan_report *report,
                    struct tl_error *err)
{
    const struct tl_plan_options *plan = &options->plan;
    struct tl_simulation_visitors visitors = {
        .session_ms = plan->input.session_ms,
        .spread = plan->spread,
        .no_shows = plan->input.no_shows,
        .patience_ms = plan->patience_ms,
        .seed = plan->seed,
    };
    struct tl_arrivals arrivals;
    if (plan->queue != NULL && !use_queue(options, &report->settings, err))
        return TL_EXIT_PROBLEM;
    if (plan->queue == NULL)
        tl_simulation_settings_planned(&plan->input, report->plan, &report->settings);
    report->settings.opens_ms = plan->opens_after_ms;
    if (!tl_plan_lanes_shares(plan->lanes, &report->settings.lanes, visitors.lanes, err))
        return TL_EXIT_FAILED;
    if (!tl_plan_gather(plan, &arrivals, err))
        return plan->arrivals != NULL && err->kind == TL_ERR_INVALID ? TL_EXIT_PROBLEM
                                                                     : TL_EXIT_FAILED;
    tl_plan_describe(plan, &arrivals, report->visitors, sizeof(report->visitors));
    struct tl_simulation *simulation = tl_simulation_run(&report->settings, &visitors, &arrivals);
    tl_arrivals_free(&arrivals);
    report->simulation = simulation;
    bool ok = plan->svg == NULL || write_svg(plan->svg, report, err);
    if (ok)
        write_report(options, report);
    report->simulation = NULL;
    tl_simulation_free(&simulation);
    return ok ? TL_EXIT_OK : TL_EXIT_FAILED;
}

int tl_command_plan(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    const struct tl_plan_input *input = &options->plan.input;
    struct tl_plan plan;
    struct tl_plan_warnings warnings = {0};
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
    int status = simulate(options, &report, &err);
    return status == TL_EXIT_OK ? status : tl_ctl_fail(status, &err);
}
