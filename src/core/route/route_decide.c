/* SPDX-License-Identifier: PostgreSQL
 * route_decide.c: the order of the rules. Runs in: workers.
 *
 * What a statement is (route_class.c) → what it calls → what the settings, the session's state and
 * the catalogue (route_check.c) have against balancing it → a node (route_choose.c). Each rule only
 * ever sends more to the primary, so a rule that is wrong costs balance, never correctness. */
#include "config.h"

#include "route_int.h"

#include "base/assert.h"
#include "base/hot.h"
#include "route/route_marks.h"
#include "route/route_trace.h"

bool route_is_soft(enum route_reason denied)
{
    switch (denied) {
    case ROUTE_R_NONE:
    case ROUTE_R_CATALOG:
    case ROUTE_R_MISSING_TABLE:
    case ROUTE_R_WROTE_IN_TX:
    case ROUTE_R_WROTE_IN_EARLIER_TX:
    case ROUTE_R_WROTE_IN_SESSION:
    case ROUTE_R_TABLE_WRITTEN_IN_TX:
    case ROUTE_R_TABLE_WRITTEN_LATELY:
    case ROUTE_R_TRACKING_COLD:
        return true;
    default:
        return false;
    }
}

static void decision_init(struct route_decision *out)
{
    memset(out, 0, offsetof(struct route_decision, question)); /* there are none yet */
    out->node = VIEW_NO_NODE;
    out->leave_node = VIEW_NO_NODE;
    out->balance_node = VIEW_NO_NODE;
    out->ask_node = VIEW_NO_NODE;
}

static bool mode_balances(const struct conf *conf)
{
    return conf->backend_clustering_mode == CONF_CLUSTER_STREAMING ||
           conf->backend_clustering_mode == CONF_CLUSTER_LOGICAL || conf_writes_everywhere(conf);
}

static enum conf_comments comments_of(const struct route_input *in)
{
    return in->set != NULL ? in->set->allow_sql_comments : in->conf->allow_sql_comments;
}

static struct slice strip_tail(struct slice s)
{
    while (s.n > 0 && (s.p[s.n - 1] == ';' || s.p[s.n - 1] == ' ' ||
                          (s.p[s.n - 1] >= '\t' && s.p[s.n - 1] <= '\r')))
        s.n--;
    return s;
}

/* The list matches the text as it came, and without what surrounds the statement. */
WARM static bool matches_primary_pattern(const struct route_rules *r, struct slice text)
{
    size_t lead;

    if (r == NULL || r->primary_queries.n == 0)
        return false;
    if (route_patterns_match(&r->primary_queries, text))
        return true;
    lead = route_lead_of(text).offset;
    return route_patterns_match(
        &r->primary_queries, strip_tail(slice_of(text.p + lead, text.n - lead)));
}

static enum route_reason denied_by_text(const struct route_case *c)
{
    struct route_lead lead = route_lead_of(c->text);

    if (lead.has_hint && comments_of(c->in) != CONF_COMMENTS_ON)
        return ROUTE_R_HINT;
    if (lead.has_comment && comments_of(c->in) == CONF_COMMENTS_OFF)
        return ROUTE_R_COMMENT;
    if (lead.has_blank && !c->in->conf->ignore_leading_white_space)
        return ROUTE_R_LEADING_BLANK;
    if (matches_primary_pattern(c->in->rules, c->text))
        return ROUTE_R_PATTERN;
    return ROUTE_R_NONE;
}

/* What the session has done before. */
WARM static enum route_reason denied_by_writes(const struct route_input *in, bool in_tx)
{
    const struct route_session *s = in->session;

    switch (in->conf->disable_load_balance_on_write) {
    case CONF_WRITE_ALWAYS:
        return s->wrote != ROUTE_WROTE_NOTHING ? ROUTE_R_WROTE_IN_SESSION : ROUTE_R_NONE;
    case CONF_WRITE_TRANS_TRANSACTION:
        if (in_tx && s->wrote == ROUTE_WROTE_IN_TX && !s->wrote_in_tx)
            return ROUTE_R_WROTE_IN_EARLIER_TX;
        return in_tx && s->wrote_in_tx ? ROUTE_R_WROTE_IN_TX : ROUTE_R_NONE;
    case CONF_WRITE_TRANSACTION:
        return in_tx && s->wrote_in_tx ? ROUTE_R_WROTE_IN_TX : ROUTE_R_NONE;
    case CONF_WRITE_OFF:
    case CONF_WRITE_DML_ADAPTIVE:
    case CONF_WRITE_DML_ADAPTIVE_GLOBAL:
        break;
    }
    return ROUTE_R_NONE;
}

