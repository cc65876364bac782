/* SPDX-License-Identifier: PostgreSQL
 * pcp_tls.c: TLS with administrators: a connection over TCP that begins with a TLS handshake gets
 * it, with the certificate that clients see. Without `ssl` nobody does, and others go on in clear:
 * the protocol has no word for asking. Runs in: control. New certificates come with a reload; if
 * they are no good, the old ones stay. */
#include "config.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "session/session_tls.h"

#include "control_int.h"

/* No request of PCP has this type. */
#define TLS_HANDSHAKE_BYTE 0x16

struct pcp_tls {
    struct tls_env *env;
    struct tls_context *ctx; /* NULL: the files are not usable */
    struct tls_passphrase passphrase;
};

void pcp_tls_fini(struct control *ctl)
{
    if (ctl->tls == NULL)
        return;
    tls_context_free(&ctl->tls->ctx);
    tls_passphrase_forget(&ctl->tls->passphrase);
    tls_env_free(&ctl->tls->env);
    mem_free_secret(ctl->tls);
    ctl->tls = NULL;
}

void pcp_tls_set_conf(struct control *ctl)
{
    const struct conf_gen *gen = role_loop_gen(&ctl->role);
    struct tls_context *ctx;
    struct err err = {0};

    if (!conf_of(gen)->ssl) {
        pcp_tls_fini(ctl);
        return;
    }
    if (ctl->tls == NULL) {
        ctl->tls = mem_alloc_secret(sizeof *ctl->tls);
        ctl->tls->env = tls_env_new();
    }
    ctx = session_tls_make_context(ctl->tls->env, gen, &ctl->tls->passphrase, &err);
    if (ctx == NULL) {
        err_wrap(&err, "TLS with administrators");
        log_err(LVL_WARNING, &err);
        return;
    }
    tls_context_free(&ctl->tls->ctx);
    ctl->tls->ctx = ctx;
}

bool pcp_tls_check(struct control *ctl, const struct conf_gen *gen, struct err *err)
{
    struct tls_context *ctx;

    if (ctl->tls == NULL || !conf_of(gen)->ssl)
        return true;
    ctx = session_tls_make_context(ctl->tls->env, gen, &ctl->tls->passphrase, err);
    if (ctx == NULL)
        err_wrap(err, "TLS with clients");
    tls_context_free(&ctx);
    return !err_is_set(err);
}

bool pcp_tls_begin(struct control *ctl, struct stream *s, struct slice bytes)
{
    if (ctl->tls == NULL || ctl->tls->ctx == NULL || bytes.n == 0 ||
        bytes.p[0] != TLS_HANDSHAKE_BYTE)
        return false;
    stream_start_tls_server(s, ctl->tls->ctx, bytes, false);
    return true;
}
