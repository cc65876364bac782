/* SPDX-License-Identifier: PostgreSQL
 * saslprep.h: the SASLprep profile of stringprep (RFC 4013) for passwords.
 * Runs in: workers, pg_enc. Pure. */
#ifndef PGP_AUTH_SASLPREP_H
#define PGP_AUTH_SASLPREP_H

#include "base/slice.h"
#include "crypto/secret.h"

#define SASLPREP_MAX_CHARS 2048

/* Puts the prepared form of `in` into *out and returns 0. Returns -1 when `in` is not UTF-8, too
 * long, empty when prepared, or has a character that the profile prohibits: PostgreSQL then uses
 * the bytes as they are, and so must the caller. */
int saslprep(struct slice in, struct secret *out);
/* Prepared form, or the raw bytes where PostgreSQL takes these. Never fails. */
void saslprep_or_raw(struct slice in, struct secret *out);

#endif
