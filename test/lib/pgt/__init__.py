# SPDX-License-Identifier: PostgreSQL
"""pgt: the harness of the protocol and cluster tests. See doc/internals/testing.md."""
