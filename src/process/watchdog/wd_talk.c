/* SPDX-License-Identifier: PostgreSQL
 * wd_talk.c: what pgpools say to each other besides libraft's messages: how they are, that they
 * follow the leader, and operators' orders.
 * Runs in: watchdog. All of it has passed a seal; a message that cannot be read is ignored, and so
 * is what a newer build says behind what this one knows (wd_words.h). */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "sys/clock.h"
#include "wire/reader.h"

#include "wd_int.h"

#define SILENT_US  INT64_C(3000000)
#define MAX_BARRED 20 /* per tick */

enum talk_type {
    TALK_RAFT = 'R',
    TALK_STATUS = 'S',
    TALK_PING = 'P',    /* the leader: do you follow me? */
    TALK_PONG = 'Q',    /* yes */
    TALK_COMMAND = 'N', /* an operator's word about a server, for the leader */
    TALK_ORDER = 'O',   /* an operator's word for all */
    TALK_BYE = 'X',     /* this pgpool is being stopped */
    TALK_LET_GO = 'G',  /* the leader: we count without you */
    TALK_BARRED = 'B',  /* too many logins from an address have failed here */
    TALK_WORD = 'W',    /* for the leader: an event for the log, about no server */
    TALK_LIFE = 'L'     /* a life check outside found you dead, or alive */
};

static void put_u64(struct buf *out, uint64_t v)
{
    buf_put_u32(out, (uint32_t)(v >> 32));
    buf_put_u32(out, (uint32_t)v);
}

static uint64_t get_u64(struct wire_reader *r)
{
    uint64_t high = wire_get_u32(r);

    return high << 32 | wire_get_u32(r);
}

static void copy_text(struct slice from, char *to, size_t room)
{
    memset(to, 0, room);
    memcpy(to, from.p, from.n < room ? from.n : room - 1);
}

bool wd_is_heard(const struct wd *w, int member)
{
    int64_t heard_us = wd_net_heard_us(w->net, member);

    return heard_us != 0 && loop_now_us(&w->role.loop) - heard_us <= SILENT_US &&
           !w->other[member].is_leaving;
}

bool wd_is_alive(const struct wd *w, int member)
{
    return member == w->self || (wd_is_heard(w, member) && !w->other[member].said.is_called_dead);
}

/* Status */

/* Until something is in it, a log that was begun is as good as none: all begin theirs alike. */
static enum wd_begin begin_of(const struct wd *w)
{
    if (!w->is_new || w->state.nevents > 0)
        return WD_BEGIN_DONE;
    if (w->raft == NULL)
        return WD_BEGIN_NOTHING;
    return w->joins ? WD_BEGIN_JOIN : WD_BEGIN_LOG;
}

bool wd_is_fit(const struct wd *w, const char **why)
{
    *why = w->is_witness       ? "it is a witness"
           : wd_is_outdated(w) ? "the log has what only a newer release understands"
                               : "a life check says that it is dead";
    return !w->is_witness && !wd_is_outdated(w) && !w->is_called_dead &&
           wd_addr_is_fit(w->addr, why);
}

static void put_status(struct wd *w, struct buf *out)
{
    struct wd_status s;
    const char *why;

    memset(&s, 0, sizeof s);
    s.begin = (uint8_t)begin_of(w);
    s.role = w->raft == NULL ? WD_ROLE_NONE : (uint8_t)wd_raft_role(w->raft);
    s.is_unfit = !wd_is_fit(w, &why);
    s.is_witness = w->is_witness;
    s.is_called_dead = w->is_called_dead;
    s.is_hindered = wd_is_outdated(w) || !wd_addr_is_fit(w->addr, &why);
    s.priority = wd_conf(w)->wd_priority;
    memcpy(s.identity, w->identity, sizeof s.identity);
    memcpy(s.lost, w->seen.lost, sizeof s.lost);
    memcpy(s.silent, w->seen.silent, sizeof s.silent);
    memcpy(s.dead, w->life.dead, sizeof s.dead);
    wd_listed(w, s.listed);
    memcpy(s.name, w->name, sizeof s.name);
    s.follows = w->raft == NULL ? WD_NO_MEMBER : wd_raft_leader(w->raft);
    snprintf(s.release, sizeof s.release, "%s", PACKAGE_VERSION);
    wd_status_put(&s, out);
}

