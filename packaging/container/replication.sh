# SPDX-License-Identifier: PostgreSQL
# The standbys of compose.yaml may log in for replication. Read by the image of PostgreSQL when it makes the primary.
echo 'host replication all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