/* Reads of a read-only transaction stay on its standby whatever was written before. What was
 * written must not be the reason that is found: with a reason nobody looks whether the read can be
 * answered there at all. */
static bool is_settled_on_node(const struct route_session *s)
{
    return s->tx_node != VIEW_NO_NODE && s->tx_read_only;
}

WARM static enum route_reason denied_by_session(const struct route_input *in)
{
    const struct route_session *s = in->session;
    bool in_tx = route_in_tx(s);

    if (s->ties & ROUTE_TIE_STATE)
        return ROUTE_R_STATE_UNKNOWN;
    if (s->tx == ROUTE_TX_FAILED)
        return ROUTE_R_TX_FAILED;
    if ((s->ties & ROUTE_TIE_SERIALIZABLE) || (in_tx && s->tx_isolation == SQL_ISO_SERIALIZABLE))
        return ROUTE_R_SERIALIZABLE;
    if (in_tx && s->locked_in_tx)
        return ROUTE_R_LOCKED_IN_TX;
    if (s->ties & ROUTE_TIE_DOUBT)
        return ROUTE_R_DOUBTFUL;
    if (is_settled_on_node(s))
        return ROUTE_R_NONE;
    if (s->ties & ROUTE_TIE_BEFORE)
        return ROUTE_R_STATE_UNKNOWN;
    /* What is not committed yet is nowhere else. */
    if (in->conf->read_consistency != CONF_READ_EVENTUAL && in_tx && s->wrote_in_tx)
        return ROUTE_R_WROTE_IN_TX;
    return denied_by_writes(in, in_tx);
}

/* What holds for every read, whatever it reads. */
static enum route_reason denied_by_settings(const struct route_input *in)
{
    if (!mode_balances(in->conf))
        return ROUTE_R_RAW_MODE;
    if (!in->conf->load_balance_mode && !conf_writes_everywhere(in->conf))
        return ROUTE_R_BALANCE_OFF;
    return ROUTE_R_NONE;
}

static bool is_cold(const struct route_case *c)
{
    const struct route_input *in = c->in;

    return in->conf->disable_load_balance_on_write == CONF_WRITE_DML_ADAPTIVE_GLOBAL &&
           c->stmt != NULL && c->stmt->ntables > 0 &&
           route_marks_is_cold(in->marks, in->nmarks, in->conf, in->session->now_us);
}

/* The call ends another process when its literal says so. */
WARM static bool may_kill(const struct route_case *c)
{
    const struct sql_stmt *s = c->stmt;

    return c->is_alone && s->kind == SQL_SELECT && s->nfuncs == 1 && s->ntables == 0 &&
           (slice_eq_str(s->funcs[0].name, "pg_terminate_backend") ||
               slice_eq_str(s->funcs[0].name, "pg_cancel_backend"));
}

static bool asks_for_setting(const struct sql_stmt *s)
{
    uint32_t i;

    for (i = 0; i < s->nfuncs; i++)
        if (slice_eq_str(s->funcs[i].name, "current_setting"))
            return true;
    return false;
}

/* SHOW of the same has a reason by its kind. */
static bool asks_for_role(struct slice text, const struct sql_stmt *s)
{
    return asks_for_setting(s) && (route_text_has(text, "transaction_read_only") ||
                                      route_text_has(text, "in_hot_standby"));
}

/* What the verdict of the catalogue depends on besides the statement; 0: on more than that. */
WARM static uint64_t answers_of_session(const struct route_input *in)
{
    const struct route_session *s = in->session;
    enum conf_write_stickiness mode = in->conf->disable_load_balance_on_write;

    if ((s->ties & ROUTE_TIE_TEMP) != 0 || route_trace_has_temp(s->trace) ||
        mode == CONF_WRITE_DML_ADAPTIVE_GLOBAL ||
        (mode == CONF_WRITE_DML_ADAPTIVE && route_in_tx(s)))
        return 0;
    return in->answers_id;
}

