/* SPDX-License-Identifier: PostgreSQL
 * admin_recognise.c: tells statements that pgpool answers itself from all others.
 * Runs in: worker, for every statement, so it says no as soon as the first word allows. Everything
 * that begins with PGPOOL is ours, right or wrong: no server knows the word. A SHOW is ours only
 * when it is one of the reports and stands alone; everything else is the server's. Pure. */
#include "config.h"

#include <string.h>

#include "admin_int.h"

enum arguments {
    ARGUMENTS_NONE,
    ARGUMENTS_NAME,
    ARGUMENTS_ASSIGN,
    ARGUMENTS_STRING,
    ARGUMENTS_TEXT,
    ARGUMENTS_DATABASE,
    ARGUMENTS_NUMBER
};

static const struct command {
    const char *words;
    enum admin_kind kind;
    enum arguments arguments;
} commands[] = {
#define ADMIN_COMMAND(SYM, sym, words, arguments, privilege, tag)                                  \
    {words, ADMIN_KIND_##SYM, ARGUMENTS_##arguments},
#include "admin/commands.def"
#undef ADMIN_COMMAND
};

/* Nothing but ';', blanks and comments up to the end? Else *t is what is in the way. */
static bool at_end(struct slice rest, struct admin_token *t)
{
    do {
        *t = admin_lex(&rest);
    } while (admin_token_is_symbol(t, ';'));
    return t->kind == ADMIN_TOKEN_END;
}

static bool take_assignment(struct slice *rest, struct admin_cmd *cmd, struct admin_token *t);

/* pool_mode alone among what looks like a setting of the server. */
static bool recognise_mode(struct slice rest, struct admin_cmd *cmd, enum admin_kind kind)
{
    struct admin_token t = admin_lex(&rest);

    if (kind == ADMIN_KIND_MODE_SET && admin_token_is_word(&t, "session"))
        t = admin_lex(&rest);
    if (admin_token_name(&t, cmd->name, sizeof cmd->name) < 0 ||
        strcmp(cmd->name, "pool_mode") != 0)
        return false;
    cmd->value = slice_of("", 0);
    cmd->bad_at = slice_of("", 0);
    cmd->is_default = false;
    if (kind == ADMIN_KIND_MODE_SET && !take_assignment(&rest, cmd, &t))
        return false;
    if (!at_end(rest, &t))
        return false;
    cmd->kind = kind;
    return true;
}

static bool recognise_show(struct slice rest, struct admin_cmd *cmd)
{
    struct admin_token t = admin_lex(&rest);
    int i;

    if (admin_token_name(&t, cmd->name, sizeof cmd->name) < 0)
        return false;
    if (strncmp(cmd->name, "pool_", 5) != 0)
        return false;
    for (i = 0; i < ADMIN_REPORT_COUNT; i++) {
        if (strcmp(cmd->name, admin_report_info((enum admin_report)i)->name) == 0)
            break;
    }
    if (i == ADMIN_REPORT_COUNT || !at_end(rest, &t))
        return false;
    cmd->report = (enum admin_report)i;
    cmd->kind = ADMIN_KIND_REPORT;
    return true;
}

static void bad(struct admin_cmd *cmd, const struct admin_token *at)
{
    cmd->kind = ADMIN_KIND_BAD;
    cmd->bad_at = at->raw;
}

/* True when `rest` begins with the blank-separated `words`, which are then taken. */
static bool take_words(struct slice *rest, const char *words)
{
    struct slice ahead = *rest;
    struct admin_token t;
    const char *end;

    for (;;) {
        end = strchrnul(words, ' ');
        t = admin_lex(&ahead);
        if (t.kind != ADMIN_TOKEN_WORD || t.raw.n != (size_t)(end - words) ||
            strncasecmp(t.raw.p, words, t.raw.n) != 0)
            return false;
        if (*end == '\0')
            break;
        words = end + 1;
    }
    *rest = ahead;
    return true;
}

/* A name, perhaps with dots: "a.b". */
static bool take_name(struct slice *rest, struct admin_cmd *cmd, struct admin_token *t)
{
    struct slice ahead;
    struct admin_token dot;
    size_t used = 0;
    int n;

    for (;;) {
        *t = admin_lex(rest);
        n = admin_token_name(t, cmd->name + used, sizeof cmd->name - used);
        if (n < 0)
            return false;
        used += (size_t)n;
        ahead = *rest;
        dot = admin_lex(&ahead);
        if (!admin_token_is_symbol(&dot, '.') || used + 2 > sizeof cmd->name)
            return true;
        cmd->name[used++] = '.';
        *rest = ahead;
    }
}

/* One value: a literal, a word, or a number with or without a sign. */
static bool take_value(struct slice *rest, struct admin_token *t)
{
    *t = admin_lex(rest);
    if (admin_token_is_symbol(t, '-') || admin_token_is_symbol(t, '+')) {
        *t = admin_lex(rest);
        return t->kind == ADMIN_TOKEN_NUMBER;
    }
    return t->kind == ADMIN_TOKEN_WORD || t->kind == ADMIN_TOKEN_QUOTED ||
           t->kind == ADMIN_TOKEN_STRING || t->kind == ADMIN_TOKEN_ESCAPED ||
           t->kind == ADMIN_TOKEN_NUMBER;
}

/* "= value [, value]", "TO value [, value]", "TO DEFAULT". */
static bool take_assignment(struct slice *rest, struct admin_cmd *cmd, struct admin_token *t)
{
    struct slice ahead;
    const char *start;

    *t = admin_lex(rest);
    if (!admin_token_is_symbol(t, '=') && !admin_token_is_word(t, "to"))
        return false;
    ahead = *rest;
    *t = admin_lex(&ahead);
    start = t->raw.p;
    cmd->is_default = admin_token_is_word(t, "default");
    for (;;) {
        if (!take_value(rest, t))
            return false;
        cmd->value = slice_of(start, (size_t)(rest->p - start));
        if (cmd->is_default)
            return true;
        ahead = *rest;
        *t = admin_lex(&ahead);
        if (!admin_token_is_symbol(t, ','))
            return true;
        *rest = ahead;
    }
}

/* All that follows: a statement, with its own comments and semicolons. */
static bool take_text(struct slice *rest, struct admin_cmd *cmd, struct admin_token *t)
{
    struct slice ahead = *rest;

    *t = admin_lex(&ahead);
    if (t->kind == ADMIN_TOKEN_END)
        return false;
    cmd->value = *rest;
    if (cmd->value.p[0] == ' ') /* it ends the word before; the text begins behind it */
        cmd->value = slice_of(cmd->value.p + 1, cmd->value.n - 1);
    rest->p += rest->n;
    rest->n = 0;
    return true;
}

/* The name of a database, or nothing: then the name stays empty. */
static bool take_database(struct slice *rest, struct admin_cmd *cmd, struct admin_token *t)
{
    struct slice ahead = *rest;

    *t = admin_lex(&ahead);
    if (t->kind == ADMIN_TOKEN_END || admin_token_is_symbol(t, ';'))
        return true;
    *rest = ahead;
    return admin_token_name(t, cmd->name, sizeof cmd->name) > 0;
}

static bool take_arguments(
    enum arguments what, struct slice *rest, struct admin_cmd *cmd, struct admin_token *t)
{
    switch (what) {
    case ARGUMENTS_NONE:
        return true;
    case ARGUMENTS_NAME:
        return take_name(rest, cmd, t);
    case ARGUMENTS_ASSIGN:
        return take_name(rest, cmd, t) && take_assignment(rest, cmd, t);
    case ARGUMENTS_STRING:
        *t = admin_lex(rest);
        cmd->value = t->raw;
        return t->kind == ADMIN_TOKEN_STRING || t->kind == ADMIN_TOKEN_ESCAPED;
    case ARGUMENTS_TEXT:
        return take_text(rest, cmd, t);
    case ARGUMENTS_DATABASE:
        return take_database(rest, cmd, t);
    case ARGUMENTS_NUMBER:
        *t = admin_lex(rest);
        cmd->value = t->raw;
        return t->kind == ADMIN_TOKEN_NUMBER;
    }
    return false;
}

static void recognise_pgpool(struct slice rest, struct admin_cmd *cmd)
{
    struct admin_token t;
    size_t i;

    for (i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (!take_words(&rest, commands[i].words))
            continue;
        if (take_arguments(commands[i].arguments, &rest, cmd, &t) && at_end(rest, &t))
            cmd->kind = commands[i].kind;
        else
            bad(cmd, &t);
        return;
    }
    t = admin_lex(&rest);
    bad(cmd, &t);
}

bool admin_recognise_order(struct slice sql, struct admin_cmd *cmd)
{
    static const char *const words[] = {"pause", "resume", "drain", "reconnect", "kill", "cancel",
        "reload", "disable", "enable", "wait_close", "suspend", "shutdown"};
    size_t i;
    struct slice rest = sql;
    struct admin_token t = admin_lex(&rest);

    if (admin_token_is_word(&t, "kill_client")) { /* as PgBouncer spells it */
        if (take_arguments(ARGUMENTS_NUMBER, &rest, cmd, &t) && at_end(rest, &t))
            cmd->kind = ADMIN_KIND_KILL_CLIENT;
        else
            bad(cmd, &t);
        return true;
    }
    for (i = 0; i < sizeof words / sizeof words[0]; i++)
        if (admin_token_is_word(&t, words[i]))
            break;
    if (i == sizeof words / sizeof words[0])
        return false;
    recognise_pgpool(sql, cmd);
    return true;
}

/* Three bytes are enough to refuse nearly every statement there is: neither "sh", "pg", "set" nor
 * "res", and no blank or comment in front of something else. */
static bool may_be_ours(struct slice sql)
{
    char first;
    char second;

    if (sql.n < 3)
        return false;
    first = (char)(sql.p[0] | 0x20);
    second = (char)(sql.p[1] | 0x20);
    if (first < 'a' || first > 'z')
        return true;
    if (second == 'e')
        return (first == 's' && (sql.p[2] | 0x20) == 't') ||
               (first == 'r' && (sql.p[2] | 0x20) == 's');
    return (first == 's' && second == 'h') || (first == 'p' && second == 'g');
}

bool admin_recognise(struct slice sql, struct admin_cmd *cmd)
{
    struct admin_token t;

    cmd->kind = ADMIN_KIND_NONE;
    if (!may_be_ours(sql))
        return false;
    t = admin_lex(&sql);
    if (t.kind != ADMIN_TOKEN_WORD)
        return false;
    if (admin_token_is_word(&t, "show"))
        return recognise_show(sql, cmd) || recognise_mode(sql, cmd, ADMIN_KIND_MODE_SHOW);
    if (admin_token_is_word(&t, "set"))
        return recognise_mode(sql, cmd, ADMIN_KIND_MODE_SET);
    if (admin_token_is_word(&t, "reset"))
        return recognise_mode(sql, cmd, ADMIN_KIND_MODE_RESET);
    if (!admin_token_is_word(&t, "pgpool"))
        return false;
    cmd->name[0] = '\0';
    cmd->value = slice_of("", 0);
    cmd->bad_at = slice_of("", 0);
    cmd->is_default = false;
    recognise_pgpool(sql, cmd);
    return true;
}
