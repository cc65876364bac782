/* SPDX-License-Identifier: PostgreSQL
 * sstate_vars.c: SET, RESET and set_config() as changes of two sets: what the client wants, and
 * what its present link has. Runs in: workers. Start-up parameters are settings, too: links are
 * opened without any, so that everybody can have them. */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "base/hot.h"

#include "sstate/sstate_vars_int.h"

/* A name that can stand in SET and RESET as it is. */
static bool is_plain_name(struct slice name)
{
    size_t i;

    if (name.n == 0 || name.n > 127)
        return false;
    for (i = 0; i < name.n; i++)
        if (!islower((unsigned char)name.p[i]) && !isdigit((unsigned char)name.p[i]) &&
            name.p[i] != '_' && name.p[i] != '.')
            return false;
    return true;
}

/* Settings that end with their transaction however they are set, or that are no settings. */
static bool is_transient(struct slice name)
{
    return slice_eq_str(name, "transaction_isolation") ||
           slice_eq_str(name, "transaction_read_only") ||
           slice_eq_str(name, "transaction_deferrable") || slice_eq_str(name, "seed");
}

/* DateStyle has two halves, and SET may name one of them: what was set before counts. */
static bool vars_put_more(struct varset **v, struct slice name, struct slice sql)
{
    struct slice before = varset_get(*v, name);
    struct buf both = {0};
    bool ok;

    if (before.n > 0)
        buf_printf(&both, "%.*s;", (int)before.n, before.p);
    buf_put(&both, sql.p, sql.n);
    ok = both.len < 1024 && varset_put(v, name, buf_slice(&both)) == 0;
    buf_free(&both);
    return ok;
}

static bool vars_put(struct sstate *s, struct slice name, struct slice sql)
{
    if (slice_eq_str(name, "datestyle"))
        return vars_put_more(&s->vars.client, name, sql) && vars_put_more(&s->vars.link, name, sql);
    return varset_put(&s->vars.client, name, sql) == 0 && varset_put(&s->vars.link, name, sql) == 0;
}

static void vars_drop(struct sstate *s, struct slice name)
{
    struct slice base = varset_get(s->base, name);

    varset_drop(&s->vars.link, name);
    if (base.p == NULL) {
        varset_drop(&s->vars.client, name);
        return;
    }
    (void)varset_put(&s->vars.client, name, base);
}

/* RESET ALL, or with `identity` DISCARD ALL. */
static void vars_drop_all(struct sstate *s, bool identity)
{
    struct slice role = varset_get(s->vars.client, slice_of_str("role"));
    struct slice auth = varset_get(s->vars.client, slice_of_str("session_authorization"));
    struct varset *kept = varset_ref(s->vars.client);

    varset_assign(&s->vars.client, s->base);
    if (identity) {
        varset_assign(&s->vars.link, s->base->store->empty);
    } else {
        varset_reset_all(&s->vars.link);
        if (role.p != NULL)
            (void)varset_put(&s->vars.client, slice_of_str("role"), role);
        if (auth.p != NULL)
            (void)varset_put(&s->vars.client, slice_of_str("session_authorization"), auth);
    }
    varset_unref(&kept);
}

static bool note_characteristic(struct sstate *s, const char *name, const char *value)
{
    struct buf sql = {0};
    bool ok;

    buf_printf(&sql, "SET %s TO %s", name, value);
    ok = vars_put(s, slice_of_str(name), buf_slice(&sql));
    buf_free(&sql);
    return ok;
}