static uint64_t verdict_id(const struct route_case *c)
{
    if (c->verdict == NULL || c->out->class != ROUTE_EITHER || c->denied != ROUTE_R_NONE ||
        c->prepared != NULL || may_kill(c) || asks_for_setting(c->stmt))
        return 0;
    return answers_of_session(c->in);
}

static bool has_nothing_against(const struct route_case *c)
{
    return c->out->class == ROUTE_EITHER && c->denied == ROUTE_R_NONE && !c->out->must_ask &&
           !c->unknown_function && !c->out->runs_code && c->nlookups <= ROUTE_MAX_LOOKUPS;
}

static void ask_catalogue(struct route_case *c)
{
    if (c->runs_functions) {
        if (c->stmt->nfuncs > 0 || c->out->class == ROUTE_EITHER)
            route_check_functions(c, c->text, c->stmt);
        if (c->prepared != NULL && c->out->class != ROUTE_PRIMARY)
            route_check_functions(c, c->prepared_text, &c->prepared->stmts[0]);
    }
    if (c->stmt->kind == SQL_DECLARE)
        route_check_views(c, c->stmt);
    if (c->out->class != ROUTE_EITHER || denied_by_settings(c->in) != ROUTE_R_NONE)
        return;
    /* Relations are looked at also when the statement stays for another reason: a view may write.
     */
    route_check_relations(c, c->text, c->stmt);
    if (c->prepared != NULL)
        route_check_relations(c, c->prepared_text, &c->prepared->stmts[0]);
    if (c->out->class != ROUTE_EITHER || c->denied != ROUTE_R_NONE)
        return;
    if (asks_for_role(c->text, c->stmt) ||
        (c->prepared != NULL && asks_for_role(c->prepared_text, &c->prepared->stmts[0]))) {
        c->denied = ROUTE_R_SHOW_ROLE;
        return;
    }
    if (is_cold(c))
        c->denied = ROUTE_R_TRACKING_COLD;
    if (c->denied == ROUTE_R_NONE && route_check_serializable(c))
        c->denied = ROUTE_R_SERIALIZABLE;
}

/* Most reads are judged again and again, and the catalogue has nothing against them. */
static void check_catalogue(struct route_case *c)
{
    uint64_t id = verdict_id(c);

    if (id == 0 || *c->verdict != id) {
        ask_catalogue(c);
        if (id == 0 || !has_nothing_against(c))
            return;
        *c->verdict = id;
    }
    c->out->known = id;
}

/* pg_terminate_backend(constant) of a process of ours goes to that process's node. */
static bool is_kill(struct route_case *c)
{
    const struct route_input *in = c->in;
    int32_t pid;
    int node;

    if (!may_kill(c) || in->node_of_pid == NULL)
        return false;
    pid = route_text_pid(c->text);
    node = pid == 0 ? VIEW_NO_NODE : in->node_of_pid(in->pid_ctx, pid);
    if (node == VIEW_NO_NODE || !view_is_usable(in->view, node))
        return false;
    c->out->class = ROUTE_PRIMARY;
    c->out->reason = ROUTE_R_BACKEND_PID;
    c->out->node = node;
    c->out->kill_pid = pid;
    return true;
}

/* A read that goes to the primary anyway: does it matter whether its functions or views write? */
static bool must_know_writes(const struct route_case *c)
{
    if ((!c->unknown_function && !c->unknown_relation) || denied_by_settings(c->in) != ROUTE_R_NONE)
        return false;
    if (conf_writes_everywhere(c->in->conf))
        return true;
    if (is_settled_on_node(c->in->session))
        return true; /* in doubt it would leave its snapshot, and so would all that comes next */
    switch (c->in->conf->disable_load_balance_on_write) {
    case CONF_WRITE_ALWAYS:
        return c->in->session->wrote == ROUTE_WROTE_NOTHING;
    case CONF_WRITE_TRANSACTION:
    case CONF_WRITE_TRANS_TRANSACTION:
        return route_in_tx(c->in->session) && !c->in->session->wrote_in_tx;
    case CONF_WRITE_OFF:
    case CONF_WRITE_DML_ADAPTIVE:
    case CONF_WRITE_DML_ADAPTIVE_GLOBAL:
        break;
    }
    return false;
}