static void count_vote(struct wd *w, int member, bool is_witness, const uint64_t lost[2])
{
    if (is_witness)
        wd_votes_witness(&w->votes, member, clock_mono_us());
    else
        wd_votes_take(&w->votes, member, lost, clock_mono_us());
}

void wd_talk_tell_all(struct wd *w)
{
    struct buf out = {0};

    put_status(w, &out);
    if (!w->is_bye_said)
        wd_net_send_all(w->net, TALK_STATUS, buf_slice(&out));
    count_vote(w, w->self, w->is_witness, w->seen.lost);
    buf_free(&out);
}

void wd_talk_opened(struct wd *w, int to)
{
    struct buf out = {0};

    put_status(w, &out);
    if (!w->is_bye_said)
        wd_net_send(w->net, to, TALK_STATUS, buf_slice(&out));
    buf_free(&out);
}

/* Whoever has no clients would notice a period later, and a lost server would wait for its word. */
static void hear_of_lost(struct wd *w, const uint64_t before[2], const uint64_t now[2])
{
    int i;

    for (i = 0; i < VIEW_MAX_NODES; i++)
        if (wd_has_bit(now, i) && !wd_has_bit(before, i))
            wd_tell_missed(w, i);
}

static void take_status(struct wd *w, int from, struct slice body)
{
    struct wd_other *o = &w->other[from];
    struct wd_status said;

    if (!wd_status_get(body, &said))
        return;
    hear_of_lost(w, o->said.lost, said.lost);
    o->said = said;
    o->is_known = true;
    o->is_leaving = false;
    count_vote(w, from, said.is_witness, said.lost);
}

/* Does a majority follow us? A pong says: I have heard of you so long before; until the election
 * time-out after that, mine, I vote for nobody else. All by our own clock, from when the question
 * was sent. */

void wd_talk_ping(struct wd *w)
{
    struct buf out = {0};

    put_u64(&out, (uint64_t)wd_addr_boot_ms());
    put_u64(&out, wd_raft_term(w->raft));
    wd_net_send_all(w->net, TALK_PING, buf_slice(&out));
    buf_free(&out);
}

static void take_ping(struct wd *w, int from, struct wire_reader *r)
{
    uint64_t sent = get_u64(r);
    uint64_t term = get_u64(r);
    struct buf out = {0};

    if (r->bad || w->raft == NULL || wd_raft_role(w->raft) != WD_ROLE_FOLLOWER ||
        wd_raft_leader(w->raft) != from || wd_raft_term(w->raft) != term)
        return;
    put_u64(&out, sent);
    put_u64(&out, (uint64_t)wd_raft_heard_ago_ms(w->raft));
    put_u64(&out, term);
    put_u64(&out, (uint64_t)wd_conf(w)->wd_election_timeout_ms);
    put_u64(&out, wd_lease_is_without(w) ? 1 : 0);
    wd_net_send(w->net, from, TALK_PONG, buf_slice(&out));
    buf_free(&out);
}

/* How much shorter a promise is than ours would be. */
static int64_t shorter_ms(struct wd *w, int from, int64_t theirs_ms)
{
    int64_t ours_ms = wd_conf(w)->wd_election_timeout_ms;
    struct wd_other *o = &w->other[from];

    if (theirs_ms != ours_ms && theirs_ms != o->election_ms)
        log_at_detail(LVL_WARNING, NULL, "Set it to the same on all.",
            "watchdog: pgpool %d has a wd_election_timeout of %lld ms, and this one, which leads, "
            "of %lld ms",
            from, (long long)theirs_ms, (long long)ours_ms);
    o->election_ms = theirs_ms;
    return theirs_ms < ours_ms ? ours_ms - theirs_ms : 0;
}