static bool note_characteristics(struct sstate *s, const struct sql_tx *tx)
{
    static const char *const level[] = {[SQL_ISO_READ_UNCOMMITTED] = "'read uncommitted'",
        [SQL_ISO_READ_COMMITTED] = "'read committed'",
        [SQL_ISO_REPEATABLE_READ] = "'repeatable read'",
        [SQL_ISO_SERIALIZABLE] = "'serializable'"};
    bool ok = true;

    if (tx->isolation != SQL_ISO_UNSET)
        ok = note_characteristic(s, "default_transaction_isolation", level[tx->isolation]);
    if (tx->read_only != SQL_UNSET)
        ok = ok && note_characteristic(
                       s, "default_transaction_read_only", tx->read_only == SQL_YES ? "on" : "off");
    if (tx->deferrable != SQL_UNSET)
        ok = ok && note_characteristic(s, "default_transaction_deferrable",
                       tx->deferrable == SQL_YES ? "on" : "off");
    return ok;
}

/* SET SESSION AUTHORIZATION ends the role that was set, and that of the start-up packet, too. */
static bool note_authorization(struct sstate *s, struct slice text)
{
    struct slice role = slice_of_str("role");

    if (varset_get(s->base, role).p != NULL) {
        if (!vars_put(s, role, slice_of_str(VARSET_ROLE_NONE)))
            return false;
    } else {
        varset_drop(&s->vars.client, role);
        varset_drop(&s->vars.link, role);
    }
    return vars_put(s, slice_of_str("session_authorization"), text);
}

static bool note_set(struct sstate *s, const struct sql_set *set, struct slice text)
{
    if (is_transient(set->name))
        return true;
    if (!is_plain_name(set->name) || text.n == 0)
        return false;
    /* What a backslash means would be decided by another setting. */
    if (memchr(text.p, '\\', text.n) != NULL &&
        varset_get(s->vars.client, slice_of_str("standard_conforming_strings")).p != NULL)
        return false;
    if (slice_eq_str(set->name, "session_authorization"))
        return note_authorization(s, text);
    if (slice_eq_str(set->name, "role") && slice_ieq_str(set->value, "none"))
        text = slice_of_str(VARSET_ROLE_NONE);
    return vars_put(s, set->name, text);
}

/* Settings are kept as they were written, in the encoding of the time: with another one they mean
 * something else, unless they are written the same in all. */
static bool keeps_meaning(const struct sstate *s, const struct varset *before)
{
    const struct slice name = slice_of_str("client_encoding");

    return before->is_ascii || s->vars.client->is_ascii ||
           slice_eq(varset_get(before, name), varset_get(s->vars.client, name));
}

static bool note_any(struct sstate *s, const struct sql_stmt *st, struct slice text)
{
    const struct sql_set *set = &st->set;

    if (st->verb == SQL_VERB_DISCARD) {
        if (slice_ieq_str(st->name, "all"))
            vars_drop_all(s, true);
        return true;
    }
    if (st->kind == SQL_SET && set->scope == SQL_SET_CHARACTERISTICS)
        return note_characteristics(s, &st->tx);
    if (st->kind == SQL_SET && set->scope != SQL_SET_SESSION)
        return true;
    if (set->how == SQL_SET_RESET_ALL || (st->flags & SQL_F_ALL) != 0) {
        vars_drop_all(s, false);
        return true;
    }
    if (st->kind == SQL_RESET || set->how == SQL_SET_DEFAULT) {
        if (slice_eq_str(set->name, "session_authorization"))
            vars_drop(s, slice_of_str("role"));
        vars_drop(s, set->name);
        return true;
    }
    return note_set(s, set, text);
}

bool sstate_vars_note(struct sstate *s, const struct sql_stmt *st, struct slice text)
{
    struct varset *before = varset_ref(s->vars.client);
    bool ok = note_any(s, st, text) && keeps_meaning(s, before);

    varset_unref(&before);
    return ok;
}

/* In these encodings a byte that looks like a backslash may be half a character. */
static bool encoding_is_doubtful(struct slice value)
{
    static const char *const names[] = {"sjis", "shift", "big5", "gbk", "uhc", "johab", "gb18030",
        "win932", "win936", "win949", "win950", "windows932", "windows936", "windows949",
        "windows950", "mskanji"};
    char bare[256]; /* only letters and digits count to the server: MS_Kanji, Windows-936 */
    size_t n = 0;
    size_t i;

    for (i = 0; i < value.n; i++) {
        if (!isalnum((unsigned char)value.p[i]))
            continue;
        if (n == sizeof bare - 1)
            return true;
        bare[n++] = (char)tolower((unsigned char)value.p[i]);
    }
    bare[n] = '\0';
    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strstr(bare, names[i]) != NULL)
            return true;
    return false;
}

