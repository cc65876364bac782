/* SPDX-License-Identifier: PostgreSQL
 * hba_int.h: what the files of pool_hba.conf and pg_ident.conf share. */
#ifndef PGP_AUTH_HBA_INT_H
#define PGP_AUTH_HBA_INT_H

#include "auth/hba.h"
#include "base/arena.h"
#include "hba_are.h"

#define HBA_DEPTH_MAX 10
#define HBA_FILE_MAX  (16U * 1024 * 1024)
#define HBA_FILES_MAX 1000U /* per load: includes of includes stay bounded */
#define HBA_LINE_MAX  65536U

struct hba_token {
    const char *text;
    size_t n;
    bool quoted;                 /* begins with a quote: keywords and +, @ mean nothing */
    const struct hba_are *regex; /* set when it is "/…" and was compiled */
};

struct hba_field {
    struct hba_token *token;
    unsigned n;
};

struct hba_raw {
    struct hba_raw *next;
    const char *file;
    unsigned line;
    struct hba_field *field;
    unsigned n;
};

/* Reading a file and all that it includes into lines of fields of tokens. */
struct hba_lex {
    struct arena *arena;
    unsigned flags;
    hba_report_fn *report;
    void *ctx;
    unsigned nerrors;
    unsigned nfiles;
    struct hba_raw *first;
    struct hba_raw **last;
};

void hba_lex_init(struct hba_lex *lx, unsigned flags, hba_report_fn *report, void *ctx);
/* Reads a file, or a text. Errors are counted and reported. */
void hba_lex_file(struct hba_lex *lx, const char *path);
void hba_lex_text(struct hba_lex *lx, const char *name, struct slice text);
/* Reports one error. */
void hba_complain(struct hba_lex *lx, const char *file, unsigned line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Compiles tokens that begin with a slash. -1 after complaining. */
int hba_compile(struct hba_lex *lx, const struct hba_raw *raw, struct hba_token *t);
/* Runs an expression over a name; HBA_FAIL sets *err. */
enum hba_answer hba_regex_matches(const struct hba_are *re, struct slice s, struct err *err);
static inline struct slice hba_token_slice(const struct hba_token *t)
{
    return slice_of(t->text, t->n);
}
/* True when the token is keyword `word`, not quoted. */
static inline bool hba_token_is(const struct hba_token *t, const char *word)
{
    return !t->quoted && strcmp(t->text, word) == 0;
}

enum hba_addr_kind {
    HBA_ADDR_ALL,
    HBA_ADDR_SAMEHOST,
    HBA_ADDR_SAMENET,
    HBA_ADDR_IP,
    HBA_ADDR_NAME
};

struct hba_line {
    struct hba_line *next;
    struct hba_rule rule;
    struct hba_field databases;
    struct hba_field users;
    enum hba_addr_kind addr_kind;
    struct hba_addr addr;
    uint8_t mask[16];
    const char *host;
};

struct hba {
    struct arena *arena;
    struct hba_line *first;
    unsigned count;
};

/* Makes a line of a raw line; NULL after complaining. */
struct hba_line *hba_line_read(struct hba_lex *lx, const struct hba_raw *raw);
/* Reads the options from field `at` on and checks them against the method. -1 after complaining. */
int hba_opts_read(
    struct hba_lex *lx, const struct hba_raw *raw, unsigned at, struct hba_rule *rule);

#endif
