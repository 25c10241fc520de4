/* control.c -- the process's one control thread.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Owns the workers, one director per flow, and the cell that the HTTP thread reads. Once a second (more seldom
 * with many partitions) it asks for reports and publishes a new view. SIGTERM and SIGINT drain: every flow gets
 * DRAIN_MS to store its positions, then the process ends, whatever the clusters do.
 */
#include "daemon/control.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "base/log.h"
#include "daemon/version.h"
#include "daemon/worker.h"
#include "loop/deadline.h"
#include "mirror/order.h"
#include "mirror/director.h"
#include "mirror/view_build.h"
#include "serve/server.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define VIEW_MS 1000
#define VIEW_PARTITIONS_PER_MS 10 /* 100,000 partitions: a view every ten seconds */
#define DRAIN_MS 3500
#define END_LIMIT_S 1 /* for taking the process apart */
#define LOG_TICK_MS 60000 /* how often repeated events are summed up */

struct control {
    const struct config *config;
    struct loop *loop;
    struct worker **workers;
    struct worker_world *worlds;
    int32_t workers_n;
    struct director **directors;
    int32_t directors_n, stopping;
    struct cell view;
    struct order_desk desk;
    struct server *server;
    struct timer tick;
    int64_t start_time_ms, log_tick_ms;
    char instance[300];
    bool stopped, all_stored;
};

static int32_t count_workers(const struct process_config *p)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int64_t by_memory = p->memory_max / WORKER_POOL_LEAST;

    if (p->workers > 0)
        return p->workers;
    return (int32_t)CLAMP(MIN((int64_t)cores, by_memory), 1, 256);
}

static void print_budget(const struct control *c, size_t share)
{
    for (int32_t i = 0; i < c->workers_n; i++) {
        char holder[32];

        snprintf(holder, sizeof(holder), "worker-%d batches", i);
        log_event(EV_MEMORY_BUDGET, kv_c("holder", holder), kv_int("bytes", (int64_t)share));
    }
    log_event(EV_MEMORY_BUDGET, kv_c("holder", "sum (heliostat.memory.max)"),
              kv_int("bytes", (int64_t)share * c->workers_n));
}

static void start_workers(struct control *c)
{
    size_t share;

    c->workers_n = count_workers(&c->config->process);
    share = (size_t)c->config->process.memory_max / (size_t)c->workers_n;
    c->workers = mem_array((size_t)c->workers_n, sizeof(*c->workers));
    c->worlds = mem_array((size_t)c->workers_n, sizeof(*c->worlds));
    for (int32_t i = 0; i < c->workers_n; i++) {
        c->workers[i] = worker_start(i, share);
        c->worlds[i] = worker_world(c->workers[i]);
    }
    print_budget(c, share);
}

static int64_t publish(struct control *c)
{
    struct view_process p = { .version = str_c(version_number()),
                              .commit = str_c(version_commit()),
                              .instance = str_c(c->instance),
                              .start_time_ms = c->start_time_ms,
                              .now_ms = loop_wall_ms(c->loop),
                              .workers = c->workers_n };
    struct view *v = view_build(&p, c->directors, c->directors_n);
    int64_t partitions = 0;

    for (int32_t i = 0; i < v->flows_n; i++)
        partitions += v->flows[i].partitions_n;
    cell_put(&c->view, &v->snapshot);
    return partitions;
}

static void on_tick(struct timer *t)
{
    struct control *c = container_of(t, struct control, tick);
    int64_t partitions = publish(c);

    for (int32_t i = 0; i < c->directors_n; i++)
        director_ask_reports(c->directors[i]);
    if (loop_now_ms(c->loop) - c->log_tick_ms >= LOG_TICK_MS) {
        c->log_tick_ms = loop_now_ms(c->loop);
        log_tick(false);
    }
    timer_set_ms(c->loop, t, MAX(VIEW_MS, partitions / VIEW_PARTITIONS_PER_MS));
}

static void on_director_stopped(void *arg, bool stored)
{
    struct control *c = arg;

    c->all_stored = c->all_stored && stored;
    if (--c->stopping == 0) {
        c->stopped = true;
        loop_stop(c->loop);
    }
}

/* Asked twice: as kill -9 would, which loses and repeats nothing either. */
static void end_now(void)
{
    log_event(EV_STOP, kv_c("reason", "a second signal asked for it before every position was stored"), kv_int("code", 1));
    log_tick(true);
    _exit(1);
}

