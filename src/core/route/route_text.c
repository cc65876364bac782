/* SPDX-License-Identifier: PostgreSQL
 * route_text.c: words for classes and reasons. Runs in: workers. */
#include "config.h"

#include "route/route.h"

#include "base/assert.h"

static const char *const reason_text[] = {
#define ROUTE_REASON(sym, text) [ROUTE_R_##sym] = text,
#include "route/reasons.def"
#undef ROUTE_REASON
};

const char *route_reason_text(enum route_reason reason)
{
    ASSERT((unsigned)reason < ROUTE_REASON_COUNT);
    return reason_text[reason];
}

const char *route_class_text(enum route_class class)
{
    switch (class) {
    case ROUTE_PRIMARY:
        return "primary";
    case ROUTE_EITHER:
        return "either";
    case ROUTE_SESSION:
        return "session";
    case ROUTE_TX:
        return "transaction";
    }
    UNREACHED();
}
