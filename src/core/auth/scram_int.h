/* SPDX-License-Identifier: PostgreSQL
 * scram_int.h: what the two roles of SCRAM share. */
#ifndef PGP_AUTH_SCRAM_INT_H
#define PGP_AUTH_SCRAM_INT_H

#include "auth/scram.h"

/* Takes "`name`=value" up to a comma or the end from *in, and the comma; false when it is not
 * there. */
bool scram_take_attr(struct slice *in, char name, struct slice *value);
/* True when `s` is not empty and has printable ASCII without comma only. */
bool scram_is_nonce(struct slice s);
/* Drops extension attributes up to (not with) attribute `stop` or the end; false on a mandatory
 * extension or anything that is not an attribute. */
bool scram_skip_extensions(struct slice *in, char stop);
/* Appends GS2 header and binding data as base64 (the value of the c attribute). */
void scram_put_cbind(const struct buf *gs2, const uint8_t *cbind, size_t n, struct buf *out);
/* HMAC over the auth message. */
int scram_sign(const uint8_t key[SCRAM_KEY_BYTES], const struct buf *auth_message,
    uint8_t out[SCRAM_KEY_BYTES], struct err *err);
/* x ^= y over SCRAM_KEY_BYTES. */
void scram_xor(uint8_t *x, const uint8_t *y);
/* Wipes and frees a buffer that held something worth hiding. */
void scram_buf_free(struct buf *b);
struct slice scram_bytes(const uint8_t *p, size_t n);

#endif
