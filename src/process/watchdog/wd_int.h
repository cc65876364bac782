/* SPDX-License-Identifier: PostgreSQL
 * wd_int.h: the watchdog's root struct, and what its files offer each other. */
#ifndef PGP_WATCHDOG_WD_INT_H
#define PGP_WATCHDOG_WD_INT_H

#include "auth/hba.h"
#include "cluster/command.h"
#include "cluster/wd_share.h"
#include "cluster/wd_state.h"
#include "cluster/wd_votes.h"
#include "config/conf.h"
#include "process/common/role_loop.h"

#include "wd_addr.h"
#include "wd_net.h"
#include "wd_raft.h"
#include "wd_socket.h"
#include "wd_words.h"

#define WD_TICK_MS    200
#define WD_PATH_BYTES 4096
/* A process that begins anew has forgotten whom it follows, and that it votes for nobody else until
 * the election time-out; leases rest on that. So it keeps away from elections for as long: by the
 * time-out of then, which may have been longer. */
#define WD_SILENT_AT_START(election_ms) ((election_ms) + LOOP_TICK_MS)

/* How far a pgpool has come with the log of the cluster. */
enum wd_begin {
    WD_BEGIN_DONE,    /* it knows what was agreed on */
    WD_BEGIN_NOTHING, /* its disk is empty, and it does not know whether there is a cluster */
    WD_BEGIN_LOG,     /* it has begun a log together with others, and nothing is in it yet */
    WD_BEGIN_JOIN     /* its disk is empty, and it waits to be added to a cluster */
};

/* What another pgpool says of itself. */
struct wd_other {
    bool is_known;   /* it has said something */
    bool is_alive;   /* as it was told in the log last */
    int64_t gone_us; /* loop time at which it was found gone; 0: it is there, or never was */
    bool is_leaving;
    bool is_told_of_list; /* the log was told that it lists other members than we do */
    struct wd_status said;
    int64_t
        granted_boot_ms; /* it follows us until our election time-out after that, by our clock */
    int64_t election_ms; /* its own, as its last answer had it; 0: none came */
    bool is_without;     /* it follows us, and the kernel there has not the address: of this lead */
};

/* What of the log was followed here, of what is about no server. */
struct wd_followed {
    struct wd_pauses pauses;
    int64_t said_us;  /* loop time at which a pause was said; 0: none is on its way */
    uint64_t nevents; /* as many the log has at least */
    uint32_t nempties;
    int64_t leader_since_us;
};

/* wd_lifecheck_method = query. */
struct wd_life {
    uint64_t dead[2];           /* members that do not answer our queries */
    struct wd_queried *queried; /* NULL: nobody is asked */
    int64_t due_us;             /* loop time of the next round */
};

/* A former leader is shut out before its address is taken. */
struct wd_fence {
    int64_t lead_ms; /* of which lead this is about: its since_boot_ms */
    bool is_done;
    struct run *run;
    int64_t again_ms; /* boot clock */
};

/* When we lead. */
struct wd_lead {
    bool is_told;          /* the log is asked to say so */
    bool is_led;           /* and it does: the address may be taken */
    bool is_early;         /* it was said that nobody's lease is waited for */
    bool gives;            /* the log is asked to say that the address was given up */
    int64_t since_boot_ms; /* 0: we do not */
    uint64_t term;         /* of this lead */
    int yield_to;          /* whom we give the lead as soon as the address is given up */
    char yield_why[VIEW_WHY_BYTES];
    bool yields;
    int64_t missing_ms; /* boot clock: since when we do not reach the primary; 0: we do */
    int64_t waiting_us[VIEW_MAX_NODES]; /* loop time since when votes about it are missing; 0: none
                                           are */
    int64_t told_until_us;              /* the monitor knows that we lead until then */
};

