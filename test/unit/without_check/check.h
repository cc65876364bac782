/* SPDX-License-Identifier: PostgreSQL
 * check.h: stands in for that of Check where configure has not found it. */
#ifndef PGP_TEST_WITHOUT_CHECK_H
#define PGP_TEST_WITHOUT_CHECK_H

#error "make check needs Check (Debian: check), which configure has not found"

#endif
