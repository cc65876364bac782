/* SPDX-License-Identifier: PostgreSQL
 * alter_table.y: part of sqlgram.y: ALTER TABLE and its like, OPTIONS of foreign data. Runs in: workers. */

/* ---- ALTER TABLE and its like ---- */

alter_table_stmt
    : K_ALTER K_TABLE ddl_relation alter_table_cmds
    | K_ALTER K_TABLE K_IF K_EXISTS ddl_relation alter_table_cmds
    | K_ALTER K_TABLE ddl_relation partition_cmd
    | K_ALTER K_TABLE K_IF K_EXISTS ddl_relation partition_cmd
    | K_ALTER K_TABLE K_ALL K_IN K_TABLESPACE colid opt_owned_by K_SET K_TABLESPACE colid opt_nowait
    | K_ALTER K_INDEX ddl_rel alter_table_cmds
    | K_ALTER K_INDEX K_IF K_EXISTS ddl_rel alter_table_cmds
    | K_ALTER K_INDEX ddl_rel K_ATTACH K_PARTITION ddl_rel
    | K_ALTER K_INDEX K_ALL K_IN K_TABLESPACE colid opt_owned_by K_SET K_TABLESPACE colid opt_nowait
    | K_ALTER K_SEQUENCE ddl_rel alter_table_cmds
    | K_ALTER K_SEQUENCE K_IF K_EXISTS ddl_rel alter_table_cmds
    | K_ALTER K_VIEW ddl_rel alter_table_cmds
    | K_ALTER K_VIEW K_IF K_EXISTS ddl_rel alter_table_cmds
    | K_ALTER K_MATERIALIZED K_VIEW ddl_rel alter_table_cmds
    | K_ALTER K_MATERIALIZED K_VIEW K_IF K_EXISTS ddl_rel alter_table_cmds
    | K_ALTER K_MATERIALIZED K_VIEW K_ALL K_IN K_TABLESPACE colid opt_owned_by K_SET K_TABLESPACE
      colid opt_nowait
    | K_ALTER K_FOREIGN K_TABLE ddl_relation alter_table_cmds
    | K_ALTER K_FOREIGN K_TABLE K_IF K_EXISTS ddl_relation alter_table_cmds
    | K_ALTER K_SEQUENCE ddl_rel sequence_options
    | K_ALTER K_SEQUENCE K_IF K_EXISTS ddl_rel sequence_options
    ;

opt_owned_by
    : K_OWNED K_BY role_list
    | %empty
    ;

partition_cmd
    : K_ATTACH K_PARTITION ddl_rel partition_bound
    | K_DETACH K_PARTITION ddl_rel opt_concurrently
    | K_DETACH K_PARTITION ddl_rel K_FINALIZE
    ;

alter_table_cmds
    : alter_table_cmd
    | alter_table_cmds ',' alter_table_cmd
    ;

