/* SPDX-License-Identifier: PostgreSQL
 * cert_dates.h: until when the certificates last that the settings name, as their files were when
 * they were read: workers use what they read at the start or at the last reload, whatever the files
 * hold since. Runs in: monitor, web. */
#ifndef PGP_PROCESS_CERT_DATES_H
#define PGP_PROCESS_CERT_DATES_H

#include <stdbool.h>
#include <stdint.h>

#include "config/conf.h"
#include "ipc/proc.h"

#define CERT_DATES_SOON_S  (INT64_C(14) * 86400) /* from then on it is told of */
#define CERT_DATES_AGAIN_S INT64_C(86400)        /* and again so often */
#define CERT_DATE_BYTES    32

struct cert_date {
    char setting[32]; /* that names the file: the first one, where several do */
    int node;         /* of backend_ssl_cert; -1 */
    char file[PROC_PATH_BYTES];
    int64_t expires_s; /* since 1970; of a chain: the first of its certificates */
    int64_t told_s;    /* 0: not yet */
};

/* Zeroed there are none. */
struct cert_dates {
    int n;
    struct cert_date *row[CONF_MAX_NODES + 1];
};

/* Takes those that are in use. Files that cannot be read are left out: those who need them say so.
 */
void cert_dates_read(struct cert_dates *d, const struct conf_gen *gen);
void cert_dates_free(struct cert_dates *d);
/* When the certificate is to be told of next. Pure. */
int64_t cert_date_due_s(const struct cert_date *c);
/* How long from now until one is, at most a day: clocks are set. Pure. */
int64_t cert_dates_wait_s(const struct cert_dates *d, int64_t now_s);
/* The one that expires first; NULL: there is none. Pure. */
const struct cert_date *cert_dates_first(const struct cert_dates *d);
/* "2020-02-01 00:00:00 GMT". */
void cert_date_text(int64_t at_s, char out[CERT_DATE_BYTES]);

#endif
