/* SPDX-License-Identifier: PostgreSQL
 * auth_helper.h: judges outside this program: PAM, an LDAP directory, the operating system's user
 * data base, the name service.
 * Runs in: workers, on a thread of its own per call, never on the loop: every function here may
 * block for as long as the other side likes. They touch nothing but their arguments. */
#ifndef PGP_AUTH_AUTH_HELPER_H
#define PGP_AUTH_AUTH_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/hba.h"
#include "base/err.h"

struct arena;

#define AUTH_HELPER_NAME_BYTES 256

enum auth_opinion {
    AUTH_OPINION_NO,    /* looked at and found wrong */
    AUTH_OPINION_YES,   /* it is the user */
    AUTH_OPINION_BROKEN /* could not be looked at: *err says why (for the log) */
};

/* PAM: `rhost` is the client's name or address, NULL for a Unix socket. All strings end in NUL. */
enum auth_opinion auth_pam_check(const char *service, const char *user, const char *password,
    const char *rhost, struct err *err);
bool auth_pam_is_built(void);
/* LDAP: simple bind, or search and bind, as `opts` says. Each network operation ends after
 * `timeout_ms`. */
enum auth_opinion auth_ldap_check(const struct hba_ldap *opts, const char *user,
    const char *password, int64_t timeout_ms, struct err *err);
bool auth_ldap_is_built(void);
/* Reads ldapurl into *out. Returns NULL, or what is wrong, with a % where the URL is to stand. */
const char *auth_ldap_read_url(const char *url, struct arena *arena, struct hba_ldap *out);
/* The name of operating system user `uid`. */
enum auth_opinion auth_peer_name(uint32_t uid, char name[AUTH_HELPER_NAME_BYTES], struct err *err);
/* Does the address belong to the host `name` (a leading dot: a suffix)? By its reverse name,
 * checked forwards. HBA_YES, HBA_NO, or HBA_FAIL when the name service gave no answer. */
enum hba_answer auth_host_check(const struct hba_addr *addr, const char *name);
/* The client's address, or its reverse name, for PAM; NULL for a Unix socket. May block when
 * `by_name`. */
const char *auth_host_text(
    const struct hba_addr *addr, bool by_name, char out[AUTH_HELPER_NAME_BYTES]);

#endif
