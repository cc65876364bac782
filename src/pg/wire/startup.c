/* SPDX-License-Identifier: PostgreSQL
 * startup.c: the first packet of a connection, decoded and built.
 * Runs in: worker (from clients, to servers). Whoever can reach the port can send this packet, so
 * its length and version are judged as soon as eight bytes are there; nothing waits for the rest of
 * a packet that will be refused. Must never read behind `bytes`. */
#include "config.h"

#include "wire/startup.h"

#include <string.h>
#include <strings.h>

#include "wire/reader.h"

#define STARTUP_MIN_BYTES   8
#define CANCEL_HEAD_BYTES   12
#define PROTOCOL_MAJOR      3
#define PROTOCOL_OPTION_TAG "_pq_."

static enum startup_kind startup_bad(struct err *err, const char *sqlstate, const char *text)
{
    err_set_fatal(err, sqlstate, "%s", text);
    return STARTUP_BAD;
}

/* Judges by length and version alone. STARTUP_NORMAL, STARTUP_CANCEL, ... say what it will be. */
static enum startup_kind startup_classify(uint32_t bytes, uint32_t version, struct err *err)
{
    switch (version) {
    case PROTO_SSL:
    case PROTO_GSSENC:
        if (bytes != STARTUP_MIN_BYTES)
            return startup_bad(err, "08P01", "invalid length of startup packet");
        return version == PROTO_SSL ? STARTUP_SSL : STARTUP_GSSENC;
    case PROTO_CANCEL:
        if (bytes <= CANCEL_HEAD_BYTES || bytes > CANCEL_HEAD_BYTES + PROTO_KEY_MAX_BYTES)
            return startup_bad(err, "08P01", "invalid length of query cancel packet");
        return STARTUP_CANCEL;
    default:
        break;
    }
    if (version >> 16 != PROTOCOL_MAJOR) {
        err_set_fatal(err, "0A000",
            "unsupported frontend protocol %u.%u: server supports 3.0 to 3.%u", version >> 16,
            version & 0xFFFF, PROTO_3_2 & 0xFFFF);
        return STARTUP_BAD;
    }
    return STARTUP_NORMAL;
}

static bool slice_has_prefix(struct slice s, const char *prefix)
{
    size_t n = strlen(prefix);

    return s.n >= n && memcmp(s.p, prefix, n) == 0;
}

/* Files one parameter where it belongs; of repeated ones the last counts, as in PostgreSQL. */
static int startup_add(struct startup *out, struct slice name, struct slice value, struct err *err)
{
    if (slice_eq_str(name, "user")) {
        out->user = value;
    } else if (slice_eq_str(name, "database")) {
        out->database = value;
    } else if (slice_eq_str(name, "options")) {
        out->options = value;
    } else if (slice_eq_str(name, "replication")) {
        out->replication = value;
        out->is_replication = !startup_value_is_false(value);
    } else if (slice_has_prefix(name, PROTOCOL_OPTION_TAG)) {
        if (out->nunknown == sizeof out->unknown / sizeof out->unknown[0]) {
            err_set_fatal(err, "08P01", "too many protocol options in startup packet");
            return -1;
        }
        out->unknown[out->nunknown++] = name;
    } else {
        if (out->nparams == STARTUP_MAX_PARAMS) {
            err_set_fatal(err, "08P01", "too many parameters in startup packet");
            err_detail(err, "The limit is %d.", STARTUP_MAX_PARAMS);
            return -1;
        }
        out->params[out->nparams++] = (struct startup_param){name, value};
    }
    return 0;
}

static enum startup_kind startup_decode_params(
    struct wire_reader *r, struct startup *out, struct err *err)
{
    struct slice name = wire_get_cstr(r);
    struct slice value;

    while (name.n > 0) {
        value = wire_get_cstr(r);
        if (r->bad)
            break;
        if (startup_add(out, name, value, err) != 0)
            return STARTUP_BAD;
        name = wire_get_cstr(r);
    }
    if (!wire_reader_ok(r)) {
        return startup_bad(
            err, "08P01", "invalid startup packet layout: expected terminator as last byte");
    }
    if (out->user.n == 0)
        return startup_bad(err, "28000", "no PostgreSQL user name specified in startup packet");
    if (out->database.n == 0)
        out->database = out->user;
    return STARTUP_NORMAL;
}