/* Nothing is asked when the answer would change nothing. */
WARM static void settle_questions(struct route_case *c)
{
    struct route_decision *out = c->out;

    if (c->nlookups > ROUTE_MAX_LOOKUPS && c->denied == ROUTE_R_NONE)
        c->denied = ROUTE_R_TOO_MANY_QUESTIONS;
    if (c->in->is_afterthought && out->is_doubtful)
        return;
    if ((out->class != ROUTE_EITHER && !c->is_read_only_begin) || c->nlookups > ROUTE_MAX_LOOKUPS ||
        (c->denied != ROUTE_R_NONE && !must_know_writes(c))) {
        out->must_ask = false;
        out->nquestions = 0;
    } else if (out->must_ask && c->denied == ROUTE_R_NONE) {
        out->reason = ROUTE_R_ASK;
    }
}

static void find_prepared(struct route_case *c)
{
    const struct sql_stmt *s = c->stmt;
    struct slice text;
    const struct sql_facts *facts;

    if (s->kind != SQL_EXECUTE && s->inner != SQL_EXECUTE)
        return;
    if (c->in->prepared == NULL ||
        c->in->prepared(c->in->prepared_ctx, s->name, &text, &facts) == -1 ||
        facts->status != SQL_OK || facts->nstmts != 1)
        return;
    c->prepared = facts;
    c->prepared_text = text;
}

/* The relationship list says what functions write to, where there is one. */
static bool writes_unnamed(const struct route_case *c)
{
    switch (c->out->reason) {
    case ROUTE_R_CALL:
    case ROUTE_R_UNKNOWN_PREPARED:
        return true;
    case ROUTE_R_WRITE_FUNCTION:
        return c->in->rules->nrelations == 0;
    default:
        return c->prepared != NULL;
    }
}

/* All but the node. */
WARM static void judge(struct route_case *c)
{
    struct route_decision *out = c->out;

    find_prepared(c);
    route_classify(c, c->stmt);
    c->denied = denied_by_settings(c->in);
    if (out->class == ROUTE_EITHER && is_kill(c))
        return;
    if (out->class == ROUTE_EITHER && c->denied == ROUTE_R_NONE)
        c->denied = denied_by_text(c);
    if (out->class == ROUTE_EITHER && c->denied == ROUTE_R_NONE)
        c->denied = denied_by_session(c->in);
    check_catalogue(c);
    if (c->unknown_function)
        out->is_write = true;
    out->writes_unnamed = out->is_write && writes_unnamed(c);
    out->is_doubtful = c->unknown_function || c->unknown_relation;
    settle_questions(c);
    if (out->class == ROUTE_EITHER && c->denied != ROUTE_R_NONE)
        out->reason = c->denied;
    if (out->class == ROUTE_EITHER && c->denied == ROUTE_R_NONE && route_in_tx(c->in->session) &&
        !c->in->session->tx_read_only)
        c->asks_of_tx =
            route_asks_of_tx(c->text, c->stmt) ||
            (c->prepared != NULL && route_asks_of_tx(c->prepared_text, &c->prepared->stmts[0]));
}

/* Where the transaction's statements go that may not leave it. */
static int home_node(const struct route_input *in)
{
    int node = in->session->tx_node;

    return node != VIEW_NO_NODE ? node : view_write_node(in->view);
}

static bool fails_in_read_only_tx(enum route_reason reason)
{
    switch (reason) {
    case ROUTE_R_WRITE:
    case ROUTE_R_DDL:
    case ROUTE_R_DML_IN_CTE:
    case ROUTE_R_COPY_FROM:
    case ROUTE_R_SELECT_INTO:
        return true;
    default:
        return false;
    }
}

static bool is_cursor(const struct sql_stmt *s)
{
    return s != NULL && (s->kind == SQL_DECLARE || s->kind == SQL_FETCH || s->kind == SQL_CLOSE);
}

/* With `global` each read may have to see more than the one before it; a transaction cannot wait on
 * its standby for ever, nor leave it. One snapshot for all of its reads is asked about once. */
static bool asks_before_each_read(const struct route_case *c)
{
    unsigned level = c->is_read_only_begin ? c->stmt->tx.isolation : c->in->session->tx_isolation;

    return c->in->conf->read_consistency == CONF_READ_GLOBAL && level != SQL_ISO_REPEATABLE_READ;
}