/* An older build does not say what its time-out is, nor whether it is without the address. */
static void take_pong(struct wd *w, int from, struct wire_reader *r)
{
    int64_t sent_ms = (int64_t)get_u64(r);
    int64_t ago_ms = (int64_t)get_u64(r);
    uint64_t term = get_u64(r);
    int64_t theirs_ms =
        wire_reader_left(r) > 0 ? (int64_t)get_u64(r) : (int64_t)wd_conf(w)->wd_election_timeout_ms;
    uint64_t without = wire_reader_left(r) > 0 ? get_u64(r) : 0;
    int64_t since_ms;

    if (r->bad || !wd_is_leading(w) || wd_raft_term(w->raft) != term || sent_ms < 0 ||
        sent_ms > wd_addr_boot_ms() || ago_ms < 0 || theirs_ms < 0)
        return;
    since_ms = sent_ms - ago_ms - shorter_ms(w, from, theirs_ms);
    w->other[from].is_without = without == 1;
    if (since_ms > w->other[from].granted_boot_ms)
        w->other[from].granted_boot_ms = since_ms;
    wd_lease_step(w);
}

/* Orders */

void wd_talk_node_command(struct wd *w, const struct node_command *cmd)
{
    int leader = w->raft == NULL ? WD_NO_MEMBER : wd_raft_leader(w->raft);
    struct buf out = {0};

    if (wd_is_leading(w)) {
        wd_lead_command(w, cmd);
        return;
    }
    buf_put_byte(&out, (char)cmd->order);
    buf_put_u32(&out, (uint32_t)cmd->node);
    buf_put_cstr(&out, cmd->who);
    buf_put_cstr(&out, cmd->why);
    if (leader == WD_NO_MEMBER || !wd_net_send(w->net, leader, TALK_COMMAND, buf_slice(&out)))
        log_at_detail(LVL_WARNING,
            "No leader of the watchdog cluster can be reached: without a majority nothing is "
            "changed for all.",
            "Give the order again when somebody leads: SHOW POOL_WATCHDOG.",
            "an order of %s about node %d cannot be carried out now", cmd->who, cmd->node);
    buf_free(&out);
}

static void take_command(struct wd *w, int from, struct wire_reader *r)
{
    struct node_command cmd = {0};

    cmd.order = wire_get_u8(r);
    cmd.node = (int32_t)wire_get_u32(r);
    copy_text(wire_get_cstr(r), cmd.who, sizeof cmd.who);
    copy_text(wire_get_cstr(r), cmd.why, sizeof cmd.why);
    if (!r->bad && cmd.order <= NODE_SWITCHOVER && cmd.node >= 0 && cmd.node < VIEW_MAX_NODES &&
        wd_is_leading(w))
        wd_lead_command(w, &cmd);
}

/* Whoever guesses from many addresses is not to keep us busy. */
void wd_talk_barred(struct wd *w, const struct hba_addr *addr)
{
    struct wd_barred said = {.n = addr->n};
    struct buf out = {0};

    if (w->nbarred++ >= MAX_BARRED)
        return;
    memcpy(said.bytes, addr->bytes, sizeof said.bytes);
    wd_barred_put(&said, &out);
    wd_net_send_all(w->net, TALK_BARRED, buf_slice(&out));
    buf_free(&out);
}

/* A leader that is lost on the way loses the word with it. */
bool wd_talk_word(struct wd *w, struct wd_event *e)
{
    int leader = w->raft == NULL ? WD_NO_MEMBER : wd_raft_leader(w->raft);
    struct buf out = {0};
    bool ok;

    if (wd_is_leading(w))
        return wd_lead_propose(w, e);
    if (leader == WD_NO_MEMBER)
        return false;
    wd_event_put(e, &out);
    ok = wd_net_send(w->net, leader, TALK_WORD, buf_slice(&out));
    buf_free(&out);
    return ok;
}

