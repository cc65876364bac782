/* SPDX-License-Identifier: PostgreSQL
 * pg_enc.c: encrypts a password for pool_passwd and prints or stores it. Options, outputs and exit
 * codes are those of pgpool-II's program; --format adds forms that pgpool-II does not have. */
#include "config.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "auth/passwd.h"
#include "auth/scram.h"
#include "base/mem.h"
#include "crypto/cipher.h"
#include "crypto/crypto.h"
#include "passtool.h"

enum format { FORMAT_AES, FORMAT_GCM, FORMAT_SCRAM };

struct options {
    bool prompt;
    bool prompt_for_key;
    bool store;
    enum format format;
    const char *key_file;
    char *key_arg;
    const char *user;
    const char *conf_file;
    const char *input_file;
};

struct job {
    enum format format;
    struct secret key;
    const char *path; /* pool_passwd, or NULL: print */
};

static void usage(FILE *to)
{
    char *key = passwd_key_path(NULL);

    fprintf(to,
        "pg_enc (%s %s) encrypts passwords for pool_passwd.\n\n"
        "Usage:\n"
        "  pg_enc [OPTION]... [PASSWORD]\n\n"
        "  -k, --key-file=FILE     file whose first line is the key\n"
        "                          (now %s; PGPOOLKEYFILE names another)\n"
        "  -K, --enc-key=KEY       the key itself\n"
        "  -P, --prompt-for-key    ask for the key on the terminal\n"
        "  -p, --prompt            ask for the password on the terminal (the default)\n"
        "  -m, --update-pass       store the entry in pool_passwd instead of printing it\n"
        "  -u, --username=USER     the user of the entry (default: the one who runs this)\n"
        "  -f, --config-file=FILE  pgpool.conf, which says where pool_passwd is\n"
        "  -i, --input-file=FILE   read lines user:password from FILE\n"
        "      --format=FORMAT     aes: AES-256-CBC, as pgpool-II (the default)\n"
        "                          gcm: AES-256-GCM, salted and protected against changes\n"
        "                          scram: a SCRAM-SHA-256 verifier; needs no key\n"
        "  -h, --help              this text\n",
        PACKAGE_NAME, PACKAGE_VERSION, key == NULL ? "none: there is no home folder" : key);
    mem_free(key);
}

/* Appends the value as it stands in pool_passwd. */
static int encode(const struct job *job, struct slice password, struct buf *out, struct err *err)
{
    struct scram_verifier v;
    uint8_t salt[SCRAM_SALT_BYTES];

    switch (job->format) {
    case FORMAT_AES:
        buf_put(out, PASSWD_PREFIX_AES, 3);
        return cipher_cbc_encrypt(secret_slice(&job->key), password, out, err);
    case FORMAT_GCM:
        buf_put(out, PASSWD_PREFIX_GCM, 3);
        return cipher_gcm_encrypt(secret_slice(&job->key), password, out, err);
    case FORMAT_SCRAM:
        break;
    }
    if (crypto_random(salt, sizeof salt, err) == -1 ||
        scram_verifier_build(
            password, slice_of((const char *)salt, sizeof salt), SCRAM_ITERATIONS, &v, err) == -1)
        return -1;
    scram_verifier_format(&v, out);
    return 0;
}

static bool handle(const struct job *job, struct slice user, struct slice password)
{
    struct buf value = {0};
    struct err err = {0};
    size_t prefix = job->format == FORMAT_SCRAM ? 0 : 3;
    bool ok = true;

    if (encode(job, password, &value, &err) == -1) {
        fprintf(stderr, "%s\n", err.msg);
        ok = false;
    } else if (job->path != NULL) {
        ok = passtool_store(job->path, user, buf_slice(&value));
    } else {
        printf("\n%.*s\n", (int)(value.len - prefix), value.data + prefix);
        printf("pool_passwd string: %.*s\n", (int)value.len, value.data);
    }
    buf_free(&value);
    return ok;
}

static bool on_pair(unsigned line, struct slice user, struct slice password, void *ctx)
{
    return handle(ctx, user, password);
}

static bool parse_format(const char *text, enum format *out)
{
    static const char *const names[] = {"aes", "gcm", "scram"};
    int i;

    for (i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (enum format)i;
            return true;
        }
    }
    fprintf(stderr, "pg_enc: the format is aes, gcm or scram, not \"%s\"\n", text);
    return false;
}