alter_table_cmd
    : K_ADD table_column
    | K_ADD if_not_exists table_column
    | K_ADD K_COLUMN table_column
    | K_ADD K_COLUMN if_not_exists table_column
    | K_ALTER opt_column_word colid column_default
    | K_ALTER opt_column_word colid K_DROP K_NOT K_NULL
    | K_ALTER opt_column_word colid K_SET K_NOT K_NULL
    | K_ALTER opt_column_word colid K_SET K_EXPRESSION K_AS '(' a_expr ')'
    | K_ALTER opt_column_word colid K_DROP K_EXPRESSION
    | K_ALTER opt_column_word colid K_DROP K_EXPRESSION K_IF K_EXISTS
    | K_ALTER opt_column_word colid K_SET K_STATISTICS signed_iconst
    | K_ALTER opt_column_word colid K_SET K_STATISTICS K_DEFAULT
    | K_ALTER opt_column_word ICONST K_SET K_STATISTICS signed_iconst
        {
            FLAG(SQL_F_LITERAL_DEPENDS);
            if (sqlp_int(&$3) < 1 || sqlp_int(&$3) > 32767)
                BAD("column number must be in range from 1 to 32767");
        }
    | K_ALTER opt_column_word ICONST K_SET K_STATISTICS K_DEFAULT
        {
            FLAG(SQL_F_LITERAL_DEPENDS);
            if (sqlp_int(&$3) < 1 || sqlp_int(&$3) > 32767)
                BAD("column number must be in range from 1 to 32767");
        }
    | K_ALTER opt_column_word colid K_SET storage_options
    | K_ALTER opt_column_word colid K_RESET storage_options
    | K_ALTER opt_column_word colid K_SET K_STORAGE colid
    | K_ALTER opt_column_word colid K_SET K_STORAGE K_DEFAULT
    | K_ALTER opt_column_word colid K_SET column_compression
    | K_ALTER opt_column_word colid K_ADD K_GENERATED generated_when K_AS K_IDENTITY
      opt_sequence_list
    | K_ALTER opt_column_word colid identity_changes
    | K_ALTER opt_column_word colid K_DROP K_IDENTITY
    | K_ALTER opt_column_word colid K_DROP K_IDENTITY K_IF K_EXISTS
    | K_DROP opt_column_word K_IF K_EXISTS colid opt_behavior
    | K_DROP opt_column_word colid opt_behavior
    | K_ALTER opt_column_word colid opt_set_data K_TYPE type_name opt_collate opt_type_using
    | K_ALTER opt_column_word colid alter_fdw_options
    | K_ADD table_constraint
    | K_ALTER K_CONSTRAINT colid constraint_attrs
        { CHECK_ATTRS($4, ATTR_TIMING | ATTR_ENFORCEMENT | ATTR_NO_INHERIT); }
    | K_ALTER K_CONSTRAINT colid K_INHERIT
    | K_VALIDATE K_CONSTRAINT colid
    | K_DROP K_CONSTRAINT K_IF K_EXISTS colid opt_behavior
    | K_DROP K_CONSTRAINT colid opt_behavior
    | K_SET K_WITHOUT K_OIDS
    | K_CLUSTER K_ON colid
    | K_SET K_WITHOUT K_CLUSTER
    | K_SET K_LOGGED
    | K_SET K_UNLOGGED
    | K_ENABLE K_TRIGGER colid
    | K_ENABLE K_ALWAYS K_TRIGGER colid
    | K_ENABLE K_REPLICA K_TRIGGER colid
    | K_ENABLE K_TRIGGER K_ALL
    | K_ENABLE K_TRIGGER K_USER
    | K_DISABLE K_TRIGGER colid
    | K_DISABLE K_TRIGGER K_ALL
    | K_DISABLE K_TRIGGER K_USER
    | K_ENABLE K_RULE colid
    | K_ENABLE K_ALWAYS K_RULE colid
    | K_ENABLE K_REPLICA K_RULE colid
    | K_DISABLE K_RULE colid
    | K_INHERIT ddl_rel
    | K_NO K_INHERIT ddl_rel
    | K_OF any_name
    | K_NOT K_OF
    | K_OWNER K_TO role
    | K_SET K_ACCESS K_METHOD colid
    | K_SET K_ACCESS K_METHOD K_DEFAULT
    | K_SET K_TABLESPACE colid
    | K_SET storage_options
    | K_RESET storage_options
    | K_REPLICA K_IDENTITY replica_identity
    | K_ENABLE K_ROW K_LEVEL K_SECURITY
    | K_DISABLE K_ROW K_LEVEL K_SECURITY
    | K_FORCE K_ROW K_LEVEL K_SECURITY
    | K_NO K_FORCE K_ROW K_LEVEL K_SECURITY
    | alter_fdw_options
    ;

opt_column_word
    : K_COLUMN
    | %empty
    ;

column_default
    : K_SET K_DEFAULT a_expr
    | K_DROP K_DEFAULT
    ;

opt_set_data
    : K_SET K_DATA
    | %empty
    ;

opt_type_using
    : K_USING a_expr
    | %empty
    ;

identity_changes
    : identity_change
    | identity_changes identity_change
    ;

identity_change
    : K_RESTART
    | K_RESTART opt_with_word number
    | K_SET sequence_option
        {
            if ($2.n == 1)
                BAD("sequence option not supported here");
        }
    | K_SET K_GENERATED generated_when
    ;

replica_identity
    : K_NOTHING
    | K_FULL
    | K_DEFAULT
    | K_USING K_INDEX colid
    ;

/* ---- composite types ---- */

alter_composite_stmt
    : K_ALTER K_TYPE any_name alter_type_cmds
    ;

alter_type_cmds
    : alter_type_cmd
    | alter_type_cmds ',' alter_type_cmd
    ;

alter_type_cmd
    : K_ADD K_ATTRIBUTE column_def opt_behavior
    | K_DROP K_ATTRIBUTE K_IF K_EXISTS colid opt_behavior
    | K_DROP K_ATTRIBUTE colid opt_behavior
    | K_ALTER K_ATTRIBUTE colid opt_set_data K_TYPE type_name opt_collate opt_behavior
    ;

/* ---- OPTIONS of foreign data wrappers ---- */

opt_fdw_options
    : K_OPTIONS '(' fdw_options ')'
    | %empty
    ;

fdw_options
    : fdw_option
    | fdw_options ',' fdw_option
    ;

fdw_option
    : collabel SCONST
    ;

alter_fdw_options
    : K_OPTIONS '(' alter_fdw_list ')'
    ;

alter_fdw_list
    : alter_fdw_item
    | alter_fdw_list ',' alter_fdw_item
    ;

alter_fdw_item
    : fdw_option
    | K_SET fdw_option
    | K_ADD fdw_option
    | K_DROP collabel
    ;