struct wd {
    struct role_loop role; /* its loop is the one all of the watchdog's files work on */
    int self;
    uint8_t identity[WD_IDENTITY_BYTES];
    bool is_witness; /* we have no clients and see no servers: a vote, and no more */
    bool is_new;     /* the log's folder was empty when this process began */
    bool joins;      /* and there is a cluster already */
    char dir[WD_PATH_BYTES];
    char name[WD_NAME_BYTES];
    struct wd_net *net;
    struct wd_socket *socket; /* for commands */
    struct wd_raft *raft;     /* NULL: it is not known yet whether there is a cluster */
    struct wd_addr *addr;
    struct wd_state state;
    struct wd_seen seen;
    struct wd_says says;
    uint32_t serial; /* of `says` */
    bool is_said;    /* the monitor has `says` */
    struct wd_votes votes;
    struct wd_lead lead;
    struct wd_share share;
    struct wd_followed followed;
    struct wd_fence fence;
    struct wd_life life;
    struct wd_other other[WD_MAX_MEMBERS];
    uint64_t unwanted[2];   /* members that the last reload has removed: bit per member */
    const char *shown_role; /* that the log was told of; NULL: none */
    int shown_leader;
    bool is_escalated;
    bool is_bye_said;    /* the others know that we are being stopped */
    bool is_let_go;      /* and count without us */
    bool is_called_dead; /* by a life check outside: we do not lead */
    int status;          /* to end with */
    char address_why[WD_TEXT_BYTES];
    int64_t leaderless_us; /* since when nobody leads, by the loop; 0: somebody does */
    int ticks;
    int nbarred;         /* addresses that the others were told of in this tick */
    int64_t begun_us;    /* loop time at which this process began */
    int64_t promised_ms; /* the election time-out by which it may have promised before that */
    struct timer tick;
    struct timer stop_limit;
};

static inline const struct conf *wd_conf(const struct wd *w)
{
    return conf_of(role_loop_gen(&w->role));
}
static inline bool wd_has_bit(const uint64_t set[2], int i)
{
    return (set[i / 64] >> (i % 64) & 1) != 0;
}
static inline void wd_put_bit(uint64_t set[2], int i, bool in)
{
    uint64_t bit = UINT64_C(1) << (i % 64);

    set[i / 64] = in ? set[i / 64] | bit : set[i / 64] & ~bit;
}
/* True when `member` is in the settings. */
static inline bool wd_is_listed(const struct wd *w, int member)
{
    const struct conf *c = wd_conf(w);

    return member >= 0 && member < c->nwd_nodes && c->wd_nodes[member].wd_port != 0 &&
           c->wd_nodes[member].hostname[0] != '\0';
}
static inline void wd_listed(const struct wd *w, uint64_t set[2])
{
    int i;

    set[0] = set[1] = 0;
    for (i = 0; i < WD_MAX_MEMBERS; i++)
        wd_put_bit(set, i, wd_is_listed(w, i));
}
static inline bool wd_is_leading(struct wd *w)
{
    return w->raft != NULL && wd_raft_role(w->raft) == WD_ROLE_LEADER;
}

/* The log has what only a newer build understands: this one does not lead. */
static inline bool wd_is_outdated(const struct wd *w)
{
    return w->raft != NULL && wd_raft_is_outdated(w->raft);
}

/* wd_disk.c: the folder of the log. */
/* Finds out who this is (pgpool_node_id) and opens the folder. -1 with *err. */
int wd_disk_open(struct wd *w, struct err *err);
/* The election time-out of now is the one by which this pgpool promises; w->promised_ms is that of
 * before, or this one when it is longer. -1 with *err when that could not be noted. */
int wd_disk_promise(struct wd *w, struct err *err);
/* Gives a disk that holds no log a new identity. */
int wd_disk_renew(struct wd *w, struct err *err);

