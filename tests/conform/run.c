/* run.c -- the commands of a script.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "conform.h"

#include "wire/frame.h"
#include "wire/kerr.h"

#define TRIES   200
#define REST_MS 50

static struct str word_of(struct str *rest)
{
    struct str w = STR("");

    *rest = str_trim(*rest);
    (void)str_next(rest, ' ', &w);
    return w;
}

static const struct api *api_of(struct script *s, struct str name)
{
    for (size_t i = 0; i < api_count; i++)
        if (str_eq(name, str_c(api_all[i]->name)))
            return api_all[i];
    script_fail(s, "no API is called %.*s", STR_ARG(name));
}

static void hang_up(struct script *s)
{
    peer_close(&s->peers[s->peer].peer);
    s->peers[s->peer].api = NULL;
}

/* --- asking --- */

static bool send_request(struct script *s, const struct api *api, int version, struct str text)
{
    struct buf out;
    struct encoding to = { .head = &out };
    void *msg = arena_alloc(&s->answer_arena, api->request->size);
    bool sent;
    enum err e;

    value_fill(s, api->request, version, text, &s->answer_arena, msg);
    buf_init(&out, 256 * MiB);
    buf_put(&out, "\0\0\0\0", 4);
    frame_request_header(&out, api, version, 7, STR("conform"));
    e = codec_encode(api->request, version, msg, &to);
    if (e)
        script_fail(s, "%s version %d cannot be encoded: %s", api->name, version, err_name(e));
    store_u32(out.p, (uint32_t)out.n - 4);
    if (!s->peers[s->peer].peer)
        s->peers[s->peer].peer = peer_open();
    sent = peer_send(s->peers[s->peer].peer, buf_str(&out));
    buf_fini(&out);
    s->peers[s->peer].api = api;
    s->peers[s->peer].version = version;
    return sent;
}

/* The answer that is due on the connection in use; false: it was closed. */
static bool receive_answer(struct script *s)
{
    const struct api *api = s->peers[s->peer].api;
    int version = s->peers[s->peer].version;
    struct buf *frame = &s->peers[s->peer].frame;
    struct reader r;
    int32_t id;

    if (!frame->max)
        buf_init(frame, 128 * MiB);
    s->answer = NULL;
    if (!api)
        script_fail(s, "no answer is due");
    if (!peer_receive(s->peers[s->peer].peer, frame)) {
        hang_up(s);
        return false;
    }
    s->peers[s->peer].api = NULL;
    r = reader_of(frame->p, frame->n);
    s->answer_api = api;
    s->answer_version = version;
    s->answer = arena_alloc(&s->answer_arena, api->response->size);
    if (frame_response_header(&r, api, version, &id) || id != 7 ||
        codec_decode(api->response, version, &r, &s->answer_arena, s->answer) || reader_left(&r))
        script_fail(s, "the answer to %s version %d cannot be read", api->name, version);
    return true;
}

/* Errors of a broker that is not ready yet say nothing. */
static bool is_passing(struct script *s)
{
    static const int passing[] = { KERR_LEADER_NOT_AVAILABLE, KERR_COORDINATOR_LOAD_IN_PROGRESS,
                                   KERR_COORDINATOR_NOT_AVAILABLE, KERR_NOT_COORDINATOR,
                                   KERR_CONCURRENT_TRANSACTIONS };
    static const char *const fields[] = { "error_code", "partition_error_code" };

    for (size_t k = 0; k < COUNT(fields); k++) {
        for (int i = 1;; i++) {
            struct str code = show_find(s->answer_api->response, s->answer_version, s->answer, str_c(fields[k]), i,
                                        &s->answer_arena);

            if (!code.p)
                break;
            for (size_t j = 0; j < COUNT(passing); j++)
                if (str_eq(code, arena_fmt(&s->answer_arena, "%d", passing[j])))
                    return true;
        }
    }
    return false;
}