static bool has_high_byte(struct slice text)
{
    size_t i;

    for (i = 0; i < text.n; i++)
        if ((text.p[i] & 0x80) != 0)
            return true;
    return false;
}

WARM bool sstate_text_is_doubtful(const struct client *c, struct slice text)
{
    static const char strings[] = "standard_conforming_strings";
    static const char encoding[] = "client_encoding";
    /* Without a link: what the pool's servers say of who has not SET it. */
    const struct paramset *now = c->link == NULL ? &c->pool->defaults : &c->link->reported;

    if (text.n == 0 || memchr(text.p, '\\', text.n) == NULL)
        return false;
    if (c->kind->setting(c, strings).p != NULL ||
        slice_ieq_str(paramset_get(now, slice_of_str(strings)), "off"))
        return true;
    return (encoding_is_doubtful(c->kind->setting(c, encoding)) ||
               encoding_is_doubtful(paramset_get(now, slice_of_str(encoding)))) &&
           has_high_byte(text);
}

/* A server judges a session_authorization of the start-up packet, and then goes on as the user that
 * logged in: no SET does that. */
static bool startup_put(struct varset **out, struct slice name, struct slice value)
{
    struct buf folded = {0};
    struct buf sql = {0};
    bool ok;
    size_t i;

    for (i = 0; i < name.n; i++)
        buf_put_byte(&folded, (char)tolower((unsigned char)name.p[i]));
    ok = is_plain_name(buf_slice(&folded)) &&
         !slice_eq_str(buf_slice(&folded), "session_authorization");
    if (ok) {
        buf_printf(&sql, "SELECT pg_catalog.set_config('%.*s',", (int)folded.len, folded.data);
        varset_quote_any(&sql, value);
        buf_printf(&sql, ",false)");
        ok = varset_put(out, buf_slice(&folded), buf_slice(&sql)) == 0;
    }
    buf_free(&folded);
    buf_free(&sql);
    return ok;
}

const char *sstate_options_word(const char *p, const char *end, struct buf *word)
{
    while (p < end && isspace((unsigned char)*p))
        p++;
    while (p < end && !isspace((unsigned char)*p)) {
        if (*p == '\\' && p + 1 < end)
            p++;
        buf_put_byte(word, *p++);
    }
    return p;
}

/* -c name=value, -cname=value and --name=value: others cannot be SET. */
static bool options_put(struct varset **out, struct slice word)
{
    const char *eq = memchr(word.p, '=', word.n);
    struct buf name = {0};
    const char *p;
    bool ok;

    if (eq == NULL)
        return false;
    for (p = word.p; p < eq; p++)
        buf_put_byte(&name, *p == '-' ? '_' : *p);
    ok = startup_put(out, buf_slice(&name), slice_of(eq + 1, word.n - (size_t)(eq + 1 - word.p)));
    buf_free(&name);
    return ok;
}

static bool startup_options(struct varset **out, struct slice options)
{
    const char *p = options.p;
    const char *end = p + options.n;
    struct buf word = {0};
    bool expects_value = false;
    bool ok = true;

    while (ok && p < end) {
        buf_clear(&word);
        p = sstate_options_word(p, end, &word);
        if (word.len == 0)
            break;
        if (expects_value) {
            ok = options_put(out, buf_slice(&word));
            expects_value = false;
        } else if (word.len > 2 && word.data[0] == '-' && word.data[1] == '-') {
            ok = options_put(out, slice_of(word.data + 2, word.len - 2));
        } else if (word.len >= 2 && word.data[0] == '-' && word.data[1] == 'c') {
            expects_value = word.len == 2;
            ok = expects_value || options_put(out, slice_of(word.data + 2, word.len - 2));
        } else {
            ok = false;
        }
    }
    buf_free(&word);
    return ok && !expects_value;
}