/* BEGIN READ ONLY goes where the reads of the transaction will go. */
static void place_begin(struct route_case *c)
{
    struct route_decision *out = c->out;
    const struct route_input *in = c->in;
    enum route_reason denied = denied_by_settings(in);

    out->node = view_write_node(in->view);
    if (denied == ROUTE_R_NONE && (in->session->ties & (ROUTE_TIE_STATE | ROUTE_TIE_BEFORE)) != 0)
        denied = ROUTE_R_STATE_UNKNOWN;
    if (denied == ROUTE_R_NONE)
        denied = denied_by_writes(in, true);
    if (denied == ROUTE_R_NONE && asks_before_each_read(c))
        denied = ROUTE_R_EACH_READ;
    if (denied == ROUTE_R_NONE && out->must_ask)
        denied = ROUTE_R_ASK;
    if (denied != ROUTE_R_NONE) {
        out->reason = denied;
        return;
    }
    route_place_read(in, out);
    if (out->reason == ROUTE_R_BALANCED || out->reason == ROUTE_R_PREFERENCE)
        out->reason = ROUTE_R_READ_ONLY_TX;
}

/* A read in a read-only transaction that lives somewhere, or may begin anywhere. */
static void place_read_in_read_only_tx(struct route_case *c)
{
    if (c->in->session->tx_node != VIEW_NO_NODE)
        c->out->reason = ROUTE_R_READ_ONLY_TX;
    else if (asks_before_each_read(c))
        c->out->reason = ROUTE_R_EACH_READ;
    else
        route_place_read(c->in, c->out);
}

/* The statement cannot run on the standby where the transaction lives. What would fail on the
 * primary, too, stays, and so do cursors, as they are of no use anywhere else. */
static bool leaves_read_only_tx(const struct route_case *c, int primary)
{
    const struct route_session *s = c->in->session;

    return s->tx_node != VIEW_NO_NODE && s->tx_node != primary && !is_cursor(c->stmt) &&
           (!fails_in_read_only_tx(c->out->reason) || (s->ties & ROUTE_TIE_TEMP) != 0);
}

/* A read-only transaction lives on one node. What a standby only might answer late stays there. */
static void place_in_read_only_tx(struct route_case *c)
{
    struct route_decision *out = c->out;
    const struct route_session *s = c->in->session;
    bool is_placed = s->tx_node != VIEW_NO_NODE;
    bool failed = s->tx == ROUTE_TX_FAILED;
    bool is_of_tx = out->class == ROUTE_TX || out->class == ROUTE_SESSION;
    bool may = out->class == ROUTE_EITHER && !out->must_ask && route_is_soft(c->denied) &&
               (is_placed || c->denied == ROUTE_R_NONE);

    if (!is_placed && !failed && is_of_tx) {
        place_begin(c); /* begun, but nowhere yet */
        return;
    }
    out->node = home_node(c->in);
    if (failed || is_of_tx || out->node == VIEW_NO_NODE)
        return;
    if (may) {
        place_read_in_read_only_tx(c);
    } else if (leaves_read_only_tx(c, view_write_node(c->in->view))) {
        out->leaves_tx = true;
        out->node = view_write_node(c->in->view);
    }
}

/* A read in a read-write transaction stays with it, and could go elsewhere. */
WARM static void place_in_read_write_tx(struct route_case *c)
{
    struct route_decision *out = c->out;
    struct route_decision away;

    out->node = home_node(c->in);
    if (out->class != ROUTE_EITHER || c->denied != ROUTE_R_NONE || out->must_ask)
        return;
    out->reason = ROUTE_R_TX_PRIMARY;
    if (c->asks_of_tx ||
        (c->in->session->tx_isolation == SQL_ISO_UNSET && route_check_repeatable(c))) {
        out->reason = c->asks_of_tx ? ROUTE_R_OF_TX : ROUTE_R_SNAPSHOT;
        return;
    }
    if (out->must_ask)
        return; /* for the default level */
    away = *out;
    route_place_read(c->in, &away);
    out->balance_node = away.balance_node;
    out->is_preferred = away.is_preferred;
    if (away.node == VIEW_NO_NODE || away.node == out->node)
        return;
    out->may_leave_tx = true;
    out->leave_node = away.node;
    out->must_wait = away.must_wait;
    out->wait_lsn = away.wait_lsn;
}

