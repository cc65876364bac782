/* SPDX-License-Identifier: PostgreSQL
 * qcache_int.h: the question and its answer, as the files of this module share them. */
#ifndef PGP_QCACHE_INT_H
#define PGP_QCACHE_INT_H

#include "qcache/qcache.h"

/* The first byte of a name in a question. */
#define QCACHE_ASK_READ     'r'
#define QCACHE_ASK_WRITTEN  'w'
#define QCACHE_ASK_CREATED  'c'
#define QCACHE_ASK_FUNCTION 'f'
/* Added to its number of arguments: it may be a field. */
#define QCACHE_ASK_FIELD 0x8000u

struct qcache_name {
    char kind;
    unsigned nargs; /* of a function */
    bool is_field;  /* of a function: it may be a field instead */
    struct slice schema;
    struct slice name;
};

/* Takes the name at *at (NULL: the first); false behind the last. */
bool qcache_question_next(struct slice question, const char **at, struct qcache_name *out);

/* How many tables are in it. */
unsigned qcache_question_tables(struct slice question);

/* Types whose values change without a write of the table: names in the catalogue (regclass and its
 * like, aclitem, and their arrays), and places of rows, which VACUUM FULL and CLUSTER give anew. */
#define QCACHE_MOVING_TYPES                                                                        \
    24, 27, 1008, 1010, 1033, 1034, 2202, 2203, 2204, 2205, 2206, 2207, 2208, 2209, 2210, 2211,    \
        3734, 3735, 3769, 3770, 4089, 4090, 4096, 4097, 4191, 4192, 8326, 8327

/* Bits of the answer. */
#define ROW_CATALOG  0x01u
#define ROW_TEMP     0x02u
#define ROW_UNLOGGED 0x04u
#define ROW_FOREIGN  0x08u
#define ROW_SEQUENCE 0x10u
#define ROW_VIEW     0x20u
#define ROW_NAMED    0x40u /* the statement itself names it */
#define ROW_MOVES    0x80u /* it has a column of a type of QCACHE_MOVING_TYPES */

/* Of a column: its type, its number above that, and of its table: more
 * rows than one may change with it, by triggers or cascades; it is partitioned. */
#define COLUMN_TRIGGERS    (UINT64_C(1) << 48)
#define COLUMN_PARTITIONED (UINT64_C(1) << 49)

#define FUNC_VOLATILE 0x01u
#define FUNC_STABLE   0x02u
#define FUNC_OF_USER  0x04u

#define DB_ODD        0x01u
#define DB_REPEATABLE 0x02u

#endif
