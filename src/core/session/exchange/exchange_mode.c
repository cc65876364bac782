/* SPDX-License-Identifier: PostgreSQL
 * exchange_mode.c: the pool mode of one session: pool_mode as a start-up parameter, and SET, RESET
 * and SHOW pool_mode. Runs in: workers. A session changes its mode only while there is nothing that
 * could be lost by it: no transaction, nothing that ties it to its server connection, no prepared
 * statements; and from session mode, where nobody looks at what statements do, only before its
 * first statement. See doc/internals/decisions/0009. Must never: ask a server. */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "auth/auth_book.h"
#include "config/conf.h"
#include "config/conf_param.h"
#include "config/pools_conf.h"

#include "exchange/exchange_mode_int.h"
#include "lent/lent_int.h"
#include "sstate/sstate_vars_int.h"

static const char *const mode_names[] = {[CONF_POOL_SESSION] = "session",
    [CONF_POOL_TRANSACTION] = "transaction",
    [CONF_POOL_STATEMENT] = "statement"};

#define MODE_COUNT ((int)(sizeof mode_names / sizeof mode_names[0]))

static int mode_by_name(struct slice name)
{
    int i;

    for (i = 0; i < MODE_COUNT; i++)
        if (slice_ieq_str(name, mode_names[i]))
            return i;
    return SSTATE_MODE_NONE;
}

static void mode_is_invalid(struct slice value, struct err *err)
{
    err_set(err, "22023", "invalid value for parameter \"pool_mode\": \"%.*s\"",
        value.n > 64 ? 64 : (int)value.n, value.p);
    err_hint(err, "Available values: session, transaction, statement.");
}

/* Where links are to be shared, nobody is to keep one. */
static bool mode_is_refused(const struct client *c, int configured, int wanted, struct err *err)
{
    if (c->ss->conf->pin_on_session_state != CONF_PIN_ERROR || wanted != CONF_POOL_SESSION ||
        configured == CONF_POOL_SESSION)
        return false;
    err_set(err, "0A000", "session mode is not allowed in this pool");
    err_hint(err, "pin_on_session_state is \"error\".");
    return true;
}

/* --- start-up parameters --- */

/* "pool_mode" with an underscore or a hyphen, as the server reads names in options. */
static bool is_mode_word(struct slice word, struct slice *value)
{
    static const char name[] = "pool_mode=";
    size_t i;

    if (word.n < sizeof name - 1)
        return false;
    for (i = 0; name[i] != '\0'; i++)
        if (tolower((unsigned char)word.p[i]) != name[i] && !(name[i] == '_' && word.p[i] == '-'))
            return false;
    *value = slice_of(word.p + i, word.n - i);
    return true;
}

/* Copies "options" without what is ours. The last value is the one that counts. */
static void take_from_options(struct slice options, struct buf *rest, struct buf *mode)
{
    const char *end = options.p + options.n;
    const char *p = options.p;
    const char *start = p;
    bool expects_value = false;
    struct buf word = {0};
    struct slice text;
    struct slice value;
    size_t skip;

    while (p < end) {
        if (!expects_value)
            start = p;
        buf_clear(&word);
        p = sstate_options_word(p, end, &word);
        text = buf_slice(&word);
        skip = 0;
        if (!expects_value && text.n >= 2 && text.p[0] == '-' &&
            (text.p[1] == 'c' || text.p[1] == '-'))
            skip = 2;
        if (skip == 2 && text.n == 2 && text.p[1] == 'c') {
            expects_value = true;
            continue;
        }
        if ((skip > 0 || expects_value) &&
            is_mode_word(slice_of(text.p + skip, text.n - skip), &value)) {
            buf_clear(mode);
            buf_put(mode, value.p, value.n);
        } else {
            buf_put(rest, start, (size_t)(p - start));
        }
        expects_value = false;
    }
    if (expects_value)
        buf_put(rest, start, (size_t)(end - start));
    buf_free(&word);
}

