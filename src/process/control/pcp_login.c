/* SPDX-License-Identifier: PostgreSQL
 * pcp_login.c: pcp.conf: who may administer, and with which password.
 * Runs in: control. The file is read again at every log-in, so a change needs no reload; it holds
 * the md5 of passwords, each as good as the password itself, or SCRAM verifiers, and is refused
 * when it is too long, never kept in memory. Must never: let anybody find out which users are in
 * it. */
#include "config.h"

#include <string.h>
#include <sys/stat.h>

#include "auth/auth_guard.h"
#include "auth/cred.h"
#include "auth/passwd.h"
#include "auth/pcp_conf.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "crypto/crypto.h"

#include "control_int.h"

/* As with pool_passwd: a file that others can read is complained of, once for each change. */
static void look_at_mode(struct control *ctl, const char *path, const struct stat *st)
{
    struct err warn = {0};

    if (ctl->told_mode_of == st->st_ctim.tv_sec ||
        passwd_mode_is_safe(path, st, PCP_CONF_NAME, &warn))
        return;
    ctl->told_mode_of = st->st_ctim.tv_sec;
    log_err(LVL_WARNING, &warn);
}

/* Reads the file into *text (owned by the caller, who wipes it). */
static int read_file(struct control *ctl, char **text, size_t *n, struct err *err)
{
    const struct proc_env *env = ctl->role.env;
    char path[PROC_PATH_BYTES];
    const char *name = env->paths->pcp[0] != '\0' ? env->paths->pcp : PCP_CONF_NAME;
    struct stat st;

    if (conf_path(role_loop_gen(&ctl->role), name, path, sizeof path, err) == -1)
        return -1;
    if (pcp_conf_read(path, text, n, &st, err) == -1)
        return -1;
    look_at_mode(ctl, path, &st);
    return 0;
}

/* True when the md5 of a line fits. */
static bool line_fits(
    const struct pcp_conn *c, const struct pcp_line *line, struct slice user, struct slice response)
{
    char lower[CRYPTO_MD5_HEX_BYTES];
    struct cred cred = {0};
    struct err ignored = {0};
    bool match = false;
    size_t i;

    for (i = 0; i < sizeof lower; i++)
        lower[i] = (char)(line->value.p[i] >= 'A' && line->value.p[i] <= 'F' ? line->value.p[i] + 32
                                                                             : line->value.p[i]);
    /* The md5 of the password stands where PostgreSQL has the password; the rest is the same. */
    cred_from_plain(slice_of(lower, sizeof lower), &cred);
    if (cred_check_md5(&cred, user, c->salt, response, &match, &ignored) == -1)
        match = false;
    cred_free(&cred);
    mem_wipe(lower, sizeof lower);
    return match;
}

static bool any_line_fits(const struct pcp_conn *c, struct slice text, struct slice user,
    struct slice response, struct err *err)
{
    struct pcp_line line;
    unsigned nmd5 = 0;
    unsigned nscram = 0;

    while (pcp_conf_next(&text, &line)) {
        if (!slice_eq(line.user, user))
            continue;
        if (!line.is_scram && line_fits(c, &line, user, response))
            return true;
        nmd5 += !line.is_scram;
        nscram += line.is_scram;
    }
    if (nscram > 0 && nmd5 == 0) {
        err_set(err, "28000", "PCP user \"%s\" has a SCRAM verifier, but its tool answers by md5",
            c->user);
        err_hint(
            err, "pgpool-II's tools know md5 alone: use the tools that came with this pgpool.");
    }
    return false;
}

bool pcp_login_check(
    const struct pcp_conn *c, struct slice user, struct slice answer, struct err *err)
{
    char response[CRED_MD5_BYTES] = "md5";
    char *text = NULL;
    size_t n = 0;
    bool ok;

    if (answer.n != CRYPTO_MD5_HEX_BYTES || user.n == 0)
        return false;
    memcpy(response + 3, answer.p, answer.n);
    if (read_file(c->ctl, &text, &n, err) == -1)
        return false;
    ok = any_line_fits(c, slice_of(text, n), user, slice_of(response, sizeof response), err);
    mem_free_secret(text);
    return ok;
}

