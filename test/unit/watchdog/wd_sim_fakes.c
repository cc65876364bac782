/* SPDX-License-Identifier: PostgreSQL
 * wd_sim_fakes.c: what the simulated watchdogs ask of others: clocks, mailboxes, network, kernel,
 * and libraft, whose fixture answers. */
#include "config.h"

#include <raft.h>
#include <raft/fixture.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "ipc/mailbox.h"
#include "process/watchdog/wd_int.h"
#include "sys/clock.h"

#include "wd_sim.h"

static struct pool *pool_of(const struct wd *w)
{
    return LIST_ENTRY(w, struct pool, w);
}

/* What the watchdog asks of others */

int64_t clock_mono_us(void)
{
    return (sim_now_ms() + BOOT_MS - world.pool[world.at].slept_ms) * CLOCK_US_PER_MS;
}
int64_t clock_boot_us(void)
{
    return (sim_now_ms() + BOOT_MS) * CLOCK_US_PER_MS;
}
int64_t clock_wall_us(void)
{
    return clock_boot_us() + world.pool[world.at].wall_ms * CLOCK_US_PER_MS;
}
int64_t wd_addr_boot_ms(void)
{
    return sim_now_ms() + BOOT_MS;
}
const struct conf_gen *role_loop_gen(const struct role_loop *rl)
{
    int election = world.pool[(size_t)rl->env->boxes - 1].election;

    return world.without == WD_NO_MEMBER || world.without == world.at
               ? world.gen[election]
               : world.gen_without[world.without][election];
}
void timer_start(struct loop *lp, struct timer *t, int64_t delay_ms)
{
    struct pool *p = pool_of(LIST_ENTRY(t, struct wd, tick));

    if (sim_now_ms() + delay_ms < p->tick_ms)
        p->tick_ms = sim_now_ms() + delay_ms;
}

int proc_find(const struct shm *shm, enum proc_role role)
{
    return 0;
}
int mailbox_post(
    struct mailboxes *boxes, int to, enum mail_type type, const void *body, size_t len, int fd)
{
    struct pool *p = &world.pool[(size_t)boxes - 1];

    if (type == MAIL_WD_SAYS) {
        memcpy(&p->says, body, len);
        p->has_says = true;
    } else if (type == MAIL_WD_LEADS) {
        memcpy(&p->led_until_us, body, len);
        p->has_led = true;
        if (p->look_ms > sim_now_ms() + MAIL_MS) /* what it waited for: it looks at once */
            p->look_ms = sim_now_ms() + MAIL_MS;
    } else if (type == MAIL_WD_SEEN) {
        memcpy(&p->seen, body, len);
        p->has_seen = true;
    }
    return 0;
}

/* Network */

static int number_of(const struct wd_net *net)
{
    return (int)((size_t)net - 1);
}

bool wd_net_send(struct wd_net *net, int to, char type, struct slice body)
{
    int from = number_of(net);
    struct message *m;
    int64_t due_ms = sim_now_ms() + 1 + sim_below(30);

    if (to >= world.n || world.cut[from][to])
        return to < world.n; /* the kernel takes it */
    if (world.nmessages == MESSAGES)
        sim_fail("too many messages");
    if (sim_below(50) == 0)
        due_ms += sim_below(400);
    if (due_ms < world.last_ms[from][to])
        due_ms = world.last_ms[from][to];
    world.last_ms[from][to] = due_ms;
    m = &world.message[world.nmessages++];
    *m = (struct message){due_ms, from, to, type, malloc(body.n + 1), body.n};
    memcpy(m->body, body.p, body.n);
    return true;
}
int wd_net_send_all(struct wd_net *net, char type, struct slice body)
{
    int i;

    for (i = 0; i < world.n; i++)
        if (i != number_of(net))
            wd_net_send(net, i, type, body);
    return world.n - 1;
}
int64_t wd_net_heard_us(const struct wd_net *net, int from)
{
    return from < world.n ? world.pool[number_of(net)].heard_us[from] : 0;
}
uint64_t wd_net_strangers(const struct wd_net *net)
{
    return 0;
}

