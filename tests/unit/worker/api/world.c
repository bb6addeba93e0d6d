/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/config/queue_settings.h"
#include "tests/unit/auth/jwt_forge.h"
#include "tests/unit/wire/pack.h"
#include "tests/unit/worker/api/world.h"
#include "worker/feed/follower.h"
#include "worker/feed/ingest.h"
#include "worker/http/server.h"
#include "worker/http/sharing.h"
#include "worker/report/worker_metrics.h"
#include "worker/visit/visit.h"

static _Alignas(64) unsigned char metrics_memory[16384];

/* ---- instead of the threads, which are the world itself ---- */

bool tl_ingest_look(struct tl_ingest *ingest, const char *queue, const struct tl_ticket *ticket,
                    uint64_t number)
{
    struct world *world = (void *)ingest;
    assert_string_equal(queue, "concert");
    assert_true(ticket->visitor[0] != '\0');
    if (world->deaf)
        return false;
    world->asked++;
    world->number = number;
    return true;
}

bool tl_ingest_drawn(struct tl_ingest *ingest, const char *queue, uint64_t from, uint64_t n,
                     uint64_t number)
{
    struct world *world = (void *)ingest;
    assert_string_equal(queue, "concert");
    if (world->deaf)
        return false;
    world->asked++;
    world->number = number;
    world->from = from;
    world->n = n;
    return true;
}

bool tl_ingest_note(struct tl_ingest *ingest, enum tl_note note, const char *queue,
                    const char *text)
{
    (void)note;
    (void)queue;
    (void)text;
    struct world *world = (void *)ingest;
    world->noted += !world->deaf;
    return !world->deaf;
}

/* The tests take the batches themselves. */
bool tl_ingest_send(struct tl_ingest *ingest, const char *queue, uint64_t number, void *bytes,
                    size_t length, bool joins)
{
    (void)ingest;
    (void)queue;
    (void)number;
    (void)bytes;
    (void)length;
    (void)joins;
    return false;
}

bool tl_ingest_check(struct tl_ingest *ingest, const char *queue, const char *worker,
                     uint64_t number, const char *entry)
{
    (void)ingest;
    (void)queue;
    (void)worker;
    (void)number;
    (void)entry;
    return false;
}

void tl_ingest_promised(struct tl_ingest *ingest, const char *queue,
                        const uint64_t promised[TL_PROMISED_FIELDS])
{
    (void)ingest;
    (void)queue;
    (void)promised;
}

void tl_follower_rebuild(struct tl_follower *follower, const char *queue)
{
    (void)follower;
    (void)queue;
}

void tl_follower_reload(struct tl_follower *follower, const char *queue)
{
    (void)follower;
    (void)queue;
}

struct tl_fetch *tl_verifier_ask(struct tl_verifier *verifier, const struct tl_question *question)
{
    struct world *world = (void *)verifier;
    const char *address = question->address != NULL ? question->address : "";
    if (world->deaf)
        return NULL;
    struct tl_fetch *fetch = calloc(1, sizeof(*fetch));
    assert_non_null(fetch);
    fetch->world = world;
    world->service.fetch = fetch;
    world->service.asked++;
    world->service.until_ms = question->until_ms;
    snprintf(world->service.secret, sizeof(world->service.secret), "%s", question->secret);
    snprintf(world->service.token, sizeof(world->service.token), "%s", question->token);
    snprintf(world->service.address, sizeof(world->service.address), "%s", address);
    return fetch;
}

bool tl_verifier_judge(const struct tl_verifier *verifier, const struct tl_fetch *fetch,
                       struct tl_verdict *verdict)
{
    assert_ptr_equal(verifier, fetch->world);
    *verdict = fetch->verdict;
    return fetch->judged;
}

const struct tl_fetched *tl_fetch_result(const struct tl_fetch *fetch)
{
    static const struct tl_fetched ended;
    return fetch->judged ? &ended : NULL;
}

void tl_fetch_end(struct tl_fetch **fetch)
{
    struct world *world = (*fetch)->world;
    world->service.cancelled += !(*fetch)->judged;
    if (world->service.fetch == *fetch)
        world->service.fetch = NULL;
    free(*fetch);
    *fetch = NULL;
}

struct tl_server_counts tl_server_counts(const struct tl_server *server)
{
    (void)server;
    return (struct tl_server_counts){0};
}

/* ---- the world ---- */

