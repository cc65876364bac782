/* SPDX-License-Identifier: PostgreSQL
 * fuzz_admin.c: fuzz target over admin_recognise, which sees every statement of every client. With
 * libFuzzer: clang -fsanitize=fuzzer,address -DFUZZ_LIBFUZZER. Without it a main replays the files
 * given, or runs a fixed number of random statements. Invariants checked: views inside the
 * statement, names ended and folded, white space around it changes nothing, a second statement
 * behind it is never swallowed. */
#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/admin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int cond, const char *what)
{
    if (!cond) {
        fprintf(stderr, "fuzz_admin: %s\n", what);
        abort();
    }
}

static void require_inside(struct slice all, struct slice s)
{
    if (s.n > 0)
        require(s.p >= all.p && s.p + s.n <= all.p + all.n, "a view leaves the statement");
}

static void check_cmd(struct slice sql, const struct admin_cmd *cmd)
{
    require(cmd->kind > ADMIN_KIND_NONE && cmd->kind < ADMIN_KIND_COUNT, "no kind");
    require(memchr(cmd->name, '\0', sizeof cmd->name) != NULL, "a name without end");
    if (cmd->kind == ADMIN_KIND_REPORT) {
        require(cmd->report >= 0 && cmd->report < ADMIN_REPORT_COUNT, "no such report");
        return;
    }
    require_inside(sql, cmd->value);
    require_inside(sql, cmd->bad_at);
}

/* Recognises `before` `sql` `after`. */
static enum admin_kind kind_of(const char *before, struct slice sql, const char *after)
{
    struct admin_cmd cmd;
    struct buf b = {0};

    buf_put(&b, before, strlen(before));
    buf_put(&b, sql.p, sql.n);
    buf_put(&b, after, strlen(after));
    (void)admin_recognise(buf_slice(&b), &cmd);
    buf_free(&b);
    return cmd.kind;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy of exactly that size: the sanitizer sees a read one byte too far. */
    char *copy = calloc(1, size == 0 ? 1 : size);
    struct slice sql = slice_of(copy, size);
    struct admin_cmd cmd;
    struct buf out = {0};
    struct err err = {0};

    if (copy == NULL)
        return 0;
    if (size > 0)
        memcpy(copy, data, size);
    if (admin_recognise(sql, &cmd)) {
        check_cmd(sql, &cmd);
        require((admin_encode_describe(&cmd, &out, &err) == 0) == (out.len > 0), "half an answer");
        require(err_is_set(&err) == (out.len == 0), "no reason given");
        buf_free(&out);
    } else {
        require(cmd.kind == ADMIN_KIND_NONE, "refused, but with a kind");
    }
    require(kind_of(" /* /**/ */\n", sql, "") == cmd.kind, "a comment in front matters");
    if (cmd.kind > ADMIN_KIND_BAD) {
        require(kind_of("", sql, "\n; ;") == cmd.kind, "a semicolon behind matters");
        require(kind_of("", sql, "\n; select 1") <= ADMIN_KIND_BAD, "a statement was swallowed");
    }
    free(copy);
    return 0;
}

#ifndef FUZZ_LIBFUZZER

#define STATEMENTS 200000
#define MAX_PARTS  9

static const char *const parts[] = {"show", "pgpool", "set", "reset", "cache delete", "pool_nodes",
    "pool_clients", "\"pool_nodes\"", "all", "port", "=", "to", "default", "'", "''", "\"", "\"\"",
    "E'\\'", "5", "-", ",", ".", ";", "--", "\n", "/*", "*/", " ", " ", " ", " ", "\\", "\x80",
    "$"};

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static int replay(const char *path)
{
    static uint8_t bytes[1 << 16];
    FILE *f = fopen(path, "rb");
    size_t n;

    if (f == NULL) {
        perror(path);
        return 1;
    }
    n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    return LLVMFuzzerTestOneInput(bytes, n);
}

int main(int argc, char **argv)
{
    uint64_t state = 0x9e3779b97f4a7c15ULL;
    struct buf sql = {0};
    const char *part;
    int status = 0;
    long i;
    long k;

    for (i = 1; i < argc; i++)
        status |= replay(argv[i]);
    if (argc > 1)
        return status;
    for (i = 0; i < STATEMENTS; i++) {
        buf_clear(&sql);
        part = next_random(&state) % 2 == 0 ? "show " : "pgpool ";
        buf_put(&sql, part, strlen(part));
        for (k = (long)(next_random(&state) % MAX_PARTS); k > 0; k--) {
            part = parts[next_random(&state) % (sizeof parts / sizeof parts[0])];
            buf_put(&sql, part, strlen(part));
            if (next_random(&state) % 2 == 0)
                buf_put_byte(&sql, ' ');
        }
        LLVMFuzzerTestOneInput((const uint8_t *)sql.data, sql.len);
    }
    buf_free(&sql);
    return 0;
}

#endif