/* The server's own settings, its default isolation for one, need not be the same on a standby. */
static bool asks_of_server(const struct route_decision *d)
{
    unsigned i;

    for (i = 0; i < d->nquestions; i++)
        if (d->question[i].kind == ROUTE_Q_DATABASE)
            return true;
    return false;
}

/* The questions go where the read would go if they had no answer that speaks against it. */
static void place_questions(struct route_case *c)
{
    struct route_decision *out = c->out;
    struct route_decision away;

    if (c->in->conf->relcache_query_target != CONF_CATALOG_BALANCE_NODE || !c->in->schema_settled ||
        asks_of_server(out))
        return;
    decision_init(&away);
    route_place_read(c->in, &away);
    out->balance_node = away.balance_node;
    out->is_preferred = away.is_preferred;
    if (!away.must_wait && away.node != out->node)
        out->ask_node = away.node;
}

WARM static void place_statement(struct route_case *c)
{
    struct route_decision *out = c->out;
    const struct route_session *s = c->in->session;
    bool in_tx = route_in_tx(s);

    if (out->reason == ROUTE_R_BACKEND_PID)
        return;
    if (in_tx && s->tx_read_only)
        place_in_read_only_tx(c);
    else if (in_tx)
        place_in_read_write_tx(c);
    else if (c->is_read_only_begin)
        place_begin(c);
    else if (out->class == ROUTE_EITHER && c->denied == ROUTE_R_NONE && !out->must_ask)
        route_place_read(c->in, out);
    else
        out->node = view_write_node(c->in->view);
    if (out->must_ask && !in_tx && out->class == ROUTE_EITHER && c->denied == ROUTE_R_NONE)
        place_questions(c);
    if (out->node == VIEW_NO_NODE)
        out->reason = ROUTE_R_NO_NODE;
}

WARM static struct slice statement_text(
    struct slice text, const struct sql_facts *facts, uint32_t i)
{
    const struct sql_stmt *s = &facts->stmts[i];
    size_t begin = s->offset;

    if (facts->nstmts == 1)
        return text;
    if (i == 0)
        begin = 0;
    else if (s->hint.len != 0 && s->hint.offset < s->offset)
        begin = s->hint.offset;
    if (begin > text.n || (size_t)s->offset + s->len > text.n)
        return text;
    return slice_of(text.p + begin, s->offset + s->len - begin);
}

static void case_init(struct route_case *c, const struct route_input *in, struct slice text,
    const struct sql_stmt *stmt, struct route_decision *out)
{
    memset(c, 0, sizeof *c);
    decision_init(out);
    c->in = in;
    c->text = text;
    c->stmt = stmt;
    c->out = out;
}

bool route_is_known(const struct route_input *in, uint64_t known)
{
    return known != 0 && !route_in_tx(in->session) && answers_of_session(in) == known &&
           denied_by_session(in) == ROUTE_R_NONE;
}

void route_known(const struct route_input *in, uint64_t known, struct route_decision *out)
{
    decision_init(out);
    out->known = known;
    out->class = ROUTE_EITHER;
    route_place_read(in, out);
    if (out->node == VIEW_NO_NODE)
        out->reason = ROUTE_R_NO_NODE;
}

/* Most statements are reads like one before them, alone in their string, of which only the text in
 * front may be another one. */
static bool is_known_read(
    const struct route_input *in, struct slice text, const struct sql_facts *facts)
{
    return (in->rules == NULL || in->rules->primary_queries.n == 0) &&
           route_is_known(in, route_known_of(text, facts));
}

WARM void route_statement(const struct route_input *in, struct slice text,
    const struct sql_facts *facts, uint32_t i, struct route_decision *out)
{
    struct route_case c;

    ASSERT(i < facts->nstmts);
    if (is_known_read(in, text, facts)) {
        route_known(in, *facts->verdict, out);
        return;
    }
    case_init(&c, in, statement_text(text, facts, i), &facts->stmts[i], out);
    c.is_alone = facts->nstmts == 1;
    c.verdict = c.is_alone ? facts->verdict : NULL;
    judge(&c);
    place_statement(&c);
}

