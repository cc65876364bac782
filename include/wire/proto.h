/* SPDX-License-Identifier: PostgreSQL
 * proto.h: numbers of the frontend/backend protocol, versions 3.0 to 3.2. */
#ifndef PGP_WIRE_PROTO_H
#define PGP_WIRE_PROTO_H

#include <stdint.h>

#define PROTO_VERSION(major, minor) (((uint32_t)(major) << 16) | (uint32_t)(minor))
#define PROTO_3_0                   PROTO_VERSION(3, 0)
#define PROTO_3_2                   PROTO_VERSION(3, 2)
#define PROTO_CANCEL                PROTO_VERSION(1234, 5678)
#define PROTO_SSL                   PROTO_VERSION(1234, 5679)
#define PROTO_GSSENC                PROTO_VERSION(1234, 5680)

#define PROTO_STARTUP_MAX_BYTES 10000 /* PostgreSQL's own limit of a startup packet */
#define PROTO_AUTH_MAX_BYTES    65535 /* of one message before authentication is done */
#define PROTO_KEY_MAX_BYTES     256   /* cancel key of protocol 3.2 */
#define PROTO_KEY_OLD_BYTES     4     /* cancel key of protocol 3.0 */
#define PROTO_HEADER_BYTES      5     /* type and length of an ordinary message */

/* Messages a client sends. */
enum fe_msg {
    FE_BIND = 'B',
    FE_CLOSE = 'C',
    FE_COPY_DATA = 'd',
    FE_COPY_DONE = 'c',
    FE_COPY_FAIL = 'f',
    FE_DESCRIBE = 'D',
    FE_EXECUTE = 'E',
    FE_FLUSH = 'H',
    FE_FUNCTION_CALL = 'F',
    FE_PARSE = 'P',
    FE_PASSWORD = 'p', /* also SASL and GSS responses */
    FE_QUERY = 'Q',
    FE_SYNC = 'S',
    FE_TERMINATE = 'X'
};

/* Messages a server sends. */
enum be_msg {
    BE_AUTHENTICATION = 'R',
    BE_BACKEND_KEY_DATA = 'K',
    BE_BIND_COMPLETE = '2',
    BE_CLOSE_COMPLETE = '3',
    BE_COMMAND_COMPLETE = 'C',
    BE_COPY_BOTH = 'W',
    BE_COPY_DATA = 'd',
    BE_COPY_DONE = 'c',
    BE_COPY_IN = 'G',
    BE_COPY_OUT = 'H',
    BE_DATA_ROW = 'D',
    BE_EMPTY_QUERY = 'I',
    BE_ERROR = 'E',
    BE_FUNCTION_RESULT = 'V',
    BE_NEGOTIATE = 'v',
    BE_NO_DATA = 'n',
    BE_NOTICE = 'N',
    BE_NOTIFICATION = 'A',
    BE_PARAMETER_DESCRIPTION = 't',
    BE_PARAMETER_STATUS = 'S',
    BE_PARSE_COMPLETE = '1',
    BE_PORTAL_SUSPENDED = 's',
    BE_READY = 'Z',
    BE_ROW_DESCRIPTION = 'T'
};

/* Codes in an AuthenticationXxx message. */
enum auth_code {
    AUTH_OK = 0,
    AUTH_KERBEROS = 2,
    AUTH_CLEARTEXT = 3,
    AUTH_MD5 = 5,
    AUTH_GSS = 7,
    AUTH_GSS_CONTINUE = 8,
    AUTH_SSPI = 9,
    AUTH_SASL = 10,
    AUTH_SASL_CONTINUE = 11,
    AUTH_SASL_FINAL = 12
};

static inline uint32_t proto_get_u32(const char *p)
{
    const unsigned char *u = (const unsigned char *)p;

    return ((uint32_t)u[0] << 24) | ((uint32_t)u[1] << 16) | ((uint32_t)u[2] << 8) | u[3];
}

/* The number of rows in a whole CommandComplete at `p`, whose length field is `n`: the digits that
 * its tag ends with; 0: there are none. */
static inline uint64_t proto_tag_rows(const char *p, uint32_t n)
{
    const char *at = p + n; /* the NUL */
    uint64_t rows = 0;
    uint64_t unit = 1;

    if (n < 6 || *at != '\0')
        return 0;
    while (at > p + 5 && at[-1] >= '0' && at[-1] <= '9' && unit < (uint64_t)1e18) {
        rows += (uint64_t)(*--at - '0') * unit;
        unit *= 10;
    }
    return rows;
}

static inline void proto_put_u32(char *p, uint32_t v)
{
    p[0] = (char)(v >> 24);
    p[1] = (char)(v >> 16);
    p[2] = (char)(v >> 8);
    p[3] = (char)v;
}

static inline uint16_t proto_get_u16(const char *p)
{
    const unsigned char *u = (const unsigned char *)p;

    return (uint16_t)((u[0] << 8) | u[1]);
}

#endif