/* ---- how a user proves itself ---- */

static struct auth_guard *guard_of(const struct pcp_conn *c)
{
    return shm_get(c->ctl->role.env->shm, SHM_AUTH);
}

/* An unknown name looks like a line of the file, always the same: as often of either kind as the
 * lines are. */
static int find_stand_in(const struct pcp_conn *c, struct slice user, unsigned nmd5,
    unsigned nscram, uint32_t iterations, struct pcp_proof *out, struct err *err)
{
    struct slice secret = auth_guard_secret(guard_of(c));
    uint8_t sum[CRYPTO_SHA256_BYTES];
    struct buf text = {0};
    uint32_t pick;
    int rc;

    out->is_mock = true;
    buf_put(&text, "pcp ", 4); /* not the salt's */
    buf_put(&text, user.p, user.n);
    rc = crypto_hmac_sha256(secret, buf_slice(&text), sum, err);
    buf_free(&text);
    if (rc == -1)
        return -1;
    memcpy(&pick, sum, sizeof pick);
    out->is_scram = nscram > 0 && pick % (nmd5 + nscram) < nscram;
    if (!out->is_scram)
        return 0;
    return scram_verifier_mock(secret, user, iterations, false, &out->verifier, err);
}

static int find_proof(const struct pcp_conn *c, struct slice text, struct slice user,
    struct pcp_proof *out, struct err *err)
{
    uint32_t iterations = SCRAM_ITERATIONS;
    struct pcp_line line;
    struct scram_verifier v;
    unsigned nmd5 = 0;
    unsigned nscram = 0;
    bool is_known = false;

    while (pcp_conf_next(&text, &line)) {
        nmd5 += !line.is_scram;
        nscram += line.is_scram;
        if (line.is_scram && scram_verifier_parse(line.value, &v) == 0)
            iterations = v.iterations;
        if (!slice_eq(line.user, user))
            continue;
        is_known = true;
        if (line.is_scram && !out->is_scram) {
            out->is_scram = true;
            out->verifier = v;
        }
    }
    mem_wipe(&v, sizeof v);
    return is_known ? 0 : find_stand_in(c, user, nmd5, nscram, iterations, out, err);
}

int pcp_login_find(
    const struct pcp_conn *c, struct slice user, struct pcp_proof *out, struct err *err)
{
    char *text = NULL;
    size_t n = 0;
    int rc;

    memset(out, 0, sizeof *out);
    if (read_file(c->ctl, &text, &n, err) == -1)
        return -1;
    rc = find_proof(c, slice_of(text, n), user, out, err);
    mem_free_secret(text);
    return rc;
}

void pcp_login_look(struct control *ctl)
{
    struct err err = {0};
    char *text = NULL;
    size_t n = 0;

    if (read_file(ctl, &text, &n, &err) == -1)
        return; /* said when somebody wants to log in: many never do */
    mem_free_secret(text);
}

/* ---- failures by address, counted together with those of clients ---- */

static uint32_t now_s(const struct pcp_conn *c)
{
    return (uint32_t)(loop_now_us(&c->ctl->role.loop) / 1000000);
}

bool pcp_login_is_blocked(const struct pcp_conn *c)
{
    uint32_t limit = (uint32_t)conf_of(role_loop_gen(&c->ctl->role))->auth_failure_limit;

    return auth_guard_is_blocked(guard_of(c), AUTH_GUARD_WRONG, &c->addr, now_s(c), limit);
}

void pcp_login_count_failure(const struct pcp_conn *c)
{
    auth_guard_count(guard_of(c), AUTH_GUARD_WRONG, &c->addr, now_s(c));
}
