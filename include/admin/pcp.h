/* SPDX-License-Identifier: PostgreSQL
 * pcp.h: packets of PCP, the protocol of administrators: a type, a length, strings with their NULs.
 * Runs in: control (the server's side), the program pcp (the client's side). Pure. The other side
 * is never trusted: every length is checked here, once. */
#ifndef PGP_ADMIN_PCP_H
#define PGP_ADMIN_PCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"

#define PCP_HEADER_BYTES 5 /* type and length */
#define PCP_SALT_BYTES   4
#define PCP_USER_BYTES   128
/* Words that begin the body of an answer. */
#define PCP_COMPLETE  "CommandComplete"
#define PCP_SIZE      "ArraySize"
#define PCP_NODE      "NodeInfo"
#define PCP_PROCESS   "ProcessInfo"
#define PCP_SETTING   "ProcessConfig"
#define PCP_LOGIN_OK  "AuthenticationOK"
#define PCP_RECOVERED "RecoveryInfo"
/* What a request about recoveries begins with. */
#define PCP_STATUS "status"
#define PCP_WATCH  "watch"
/* What an order begins with; behind it the database, empty for all. */
#define PCP_PAUSE     "pause"
#define PCP_RESUME    "resume"
#define PCP_DRAIN     "drain"
#define PCP_RECONNECT "reconnect"
/* Weights travel as a part of this. */
#define PCP_WEIGHT_WHOLE 2147483647.0

/* Types of requests and of their answers. */
enum pcp_type {
#define PCP_REQUEST(SYM, request, answer, text) PCP_##SYM = request,
#include "admin/pcp_requests.def"
#undef PCP_REQUEST
    PCP_ANSWER_SALT = 'm',
    PCP_ANSWER_LOGIN = 'r',
    PCP_ANSWER_SASL = 's',
    PCP_ANSWER_ERROR = 'E',
    PCP_ANSWER_NOTICE = 'N'
};

struct pcp_packet {
    char type;
    struct slice body; /* a view into the input */
};

/* Reads the packet at the start of `in`. Returns 1 and sets *used to the bytes it takes; 0 when
 * more bytes are needed; -1 when the length is impossible or the packet longer than `max_bytes`. */
int pcp_read(struct slice in, size_t max_bytes, struct pcp_packet *out, size_t *used);
/* Takes the next string from *rest, without its NUL; false when there is none with an end. */
bool pcp_take_str(struct slice *rest, struct slice *out);
/* Takes the next string from *rest as a decimal number and nothing else; false when it is none. */
bool pcp_take_int(struct slice *rest, int *out);
/* The type of the answer to a request; 0 for a request that does not exist. */
char pcp_answer_type(char request);

/* Begins a packet; what is put into `out` until pcp_end is its body. Returns the mark for pcp_end.
 */
size_t pcp_begin(struct buf *out, char type);
void pcp_end(struct buf *out, size_t mark);
/* Puts a string and its NUL. */
void pcp_put_slice(struct buf *out, struct slice text);
void pcp_put_int(struct buf *out, int64_t v);
/* Puts a whole packet that holds one word. */
void pcp_put_word(struct buf *out, char type, const char *word);
/* Puts an error or notice: severity, SQLSTATE, message, detail, hint. */
void pcp_put_err(struct buf *out, char type, const char *severity, const struct err *err);

#endif