void wd_barred_take(struct wd *w, int from, struct slice body)
{
    sim_fail("there are no clients here");
}

/* Sometimes it takes its time. */
bool wd_fence_is_done(struct wd *w)
{
    (void)w;
    return sim_below(4) == 0;
}

/* The kernel */

static struct pool *pool_of_addr(const struct wd_addr *a)
{
    return &world.pool[(size_t)a - 1];
}
bool wd_addr_is_trusted(struct wd_addr *a, int64_t since_us)
{
    return false;
}
struct wd_addr *wd_addr_new(struct loop *lp, const struct conf *conf,
    const struct wd_addr_calls *calls, void *owner, struct err *err)
{
    return ((struct wd *)owner)->addr;
}
void wd_addr_lead(struct wd_addr *a, int64_t until_ms)
{
    struct pool *p = pool_of_addr(a);

    if (until_ms <= wd_addr_boot_ms() || wd_addr_boot_ms() < p->not_before_ms)
        return;
    p->holds = true;
    p->until_ms = until_ms;
}
void wd_addr_not_before(struct wd_addr *a, int64_t boot_ms)
{
    pool_of_addr(a)->not_before_ms = boot_ms;
}
void wd_addr_stop_leading(struct wd_addr *a)
{
    pool_of_addr(a)->holds = false;
}
bool wd_addr_is_fit(const struct wd_addr *a, const char **why)
{
    return true;
}
void wd_addr_status(const struct wd_addr *a, struct wd_addr_status *out)
{
    memset(out, 0, sizeof *out);
    out->address = out->interface = out->doing = "";
    out->is_held = pool_of_addr(a)->holds;
    out->is_gone = !out->is_held;
}

/* libraft */

static struct pool *pool_of_raft(const struct wd_raft *wr)
{
    return &world.pool[(size_t)wr - 1];
}
enum wd_role wd_raft_role(const struct wd_raft *wr)
{
    switch (pool_of_raft(wr)->raft->state) {
    case RAFT_LEADER:
        return WD_ROLE_LEADER;
    case RAFT_CANDIDATE:
        return WD_ROLE_CANDIDATE;
    case RAFT_FOLLOWER:
        return WD_ROLE_FOLLOWER;
    default:
        return WD_ROLE_NONE;
    }
}
int wd_raft_leader(struct wd_raft *wr)
{
    const char *address;
    raft_id id;

    raft_leader(pool_of_raft(wr)->raft, &id, &address);
    return id == 0 ? WD_NO_MEMBER : (int)id - 1;
}
bool wd_raft_is_outdated(const struct wd_raft *wr)
{
    return false;
}
uint64_t wd_raft_term(const struct wd_raft *wr)
{
    return pool_of_raft(wr)->raft->current_term;
}
int64_t wd_raft_heard_ago_ms(struct wd_raft *wr)
{
    struct raft *r = pool_of_raft(wr)->raft;

    return (int64_t)(r->io->time(r->io) - r->election_timer_start);
}
bool wd_raft_is_proposing(const struct wd_raft *wr)
{
    return pool_of_raft(wr)->nproposals > 0;
}
bool wd_raft_is_changing(const struct wd_raft *wr)
{
    return pool_of_raft(wr)->is_changing;
}
static struct pool *pool_of_io(const struct raft_io *io)
{
    int i;

    for (i = 0; i < world.n && world.pool[i].raft->io != io; i++)
        ;
    if (i == world.n)
        sim_fail("nobody's libraft");
    return &world.pool[i];
}