/* A text that holds no statement, none that the grammar knows, or who knows which. */
static void decide_without_statement(
    const struct route_input *in, const struct sql_facts *facts, struct route_decision *out)
{
    struct route_case c;

    case_init(&c, in, slice_of("", 0), NULL, out);
    if (facts->status != SQL_OK || in->reads_otherwise) {
        out->class = ROUTE_PRIMARY;
        out->reason = facts->status != SQL_OK ? ROUTE_R_SYNTAX : ROUTE_R_BACKSLASH;
        out->is_write = true;
        out->writes_unnamed = true;
        out->runs_code = in->reads_otherwise ? ROUTE_CODE_SETS : ROUTE_CODE_NONE;
    } else {
        out->class = ROUTE_EITHER;
        c.denied = denied_by_settings(in);
        if (c.denied == ROUTE_R_NONE)
            c.denied = denied_by_session(in);
        out->reason = c.denied;
    }
    place_statement(&c);
    if (facts->status == SQL_OK && out->reason == ROUTE_R_BALANCED)
        out->reason = ROUTE_R_EMPTY;
}

/* PRIMARY before TX before SESSION before EITHER. */
static int strictness(enum route_class class)
{
    switch (class) {
    case ROUTE_PRIMARY:
        return 3;
    case ROUTE_TX:
        return 2;
    case ROUTE_SESSION:
        return 1;
    case ROUTE_EITHER:
        break;
    }
    return 0;
}

static void merge_questions(struct route_decision *into, const struct route_decision *d)
{
    unsigned i;

    into->must_ask = into->must_ask || d->must_ask;
    for (i = 0; i < d->nquestions && into->nquestions < ROUTE_MAX_QUESTIONS; i++)
        into->question[into->nquestions++] = d->question[i];
}

/* Takes the stricter of two judgements; of two reads, the one that is kept from balancing. */
static void merge(struct route_case *all, const struct route_case *one, bool is_first)
{
    struct route_decision *into = all->out;
    const struct route_decision *d = one->out;
    bool write = into->is_write || d->is_write;
    uint8_t code = into->runs_code > d->runs_code ? into->runs_code : d->runs_code;

    if (is_first || strictness(d->class) > strictness(into->class)) {
        into->class = d->class;
        into->reason = d->reason;
    }
    if (is_first || (all->denied == ROUTE_R_NONE && one->denied != ROUTE_R_NONE)) {
        all->denied = one->denied;
        if (into->class == ROUTE_EITHER)
            into->reason = d->reason;
    }
    all->unknown_function = all->unknown_function || one->unknown_function;
    all->unknown_relation = all->unknown_relation || one->unknown_relation;
    all->asks_of_tx = all->asks_of_tx || one->asks_of_tx;
    all->nlookups += one->nlookups;
    into->is_write = write;
    into->runs_code = code;
    if (into->written.p == NULL)
        into->written = d->written;
    into->writes_unnamed = into->writes_unnamed || d->writes_unnamed;
    into->is_doubtful = into->is_doubtful || d->is_doubtful;
    merge_questions(into, d);
}

WARM void route_query(const struct route_input *in, struct slice text,
    const struct sql_facts *facts, struct route_decision *out)
{
    struct route_case all;
    struct route_case one;
    struct route_decision d;
    uint32_t i;

    if (facts->status != SQL_OK || facts->nstmts == 0 || in->reads_otherwise) {
        decide_without_statement(in, facts, out);
        return;
    }
    if (facts->nstmts == 1) {
        route_statement(in, text, facts, 0, out);
        if (out->known != 0 && route_text_may_differ(text))
            out->known = 0; /* another client may read it otherwise */
        return;
    }
    case_init(&all, in, text, NULL, out);
    for (i = 0; i < facts->nstmts; i++) {
        case_init(&one, in, statement_text(text, facts, i), &facts->stmts[i], &d);
        judge(&one);
        merge(&all, &one, i == 0);
    }
    if (out->class == ROUTE_EITHER && all.denied == ROUTE_R_NONE &&
        matches_primary_pattern(in->rules, text))
        out->reason = all.denied = ROUTE_R_PATTERN;
    settle_questions(&all);
    if (out->class == ROUTE_EITHER && all.denied == ROUTE_R_TOO_MANY_QUESTIONS)
        out->reason = all.denied;
    place_statement(&all);
}
