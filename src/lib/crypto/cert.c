/* SPDX-License-Identifier: PostgreSQL
 * cert.c: the hash of a certificate that channel binding uses (RFC 5929, tls-server-end-point).
 * Left out of a build without OpenSSL, where crypto_none.c stands in. */
#include "config.h"

#include "crypto/crypto.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

/* The number of the digest of the certificate's signature. */
static int signature_digest(struct slice der)
{
    const unsigned char *p = (const unsigned char *)der.p;
    X509 *cert = der.n > LONG_MAX ? NULL : d2i_X509(NULL, &p, (long)der.n);
    int nid = NID_undef;

    if (cert == NULL || X509_get_signature_info(cert, &nid, NULL, NULL, NULL) != 1)
        nid = NID_undef;
    X509_free(cert);
    ERR_clear_error();
    return nid;
}

/* MD5 and SHA-1 are replaced by SHA-256. */
static const EVP_MD *binding_digest(int nid)
{
    if (nid == NID_undef)
        return NULL;
    return nid == NID_md5 || nid == NID_sha1 ? EVP_sha256() : EVP_get_digestbynid(nid);
}

int crypto_cert_hash_by(
    struct slice der, int digest_nid, uint8_t out[CRYPTO_CERT_HASH_MAX], size_t *n, struct err *err)
{
    const EVP_MD *md = binding_digest(digest_nid);
    unsigned len = 0;

    if (md == NULL || EVP_MD_size(md) > CRYPTO_CERT_HASH_MAX ||
        EVP_Digest(der.p, der.n, out, &len, md, NULL) != 1) {
        ERR_clear_error();
        err_set(err, "0A000", "no channel binding: the certificate's signature has no digest");
        return -1;
    }
    *n = len;
    return 0;
}

int crypto_cert_hash(
    struct slice der, uint8_t out[CRYPTO_CERT_HASH_MAX], size_t *n, struct err *err)
{
    return crypto_cert_hash_by(der, signature_digest(der), out, n, err);
}