static void take_word(struct wd *w, struct slice body)
{
    struct wd_event e;

    if (wd_is_leading(w) && wd_event_get(body, &e) &&
        (e.type == WD_EV_PAUSE || e.type == WD_EV_EMPTY))
        (void)wd_lead_propose(w, &e);
}

int wd_talk_cluster_order(struct wd *w, const struct wd_cluster_order *order)
{
    char body[2] = {order->what, order->mode};

    return wd_net_send_all(w->net, TALK_ORDER, slice_of(body, sizeof body));
}

static void take_order(struct wd *w, int from, struct wire_reader *r)
{
    char what = (char)wire_get_u8(r);
    char mode = (char)wire_get_u8(r);

    if (r->bad)
        return;
    log_at(LVL_LOG, "watchdog received the %s command from remote pgpool-II node \"%s\"",
        what == 's'   ? "shutdown"
        : what == 'r' ? "reload config"
                      : "log rotate",
        w->other[from].said.name);
    wd_talk_obey(w, what, mode);
}

void wd_talk_obey(struct wd *w, char what, char mode)
{
    if (what == 's' && (mode == 's' || mode == 'f' || mode == 'i'))
        wd_tell_supervisor(w, mode);
    else if (what == 'r' || (what == 'l' && wd_conf(w)->logging_collector))
        wd_tell_supervisor(w, what);
}

/* Life checks outside */

void wd_talk_be_called_dead(struct wd *w, bool is_dead)
{
    if (w->is_called_dead == is_dead)
        return;
    w->is_called_dead = is_dead;
    log_at(LVL_WARNING,
        is_dead ? "watchdog: a life check says that this pgpool is dead: it does not lead"
                : "watchdog: a life check says that this pgpool is alive again");
    wd_talk_tell_all(w);
    if (is_dead && wd_is_leading(w))
        wd_lead_yield(w, WD_NO_MEMBER, "a life check says that it is dead");
}

void wd_talk_call_dead(struct wd *w, int member, bool is_dead)
{
    char body = is_dead ? 'd' : 'a';

    if (member == w->self)
        wd_talk_be_called_dead(w, is_dead);
    else
        wd_net_send(w->net, member, TALK_LIFE, slice_of(&body, 1));
}

static void take_life(struct wd *w, struct wire_reader *r)
{
    uint8_t what = wire_get_u8(r);

    if (!r->bad && wd_conf(w)->wd_lifecheck_method == CONF_LIFECHECK_EXTERNAL)
        wd_talk_be_called_dead(w, what == 'd');
}

void wd_talk_bye(struct wd *w)
{
    wd_net_send_all(w->net, TALK_BYE, slice_of("", 0));
    w->is_bye_said = true;
}

void wd_talk_let_go(struct wd *w, int to)
{
    wd_net_send(w->net, to, TALK_LET_GO, slice_of("", 0));
}

static void take_bye(struct wd *w, int from)
{
    w->other[from].is_leaving = true;
    log_at(LVL_LOG, "remote node \"%s\" is shutting down", w->other[from].said.name);
}

void wd_talk_take(struct wd *w, int from, char type, struct slice body)
{
    struct wire_reader r;

    wire_reader_init(&r, body);
    switch ((enum talk_type)type) {
    case TALK_RAFT:
        if (w->raft != NULL)
            wd_raft_take(w->raft, from, body);
        break;
    case TALK_STATUS:
        take_status(w, from, body);
        break;
    case TALK_PING:
        take_ping(w, from, &r);
        break;
    case TALK_PONG:
        take_pong(w, from, &r);
        break;
    case TALK_COMMAND:
        take_command(w, from, &r);
        break;
    case TALK_ORDER:
        take_order(w, from, &r);
        break;
    case TALK_BYE:
        take_bye(w, from);
        break;
    case TALK_LET_GO:
        w->is_let_go = true;
        break;
    case TALK_BARRED:
        wd_barred_take(w, from, body);
        break;
    case TALK_WORD:
        take_word(w, body);
        break;
    case TALK_LIFE:
        take_life(w, &r);
        break;
    }
}