static void write_secret(const struct world *world, const char *name, const char *text)
{
    char path[64];
    snprintf(path, sizeof(path), "%s/%s", world->folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fchmod(fileno(file), 0600), 0);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

void world_take(struct world *world, struct tl_change change)
{
    snprintf(change.queue, sizeof(change.queue), "concert");
    tl_worker_take(world->worker, &change);
}

static void load(struct world *world, uint64_t generation)
{
    struct tl_line *line = tl_line_new();
    assert_non_null(line);
    tl_line_start(line, generation, 100);
    assert_true(tl_line_add_active(line, tl_place_make(0, 1), WORLD_STORE_MS + 600000));
    assert_true(tl_line_add_waiting(line, tl_place_make(0, 2), 8));
    assert_true(tl_line_add_waiting(line, tl_place_make(1, 1), 3));
    world_take(world, (struct tl_change){
                          .kind = TL_CHANGE_LINE, .line = line, .settings = &world->settings});
}

void world_load(struct world *world)
{
    load(world, WORLD_GENERATION);
}

void world_recreate(struct world *world)
{
    load(world, WORLD_GENERATION + 1);
}

static void make_config(struct world *world)
{
    struct tl_error err = {0};
    char text[1024];
    int n = snprintf(text, sizeof(text),
                     "secrets: {ticket_keys: %s/ticket, api_keys: %s/api, pass_keys: %s/pass, "
                     "invite_keys: %s/invite, challenge_secret: %s/service}\n"
                     "challenge_service: {provider: hcaptcha, site_key: site-1, max_concurrent: 1, "
                     "max_queued: 1, script_url: \"https://mirror.example:8443/api.js?x=1\"}\n"
                     "http: {public_url: https://wait.example, joins_per_minute: 9, "
                     "trusted_proxies: \"10.0.0.0/8\", "
                     "allowed_origins: \"https://shop.example http://127.0.0.1:3000\"}\n"
                     "pass: {algorithm: ES256}\n"
                     "bypass: {networks: 203.0.113.0/24, header: X-Staff}\n"
                     "queues: {concert: {}, opened: {on_store_error: open}}\n",
                     world->folder, world->folder, world->folder, world->folder, world->folder);
    world->config = tl_config_parse("test", text, (size_t)n, &err);
    if (world->config == NULL)
        fail_msg("%s", err.text);
}

int world_setup(void **state)
{
    assert_true(sizeof(struct tl_visit) <= sizeof(((struct tl_request *)NULL)->visit));
    struct world *world = calloc(1, sizeof(*world));
    struct tl_error err = {0};
    assert_non_null(world);
    snprintf(world->folder, sizeof(world->folder), "/tmp/tellerline-api-XXXXXX");
    assert_non_null(mkdtemp(world->folder));
    write_secret(world, "api", "shop " WORLD_API_KEY "\n");
    write_secret(world, "invite", "shop HS256 " FORGE_SECRET_A "\n");
    write_secret(world, "service", "# a comment\n" WORLD_SECRET "\n");
    make_config(world);
    memset(metrics_memory, 0, sizeof(metrics_memory));
    assert_true(tl_metrics_size(tl_worker_metrics, TL_WORKER_METRICS) <= sizeof(metrics_memory));
    assert_int_equal(uv_loop_init(&world->loop), 0);
    world->env = (struct tl_queue_env){
        .worker_id = "worker-test",
        .metrics = tl_metrics_init(metrics_memory, tl_worker_metrics, TL_WORKER_METRICS),
        .ingest_up = true,
        .follower_up = true,
        .listed = true,
        .store_offset_ms = WORLD_STORE_MS - tl_clock_ms(),
        .ingest = (void *)world,
        .follower = (void *)world,
        .verifier = (void *)world};
    struct tl_secrets secrets;
    assert_true(tl_secrets_load(&secrets, world->config, true, &err)); /* makes the keys */
    world->limiter = tl_limiter_new(&err);
    assert_non_null(world->limiter);
    world->sharing = tl_sharing_new(&err);
    assert_non_null(world->sharing);
    world->languages = tl_languages_new(NULL, &err);
    assert_non_null(world->languages);
    assert_true(tl_page_read(world->config, world->languages, &world->brand, &world->events, &err));
    world->worker = &world->the_worker;
    *world->worker = (struct tl_worker){.config = world->config,
                                        .env = &world->env,
                                        .brand = world->brand,
                                        .events = &world->events,
                                        .secrets = secrets,
                                        .limiter = world->limiter,
                                        .sharing = world->sharing,
                                        .connections_max = 100};
    if (!tl_worker_start(world->worker, world->config, &world->loop, &err))
        fail_msg("%s", err.text);
    tl_queue_settings_defaults(&world->settings);
    assert_true(
        tl_queue_settings_set(&world->settings, "lanes", "general,vip", TL_FORM_FILE, &err));
    assert_true(
        tl_queue_settings_set(&world->settings, "default_lane", "general", TL_FORM_FILE, &err));
    world->settings.capacity = 1;
    world_load(world);
    *state = world;
    return 0;
}

int world_teardown(void **state)
{
    struct world *world = *state;
    static const char *const names[] = {"ticket", "api", "pass", "invite", "service"};
    tl_worker_stop(world->worker);
    uv_run(&world->loop, UV_RUN_DEFAULT); /* closes the streams */
    tl_worker_free(world->worker);
    tl_limiter_free(&world->limiter);
    tl_sharing_free(&world->sharing);
    tl_event_looks_free(&world->events);
    tl_brand_free(&world->brand);
    tl_languages_free(&world->languages);
    assert_int_equal(uv_loop_close(&world->loop), 0);
    tl_config_free(&world->config);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[64];
        snprintf(path, sizeof(path), "%s/%s", world->folder, names[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(world->folder), 0);
    free(world);
    return 0;
}

void world_event(struct world *world, const char *events)
{
    char text[128];
    struct packed buffer;
    uint64_t event = world_queue(world)->line->event + 1;
    snprintf(text, sizeof(text), "[1,%llu,%d,10,2,[%s]]", (unsigned long long)event,
             WORLD_GENERATION, events);
    pack_text(&buffer, text);
    world_take(world, (struct tl_change){
                          .kind = TL_CHANGE_ENTRY, .bytes = buffer.data, .length = buffer.size});
    pack_free(&buffer);
}

void world_admit(struct world *world, uint64_t seq)
{
    char text[64];
    snprintf(text, sizeof(text), "[3,[%llu,1],%lld]", (unsigned long long)seq,
             WORLD_STORE_MS + 600000LL);
    world_event(world, text);
}

struct tl_queue *world_queue(struct world *world)
{
    struct tl_queue *queue = tl_queues_find(&world->worker->queues, "concert");
    assert_non_null(queue);
    return queue;
}

struct world_ticket world_ticket(struct world *world, uint64_t generation, tl_place place)
{
    const struct tl_ticket ticket = {.visitor = "alice",
                                     .generation = generation,
                                     .place = place,
                                     .issued = WORLD_STORE_MS / 1000};
    return world_signed(world, &ticket);
}

struct world_ticket world_signed(struct world *world, const struct tl_ticket *ticket)
{
    struct world_ticket result = {.text = "Bearer "};
    tl_ticket_sign(world->worker->secrets.keyring, "concert", ticket, result.text + 7);
    return result;
}

void world_handle(struct world *world, struct tl_request *request)
{
    request->context = world->worker;
    tl_worker_handle(world->worker, request, NULL);
    assert_true(request->held ? request->answers == 0 : request->answers == 1);
}

struct tl_request world_send(struct world *world, const char *method, const char *path,
                             const char *bearer)
{
    struct tl_request request = {.method = method, .path = path, .context = world->worker};
    request.headers[0] = (struct fake_value){bearer != NULL ? "Authorization" : NULL, bearer};
    tl_worker_handle(world->worker, &request, NULL);
    assert_false(request.held); /* its address changes now */
    assert_int_equal(request.answers, 1);
    return request;
}

uint64_t world_batch(struct world *world, bool taken)
{
    struct tl_outbox *outbox = world_queue(world)->outbox;
    struct tl_outbox_payload payload;
    struct tl_batch batch = {0};
    struct tl_error err = {0};
    assert_true(tl_outbox_next(outbox, &payload));
    assert_true(tl_batch_decode(payload.bytes, payload.length, &batch, &err));
    world->kind = batch.commands[0].kind;
    tl_batch_free(&batch);
    free(payload.bytes);
    tl_outbox_sent(outbox, payload.number, taken ? TL_BATCH_TAKEN : TL_BATCH_REFUSED, "1-1",
                   tl_clock_ms());
    return payload.number;
}

void world_lose(struct world *world)
{
    struct tl_outbox *outbox = world_queue(world)->outbox;
    uint64_t number;
    const char *entry;
    while (outbox->count > 0) {
        const struct tl_batch_check gone = {.waits = false};
        tl_outbox_checked(outbox, world_batch(world, true), &gone, 0);
        assert_false(tl_outbox_overdue(outbox, 0, 0, &number, &entry));
    }
}

void world_applied(struct world *world, uint64_t batch, uint64_t seq)
{
    const struct tl_event event = {
        .kind = TL_EVENT_APPLIED, .worker = "worker-test", .batch = batch, .first_seq = seq};
    tl_outbox_applied(world_queue(world)->outbox, &event);
}

void world_excepted(struct world *world, uint64_t batch, enum tl_outcome outcome, tl_place place)
{
    struct tl_exception exception = {.outcome = outcome, .place = place};
    const struct tl_event event = {.kind = TL_EVENT_APPLIED,
                                   .worker = "worker-test",
                                   .batch = batch,
                                   .n_exceptions = 1,
                                   .exceptions = &exception};
    tl_outbox_applied(world_queue(world)->outbox, &event);
}

struct tl_ticket world_given(struct world *world, const struct tl_request *request)
{
    struct tl_ticket ticket = {0};
    const char *text = strstr(request->text, "\"ticket\":\"");
    if (text == NULL) {
        fail_msg("no ticket in %s", request->text);
        return ticket; /* never reached, which clang-tidy does not know */
    }
    text += strlen("\"ticket\":\"");
    if (!tl_ticket_verify(world->worker->secrets.keyring, "concert", text, strcspn(text, "\""),
                          &ticket))
        fail_msg("not a valid ticket: %s", text);
    return ticket;
}

void world_read(const struct tl_request *request, char *text, size_t size)
{
    assert_true(request->taken_over);
    ssize_t n = recv(request->client, text, size - 1, MSG_DONTWAIT);
    text[n > 0 ? n : 0] = '\0';
}
