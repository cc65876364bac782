/* SPDX-License-Identifier: PostgreSQL
 * admin_view.h: what SHOW says of a node, taken from the cluster view. One place for all who ask:
 * SQL sessions and PCP. Pure. */
#ifndef PGP_ADMIN_ADMIN_VIEW_H
#define PGP_ADMIN_ADMIN_VIEW_H

#include "admin/sources.h"
#include "cluster/view.h"

/* Fills `out`, which is zeroed, for node `id`; counts of statements are left alone. A node that the
 * view does not have leaves it as it is. */
void admin_node_of_view(const struct view *view, int id, struct admin_node *out);

#endif
