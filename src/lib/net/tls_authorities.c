/* SPDX-License-Identifier: PostgreSQL
 * tls_authorities.c: the certificates of a file and of a folder as one PEM text.
 * Runs in: whatever asks by libpq, which knows one file of authorities and no folder. Of the folder
 * it takes what OpenSSL would find there: files named by the hash of a subject, and in them the
 * certificates that have this hash. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tls_int.h"

#define HASH_DIGITS 8

/* "1a2b3c4d.0", as openssl rehash makes them; lists of revoked ones have an r before the number. */
static bool is_hashed(const char *name, unsigned long *hash)
{
    const char *number = name + HASH_DIGITS + 1;

    if (strspn(name, "0123456789abcdef") != HASH_DIGITS || name[HASH_DIGITS] != '.' ||
        *number == '\0' || number[strspn(number, "0123456789")] != '\0')
        return false;
    *hash = strtoul(name, NULL, 16);
    return true;
}

/* Appends the certificates of a file; `hash` NULL: all of them. False when it cannot be opened. */
static bool put_file(const char *path, const unsigned long *hash, BIO *out)
{
    BIO *in = BIO_new_file(path, "r");
    X509 *cert;

    if (in == NULL) {
        ERR_clear_error();
        return false;
    }
    while ((cert = PEM_read_bio_X509_AUX(in, NULL, NULL, NULL)) != NULL) {
        if (hash == NULL || X509_subject_name_hash(cert) == *hash)
            (void)PEM_write_bio_X509_AUX(out, cert);
        X509_free(cert);
    }
    ERR_clear_error(); /* the end of the file counts as one */
    BIO_free(in);
    return true;
}

/* A file of the folder that is no good has no part in it, as with OpenSSL. */
static int put_folder(const char *dir, BIO *out, struct err *err)
{
    DIR *d = opendir(dir);
    const struct dirent *entry;
    char path[PATH_MAX];
    unsigned long hash;

    if (d == NULL) {
        err_set_errno(err, errno, "could not use root certificate folder \"%s\"", dir);
        return -1;
    }
    while ((entry = readdir(d)) != NULL)
        if (is_hashed(entry->d_name, &hash) &&
            snprintf(path, sizeof path, "%s/%s", dir, entry->d_name) < (int)sizeof path)
            (void)put_file(path, &hash, out);
    closedir(d);
    return 0;
}

int tls_authorities_text(const char *file, const char *dir, struct buf *out, struct err *err)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *text = NULL;
    long n;
    int rc = 0;

    if (bio == NULL) {
        err_set(err, "53200", "out of memory");
        return -1;
    }
    if (file[0] != '\0' && !put_file(file, NULL, bio)) {
        err_set(err, "58P01", "could not load root certificate file \"%s\"", file);
        rc = -1;
    }
    if (rc == 0 && dir[0] != '\0')
        rc = put_folder(dir, bio, err);
    n = BIO_get_mem_data(bio, &text);
    if (rc == 0 && n > 0)
        buf_put(out, text, (size_t)n);
    BIO_free(bio);
    return rc;
}
