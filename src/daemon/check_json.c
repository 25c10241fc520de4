/* check_json.c -- everything that check knows, as one JSON object.
 * SPDX-License-Identifier: Apache-2.0
 *
 * {"file","exit_code","problems":[...],"clusters":[...],"flows":[...],"settings":[...]}; null is "not known". Secrets
 * are hidden where settings are listed (daemon/config.h).
 */
#include "base/json.h"
#include "daemon/check_int.h"
#include "kafka/cluster.h"

static const char *severity_text(enum config_severity s)
{
    return s == CONFIG_ERROR ? "error" : "warning";
}

static void put_problems(const struct config *c, struct json *j)
{
    json_key(j, "problems");
    json_open(j, '[');
    for (size_t i = 0; i < c->problem_count; i++) {
        const struct config_problem *p = &c->problems[i];

        json_open(j, '{');
        json_put_str(j, "file", p->file);
        json_put_int(j, "line", p->line);
        json_put_str(j, "key", p->key);
        json_put_c(j, "severity", severity_text(p->severity));
        json_put_str(j, "text", p->text);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void put_setting(const struct config_setting *s, void *arg)
{
    struct json *j = arg;

    json_open(j, '{');
    json_put_str(j, "scope", s->scope);
    json_put_str(j, "key", s->key);
    json_put_str(j, "value", s->value);
    json_put_str(j, "file", s->file);
    json_put_int(j, "line", s->line);
    json_put_str(j, "origin_key", s->origin_key);
    json_close(j, '}');
}

static void put_clusters(struct check *c, struct json *j)
{
    size_t n;
    struct cluster **all = check_clusters(c, &n);

    json_key(j, "clusters");
    json_open(j, '[');
    for (size_t i = 0; i < n; i++) {
        const struct broker_meta *brokers;
        size_t brokers_n = cluster_brokers(all[i], &brokers);

        json_open(j, '{');
        json_put_str(j, "alias", cluster_name(all[i]));
        json_put_bool(j, "reached", cluster_is_up(all[i]));
        json_put_str(j, "cluster_id", cluster_id(all[i]));
        fault_put(j, cluster_fault(all[i]));
        json_key(j, "brokers");
        json_open(j, '[');
        for (size_t k = 0; k < brokers_n; k++) {
            json_open(j, '{');
            json_put_int(j, "id", brokers[k].id);
            json_put_str(j, "host", brokers[k].host);
            json_put_int(j, "port", brokers[k].port);
            json_put_str(j, "rack", brokers[k].rack);
            json_close(j, '}');
        }
        json_close(j, ']');
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void put_topic(const struct check_flow *f, const struct check_topic *t, struct json *j)
{
    json_open(j, '{');
    json_put_str(j, "topic", t->want->name);
    json_put_str(j, "target_topic", t->want->target_name);
    json_put_str(j, "records_topic", t->want->route);
    json_put_c(j, "action", t->action);
    json_put_int(j, "partitions", t->want->partitions);
    json_put_int(j, "target_partitions", t->have);
    fault_put(j, t->fault);
    if (t->create) {
        json_put_int(j, "replication_factor", f->config->replication_factor);
        json_key(j, "configs");
        json_open(j, '[');
        for (size_t i = 0; i < t->create->configs_n; i++) {
            json_open(j, '{');
            json_put_str(j, "name", t->create->configs[i].name);
            json_put_str(j, "value", t->create->configs[i].value);
            json_close(j, '}');
        }
        json_close(j, ']');
    }
    json_close(j, '}');
}

static void put_plan(struct check_flow *f, struct json *j)
{
    const struct plan *p = f->plan;
    size_t n;
    struct check_topic *t = check_topics(f, &n);

    json_key(j, "topics");
    json_open(j, '[');
    for (size_t i = 0; i < n; i++)
        put_topic(f, &t[i], j);
    json_close(j, ']');
    json_key(j, "not_copied");
    json_open(j, '[');
    for (size_t i = 0; i < p->refused_n; i++) {
        json_open(j, '{');
        json_put_str(j, "topic", p->refused[i].topic);
        json_put_str(j, "why", check_refusal(f, &p->refused[i]));
        json_close(j, '}');
    }
    json_close(j, ']');
    json_key(j, "own_topics");
    json_open(j, '[');
    for (size_t i = 0; i < p->internals_n; i++) {
        const struct plan_internal *o = &p->internals[i];

        json_open(j, '{');
        json_put_str(j, "topic", o->name);
        json_put_str(j, "cluster", o->at_target ? f->config->target_alias : f->config->source_alias);
        json_put_c(j, "action", o->missing ? "create" : "keep");
        json_put_int(j, "partitions", o->partitions);
        json_put_int(j, "replication_factor", o->replication_factor);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void put_acls(const struct check_flow *f, struct json *j)
{
    struct str none;
    const struct acls *acls = check_acls(f, &none);

    json_key(j, "acls");
    if (!acls) {
        json_null(j);
        return;
    }
    json_open(j, '{');
    json_put_int(j, "wanted", (int64_t)acls->wanted);
    json_key(j, "create");
    json_open(j, '[');
    for (size_t i = 0; i < acls->n; i++)
        if (acls_due(&acls->at[i]) == ACL_CREATE)
            json_str(j, acls_text(&acls->at[i].acl, &f->check->arena));
    json_close(j, ']');
    json_close(j, '}');
}

static void put_flow(struct check_flow *f, struct json *j)
{
    json_open(j, '{');
    json_put_str(j, "name", f->config->name);
    json_put_str(j, "source", f->config->source_alias);
    json_put_str(j, "target", f->config->target_alias);
    json_put_bool(j, "enabled", f->config->enabled);
    json_put_bool(j, "heartbeats", f->config->emit_heartbeats_enabled);
    json_put_c(j, "delivery", check_delivery(f->config));
    json_put_bool(j, "planned", f->plan != NULL);
    fault_put(j, &f->fault);
    if (f->plan)
        put_plan(f, j);
    put_acls(f, j);
    json_key(j, "findings");
    json_open(j, '[');
    for (size_t i = 0; i < f->findings_n; i++) {
        json_open(j, '{');
        json_put_c(j, "severity", severity_text(f->findings[i].severity));
        json_put_str(j, "text", f->findings[i].text);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
}

void check_put_json(struct check *c, struct buf *out)
{
    struct json j = json_to(out);

    json_open(&j, '{');
    json_put_str(&j, "file", c->config->file);
    json_put_int(&j, "exit_code", c->code);
    put_problems(c->config, &j);
    put_clusters(c, &j);
    json_key(&j, "flows");
    json_open(&j, '[');
    for (size_t i = 0; i < c->flows_n; i++)
        put_flow(&c->flows[i], &j);
    json_close(&j, ']');
    json_key(&j, "settings");
    json_open(&j, '[');
    if (c->code != 2)
        config_each_setting(c->config, put_setting, &j);
    json_close(&j, ']');
    json_close(&j, '}');
    buf_put_char(out, '\n');
}