static void show_answer(struct script *s, bool there)
{
    if (there) {
        buf_fmt(&s->out, "%s %d ", s->answer_api->name, s->answer_version);
        show_message(s, s->answer_api->response, s->answer_version, s->answer, &s->out);
    } else {
        buf_put_str(&s->out, STR("closed"));
    }
    buf_put_char(&s->out, '\n');
}

static bool ask(struct script *s, struct str text)
{
    const struct api *api = api_of(s, word_of(&text));
    int version = (int)value_number(s, word_of(&text));
    bool there = false;

    for (int i = 0; i < TRIES; i++) {
        arena_reset(&s->answer_arena);
        there = send_request(s, api, version, text) && receive_answer(s);
        if (!there || !is_passing(s))
            break;
        peers_rest(REST_MS);
    }
    return there;
}

/* --- topics --- */

/* Every partition has a leader that answers. */
static bool is_ready(struct script *s, struct str name, int parts)
{
    const struct kafka_list_offsets_response *r;
    struct buf text;
    bool there;

    buf_init(&text, 4 * KiB);
    buf_fmt(&text, "ListOffsets 2 replica_id=-1 topics=[{name=%.*s partitions=[", STR_ARG(name));
    for (int i = 0; i < parts; i++)
        buf_fmt(&text, "{partition_index=%d timestamp=-1}", i);
    buf_put_str(&text, STR("]}]"));
    there = ask(s, buf_str(&text));
    buf_fini(&text);
    r = s->answer;
    for (int i = 0; there && i < parts; i++)
        there = r->topics.at[0].partitions.at[i].error_code == 0;
    return there;
}

static void note_id(struct script *s, struct str var, struct str name)
{
    struct str id;

    if (!ask(s, arena_fmt(&s->arena, "Metadata 10 topics=[{name=%.*s topic_id=0}] allow_auto_topic_creation=false",
                          STR_ARG(name))))
        script_fail(s, "no answer to Metadata");
    id = show_find(s->answer_api->response, s->answer_version, s->answer, STR("topic_id"), 1, &s->arena);
    script_set(s, arena_fmt(&s->arena, "%.*s.id", STR_ARG(var)), id);
}

/* topic VAR PARTITIONS [KEY=VALUE...] */
static void make_topic(struct script *s, struct str text)
{
    struct str var = word_of(&text), parts = word_of(&text), config;
    struct str name = arena_fmt(&s->arena, "%s-%.*s-%.*s", peers_prefix(), STR_ARG(s->name), STR_ARG(var));
    struct buf request;
    const struct kafka_create_topics_response *r;

    buf_init(&request, 16 * KiB);
    buf_fmt(&request, "CreateTopics 4 topics=[{name=%.*s num_partitions=%.*s replication_factor=1 configs=[",
            STR_ARG(name), STR_ARG(parts));
    while ((config = word_of(&text)).n) {
        int64_t at = str_find(config, STR("="), 0);

        buf_fmt(&request, "{name=%.*s value=\"%.*s\"}", (int)at, config.p, (int)(config.n - (size_t)at - 1),
                config.p + at + 1);
    }
    buf_put_str(&request, STR("]}]"));
    if (!ask(s, buf_str(&request)))
        script_fail(s, "no answer to CreateTopics");
    buf_fini(&request);
    r = s->answer;
    if (r->topics.at[0].error_code)
        script_fail(s, "no topic: %s", kerr_name(r->topics.at[0].error_code));
    script_set(s, var, name);
    for (int i = 0; !is_ready(s, name, (int)value_number(s, parts)); i++) {
        if (i == TRIES)
            script_fail(s, "the topic has no leader");
        peers_rest(REST_MS);
    }
    note_id(s, var, name);
}

/* --- commands --- */

