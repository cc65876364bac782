/* SPDX-License-Identifier: PostgreSQL
 * pg_md5.c: prints the md5 form of a password, or stores it in pool_passwd. Options, outputs and
 * exit codes are those of pgpool-II's program; --scram, which that does not have, makes a verifier
 * in place of an md5. */
#include "config.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "auth/cred.h"
#include "auth/scram.h"
#include "base/mem.h"
#include "crypto/crypto.h"
#include "passtool.h"

#define OPT_SCRAM 1000

struct options {
    bool prompt;
    bool store;
    bool scram;
    const char *user;
    const char *conf_file;
    const char *input_file;
};

struct job {
    const char *path; /* pool_passwd, or NULL: print */
    bool scram;
};

static void usage(FILE *to)
{
    fputs("pg_md5 makes md5 passwords for pool_passwd and pcp.conf.\n\n"
          "Usage:\n"
          "  pg_md5 [OPTION]... [PASSWORD]\n\n"
          "  -p, --prompt            ask for the password on the terminal\n"
          "  -m, --md5auth           store md5(password, user) in pool_passwd instead of printing\n"
          "  -u, --username=USER     the user of the entry (default: the one who runs this)\n"
          "  -f, --config-file=FILE  pgpool.conf, which says where pool_passwd is\n"
          "  -i, --input-file=FILE   read lines user:password from FILE\n"
          "      --scram             a SCRAM-SHA-256 verifier in place of an md5: for pcp.conf, "
          "whose\n"
          "                          users need the pcp_* tools of this program then\n"
          "  -h, --help              this text\n\n"
          "User names and passwords have at most 128 bytes. A password on the command line can be\n"
          "seen by others in the list of processes: better let pg_md5 ask, or use a file.\n",
        to);
}

/* Appends what is printed or stored. */
static int encode(const struct job *job, struct slice user, struct slice password, struct buf *out,
    struct err *err)
{
    char text[CRED_MD5_BYTES + 1];
    uint8_t salt[SCRAM_SALT_BYTES];
    struct scram_verifier v;
    int rc;

    if (job->scram) {
        if (crypto_random(salt, sizeof salt, err) == -1 ||
            scram_verifier_build(password, slice_of((const char *)salt, sizeof salt),
                SCRAM_ITERATIONS, &v, err) == -1)
            return -1;
        scram_verifier_format(&v, out);
        mem_wipe(&v, sizeof v);
        return 0;
    }
    rc = job->path != NULL ? cred_make_md5(user, password, text, err)
                           : crypto_md5_hex(password, slice_of("", 0), text, err);
    if (rc == 0)
        buf_put(out, text, strlen(text));
    return rc;
}

/* Prints or stores one password. */
static bool handle(const struct job *job, struct slice user, struct slice password)
{
    struct buf text = {0};
    struct err err = {0};
    bool ok = true;

    if (encode(job, user, password, &text, &err) == -1) {
        fprintf(stderr, "%s\n", err.msg);
        ok = false;
    } else if (job->path != NULL) {
        ok = passtool_store(job->path, user, buf_slice(&text));
    } else {
        printf("%.*s\n", (int)text.len, text.data);
    }
    buf_free(&text);
    return ok;
}

static bool on_pair(unsigned line, struct slice user, struct slice password, void *ctx)
{
    printf("LINE#%02u: USER: <%.*s>\n", line, (int)user.n, user.p);
    return handle(ctx, user, password);
}

static bool parse_options(int argc, char **argv, struct options *o)
{
    static const struct option longs[] = {{"prompt", no_argument, NULL, 'p'},
        {"md5auth", no_argument, NULL, 'm'}, {"username", required_argument, NULL, 'u'},
        {"config-file", required_argument, NULL, 'f'}, {"input-file", required_argument, NULL, 'i'},
        {"help", no_argument, NULL, 'h'}, {"scram", no_argument, NULL, OPT_SCRAM}, {0}};
    int c;

    while ((c = getopt_long(argc, argv, "pmu:f:i:h", longs, NULL)) != -1) {
        switch (c) {
        case 'p':
            o->prompt = true;
            break;
        case 'm':
            o->store = true;
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
        case OPT_SCRAM:
            o->scram = true;
            break;
        default: /* pgpool-II: a wrong option shows the usage and is no failure */
            usage(stdout);
            exit(EXIT_SUCCESS);
        }
    }
    if (o->user == NULL)
        o->user = passtool_os_user();
    return o->user != NULL && strlen(o->user) <= PASSTOOL_MAX_BYTES;
}

/* Gets the one password that the command line or the terminal gives. */
static bool get_password(int argc, char **argv, const struct options *o, struct secret *out)
{
    if (o->prompt)
        return passtool_ask("password", out);
    if (optind >= argc) {
        usage(stdout);
        return false;
    }
    passtool_take_arg(argv[optind], out);
    return true;
}

static int run_one(int argc, char **argv, const struct options *o, const struct job *job)
{
    struct secret password = {0};
    bool ok = get_password(argc, argv, o, &password);

    if (ok && password.n > PASSTOOL_MAX_BYTES) {
        fprintf(stderr, "Error: Input exceeds maximum password length!\n\n");
        usage(stderr);
        ok = false;
    }
    if (ok)
        ok = handle(job, slice_of_str(o->user), secret_slice(&password));
    secret_free(&password);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    static const char blank[] = "BLANK LINE";
    static const char invalid[] = "Invalid username:password pair";
    struct passtool_words words = {stdout, blank, invalid};
    struct options o = {0};
    struct job job = {0};
    struct buf path = {0};
    int rc;

    if (!parse_options(argc, argv, &o)) {
        fprintf(stderr, "no user name, or one that is too long\n");
        return EXIT_FAILURE;
    }
    job.scram = o.scram;
    if (o.store) {
        if (!passtool_pool_passwd(o.conf_file, &path))
            return EXIT_FAILURE;
        job.path = path.data;
    }
    if (o.input_file != NULL)
        rc = passtool_each_pair(o.input_file, &words, on_pair, &job) ? EXIT_SUCCESS : EXIT_FAILURE;
    else
        rc = run_one(argc, argv, &o, &job);
    buf_free(&path);
    return rc;
}
