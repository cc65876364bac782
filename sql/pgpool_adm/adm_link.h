/* SPDX-License-Identifier: PostgreSQL
 * adm_link.h: a connection to pgpool's PCP server.
 * Runs in: a backend of PostgreSQL. */
#ifndef PGPOOL_ADM_LINK_H
#define PGPOOL_ADM_LINK_H

#include "lib/stringinfo.h"

#define ADM_MAX_FIELDS 64

/* Where pgpool is and who asks. */
struct adm_target {
    const char *host; /* beginning with '/': the folder of the socket */
    int port;
    const char *user;
    const char *password;
};

/* One packet of an answer, cut into its strings: views into the packet. */
struct adm_packet {
    char type;
    StringInfoData body;
    int nfields;
    const char *field[ADM_MAX_FIELDS];
};

struct adm_link;

/* Connects and logs in. The link lives until adm_close or the end of the memory context it was made
 * in; it never outlives a cancelled query. Raises an ERROR when that fails. */
extern struct adm_link *adm_open(const struct adm_target *to);
/* Sends one request. */
extern void adm_send(struct adm_link *link, char type, const char *body, size_t n);
/* Waits for the next packet of the answer; notices are passed on, an error of pgpool's is raised.
 */
extern void adm_receive(struct adm_link *link, struct adm_packet *out);
extern void adm_close(struct adm_link *link);

#endif