int exchange_mode_take(struct client *c, struct err *err)
{
    struct client_login *login = c->login;
    const struct pool_settings *set =
        pools_conf_find(c->ss->conf, login->startup.database, login->startup.user);
    struct slice options = paramset_get(&login->params, slice_of_str("options"));
    struct buf rest = {0};
    struct buf mode = {0};
    struct slice own;
    int rc = 0;

    login->pool_mode = SSTATE_MODE_NONE;
    if (options.n > 0)
        take_from_options(options, &rest, &mode);
    own = paramset_get(&login->params, slice_of_str("pool_mode"));
    if (own.p != NULL) {
        buf_clear(&mode);
        buf_put(&mode, own.p, own.n);
    }
    if (mode.len > 0 || own.p != NULL) {
        paramset_drop(&login->params, slice_of_str("pool_mode"));
        if (options.n > 0 && rest.len == 0)
            paramset_drop(&login->params, slice_of_str("options"));
        else if (options.n > 0)
            (void)paramset_set(&login->params, slice_of_str("options"), buf_slice(&rest));
        login->pool_mode = (int8_t)mode_by_name(buf_slice(&mode));
        if (login->pool_mode == SSTATE_MODE_NONE) {
            mode_is_invalid(buf_slice(&mode), err);
            rc = -1;
        } else if (mode_is_refused(c, set->pool_mode, login->pool_mode, err)) {
            rc = -1;
        }
        err->severity = ERR_FATAL;
    }
    buf_free(&rest);
    buf_free(&mode);
    return rc;
}

/* --- SET, RESET, SHOW --- */

static void show_mode(struct client *c)
{
    if (c->row == NULL)
        return;
    shm_write_begin(&c->row->seq);
    c->row->pool_mode = (uint8_t)c->kind->pool_mode(c);
    shm_write_end(&c->row->seq);
}

static int refuse(struct err *err, const char *why, const char *hint)
{
    err_set(err, "55000", "pool_mode cannot be changed %s", why);
    err_hint(err, "%s", hint);
    return -1;
}

static const char hint_startup[] =
    "Set it before anything else, or as a start-up parameter: options='-c pool_mode=...'.";

/* A link of the pool would have to be opened for it later, with what is known here. */
static bool knows_password(const struct client *c)
{
    const struct backend *be = &c->ss->be;

    return c->link->auth != LINK_AUTH_ASKED ||
           (be->book != NULL && auth_book_login(be->book, pool_book_name(c->pool)) != NULL);
}

/* From session mode: the client's own link goes, and what it was opened with becomes settings. */
int exchange_mode_leave(struct client *c, int wanted, struct err *err)
{
    struct link *link = c->link;
    struct paramset params = {0};
    bool ok;

    if (c->traces != TRACES_NONE || link == NULL || link->is_private)
        return refuse(err, "after the first statement of a session", hint_startup);
    if (!knows_password(c))
        return refuse(err, "for a user whose password is not known here",
            "Put the user into pool_passwd, or set auth_query.");
    paramset_copy(&params, &link->startup);
    client_patch_params(c, &params);
    ok = exchange_login_new(c, &params, (enum conf_pool_mode)wanted, link->version);
    paramset_free(&params);
    if (!ok)
        return refuse(err, "in a session with these start-up options",
            "They cannot be SET. Give pool_mode as a start-up parameter.");
    client_patch_free(c);
    c->sstate->shown_pins = ROWS_PIN(PIN_REASON_SESSION_MODE);
    leg_forget_loan(c);
    link_release(link, true);
    leg_show_pins(c);
    return 0;
}

int exchange_mode_change(struct client *c, int wanted, struct err *err)
{
    struct sstate *s = c->sstate;

    if (sstate_is_tied(c))
        return refuse(err, "while the session is tied to its server connection",
            "SHOW POOL_CLIENTS says by what.");
    if (s->names.set != NULL && s->names.set->table.count > 0)
        return refuse(err, "while there are prepared statements", "DEALLOCATE ALL ends them.");
    s->mode = (uint8_t)wanted;
    s->shown_pins = ~s->pins; /* to be shown again */
    if (!lent_keeps(s))
        lent_kept_return(c);
    leg_show_pins(c);
    return 0;
}

static int change_mode(struct client *c, int wanted, struct err *err)
{
    if (wanted == c->kind->pool_mode(c))
        return 0;
    if (mode_is_refused(c, (int)c->pool->set->pool_mode, wanted, err))
        return -1;
    if (c->kind->tx_status(c) != 'I')
        return refuse(err, "inside a transaction", "End it first.");
    return c->kind->change_mode(c, wanted, err);
}

const char *exchange_mode_run(void *ctx, const char *wanted, struct err *err)
{
    struct client *c = ctx;
    int mode = c->kind->pool_mode(c);

    if (wanted != NULL && wanted[0] == '\0')
        mode = (int)c->pool->set->pool_mode;
    else if (wanted != NULL)
        mode = mode_by_name(slice_of_str(wanted));
    if (mode == SSTATE_MODE_NONE) {
        mode_is_invalid(slice_of_str(wanted), err);
        return NULL;
    }
    if (change_mode(c, mode, err) == -1)
        return NULL;
    show_mode(c);
    return mode_names[mode];
}
