/* SPDX-License-Identifier: PostgreSQL
 * passwd.h: the pool_passwd file and the key file that opens its encrypted entries.
 * Runs in: workers (reading), supervisor (checking), pg_md5 and pg_enc (writing).
 *
 * A line is user:value, or user:value:server_user:server_value. "\:" stands for a colon in a field
 * and "\\" for a backslash; any other backslash stands for itself. The value is told by its prefix:
 * md5 + 32 hex digits; AES + base64 (as pgpool-II encrypts); GCM + base64 (ours); TEXT + password;
 * SCRAM-SHA-256$… (a verifier of PostgreSQL, up to the
 * end of the line); anything else is a password in clear text. The first
 * line of a user counts. A line that cannot be used is reported and left out; the others hold. */
#ifndef PGP_AUTH_PASSWD_H
#define PGP_AUTH_PASSWD_H

#include <stdbool.h>
#include <sys/stat.h>

#include "auth/cred.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"
#include "crypto/secret.h"

#define PASSWD_USER_MAX    128
#define PASSWD_VALUE_MAX   2048
#define PASSWD_FILE_MAX    (64 * 1024 * 1024)
#define PASSWD_PREFIX_AES  "AES"
#define PASSWD_PREFIX_GCM  "GCM"
#define PASSWD_PREFIX_TEXT "TEXT"
/* How many bytes of a key count, as in pgpool-II: typed or on the command line; read from a file.
 */
#define PASSWD_KEY_MAX      256
#define PASSWD_FILE_KEY_MAX 255

enum passwd_kind { PASSWD_PLAIN, PASSWD_MD5, PASSWD_AES, PASSWD_GCM, PASSWD_SCRAM };

struct passwd_value {
    enum passwd_kind kind;
    struct slice text; /* without AES, GCM or TEXT */
};

struct passwd_entry {
    unsigned line;
    struct slice user;
    struct passwd_value value;
    struct slice server_user; /* n == 0: the same as `user` */
    struct passwd_value server_value;
};

struct passwd_table; /* an immutable table; wiped when freed */

/* Is told each line that is wrong (an error: the line is left out) or doubtful (a warning). */
typedef void passwd_report_fn(
    const char *file, unsigned line, const struct err *problem, void *ctx);

/* Reads the file. Returns NULL with *err when it cannot be read at all; ENOENT gives 58P01.
 * `report` may be NULL. */
struct passwd_table *passwd_load(
    const char *path, passwd_report_fn *report, void *ctx, struct err *err);
/* Reads a text as passwd_load does a file; `name` is used in reports. Never NULL. */
struct passwd_table *passwd_parse(
    const char *name, struct slice text, passwd_report_fn *report, void *ctx);
void passwd_free(struct passwd_table **pp);
/* The entry of `user`, valid as long as the table; NULL when there is none. */
const struct passwd_entry *passwd_find(const struct passwd_table *p, struct slice user);
unsigned passwd_count(const struct passwd_table *p);
/* Entries of users whose password can be read, encrypted or not. */
unsigned passwd_readable_count(const struct passwd_table *p);
/* The entry behind `e` in the file, or the first (`e` is NULL); NULL behind the last. */
const struct passwd_entry *passwd_next(const struct passwd_table *p, const struct passwd_entry *e);
/* Lines left out. */
unsigned passwd_error_count(const struct passwd_table *p);
/* True when `st` is not the file that was read: read it again. */
bool passwd_is_changed(const struct passwd_table *p, const struct stat *st);
/* Fills *err (as a warning) and returns false when others than the owner (or the group, of a file
 * of root's) can get at a file with secrets. `what` names it in the text. */
bool passwd_mode_is_safe(
    const char *path, const struct stat *st, const char *what, struct err *err);
/* Tells kind and text of one value. */
struct passwd_value passwd_value_of(struct slice stored);
/* Opens a value: decrypts with `key` where needed. -1 with 28000 when the key is missing or wrong.
 */
int passwd_open_value(
    const struct passwd_value *v, const struct secret *key, struct cred *out, struct err *err);
/* Appends one line "user:value\n" with both escaped. */
void passwd_put_line(struct slice user, struct slice value, struct buf *out);
/* Puts `value` in place of the first line of `user` in the file, or appends a line; the file is
 * made (0600) when missing and replaced as a whole, keeping owner and mode. */
int passwd_update(const char *path, struct slice user, struct slice value, struct err *err);

/* Says where the key is to be read from: `option` when not NULL, else $PGPOOLKEYFILE, else
 * .pgpoolkey in the home folder. Owned by the caller (mem_free). NULL when there is no home. */
char *passwd_key_path(const char *option);
/* Reads the first line of the key file into *key. A mode that lets others read it is a warning in
 * *warn (may be NULL), as in pgpool-II; a missing or empty file is an error. */
int passwd_key_load(const char *path, struct secret *key, struct err *warn, struct err *err);

#endif
