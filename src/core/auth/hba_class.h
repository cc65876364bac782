/* SPDX-License-Identifier: PostgreSQL
 * hba_class.h: sets of bytes, and the classes of characters that PostgreSQL knows in locale C. */
#ifndef PGP_AUTH_HBA_CLASS_H
#define PGP_AUTH_HBA_CLASS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

struct hba_set {
    bool has[256];
};

/* Adds what lies between, both ends included; codes above 255 are no bytes. */
void hba_set_add_range(struct hba_set *s, uint32_t from, uint32_t to);
/* Adds a class, or all that is not in it; false when there is none of that name. */
bool hba_set_add_class(struct hba_set *s, struct slice name, bool is_complement);
/* Adds the letters in the other case. */
void hba_set_ignore_case(struct hba_set *s);

#endif