/* What a sound one sends is let in, whatever happens. */
static void check_gate(const struct pool *p, const struct raft_message *m)
{
    static struct wd_state scratch;
    struct raft_message copy = *m;

    if (m->type == RAFT_IO_INSTALL_SNAPSHOT) {
        struct raft_buffer *data = &copy.install_snapshot.data;

        data->len -= (size_t)((const char *)data->base)[data->len - 1];
    }
    if (wd_gate_judge(p->raft, &copy, &scratch) != WD_GATE_PASS)
        sim_fail("a message is not let in");
}

static void guarded_recv(struct raft_io *io, struct raft_message *m)
{
    struct pool *p = pool_of_io(io);
    bool has_voice;
    int role;

    check_gate(p, m);
    if (!wd_rollback_take(&p->rollback, p->raft, m))
        sim_fail("nobody knows who the members were");
    if (m->type == RAFT_IO_APPEND_ENTRIES)
        wd_match_begin(&p->match, m->append_entries.term, m->append_entries.prev_log_index,
            m->append_entries.n_entries);
    else if (m->type == RAFT_IO_INSTALL_SNAPSHOT)
        wd_match_snapshot(&p->match, m->install_snapshot.term, m->install_snapshot.last_index);
    has_voice = wd_voice_begin(p->raft, m, &role);
    p->recv(io, m);
    if (has_voice)
        wd_voice_end(p->raft, role);
    wd_match_end(&p->match);
}
static int guarded_start(
    struct raft_io *io, unsigned ms, raft_io_tick_cb on_tick, raft_io_recv_cb recv)
{
    struct pool *p = pool_of_io(io);

    p->recv = recv;
    return p->inner.start(io, ms, on_tick, guarded_recv);
}
static int guarded_append(struct raft_io *io, struct raft_io_append *req,
    const struct raft_entry entries[], unsigned n, raft_io_append_cb cb)
{
    struct pool *p = pool_of_io(io);

    wd_match_appends(&p->match);
    return p->inner.append(io, req, entries, n, cb);
}
/* The fixture cuts what it has of the disk where it would be without snapshots, behind its end
 * perhaps; nobody reads that again. */
static int guarded_truncate(struct raft_io *io, raft_index index)
{
    return 0;
}
static int guarded_send(
    struct raft_io *io, struct raft_io_send *req, const struct raft_message *m, raft_io_send_cb cb)
{
    struct pool *p = pool_of_io(io);
    struct raft_message said = *m;
    struct raft_append_entries_result *result = &said.append_entries_result;

