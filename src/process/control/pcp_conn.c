/* SPDX-License-Identifier: PostgreSQL
 * pcp_conn.c: one connection of an administrator: log-in, commands one after the other, goodbye.
 * Runs in: control. A packet is small before the log-in and bounded after it; every state but that
 * of a waiting command (which has its own limit) ends by a timer; a wrong password is answered only
 * after a delay. */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "crypto/crypto.h"

#include "control_int.h"

#define READ_BYTES         4096
#define MAX_STRANGER_BYTES 512
#define MAX_COMMAND_BYTES  8192
#define FIRST_LIMIT_MS     5000 /* until the first bytes are there: tools speak first */
#define LOGIN_LIMIT_MS     60000
#define MAX_SALTS          8
#define IDLE_LIMIT_MS      (15 * 60 * 1000)
#define DENIED_DELAY_MS    1000 /* or auth_failure_delay, when that is longer */

static const struct conf *conf_now(const struct pcp_conn *c)
{
    return conf_of(role_loop_gen(&c->ctl->role));
}

static void set_limit(struct pcp_conn *c, int64_t ms)
{
    timer_start(&c->ctl->role.loop, &c->limit, ms);
}

static int64_t login_limit_ms(const struct pcp_conn *c)
{
    int64_t ms = conf_now(c)->authentication_timeout_ms;

    return ms > 0 && ms < LOGIN_LIMIT_MS ? ms : LOGIN_LIMIT_MS;
}

static void on_closed(struct stream *s)
{
    mem_free_secret(LIST_ENTRY(s, struct pcp_conn, stream));
}

static void refuse_packet(struct pcp_conn *c, const char *detail)
{
    struct err err = {0};

    err_set(&err, "08P01", "invalid PCP packet");
    err_detail(&err, "%s", detail);
    pcp_conn_refuse(c, &err, true);
}

static void set_user(struct pcp_conn *c, struct slice user)
{
    memcpy(c->user, user.p, user.n);
    c->user[user.n] = '\0';
}

/* Our tools say here already who they are, and get told how to prove it; others get the salt. */
static void send_salt(struct pcp_conn *c, struct slice body)
{
    struct slice user;
    struct buf out = {0};
    struct err err = {0};
    size_t mark;

    if (++c->nsalts > MAX_SALTS) {
        refuse_packet(c, "It asked for a salt again and again, and did not log in.");
        return;
    }
    if (crypto_random(c->salt, sizeof c->salt, &err) == -1) {
        pcp_conn_refuse(c, &err, true);
        return;
    }
    c->has_salt = true;
    mark = pcp_begin(&out, PCP_ANSWER_SALT);
    buf_put(&out, c->salt, sizeof c->salt);
    if (pcp_take_str(&body, &user) && user.n > 0 && user.n <= PCP_USER_BYTES) {
        c->is_ours = true;
        set_user(c, user);
        pcp_scram_offer(c, user, &out);
    }
    pcp_end(&out, mark);
    pcp_conn_send(c, &out);
    buf_free(&out);
}

static void welcome(struct pcp_conn *c)
{
    struct buf out = {0};

    c->is_logged_in = true;
    c->state = PCP_STATE_READY;
    set_limit(c, IDLE_LIMIT_MS);
    if (conf_now(c)->log_pcp_processes)
        log_at(LVL_LOG, "PCP connection of user \"%s\" from %s", c->user, c->peer);
    pcp_put_word(&out, PCP_ANSWER_LOGIN, PCP_LOGIN_OK);
    pcp_conn_send(c, &out);
    buf_free(&out);
}

/* The answer waits: who guesses has to, and the file's reader has the time to be told apart by. */
static void be_denied(struct pcp_conn *c)
{
    int64_t delay_ms = conf_now(c)->auth_failure_delay_ms;

    pcp_login_count_failure(c);
    c->has_salt = c->has_scram = false;
    c->state = PCP_STATE_DENIED;
    stream_pause(&c->stream);
    set_limit(c, delay_ms > DENIED_DELAY_MS ? delay_ms : DENIED_DELAY_MS);
}

static void log_in(struct pcp_conn *c, struct slice body)
{
    struct slice user;
    struct slice answer;
    struct err err = {0};

    if (!pcp_take_str(&body, &user) || !pcp_take_str(&body, &answer) || user.n > PCP_USER_BYTES) {
        refuse_packet(c, "The log-in has no user name or no password.");
        return;
    }
    set_user(c, user);
    if (c->has_salt && pcp_login_check(c, user, answer, &err)) {
        welcome(c);
        return;
    }
    if (err_is_set(&err))
        log_caused_detail(LVL_WARNING, err.detail[0] == '\0' ? NULL : err.detail,
            err.hint[0] == '\0' ? NULL : err.hint, "%s", err.msg);
    be_denied(c);
}

static void log_in_by_scram(struct pcp_conn *c, struct slice body)
{
    if (!c->has_scram) {
        refuse_packet(c, "No log-in by SCRAM has begun.");
        return;
    }
    switch (pcp_scram_step(c, body)) {
    case 1:
        welcome(c);
        break;
    case 0:
        break;
    default:
        be_denied(c);
        break;
    }
}

