/* SPDX-License-Identifier: PostgreSQL
 * expect_script.h: messages of tests by one letter each. */
#ifndef PGP_TEST_EXPECT_SCRIPT_H
#define PGP_TEST_EXPECT_SCRIPT_H

#include "backend/expect.h"

/* Sends: Q P B D E C S F, c for CopyDone. */
static inline void expect_script_send(struct expect *e, const char *msgs, unsigned flags)
{
    static const struct {
        char type;
        unsigned op;
    } map[] = {{'Q', OP_QUERY}, {'P', OP_PARSE}, {'B', OP_BIND}, {'D', OP_DESCRIBE},
        {'E', OP_EXECUTE}, {'C', OP_CLOSE}, {'S', OP_SYNC}, {'F', OP_FUNCTION_CALL},
        {'c', OP_COPY_END}};
    size_t i;

    for (; *msgs != '\0'; msgs++)
        for (i = 0; i < sizeof map / sizeof map[0]; i++)
            if (map[i].type == *msgs)
                expect_push(e, map[i].op | flags);
}

#endif