static void on_stop(struct loop *l, int signum, void *arg)
{
    struct control *c = arg;

    if (c->stopping)
        end_now();
    if (c->stopped)
        return;
    log_event(EV_DRAIN, kv_c("reason", signum == SIGINT ? "SIGINT" : "SIGTERM"));
    c->stopping = c->directors_n;
    if (c->directors_n == 0)
        loop_stop(l);
    for (int32_t i = 0; i < c->directors_n; i++)
        director_stop(c->directors[i], DRAIN_MS, on_director_stopped, c);
}

static void on_hangup(struct loop *l, int signum, void *arg)
{
    (void)l;
    (void)signum;
    (void)arg;
    log_event(EV_SIGHUP_IGNORED, kv_c("why", "the file is read at start only; restart to read it again"));
}

static void name_instance(struct control *c)
{
    char host[200] = "localhost";

    if (c->config->process.instance_id.n) {
        snprintf(c->instance, sizeof(c->instance), "%.*s", STR_ARG(c->config->process.instance_id));
        return;
    }
    (void)gethostname(host, sizeof(host) - 1);
    snprintf(c->instance, sizeof(c->instance), "%s-%ld", host, (long)getpid());
}

static bool start_server(struct control *c)
{
    struct str listen = c->config->process.http_listen;
    char why[300];

    if (str_eq(listen, STR("off")))
        return true;
    c->server = server_start(listen, &c->view, &c->desk, why, sizeof(why));
    if (c->server) {
        log_event(EV_HTTP_LISTENING, kv_c("address", server_address(c->server)));
        return true;
    }
    log_event(EV_HTTP_FAULT, kv_str("address", listen), kv_c("text", why));
    fprintf(stderr, "heliostat: heliostat.http.listen: %s; choose another address, or off\n", why);
    return false;
}

static void start_directors(struct control *c)
{
    c->directors_n = (int32_t)c->config->flow_count;
    c->directors = mem_array((size_t)c->directors_n, sizeof(*c->directors));
    for (int32_t i = 0; i < c->directors_n; i++) {
        c->directors[i] = director_new(c->loop, &c->config->flows[i], c->worlds, c->workers_n);
        director_name_instance(c->directors[i], str_c(c->instance));
    }
    c->desk.directors = c->directors;
    c->desk.directors_n = c->directors_n;
}

/* With a clean drain everything is taken apart; else the workers are in the middle of something that the
 * clusters do not answer, and the process just ends. */
static void take_apart(struct control *c)
{
    c->desk.closed = true;
    server_stop(&c->server);
    for (int32_t i = 0; i < c->workers_n; i++)
        worker_stop(&c->workers[i]);
    for (int32_t i = 0; i < c->directors_n; i++)
        director_free(&c->directors[i]);
    cell_fini(&c->view);
    mem_free(c->directors);
    mem_free(c->workers);
    mem_free(c->worlds);
    loop_free(&c->loop);
}

int control_run(const struct config *config)
{
    struct control c = { .config = config, .all_stored = true };
    int code;

    c.loop = loop_new("control");
    c.start_time_ms = loop_wall_ms(c.loop);
    name_instance(&c);
    log_event(EV_START, kv_c("version", version_number()), kv_c("commit", version_commit()),
              kv_str("file", config->file), kv_c("instance", c.instance));
    c.desk = (struct order_desk){ .control = c.loop, .send = director_send_order };
    cell_init(&c.view); /* empty until the flows are there: nobody is told "ready" before */
    if (!start_server(&c)) {
        take_apart(&c);
        return 2;
    }
    loop_on_signal(c.loop, SIGTERM, on_stop, &c);
    loop_on_signal(c.loop, SIGINT, on_stop, &c);
    loop_on_signal(c.loop, SIGHUP, on_hangup, &c);
    start_workers(&c);
    start_directors(&c);
    publish(&c);
    timer_init(&c.tick, on_tick);
    timer_set_ms(c.loop, &c.tick, 200);
    loop_run(c.loop);
    timer_cancel(c.loop, &c.tick);
    code = c.all_stored ? 0 : 1;
    log_event(EV_STOP, kv_c("reason", c.all_stored ? "every position is stored"
                                                   : "not every position could be stored"),
              kv_int("code", code));
    log_tick(true);
    deadline_set(END_LIMIT_S, code, NULL); /* a look-up may still sit in the system's resolver */
    take_apart(&c);
    deadline_clear();
    return code;
}