/* let VAR FIELD [N] */
static void let(struct script *s, struct str text)
{
    struct str var = word_of(&text), field = word_of(&text), n = word_of(&text), value = STR_NULL;

    if (s->answer)
        value = show_find(s->answer_api->response, s->answer_version, s->answer, field,
                          n.n ? (int)value_number(s, n) : 1, &s->arena);
    if (!value.p)
        script_fail(s, "the last answer has no %.*s", STR_ARG(field));
    script_set(s, var, value);
}

/* set VAR OTHER SUFFIX: the other's value and more */
static void set(struct script *s, struct str text)
{
    struct str var = word_of(&text), other = script_get(s, word_of(&text));

    script_set(s, var, arena_fmt(&s->arena, "%.*s%.*s", STR_ARG(other), STR_ARG(str_trim(text))));
}

/* name VAR: what nobody else is called */
static void name(struct script *s, struct str text)
{
    struct str var = word_of(&text);

    script_set(s, var, arena_fmt(&s->arena, "%s-%.*s-%.*s", peers_prefix(), STR_ARG(s->name), STR_ARG(var)));
}

static void use_peer(struct script *s, struct str name)
{
    for (s->peer = 0; s->peer < PEERS_MAX; s->peer++) {
        if (str_is_null(s->peers[s->peer].name))
            s->peers[s->peer].name = name;
        if (str_eq(s->peers[s->peer].name, name))
            return;
    }
    script_fail(s, "too many connections");
}

static void send_only(struct script *s, struct str text)
{
    const struct api *api = api_of(s, word_of(&text));
    int version = (int)value_number(s, word_of(&text));

    if (!send_request(s, api, version, text))
        script_fail(s, "the connection is closed");
}

/* until CODE API ...: again while the first error is another one. until FIELD=VALUE API ...: the same for any field. */
static void until(struct script *s, struct str text)
{
    struct str field = STR("error_code"), value = word_of(&text);
    int64_t at = str_find(value, STR("="), 0);

    if (at > 0) {
        field = str_part(value, 0, (size_t)at);
        value = str_part(value, (size_t)at + 1, value.n);
    }
    for (int i = 0; i < TRIES; i++) {
        if (ask(s, text) && str_eq(value, show_find(s->answer_api->response, s->answer_version, s->answer, field, 1,
                                                    &s->answer_arena)))
            return;
        peers_rest(REST_MS);
    }
    buf_fmt(&s->out, "%.*s never became %.*s: ", STR_ARG(field), STR_ARG(value));
    show_answer(s, s->answer != NULL);
}

static void command(struct script *s, struct str what, struct str text)
{
    if (str_eq(what, STR("ask")))
        show_answer(s, ask(s, text));
    else if (str_eq(what, STR("quiet")))
        (void)ask(s, text);
    else if (str_eq(what, STR("until")))
        until(s, text);
    else if (str_eq(what, STR("topic")))
        make_topic(s, text);
    else if (str_eq(what, STR("let")))
        let(s, text);
    else if (str_eq(what, STR("set")))
        set(s, text);
    else if (str_eq(what, STR("name")))
        name(s, text);
    else if (str_eq(what, STR("on")))
        use_peer(s, word_of(&text));
    else if (str_eq(what, STR("close")))
        hang_up(s);
    else if (str_eq(what, STR("send")))
        send_only(s, text);
    else if (str_eq(what, STR("take")))
        show_answer(s, receive_answer(s));
    else
        script_fail(s, "what is %.*s?", STR_ARG(what));
}

bool script_run(struct script *s)
{
    while (s->at < s->lines_n) {
        struct str text = s->lines[s->at].text, what;

        s->line = s->lines[s->at++].number;
        what = word_of(&text);
        if (str_eq(what, STR("restart"))) {
            for (s->peer = 0; s->peer < PEERS_MAX; s->peer++)
                hang_up(s);
            s->peer = 0;
            buf_put_str(&s->out, STR("restart\n"));
            return false;
        }
        command(s, what, text);
    }
    for (s->peer = 0; s->peer < PEERS_MAX; s->peer++)
        hang_up(s);
    s->peer = 0;
    return true;
}