/* wd_talk.c: what pgpools say to each other besides libraft's messages. */
void wd_talk_tell_all(struct wd *w);
void wd_talk_ping(struct wd *w);
void wd_talk_bye(struct wd *w);
void wd_talk_let_go(struct wd *w, int to);
/* A life check outside says that `member` is dead, or alive. */
void wd_talk_call_dead(struct wd *w, int member, bool is_dead);
/* Does here what an order for all says: what and mode as in struct wd_cluster_order. */
void wd_talk_obey(struct wd *w, char what, char mode);
/* True when this pgpool may lead; *why then says why not. */
bool wd_is_fit(const struct wd *w, const char **why);
void wd_talk_take(struct wd *w, int from, char type, struct slice body);
void wd_talk_opened(struct wd *w, int to);
/* An operator's word about a server: to the one that leads, who may be us. */
void wd_talk_node_command(struct wd *w, const struct node_command *cmd);
/* An operator's word for all pgpools: returns how many others have it. */
int wd_talk_cluster_order(struct wd *w, const struct wd_cluster_order *order);
/* Tells the others to keep `addr` out: too many logins from it have failed here. */
void wd_talk_barred(struct wd *w, const struct hba_addr *addr);
/* Has an event about no server written into the log, by whoever leads. False: nobody does. */
bool wd_talk_word(struct wd *w, struct wd_event *e);
bool wd_is_alive(const struct wd *w, int member);
/* True when `member`, which is not this one, is heard, whatever a life check says of it. */
bool wd_is_heard(const struct wd *w, int member);
/* A life check says that this one is dead, or alive. */
void wd_talk_be_called_dead(struct wd *w, bool is_dead);

/* wd_fence.c: has a former leader shut out. False while he is not. */
bool wd_fence_is_done(struct wd *w);

/* wd_life.c: wd_lifecheck_method = query. */
void wd_life_open(struct wd *w);
void wd_life_step(struct wd *w);
void wd_life_close(struct wd *w);

/* wd_barred.c: another pgpool has seen too many failed logins from an address. */
void wd_barred_take(struct wd *w, int from, struct slice body);

/* wd_orders.c: what holds for all pgpools and is about no server. */
/* Takes over what a former life of this process had followed. */
void wd_orders_open(struct wd *w);
/* Brings pauses and caches here and the log together; to be called now and then. */
void wd_orders_step(struct wd *w);
/* The log has taken an event in. */
void wd_orders_heard(struct wd *w, const struct wd_event *e);
/* All query caches are to be emptied. */
void wd_orders_empty(struct wd *w);
/* The query cache here is emptied. */
void wd_orders_clear_cache(struct wd *w, const char *why);

/* wd_lead.c: what the one that leads does. */
void wd_lead_step(struct wd *w);
/* The lead was gained or lost. */
void wd_lead_changed(struct wd *w);
/* When the next step is due: soon while the lead begins here or is given away. */
int64_t wd_lead_tick_ms(const struct wd *w);
/* Gives the lead away, after the address. `why` is for the log of all. */
void wd_lead_yield(struct wd *w, int to, const char *why);
/* Somebody could take the lead. */
bool wd_lead_has_heir(struct wd *w);
/* Takes an operator's word about a server, which came here because we lead. */
void wd_lead_command(struct wd *w, const struct node_command *cmd);

/* Makes an event about nothing of a type; proposes it in our name. */
void wd_lead_event(struct wd_event *e, enum wd_event_type type);
bool wd_lead_propose(struct wd *w, struct wd_event *e);

/* wd_members.c: one change of the members, if any is due. True: it is on its way. */
bool wd_members_step(struct wd *w);

/* wd_command.c: opens the command socket. */
void wd_command_open(struct wd *w);

/* wd_tell.c: the other processes of this pgpool. */
void wd_tell_monitor(struct wd *w);
void wd_tell_publish(struct wd *w);
void wd_tell_command(struct wd *w, const struct node_command *cmd);
/* The monitor of this pgpool asks `node` now: another pgpool has found it lost. */
void wd_tell_missed(struct wd *w, int node);
/* An operator has given server e->node back: also one that was lost and not detached. */
void wd_tell_attached(struct wd *w, const struct wd_event *e);
void wd_tell_supervisor(struct wd *w, char what);

/* wd_lease.c: the address. */
int wd_lease_open(struct wd *w, struct err *err);
/* Renews while a majority follows; to be called often. */
void wd_lease_step(struct wd *w);
/* Boot clock, microseconds: until then nobody else can lead; 0: we do not. */
int64_t wd_lease_led_until_us(struct wd *w);
/* True when the address is not here, and not being taken. */
bool wd_lease_is_free(const struct wd *w);
/* wd_lease_is_free, and no process that was killed here has left the address: the kernel was asked.
 */
bool wd_lease_is_without(const struct wd *w);
/* We lead, and nobody who led before can have the address any more. */
bool wd_lease_is_settled(const struct wd *w);

#endif
