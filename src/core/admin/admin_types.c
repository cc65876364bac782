/* SPDX-License-Identifier: PostgreSQL
 * admin_types.c: types of columns by their names, from one table. Runs in: web. */
#include "config.h"

#include <stddef.h>
#include <string.h>

#include "admin/column_types.h"

enum admin_column_type admin_column_type(const char *column)
{
    static const struct {
        const char *column;
        enum admin_column_type type;
    } types[] = {
#define COLUMN_TYPE(column, type) {column, ADMIN_COLUMN_##type},
#include "admin/column_types.def"
#undef COLUMN_TYPE
    };
    size_t i;

    for (i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i].column, column) == 0)
            return types[i].type;
    return ADMIN_COLUMN_TEXT;
}

const char *admin_column_type_name(enum admin_column_type type)
{
    static const char *const names[] = {"text", "integer", "real", "boolean", "time"};

    return names[type];
}
