/* SPDX-License-Identifier: PostgreSQL
 * conf_struct.h: to be made from params.def by its owner. */