static void set_option(struct options *o, int c)
{
    switch (c) {
    case 'p':
        o->prompt = true;
        break;
    case 'P':
        o->prompt_for_key = true;
        break;
    case 'm':
        o->store = true;
        break;
    case 'k':
        o->key_file = optarg;
        break;
    case 'K':
        o->key_arg = optarg;
        break;
    case 'u':
        o->user = optarg;
        break;
    case 'f':
        o->conf_file = optarg;
        break;
    case 'i':
        o->input_file = optarg;
        break;
    case 'F':
        if (parse_format(optarg, &o->format))
            break;
        exit(EXIT_FAILURE);
    default: /* pgpool-II: a wrong option shows the usage and is no failure */
        usage(stdout);
        exit(EXIT_SUCCESS);
    }
}

static bool parse_options(int argc, char **argv, struct options *o)
{
    static const struct option longs[] = {{"prompt", no_argument, NULL, 'p'},
        {"prompt-for-key", no_argument, NULL, 'P'}, {"update-pass", no_argument, NULL, 'm'},
        {"key-file", required_argument, NULL, 'k'}, {"enc-key", required_argument, NULL, 'K'},
        {"username", required_argument, NULL, 'u'}, {"config-file", required_argument, NULL, 'f'},
        {"input-file", required_argument, NULL, 'i'}, {"format", required_argument, NULL, 'F'},
        {"help", no_argument, NULL, 'h'}, {0}};
    int c;

    while ((c = getopt_long(argc, argv, "pPmk:K:u:f:i:h", longs, NULL)) != -1)
        set_option(o, c);
    if (o->user == NULL)
        o->user = passtool_os_user();
    return o->user != NULL && strlen(o->user) <= PASSTOOL_MAX_BYTES;
}

/* The key: given, asked for, or from a file. */
static bool get_key(const struct options *o, struct secret *key)
{
    struct err warn = {0};
    struct err err = {0};
    char *path;
    int rc;

    if (o->prompt_for_key)
        return passtool_ask("encryption key", key) && !secret_is_empty(key);
    if (o->key_arg != NULL && o->key_arg[0] != '\0') {
        if (strlen(o->key_arg) > PASSWD_KEY_MAX) /* the zeros end it there */
            mem_wipe(o->key_arg + PASSWD_KEY_MAX, strlen(o->key_arg) - PASSWD_KEY_MAX);
        passtool_take_arg(o->key_arg, key);
        return true;
    }
    path = passwd_key_path(o->key_file);
    if (path == NULL)
        return false;
    printf("trying to read key from file %s\n", path);
    rc = passwd_key_load(path, key, &warn, &err);
    if (err_is_set(&warn))
        fprintf(stderr, "WARNING: %s\n", warn.msg);
    if (rc == -1)
        fprintf(stderr, "%s\n", err.msg);
    mem_free(path);
    return rc == 0;
}

static bool get_password(int argc, char **argv, const struct options *o, struct secret *out)
{
    size_t max = o->format == FORMAT_AES ? PASSTOOL_MAX_BYTES : CIPHER_MAX_PLAIN_BYTES;

    if (o->prompt || optind >= argc) {
        if (!passtool_ask("db password", out))
            return false;
    } else {
        passtool_take_arg(argv[optind], out);
    }
    if (out->n <= max)
        return true;
    fprintf(stderr, "Error: Input exceeds maximum password length given:%zu max allowed:%zu!\n\n",
        out->n, max);
    usage(stderr);
    return false;
}

static bool run(int argc, char **argv, const struct options *o, struct job *job)
{
    struct passtool_words words = {stderr, NULL, "invalid username:password pair"};
    struct secret password = {0};
    struct buf path = {0};
    bool ok = o->input_file != NULL || get_password(argc, argv, o, &password);

    if (ok && job->format != FORMAT_SCRAM && !get_key(o, &job->key)) {
        fprintf(stderr, "encryption key not provided\n");
        ok = false;
    }
    if (ok && o->store) {
        ok = passtool_pool_passwd(o->conf_file, &path);
        job->path = path.data;
    }
    if (ok && o->input_file != NULL)
        ok = passtool_each_pair(o->input_file, &words, on_pair, job);
    else if (ok)
        ok = handle(job, slice_of_str(o->user), secret_slice(&password));
    secret_free(&password);
    buf_free(&path);
    return ok;
}

int main(int argc, char **argv)
{
    struct options o = {0};
    struct job job = {0};
    bool ok;

    if (!parse_options(argc, argv, &o)) {
        fprintf(stderr, "no user name, or one that is too long\n");
        return EXIT_FAILURE;
    }
    job.format = o.format;
    ok = run(argc, argv, &o, &job);
    secret_free(&job.key);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
