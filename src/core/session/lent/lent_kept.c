/* SPDX-License-Identifier: PostgreSQL
 * lent_kept.c: session mode over several servers. The link where writes go is the client's from
 * its login to its goodbye; between two exchanges it is at rest, and a read that may leave borrows
 * a link of the standby's pool for its exchange, as in transaction mode. Runs in: workers. What the
 * kept link says by itself while another one answers waits until that has ended. Must never: put
 * anything into the midst of another link's message. */
#include "config.h"

#include "base/hot.h"
#include "base/log.h"
#include "config/pools_conf.h"

#include "sstate_int.h"
#include "lent/lent_int.h"

/* What is done under these names is not known: no other link could be brought to the same state. */
#define PINS_THAT_HOLD                                                                             \
    (ROWS_PIN(PIN_REASON_UNKNOWN) | ROWS_PIN(PIN_REASON_SETTING) | ROWS_PIN(PIN_REASON_PREPARED) | \
        ROWS_PIN(PIN_REASON_LOAD) | ROWS_PIN(PIN_REASON_SESSION_MODE))

bool lent_stays(const struct sstate *s)
{
    return (s->pins & (lent_keeps(s) ? PINS_THAT_HOLD : ~0U)) != 0;
}

bool lent_is_of_kept(uint32_t pins)
{
    return (pins & ~PINS_THAT_HOLD) != 0;
}

bool lent_is_tied_to(const struct client *c, const struct link *link)
{
    const struct sstate *s = c->sstate;

    return sstate_is_tied(c) && (s->kept == NULL || s->kept == link || lent_stays(s));
}

void lent_kept_note(struct client *c, struct link *link)
{
    struct sstate *s = c->sstate;

    if (!lent_keeps(s) || s->kept != NULL || link->pool != c->pool)
        return;
    s->kept = link;
    s->kept_uses = 1;
}

HOT struct link *lent_kept_take(struct client *c, int node)
{
    struct link *kept = c->sstate->kept;

    if (kept == NULL || kept == c->sstate->errand->home)
        return NULL; /* a transaction lives on it, which is asked about on another one */
    if (kept->pool->cluster_node == node) {
        c->sstate->kept_uses = 1;
        kept->must_clean = false; /* it is cleaned at the goodbye, whatever was left on it */
        link_renew(kept);
        return kept;
    }
    if (node == c->pool->cluster_node)
        lent_kept_return(c); /* another server is the primary by now */
    return NULL;
}

bool lent_kept_is_speaking(const struct client *c)
{
    return c->sstate->kept != NULL && c->sstate->kept->body_left > 0;
}

void lent_kept_on_bytes(struct client *c, struct link *link, const char *p, size_t n)
{
    if (c->link == NULL) {
        client_pass_reply(c, link, p, n);
        return;
    }
    buf_put(&c->sstate->errand->held, p, n);
    link_pause(link);
}

void lent_kept_tell(struct client *c)
{
    struct sstate *s = c->sstate;

    if (s->errand->held.len == 0)
        return;
    if (s->kept != NULL)
        link_resume(s->kept);
    client_send(c, &s->errand->held);
}

void lent_kept_on_lost(struct client *c, struct link *link, const struct err *err)
{
    struct sstate *s = c->sstate;
    bool is_tied = lent_is_tied_to(c, link);
    bool in_message = link->body_left > 0 && !link->swallow_body;
    struct err reason = *err;

    s->kept = NULL;
    sessions_suspect_node(c->ss, link->pool->cluster_node);
    if (s->errand != NULL)
        lent_kept_tell(c);
    if (is_tied || in_message) {
        CLIENT_LOG(c, LVL_LOG, "session of user \"%s\" ends with its server connection: %s",
            c->pool->names, err->msg);
        if (s->errand != NULL && s->errand->last_words != NULL && c->link == NULL)
            reason = *s->errand->last_words;
        reason.severity = ERR_FATAL;
        client_end(c, in_message ? NULL : &reason);
        return;
    }
    CLIENT_LOG(c, LVL_LOG, "session of user \"%s\" goes on without its server connection: %s",
        c->pool->names, err->msg);
    client_row_unlink(c);
}

void lent_kept_return(struct client *c)
{
    struct sstate *s = c->sstate;
    struct link *kept = s->kept;

    if (kept == NULL)
        return;
    s->kept = NULL;
    kept->must_clean = true; /* code may have left what nobody saw */
    if (kept == c->link)
        return; /* a sequence is not over: it goes back as any other link, with the end of that */
    if (s->errand != NULL)
        lent_kept_tell(c);
    link_release(kept, true);
    client_row_unlink(c);
}

void lent_kept_release(struct client *c)
{
    struct sstate *s = c->sstate;
    struct link *kept = s->kept;

    if (kept == NULL)
        return;
    s->kept = NULL;
    if (s->errand != NULL)
        buf_free(&s->errand->held);
    if (s->kept_uses == 0) {
        link_return(kept); /* all was read elsewhere: it is as it came */
        return;
    }
    kept->must_clean = true;
    link_release(kept, true);
}