static void refuse_address(struct pcp_conn *c)
{
    struct err err = {0};

    err_set(&err, "28000", "too many failed logins from this address");
    err_hint(&err, "Wait for a minute.");
    pcp_conn_refuse(c, &err, true);
}

static void deny(struct pcp_conn *c)
{
    struct err err = {0};

    err_set(&err, "28P01", "authentication failed for user \"%s\"", c->user);
    err_detail(&err, "username and/or password does not match");
    pcp_conn_refuse(c, &err, true);
}

static void run_command(struct pcp_conn *c, const struct pcp_packet *p)
{
    struct buf out = {0};
    struct err err = {0};

    switch (pcp_command_run(c, p, &out, &err)) {
    case PCP_DONE:
        pcp_conn_send(c, &out);
        set_limit(c, IDLE_LIMIT_MS);
        break;
    case PCP_LATER:
        if (out.len > 0)
            pcp_conn_send(c, &out);
        c->state = PCP_STATE_WAITING;
        stream_pause(&c->stream);
        timer_stop(&c->ctl->role.loop, &c->limit);
        break;
    case PCP_FAILED:
        set_limit(c, IDLE_LIMIT_MS);
        pcp_conn_refuse(c, &err, err.severity == ERR_FATAL);
        break;
    }
    buf_free(&out);
}

static void on_packet(struct pcp_conn *c, const struct pcp_packet *p)
{
    struct err err = {0};

    if (p->type == PCP_DISCONNECT) {
        pcp_conn_end(c);
    } else if (c->state == PCP_STATE_READY) {
        run_command(c, p);
    } else if (pcp_login_is_blocked(c)) {
        refuse_address(c);
    } else if (p->type == PCP_SALT) {
        send_salt(c, p->body);
    } else if (p->type == PCP_SASL) {
        log_in_by_scram(c, p->body);
    } else if (p->type == PCP_LOGIN) {
        log_in(c, p->body);
    } else {
        err_set(&err, "28000", "authentication failed");
        err_detail(&err, "username and/or password does not match");
        err_hint(&err, "Log in before any command.");
        pcp_conn_refuse(c, &err, true);
    }
}

/* Runs what has come, until a state that takes no packet. */
static void run_packets(struct pcp_conn *c)
{
    struct pcp_packet p;
    size_t used;

    while (c->state == PCP_STATE_LOGIN || c->state == PCP_STATE_READY) {
        size_t max = c->is_logged_in ? MAX_COMMAND_BYTES : MAX_STRANGER_BYTES;
        int rc = pcp_read(buf_slice(&c->in), max, &p, &used);

        if (rc == 0)
            return;
        if (rc == -1) {
            refuse_packet(c, "Its length is not possible.");
            return;
        }
        on_packet(c, &p);
        if (c->state != PCP_STATE_CLOSED)
            buf_consume(&c->in, used);
    }
}

static void on_readable(struct stream *s)
{
    struct pcp_conn *c = LIST_ENTRY(s, struct pcp_conn, stream);
    char bytes[READ_BYTES];
    ssize_t n = stream_recv(s, bytes, sizeof bytes);

    if (n == -1) {
        pcp_conn_close(c);
        return;
    }
    if (n > 0 && !c->has_begun) {
        c->has_begun = true;
        set_limit(c, login_limit_ms(c));
        if (pcp_tls_begin(c->ctl, s, slice_of(bytes, (size_t)n)))
            return;
    }
    if (n > 0)
        buf_put(&c->in, bytes, (size_t)n);
    run_packets(c);
}

static void on_drained(struct stream *s)
{
    struct pcp_conn *c = LIST_ENTRY(s, struct pcp_conn, stream);

    if (c->state == PCP_STATE_ENDING)
        pcp_conn_close(c);
}

static void resume(struct pcp_conn *c)
{
    c->state = PCP_STATE_READY;
    set_limit(c, IDLE_LIMIT_MS);
    stream_resume(&c->stream);
    run_packets(c);
}

static void on_limit(struct timer *t)
{
    struct pcp_conn *c = LIST_ENTRY(t, struct pcp_conn, limit);

    if (c->state == PCP_STATE_DENIED) {
        deny(c);
        return;
    }
    if (c->state != PCP_STATE_ENDING)
        log_caused(LVL_LOG, "PCP connection from %s is closed: nothing came for too long", c->peer);
    pcp_conn_close(c);
}

void pcp_conn_open(struct control *ctl, int fd, const char *peer, const struct hba_addr *addr)
{
    static const struct stream_ops ops = {
        .on_readable = on_readable, .on_drained = on_drained, .on_closed = on_closed};
    struct pcp_conn *c = mem_alloc_secret(sizeof *c);

    c->ctl = ctl;
    c->state = PCP_STATE_LOGIN;
    c->addr = *addr;
    memcpy(c->peer, peer, strnlen(peer, sizeof c->peer - 1));
    timer_init(&c->limit, on_limit);
    list_init(&c->node);
    list_push_back(&ctl->conns, &c->node);
    c->on_resume = resume;
    pcp_wait_init(c);
    stream_open(&ctl->role.loop, &c->stream, fd, &ops);
    set_limit(c, login_limit_ms(c) < FIRST_LIMIT_MS ? login_limit_ms(c) : FIRST_LIMIT_MS);
}
