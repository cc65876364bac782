/* SPDX-License-Identifier: PostgreSQL
 * ident.c: pg_ident.conf: lines of map, system name, database user. */
#include "config.h"

#include "auth/ident.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "hba_int.h"

struct ident_line {
    struct ident_line *next;
    const char *map;
    struct hba_token system;
    struct hba_token user;
};

struct ident {
    struct arena *arena;
    struct ident_line *first;
};

/* Shall \1 in the user's name be replaced? As in PostgreSQL not in what is more than a name. */
static bool is_replaced(const struct ident_line *l)
{
    bool is_member_check = !l->user.quoted && l->user.text[0] == '+';

    return l->system.regex != NULL && l->user.regex == NULL && !is_member_check &&
           strstr(l->user.text, "\\1") != NULL;
}

static struct ident_line *read_line(struct hba_lex *lx, const struct hba_raw *raw)
{
    static const char *const what[] = {"map name", "system user name", "database user name"};
    struct ident_line *l = arena_alloc_zero(lx->arena, sizeof *l);
    unsigned i;

    for (i = 0; i < 3; i++) {
        if (i >= raw->n) {
            hba_complain(lx, raw->file, raw->line, "end of line before %s", what[i]);
            return NULL;
        }
        if (raw->field[i].n != 1) {
            hba_complain(lx, raw->file, raw->line, "%s values specified for %s",
                raw->field[i].n == 0 ? "no" : "multiple", what[i]);
            return NULL;
        }
    }
    if (raw->n > 3) {
        hba_complain(lx, raw->file, raw->line, "text behind the database user name");
        return NULL;
    }
    l->map = raw->field[0].token[0].text;
    l->system = raw->field[1].token[0];
    l->user = raw->field[2].token[0];
    if (hba_compile(lx, raw, &l->system) == -1 || hba_compile(lx, raw, &l->user) == -1)
        return NULL;
    if (is_replaced(l) && l->system.regex->is_vague) {
        hba_complain(lx, raw->file, raw->line,
            "what \\1 stands for in regular expression \"%s\" cannot be told as PostgreSQL does",
            l->system.text + 1);
        return NULL;
    }
    return l;
}

static struct ident *finish(struct hba_lex *lx)
{
    struct ident *id = mem_alloc_zero(sizeof *id);
    struct ident_line **last = &id->first;
    const struct hba_raw *raw;

    for (raw = lx->first; raw != NULL; raw = raw->next) {
        *last = read_line(lx, raw);
        if (*last != NULL)
            last = &(*last)->next;
    }
    id->arena = lx->arena;
    if (lx->nerrors > 0)
        ident_free(&id);
    return id;
}

struct ident *ident_load(const char *path, unsigned flags, hba_report_fn *report, void *ctx)
{
    struct hba_lex lx;

    hba_lex_init(&lx, flags, report, ctx);
    hba_lex_file(&lx, path);
    return finish(&lx);
}

struct ident *ident_parse(
    const char *name, struct slice text, unsigned flags, hba_report_fn *report, void *ctx)
{
    struct hba_lex lx;

    hba_lex_init(&lx, flags, report, ctx);
    hba_lex_text(&lx, name, text);
    return finish(&lx);
}

void ident_free(struct ident **ip)
{
    struct ident *id = *ip;

    if (id == NULL)
        return;
    arena_free(&id->arena);
    mem_free(id);
    *ip = NULL;
}

static bool same_name(struct slice a, struct slice b, bool ignore_case)
{
    if (!ignore_case)
        return slice_eq(a, b);
    return a.n == b.n && (a.n == 0 || strncasecmp(a.p, b.p, a.n) == 0);
}

/* Does the system name fit the line? With an expression, \1 in the user's name is replaced by what
 * it caught: the name to compare goes to `want`. */
static enum hba_answer system_fits(const struct ident_line *l, struct slice system,
    bool ignore_case, struct buf *want, struct err *err)
{
    struct slice user = hba_token_slice(&l->user);
    struct slice caught;
    const char *at = strstr(l->user.text, "\\1");
    enum hba_answer a;

    if (l->system.regex == NULL) {
        buf_put(want, user.p, user.n);
        return same_name(hba_token_slice(&l->system), system, ignore_case) ? HBA_YES : HBA_NO;
    }
    a = hba_are_match(l->system.regex, system, &caught);
    if (a == HBA_FAIL)
        err_set_fatal(err, "28000", "could not compare a name of %zu bytes with \"%s\"", system.n,
            l->system.text);
    if (a != HBA_YES)
        return a;
    if (!is_replaced(l)) {
        buf_put(want, user.p, user.n);
        return HBA_YES;
    }
    if (caught.p == NULL) {
        err_set_fatal(err, "28000",
            "regular expression \"%s\" of map \"%s\" caught nothing that could stand for \\1 in "
            "\"%s\"",
            l->system.text + 1, l->map, l->user.text);
        return HBA_FAIL;
    }
    buf_put(want, user.p, (size_t)(at - user.p));
    buf_put(want, caught.p, caught.n);
    buf_put(want, at + 2, strlen(at + 2));
    return HBA_YES;
}

static enum hba_answer user_fits(const struct ident_line *l, struct slice want, struct slice user,
    bool ignore_case, const struct hba_oracle *o, struct err *err)
{
    if (l->user.regex != NULL)
        return hba_regex_matches(l->user.regex, user, err);
    /* A name made of the client's text is a name, whatever it looks like. */
    if (!is_replaced(l) && !l->user.quoted) {
        if (slice_eq_str(want, "all"))
            return HBA_YES;
        if (want.n > 1 && want.p[0] == '+')
            return o == NULL || o->in_role == NULL
                       ? HBA_FAIL
                       : o->in_role(o->ctx, user, slice_of(want.p + 1, want.n - 1));
    }
    return same_name(want, user, ignore_case) ? HBA_YES : HBA_NO;
}

static enum hba_answer line_fits(const struct ident_line *l, struct slice system, struct slice user,
    bool ignore_case, const struct hba_oracle *o, struct err *err)
{
    struct buf want = {0};
    enum hba_answer a = system_fits(l, system, ignore_case, &want, err);

    if (a == HBA_YES)
        a = user_fits(l, buf_slice(&want), user, ignore_case, o, err);
    buf_free(&want);
    return a;
}

enum hba_answer ident_check(const struct ident *id, const char *map, struct slice system_user,
    struct slice db_user, bool ignore_case, const struct hba_oracle *oracle, struct err *err)
{
    const struct ident_line *l;
    struct err problem = {0};
    enum hba_answer best = HBA_NO;
    enum hba_answer a;

    if (map == NULL || map[0] == '\0')
        return same_name(system_user, db_user, ignore_case) ? HBA_YES : HBA_NO;
    for (l = id == NULL ? NULL : id->first; l != NULL; l = l->next) {
        if (strcmp(l->map, map) != 0)
            continue;
        a = line_fits(l, system_user, db_user, ignore_case, oracle, &problem);
        if (a == HBA_YES)
            return HBA_YES;
        if (a > best)
            best = a;
        if (err_is_set(&problem)) /* PostgreSQL does not look at further lines either */
            break;
    }
    if (best == HBA_FAIL && !err_is_set(&problem))
        err_set_fatal(&problem, "28000",
            "could not find out whether user \"%.*s\" is in a role of map \"%s\"", (int)db_user.n,
            db_user.p, map);
    if (best == HBA_FAIL && err != NULL)
        *err = problem;
    return best;
}
