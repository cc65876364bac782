/* SPDX-License-Identifier: PostgreSQL
 * cache_far_int.h: memcached: what runs on threads, and how it is told what to do. */
#ifndef PGP_CACHE_FAR_INT_H
#define PGP_CACHE_FAR_INT_H

#include "base/buf.h"
#include "base/list.h"
#include "cache/cache_far.h"

#include "cache_int.h"

/* How the servers are talked to; made once, shared by the threads, never changed. */
struct far_spec {
    _Atomic uint32_t refs;
    int64_t timeout_ms;
    uint64_t value_max; /* what is larger is none that may be kept here */
    char *user;
    char *password;
    struct cache_far_state *state; /* in shared memory: where they are, and how they do */
};

/* Frees it when nobody uses it any more. */
void far_spec_release(struct far_spec *spec);

/* A server that does not answer is left alone for a while, by all processes. */
bool far_server_is_down(const struct far_spec *spec, unsigned server);
void far_server_answered(struct far_spec *spec, unsigned server);
/* What was begun then has failed. */
void far_server_failed(struct far_spec *spec, unsigned server, int64_t begun_us);
void far_note_kept(struct far_spec *spec, unsigned server);
void far_note_told(struct far_spec *spec, unsigned server);

/* A connection to all servers, of one thread at a time. */
struct far_conn;
struct far_conn *far_conn_new(struct far_spec *spec, struct err *err);
void far_conn_free(struct far_conn **cp);
/* Where a name is kept. Sends nothing. */
unsigned far_conn_server(struct far_conn *c, const char *name, size_t len);

/* What stands in front of a result: this head, generations, the key with its text and settings. */
#define FAR_HEAD_MAX (256 * 1024)

/* The value of a result in memcached: this, generations, key, result. */
struct far_head {
    uint32_t magic;
    uint32_t key_len;
    uint32_t took_us;
    uint32_t ngens;
};

/* A look-up, or a result to be kept: one of several that a thread takes at once. */
struct far_req {
    struct list node;            /* while it waits */
    struct cache_far_call *call; /* the loop's: who waits for it; NULL: nobody does */
    bool keeps;                  /* else it is a look-up */
    struct cache_key key;        /* its bytes are in key_bytes */
    char *key_bytes;
    struct cache_far_deps deps;
    struct buf result; /* appended to by a look-up */
    int64_t expire_s;
    uint32_t took_us;
    enum cache_far_found found;
};
/* How many requests are sent at once. */
#define FAR_BATCH 32

/* What something is kept under. */
#define FAR_NAME_BYTES  40
#define FAR_NAME_OF_ALL "g:all"
struct far_name {
    char text[FAR_NAME_BYTES];
    size_t len;
    unsigned server;
};
void far_name_of_key(struct far_conn *c, const struct cache_key *key, struct far_name *name);
void far_name_of_cell(struct far_conn *c, cache_cell cell, struct far_name *name);
void far_name_of_all(struct far_conn *c, struct far_name *name);
bool far_name_is(const struct far_name *name, const char *text, size_t len);

/* A generation, or a result. */
struct far_asked {
    struct far_name name;
    uint64_t id;
    bool is_result;
    bool is_found;
    uint64_t gen;
    struct buf value;
};

/* A look-up: its generations, in the order of its deps, and the result behind them. */
struct far_look {
    struct far_req *req;
    unsigned n;
    unsigned at[CACHE_DEPS_MAX + 3]; /* in far_question.asked */
};

/* All look-ups of a batch; what several of them ask for is asked for once. */
struct far_question {
    struct far_look *looks;
    unsigned nlooks;
    struct far_asked *asked;
    unsigned n;
    unsigned next; /* answers come in the order of the questions */
    bool is_dead[CACHE_FAR_SERVERS];
};

/* Makes the questions of those requests that are look-ups; false: none is, and nothing is to be
 * freed. */
bool far_question_make(
    struct far_question *q, struct far_conn *c, struct far_req *const *reqs, unsigned n);
void far_question_free(struct far_question *q);
/* A server has answered: it has this value under this name. */
void far_question_take(
    struct far_question *q, unsigned server, struct slice name, struct slice value);
/* All answers are there: what they mean for each of the look-ups. */
void far_question_settle(struct far_question *q, struct far_spec *spec);

/* A generation while its cell is barred. */
#define FAR_BARRED UINT64_C(0)
/* One that never was, in all likelihood. */
int far_new_generation(uint64_t *gen);
uint64_t far_number_of(const char *p, size_t n);
/* What is kept, and when it ends, in memcached's terms. */
void far_value_put(struct buf *out, const struct far_req *r);
int64_t far_expires(const struct far_req *r);

/* Blocking; from a thread. What is to be kept goes first, so that a look-up behind it finds it. */
void far_conn_run(struct far_conn *c, struct far_req *const *reqs, unsigned n);
bool far_conn_bump(struct far_conn *c, const cache_cell *cells, size_t n);
bool far_conn_bar(struct far_conn *c, cache_cell cell);

/* --- cache_far_pays.c --- */

struct far_paid {
    uint64_t text; /* what texts that differ in values alone have in common; 0: nobody's */
    uint32_t nlooks;
    uint32_t nhits;
    int64_t cost_us;
    int64_t saved_us;
    bool is_sampled;
};
/* What look-ups of texts that were asked for lately have cost and saved, by their places. */
#define FAR_PAYS_TEXTS 256
struct far_pays {
    struct far_paid paid[FAR_PAYS_TEXTS];
};
/* Whether a key of such a text is to be looked up; text 0: always. */
bool far_pays(struct far_pays *p, uint64_t text, uint64_t key_hash);
/* A query was asked for: what that cost, and what it saved if it was a hit. */
void far_pays_note(
    struct far_pays *p, uint64_t text, int64_t cost_us, bool is_hit, int64_t saved_us);

/* --- cache_far_line.c --- */

/* The loop's own connections to all servers, over which look-ups go without a thread: to hand one
 * to a thread and be woken by it costs more than to ask. */
struct far_line;
/* The requests are the caller's again. `is_lost`: they were not answered, and are to be asked
 * another way. */
typedef void far_line_done_fn(void *ctx, struct far_req *const *reqs, unsigned n, bool is_lost);
struct far_line *far_line_new(
    struct far_spec *spec, struct loop *lp, far_line_done_fn *done, void *ctx);
/* What is on its way is freed with it, unanswered. */
void far_line_free(struct far_line **lp);
/* Whether requests may go this way now; if not, it is seen to that they may soon. */
bool far_line_is_ready(struct far_line *l);
/* Never calls `done` before it returns. */
void far_line_send(struct far_line *l, struct far_req *const *reqs, unsigned n);
/* Something has taken memqcache_timeout: should a server owe an answer for so long, it is dead. */
void far_line_check(struct far_line *l);
void far_req_free(struct far_req *r);

#endif