/* Clears all but the long table, which nparams guards. */
static void startup_clear(struct startup *out)
{
    struct slice none = slice_of("", 0);

    out->packet_bytes = 0;
    out->version = 0;
    out->cancel_pid = 0;
    out->cancel_key = none;
    out->user = none;
    out->database = none;
    out->options = none;
    out->replication = none;
    out->is_replication = false;
    out->nparams = 0;
    out->nunknown = 0;
}

enum startup_kind startup_decode(struct slice bytes, struct startup *out, struct err *err)
{
    struct wire_reader r;
    enum startup_kind kind;

    startup_clear(out);
    if (bytes.n < 4)
        return STARTUP_NEED_MORE;
    out->packet_bytes = proto_get_u32(bytes.p);
    if (out->packet_bytes < STARTUP_MIN_BYTES || out->packet_bytes > PROTO_STARTUP_MAX_BYTES) {
        (void)startup_bad(err, "08P01", "invalid length of startup packet");
        return STARTUP_SILENT;
    }
    if (bytes.n < STARTUP_MIN_BYTES)
        return STARTUP_NEED_MORE;
    out->version = proto_get_u32(bytes.p + 4);
    kind = startup_classify(out->packet_bytes, out->version, err);
    if (kind == STARTUP_BAD)
        return kind;
    if (bytes.n < out->packet_bytes)
        return STARTUP_NEED_MORE;
    wire_reader_init(
        &r, slice_of(bytes.p + STARTUP_MIN_BYTES, out->packet_bytes - STARTUP_MIN_BYTES));
    if (kind == STARTUP_CANCEL) {
        out->cancel_pid = (int32_t)wire_get_u32(&r);
        out->cancel_key = wire_get_bytes(&r, (uint32_t)wire_reader_left(&r));
    } else if (kind == STARTUP_NORMAL) {
        kind = startup_decode_params(&r, out, err);
    }
    return kind;
}

bool startup_value_is_false(struct slice s)
{
    /* Any prefix of a word counts, but "o" could become "on" as well. */
    static const struct {
        const char *word;
        size_t min;
    } spellings[] = {{"false", 1}, {"no", 1}, {"off", 2}, {"0", 1}};
    size_t i;

    for (i = 0; i < sizeof spellings / sizeof spellings[0]; i++) {
        if (s.n >= spellings[i].min && s.n <= strlen(spellings[i].word) &&
            strncasecmp(s.p, spellings[i].word, s.n) == 0)
            return true;
    }
    return false;
}

static void put_string(struct buf *b, struct slice s)
{
    /* Ends at the first NUL: a value must not become the next parameter's name. */
    buf_put(b, s.p, s.n == 0 ? 0 : strnlen(s.p, s.n));
    buf_put_byte(b, '\0');
}

static void put_param(struct buf *b, struct slice name, struct slice value)
{
    put_string(b, name);
    put_string(b, value);
}

void startup_encode(struct buf *out, uint32_t version, struct slice user, struct slice database,
    const struct startup_param *extra, unsigned nextra)
{
    size_t start = buf_unread(out);
    unsigned i;

    buf_put_u32(out, 0);
    buf_put_u32(out, version);
    put_param(out, slice_of_str("user"), user);
    if (database.n > 0)
        put_param(out, slice_of_str("database"), database);
    for (i = 0; i < nextra; i++) {
        /* An empty name would end the packet early. */
        if (extra[i].name.n > 0 && extra[i].name.p[0] != '\0')
            put_param(out, extra[i].name, extra[i].value);
    }
    buf_put_byte(out, '\0');
    proto_put_u32(out->data + out->pos + start, (uint32_t)(buf_unread(out) - start));
}

void startup_encode_cancel(struct buf *out, int32_t pid, struct slice key)
{
    buf_put_u32(out, (uint32_t)(CANCEL_HEAD_BYTES + key.n));
    buf_put_u32(out, PROTO_CANCEL);
    buf_put_u32(out, (uint32_t)pid);
    buf_put(out, key.p, key.n);
}
