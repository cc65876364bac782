/* SPDX-License-Identifier: PostgreSQL
 * startup.h: the first packet of a connection, decoded and built. Pure. */
#ifndef PGP_WIRE_STARTUP_H
#define PGP_WIRE_STARTUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"
#include "wire/proto.h"

#define STARTUP_MAX_PARAMS 128

enum startup_kind {
    STARTUP_NEED_MORE, /* the packet is not complete */
    STARTUP_SSL,
    STARTUP_GSSENC,
    STARTUP_CANCEL,
    STARTUP_NORMAL,
    STARTUP_SILENT, /* not a start-up packet at all: *err says why, for the log; nobody is told */
    STARTUP_BAD     /* *err says why; the connection has to be closed after telling it */
};

struct startup_param {
    struct slice name;
    struct slice value;
};

/* Views into the packet's bytes. */
struct startup {
    uint32_t packet_bytes; /* whole packet with its length word */
    uint32_t version;      /* as asked for, e.g. PROTO_VERSION(3, 9) */
    /* STARTUP_CANCEL */
    int32_t cancel_pid;
    struct slice cancel_key;
    /* STARTUP_NORMAL */
    struct slice user;
    struct slice database;    /* the user's name when not given or empty */
    struct slice options;     /* empty when not given */
    struct slice replication; /* empty when not given */
    bool is_replication;      /* replication given and not a spelling of false */
    unsigned nparams;         /* all others, in the order given: run-time parameters */
    struct startup_param params[STARTUP_MAX_PARAMS];
    unsigned nunknown; /* protocol options ("_pq_.…") that we do not know */
    struct slice unknown[8];
};

/* Decodes what has arrived. Accepts 3.x; anything else is STARTUP_BAD with PostgreSQL's texts and
 * SQLSTATEs: protocol 2 and unknown majors 0A000 "unsupported frontend protocol 2.0: server
 * supports 3.0 to 3.2"; lengths under 8 or over 10,000 08P01 "invalid length of startup packet";
 * missing user 28000 "no PostgreSQL user name specified in startup packet"; a packet without its
 * final NUL 08P01 "invalid startup packet layout: expected terminator as last byte"; more than
 * STARTUP_MAX_PARAMS parameters 08P01. The first 8 bytes decide about garbage: a caller never waits
 * for bytes of a packet that is refused anyhow. */
enum startup_kind startup_decode(struct slice bytes, struct startup *out, struct err *err);

/* True when `s` is a spelling of false ("0", "off", "false", "no", "f", "n", prefixes as
 * PostgreSQL). */
bool startup_value_is_false(struct slice s);

/* Splits an `options` string at blanks as PostgreSQL does (backslash escapes) into "-c name=value",
 * "-cname=value" and "--name=value" settings (dashes in --names become underscores), calling `fn`
 * for each. Other switches call fn with an empty name and the raw word as value. */
typedef void startup_option_fn(struct slice name, struct slice value, void *ctx);
void startup_split_options(struct slice options, startup_option_fn *fn, void *ctx);

/* Builds a startup packet for a server. `extra` are run-time parameters (options included if the
 * caller wants them). */
void startup_encode(struct buf *out, uint32_t version, struct slice user, struct slice database,
    const struct startup_param *extra, unsigned nextra);
/* Builds a cancel request. */
void startup_encode_cancel(struct buf *out, int32_t pid, struct slice key);

#endif