    if (said.type == RAFT_IO_INSTALL_SNAPSHOT) /* the fixture keeps no number of the members */
        said.install_snapshot.conf_index = said.install_snapshot.last_index;
    if (said.type == RAFT_IO_APPEND_ENTRIES_RESULT)
        result->last_log_index =
            wd_match_claim(&p->match, result->term, result->rejected, result->last_log_index);
    return p->inner.send(io, req, &said, cb);
}
void sim_guard(struct pool *p)
{
    struct raft_io *io = p->raft->io;

    p->inner = *io;
    io->start = guarded_start;
    io->append = guarded_append;
    io->truncate = guarded_truncate;
    io->send = guarded_send;
}
static void on_applied(struct raft_apply *req, int status, void *result)
{
    struct pool *p = req->data;

    p->nproposals--;
    free(req);
}
bool wd_raft_propose(struct wd_raft *wr, const struct wd_event *e)
{
    struct pool *p = pool_of_raft(wr);
    struct raft_apply *req = malloc(sizeof *req);
    struct buf text = {0};
    struct raft_buffer body;

    wd_event_put(e, &text);
    body.len = (text.len + 8) / 8 * 8;
    body.base = raft_calloc(1, body.len);
    memcpy(body.base, text.data, text.len);
    ((char *)body.base)[body.len - 1] = (char)(body.len - text.len);
    buf_free(&text);
    req->data = p;
    if (raft_apply(p->raft, req, &body, 1, on_applied) != 0) {
        raft_free(body.base);
        free(req);
        return false;
    }
    p->nproposals++;
    return true;
}
static void on_barrier(struct raft_barrier *req, int status)
{
    struct pool *p = req->data;

    p->is_barred = false;
    if (status == 0)
        p->current_term = p->barrier_term;
}
bool wd_raft_is_current(struct wd_raft *wr)
{
    struct pool *p = pool_of_raft(wr);

    if (p->raft->state != RAFT_LEADER)
        return false;
    if (p->current_term == p->raft->current_term)
        return true;
    if (!p->is_barred) {
        p->barrier.data = p;
        p->barrier_term = p->raft->current_term;
        p->is_barred = raft_barrier(p->raft, &p->barrier, on_barrier) == 0;
    }
    return false;
}
int wd_raft_voters(const struct wd_raft *wr, bool voter[WD_MAX_MEMBERS])
{
    const struct raft_configuration *c = &pool_of_raft(wr)->raft->configuration;
    int n = 0;
    unsigned i;

    memset(voter, 0, WD_MAX_MEMBERS * sizeof voter[0]);
    for (i = 0; i < c->n; i++)
        if (c->servers[i].role == RAFT_VOTER) {
            voter[c->servers[i].id - 1] = true;
            n++;
        }
    return n;
}
bool wd_raft_has(const struct wd_raft *wr, int member)
{
    const struct raft_configuration *c = &pool_of_raft(wr)->raft->configuration;
    unsigned i;

    for (i = 0; i < c->n; i++)
        if (c->servers[i].id == (raft_id)member + 1)
            return true;
    return false;
}
static void on_changed(struct raft_change *req, int status)
{
    ((struct pool *)req->data)->is_changing = false;
    world.nchanges += status == 0;
}
static bool may_change(struct pool *p, int leaving)
{
    p->change.data = p;
    wd_rollback_before_change(&p->rollback, p->raft);
    return p->raft->state == RAFT_LEADER && !p->is_changing && !p->is_giving &&
           wd_rollback_is_settled(p->raft, (raft_id)leaving);
}
bool wd_raft_add(struct wd_raft *wr, int member)
{
    struct pool *p = pool_of_raft(wr);
    char address[16];

    snprintf(address, sizeof address, "%d", member + 1);
    if (may_change(p, 0))
        p->is_changing =
            raft_add(p->raft, &p->change, (raft_id)member + 1, address, on_changed) == 0;
    return p->is_changing;
}
bool wd_raft_promote(struct wd_raft *wr, int member)
{
    struct pool *p = pool_of_raft(wr);

    if (may_change(p, 0))
        p->is_changing =
            raft_assign(p->raft, &p->change, (raft_id)member + 1, RAFT_VOTER, on_changed) == 0;
    return p->is_changing;
}
bool wd_raft_remove(struct wd_raft *wr, int member)
{
    struct pool *p = pool_of_raft(wr);

    if (may_change(p, member + 1))
        p->is_changing = raft_remove(p->raft, &p->change, (raft_id)member + 1, on_changed) == 0;
    return p->is_changing;
}
static void on_given(struct raft_transfer *req)
{
    ((struct pool *)req->data)->is_giving = false;
}
bool wd_raft_give_lead(struct wd_raft *wr, int member)
{
    struct pool *p = pool_of_raft(wr);

    if (p->raft->state != RAFT_LEADER || p->is_giving)
        return false;
    p->transfer.data = p;
    p->is_giving = true;
    if (raft_transfer(
            p->raft, &p->transfer, member == WD_NO_MEMBER ? 0 : (raft_id)member + 1, on_given) != 0)
        p->is_giving = false;
    return p->is_giving;
}
bool wd_raft_is_giving(const struct wd_raft *wr)
{
    return pool_of_raft(wr)->is_giving;
}
void wd_raft_take(struct wd_raft *wr, int from, struct slice body)
{
    sim_fail("libraft's messages go another way here");
}