bool sstate_vars_of_startup(
    struct varset_store *store, const struct paramset *params, struct varset **out)
{
    struct slice name;
    struct slice value;
    uint32_t at = 0;

    *out = varset_empty(store);
    /* As the server does: parameters of their own count more than those in "options". */
    value = paramset_get(params, slice_of_str("options"));
    if (value.p != NULL && !startup_options(out, value)) {
        varset_unref(out);
        return false;
    }
    while (paramset_next(params, &at, &name, &value)) {
        if (!slice_eq_str(name, "options") && !startup_put(out, name, value)) {
            varset_unref(out);
            return false;
        }
    }
    return true;
}

/* The end of one argument: the next comma or closing parenthesis outside of quotes. NULL: beyond
 * what is understood here. Of what begins with a dollar sign that is parameters. */
static const char *argument_end(const char *p, const char *end)
{
    bool quoted = false;

    for (; p < end; p++) {
        if (*p == '\'')
            quoted = !quoted;
        else if (quoted && *p == '\\')
            return NULL;
        else if (quoted)
            continue;
        else if (*p == ',' || *p == ')')
            return p;
        else if (*p == '(' || *p == '"' ||
                 (*p == '$' && (p + 1 == end || !isdigit((unsigned char)p[1]))) ||
                 (p + 1 < end && (memcmp(p, "--", 2) == 0 || memcmp(p, "/*", 2) == 0)))
            return NULL;
    }
    return NULL;
}

static struct slice trimmed(const char *p, const char *end)
{
    while (p < end && isspace((unsigned char)*p))
        p++;
    while (end > p && isspace((unsigned char)end[-1]))
        end--;
    return slice_of(p, (size_t)(end - p));
}

const char *sstate_argument(const char *p, const char *end, struct slice *arg)
{
    const char *stop = argument_end(p, end);

    if (stop != NULL)
        *arg = trimmed(p, stop);
    return stop;
}

/* One literal, and nothing behind it: an expression may have another value another time. */
static bool is_string(struct slice a)
{
    size_t i;

    if (a.n < 2 || a.p[0] != '\'' || a.p[a.n - 1] != '\'')
        return false;
    for (i = 1; i < a.n - 1; i++)
        if (a.p[i] == '\'' && a.p[++i] != '\'')
            return false;
    return i == a.n - 1;
}

static bool is_true(struct slice a)
{
    return slice_ieq_str(a, "true") || slice_ieq_str(a, "'t'") || slice_ieq_str(a, "'true'");
}

/* The last argument, whatever is in front of it; but a comment may be anywhere. */
static struct slice last_argument(struct slice call)
{
    size_t i;

    if (slice_contains(call, "--") || slice_contains(call, "/*"))
        return slice_of("", 0);
    for (i = call.n; i > 1; i--)
        if (call.p[i - 1] == ',')
            return trimmed(call.p + i, call.p + call.n - 1);
    return slice_of("", 0);
}

enum set_config_call sstate_set_config(struct slice call, struct buf *name, struct buf *sql)
{
    const char *end = call.p + call.n;
    const char *p = memchr(call.p, '(', call.n);
    struct slice arg[3];
    size_t i;

