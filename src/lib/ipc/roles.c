/* SPDX-License-Identifier: PostgreSQL
 * roles.c: names of the kinds of process. */
#include "config.h"

#include "ipc/roles.h"

#include "base/assert.h"

struct role_names {
    const char *name;
    const char *app_name;
    const char *title;
};

static const struct role_names roles[] = {
#define PROC_ROLE(sym, name, app_name, title) {name, app_name, title},
#include "ipc/roles.def"
#undef PROC_ROLE
};

static const struct role_names *names_of(enum proc_role role)
{
    ASSERT((unsigned)role < ROLE_COUNT);
    return &roles[role];
}

const char *proc_role_name(enum proc_role role)
{
    return names_of(role)->name;
}

const char *proc_role_app_name(enum proc_role role)
{
    return names_of(role)->app_name;
}

const char *proc_role_title(enum proc_role role)
{
    return names_of(role)->title;
}