    for (i = 0; i < 3 && p != NULL; i++)
        p = sstate_argument(p + 1, end, &arg[i]);
    if (is_true(p == NULL ? last_argument(call) : arg[2]))
        return SET_CONFIG_LOCAL;
    if (p == NULL || !is_string(arg[0]) || !slice_ieq_str(arg[2], "false") ||
        (!is_string(arg[1]) && !slice_ieq_str(arg[1], "null")))
        return SET_CONFIG_UNKNOWN;
    for (i = 1; i < arg[0].n - 1; i++)
        buf_put_byte(name, (char)tolower((unsigned char)arg[0].p[i]));
    buf_printf(sql, "SELECT pg_catalog.set_config(%.*s,", (int)arg[0].n, arg[0].p);
    buf_put(sql, arg[1].p, arg[1].n);
    buf_printf(sql, ",false)");
    if (!is_plain_name(buf_slice(name)))
        return SET_CONFIG_UNKNOWN;
    if (is_string(arg[1]))
        return SET_CONFIG_SESSION;
    return varset_is_identity(buf_slice(name)) ? SET_CONFIG_UNKNOWN : SET_CONFIG_DEFAULT;
}

const char *sstate_skip_space(const char *p, const char *end)
{
    while (p < end && isspace((unsigned char)*p))
        p++;
    return p;
}

/* A name, its parts joined by dots, and the space behind it. */
static const char *skip_name(const char *p, const char *end)
{
    while (p < end && (isalnum((unsigned char)*p) || *p == '_' || *p == '.'))
        p++;
    return sstate_skip_space(p, end);
}

/* One item of the list: a call, perhaps with AS. NULL: something else. */
static const char *skip_call(const char *p, const char *end)
{
    p = skip_name(sstate_skip_space(p, end), end);
    if (p == end || *p != '(')
        return NULL;
    do
        p = argument_end(p + 1, end);
    while (p != NULL && *p == ',');
    if (p == NULL)
        return NULL;
    p = sstate_skip_space(p + 1, end);
    if (end - p > 3 && strncasecmp(p, "as", 2) == 0 && isspace((unsigned char)p[2]))
        p = skip_name(sstate_skip_space(p + 2, end), end);
    return p;
}

bool sstate_calls_are_made(const struct sql_stmt *st, struct slice text)
{
    const char *end = text.p + text.n;
    const char *p = sstate_skip_space(text.p, end);
    uint32_t i;

    if (st->kind != SQL_SELECT || end - p < 7 || strncasecmp(p, "select", 6) != 0 ||
        !isspace((unsigned char)p[6]))
        return false;
    for (i = 0; i < st->nfuncs; i++)
        if (!slice_eq_str(st->funcs[i].name, "set_config") &&
            !slice_eq_str(st->funcs[i].name, "current_setting"))
            return false;
    p += 6;
    for (i = 0; p != NULL && i < st->nfuncs; i++) {
        p = skip_call(p, end);
        if (p != NULL && i + 1 < st->nfuncs)
            p = p < end && *p == ',' ? p + 1 : NULL;
    }
    return p != NULL && (p == end || (*p == ';' && sstate_skip_space(p + 1, end) == end));
}

/* NULL goes back to what the server began with: that is the client's start-up parameter only when
 * it has none. */
static bool note_default_call(struct sstate *s, struct slice name, struct slice sql)
{
    if (varset_get(s->base, name).p == NULL)
        return vars_put(s, name, sql);
    vars_drop(s, name);
    return true;
}

static bool note_call(
    struct sstate *s, enum set_config_call is, struct slice name, struct slice sql)
{
    if (is_transient(name))
        return true;
    if (is == SET_CONFIG_DEFAULT)
        return note_default_call(s, name, sql);
    if (slice_eq_str(name, "session_authorization"))
        return note_authorization(s, sql);
    return vars_put(s, name, sql);
}

bool sstate_vars_note_call(struct sstate *s, struct slice call, bool is_made)
{
    struct buf name = {0};
    struct buf sql = {0};
    struct varset *before = varset_ref(s->vars.client);
    enum set_config_call is = sstate_set_config(call, &name, &sql);
    bool ok = is == SET_CONFIG_LOCAL ||
              (effects_is_session_call(is) && is_made &&
                  note_call(s, is, buf_slice(&name), buf_slice(&sql)) && keeps_meaning(s, before));

    varset_unref(&before);
    buf_free(&name);
    buf_free(&sql);
    return ok;
}
