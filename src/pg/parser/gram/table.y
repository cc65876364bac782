/* SPDX-License-Identifier: PostgreSQL
 * table.y: part of sqlgram.y: CREATE TABLE, views, sequences, indexes, constraints. Runs in: workers. */

/* ---- CREATE TABLE ---- */

/* The value's flags are those of the table that is created. */
opt_temp
    : temp_word                             { $$.flags = SQL_TABLE_TEMP; FLAG(SQL_F_TEMP); }
    | K_UNLOGGED                            { $$.flags = 0; FLAG(SQL_F_UNLOGGED); }
    | %empty                                { NONE($$); }
    ;

if_not_exists
    : K_IF K_NOT K_EXISTS
    ;

create_table_stmt
    : K_CREATE opt_temp K_TABLE qname table_body opt_inherits table_tail
        { CREATED($4, $2); }
    | K_CREATE opt_temp K_TABLE if_not_exists qname table_body opt_inherits table_tail
        { CREATED($5, $2); }
    | K_CREATE opt_temp K_TABLE qname K_OF any_name opt_typed_elements table_tail
        { CREATED($4, $2); }
    | K_CREATE opt_temp K_TABLE if_not_exists qname K_OF any_name opt_typed_elements table_tail
        { CREATED($5, $2); }
    | K_CREATE opt_temp K_TABLE qname K_PARTITION K_OF ddl_rel opt_typed_elements partition_bound
      table_tail                            { CREATED($4, $2); }
    | K_CREATE opt_temp K_TABLE if_not_exists qname K_PARTITION K_OF ddl_rel opt_typed_elements
      partition_bound table_tail            { CREATED($5, $2); }
    ;

table_body
    : '(' opt_table_elements ')'
    ;

table_tail
    : opt_partition_spec opt_access_method opt_with_storage opt_on_commit opt_tablespace
    ;

/* A relation that a DDL statement names. */
ddl_rel
    : qname                                 { sqlp_rel(st, &$1, SQL_TABLE_DDL); }
    ;

ddl_rels
    : ddl_rel
    | ddl_rels ',' ddl_rel
    ;

ddl_relation
    : relation                              { sqlp_rel(st, &$1, SQL_TABLE_DDL); }
    ;

opt_table_elements
    : table_elements
    | %empty
    ;

table_elements
    : table_element
    | table_elements ',' table_element
    ;

table_element
    : table_column
    | K_LIKE ddl_rel like_options
    | table_constraint
    ;

opt_typed_elements
    : '(' typed_elements ')'
    | %empty
    ;

typed_elements
    : typed_element
    | typed_elements ',' typed_element
    ;

typed_element
    : colid column_quals
    | colid K_WITH K_OPTIONS column_quals
    | table_constraint
    ;

table_column
    : colid type_name opt_column_storage opt_column_compression opt_fdw_options column_quals
    ;

opt_column_storage
    : K_STORAGE colid
    | K_STORAGE K_DEFAULT
    | %empty
    ;

column_compression
    : K_COMPRESSION colid
    | K_COMPRESSION K_DEFAULT
    ;

opt_column_compression
    : column_compression
    | %empty
    ;

/* The value's n is 1 once there is a COLLATE. */
column_quals
    : column_quals column_qual
    | column_quals K_COLLATE any_name
        {
            if ($1.n)
                BAD("multiple COLLATE clauses not allowed");
            $$.n = 1;
        }
    | %empty                                { NONE($$); }
    ;

column_qual
    : K_CONSTRAINT colid column_constraint
    | column_constraint
    | column_attribute
    ;

column_constraint
    : K_NOT K_NULL opt_no_inherit
    | K_NULL
    | K_UNIQUE opt_nulls_distinct opt_definition opt_index_tablespace
    | K_PRIMARY K_KEY opt_definition opt_index_tablespace
    | K_CHECK '(' a_expr ')' opt_no_inherit
    | K_DEFAULT b_expr
    | K_GENERATED generated_when K_AS K_IDENTITY opt_sequence_list
    | K_GENERATED generated_when K_AS '(' a_expr ')' opt_stored
        {
            if ($2.n != 1)
                BAD("for a generated column, GENERATED ALWAYS must be specified");
        }
    | K_REFERENCES ddl_rel opt_column_list key_match key_actions
    ;

opt_nulls_distinct
    : K_NULLS K_DISTINCT
    | K_NULLS K_NOT K_DISTINCT
    | %empty
    ;

generated_when
    : K_ALWAYS                              { $$.n = 1; }
    | K_BY K_DEFAULT                        { $$.n = 2; }
    ;

opt_stored
    : K_STORED
    | K_VIRTUAL
    | %empty
    ;

opt_no_inherit
    : K_NO K_INHERIT
    | %empty
    ;

column_attribute
    : K_DEFERRABLE
    | K_NOT K_DEFERRABLE
    | K_INITIALLY K_DEFERRED
    | K_INITIALLY K_IMMEDIATE
    | K_ENFORCED
    | K_NOT K_ENFORCED
    ;

like_options
    : like_options K_INCLUDING like_option
    | like_options K_EXCLUDING like_option
    | %empty
    ;

like_option
    : K_COMMENTS
    | K_COMPRESSION
    | K_CONSTRAINTS
    | K_DEFAULTS
    | K_IDENTITY
    | K_GENERATED
    | K_INDEXES
    | K_STATISTICS
    | K_STORAGE
    | K_ALL
    ;

/* The value's n holds ATTR_ bits. */
table_constraint
    : K_CONSTRAINT colid table_constraint_el { $$ = $3; }
    | table_constraint_el
    ;

table_constraint_el
    : K_CHECK '(' a_expr ')' constraint_attrs
        { TAKE_ATTRS($$, $5, ATTR_NOT_VALID | ATTR_NO_INHERIT | ATTR_ENFORCEMENT); }
    | K_NOT K_NULL colid constraint_attrs
        { TAKE_ATTRS($$, $4, ATTR_NO_INHERIT | ATTR_NOT_VALID); }
    | K_UNIQUE opt_nulls_distinct '(' columns opt_without_overlaps ')' opt_include opt_definition
      opt_index_tablespace constraint_attrs { TAKE_ATTRS($$, $10, ATTR_TIMING); }
    | K_UNIQUE existing_index constraint_attrs  { TAKE_ATTRS($$, $3, ATTR_TIMING); }
    | K_PRIMARY K_KEY '(' columns opt_without_overlaps ')' opt_include opt_definition
      opt_index_tablespace constraint_attrs { TAKE_ATTRS($$, $10, ATTR_TIMING); }
    | K_PRIMARY K_KEY existing_index constraint_attrs   { TAKE_ATTRS($$, $4, ATTR_TIMING); }
    | K_EXCLUDE opt_index_method '(' exclusions ')' opt_include opt_definition
      opt_index_tablespace opt_exclusion_where constraint_attrs
        { TAKE_ATTRS($$, $10, ATTR_TIMING); }
    | K_FOREIGN K_KEY '(' columns opt_period ')' K_REFERENCES ddl_rel opt_period_columns
      key_match key_actions constraint_attrs
        { TAKE_ATTRS($$, $12, ATTR_TIMING | ATTR_NOT_VALID | ATTR_ENFORCEMENT); }
    ;

/* Constraints of domains: up to PostgreSQL 16 the grammar takes any table constraint. */
domain_constraint
    : table_constraint
        {
            if ($1.n & ATTR_ENFORCEMENT)
                BAD("constraints of domains cannot be marked so");
        }
    | K_NOT K_NULL
    | K_CONSTRAINT colid K_NOT K_NULL
    ;

/* The value's n holds ATTR_ bits. */
constraint_attrs
    : constraint_attrs constraint_attr
        {
            $$.n = $1.n | $2.n;
            if (sqlp_attrs_conflict($$.n))
                BAD("conflicting constraint properties");
        }
    | %empty                                { NONE($$); }
    ;

constraint_attr
    : K_NOT K_DEFERRABLE                    { $$.n = ATTR_NOT_DEFERRABLE; }
    | K_DEFERRABLE                          { $$.n = ATTR_DEFERRABLE; }
    | K_INITIALLY K_IMMEDIATE               { $$.n = ATTR_IMMEDIATE; }
    | K_INITIALLY K_DEFERRED                { $$.n = ATTR_DEFERRED; }
    | K_NOT K_VALID                         { $$.n = ATTR_NOT_VALID; }
    | K_NO K_INHERIT                        { $$.n = ATTR_NO_INHERIT; }
    | K_NOT K_ENFORCED                      { $$.n = ATTR_NOT_ENFORCED; }
    | K_ENFORCED                            { $$.n = ATTR_ENFORCED; }
    ;

opt_without_overlaps
    : K_WITHOUT K_OVERLAPS
    | %empty
    ;

opt_period
    : ',' K_PERIOD colid
    | %empty
    ;

opt_period_columns
    : '(' columns opt_period ')'
    | %empty
    ;

opt_include
    : K_INCLUDE '(' columns ')'
    | %empty
    ;

existing_index
    : K_USING K_INDEX colid
    ;

exclusions
    : exclusion
    | exclusions ',' exclusion
    ;

exclusion
    : index_elem K_WITH operator_any
    | index_elem K_WITH K_OPERATOR '(' operator_any ')'
    ;

opt_exclusion_where
    : K_WHERE '(' a_expr ')'
    | %empty
    ;

key_match
    : K_MATCH K_FULL
    | K_MATCH K_SIMPLE
    | %empty
    ;

key_actions
    : key_update
    | key_delete
    | key_update key_delete
    | key_delete key_update
    | %empty
    ;

key_update
    : K_ON K_UPDATE key_action
        {
            if ($3.n)
                BAD("a column list with SET NULL or SET DEFAULT is only for ON DELETE actions");
        }
    ;

key_delete
    : K_ON K_DELETE key_action
    ;

key_action
    : K_NO K_ACTION                         { $$.n = 0; }
    | K_RESTRICT                            { $$.n = 0; }
    | K_CASCADE                             { $$.n = 0; }
    | K_SET K_NULL opt_column_list          { $$.n = $3.n; }
    | K_SET K_DEFAULT opt_column_list       { $$.n = $3.n; }
    ;

opt_inherits
    : K_INHERITS '(' ddl_rels ')'
    | %empty
    ;

opt_partition_spec
    : partition_spec
    | %empty
    ;

partition_spec
    : K_PARTITION K_BY colid '(' partition_elems ')'
    ;

partition_elems
    : partition_elem
    | partition_elems ',' partition_elem
    ;

partition_elem
    : colid opt_collate opt_any_name
    | func_plain opt_collate opt_any_name
    | '(' a_expr ')' opt_collate opt_any_name
    ;

opt_any_name
    : any_name
    | %empty
    ;

partition_bound
    : K_FOR K_VALUES K_WITH '(' hash_bounds ')'
        {
            if ($5.n != 3)
                BAD("modulus and remainder of a hash partition must be specified");
        }
    | K_FOR K_VALUES K_IN '(' expr_list ')'
    | K_FOR K_VALUES K_FROM '(' expr_list ')' K_TO '(' expr_list ')'
    | K_DEFAULT
    ;

hash_bounds
    : hash_bound
    | hash_bounds ',' hash_bound
        {
            if ($1.n & $3.n)
                BAD("modulus or remainder of hash partition provided more than once");
            $$.n = $1.n | $3.n;
        }
    ;

hash_bound
    : nonreserved ICONST
        {
            $$.n = sqlp_is_word(&$1, "modulus") ? 1 : 0;
            if (sqlp_is_word(&$1, "remainder"))
                $$.n = 2;
            if ($$.n == 0)
                BAD("unrecognized hash partition bound specification");
        }
    ;

opt_access_method
    : K_USING colid
    | %empty
    ;

opt_with_storage
    : K_WITH storage_options
    | K_WITHOUT K_OIDS
    | %empty
    ;

storage_options
    : '(' storage_option_list ')'
    ;

opt_storage_options
    : K_WITH storage_options
    | %empty
    ;

storage_option_list
    : storage_option
    | storage_option_list ',' storage_option
    ;

storage_option
    : collabel '=' def_arg
    | collabel
    | collabel '.' collabel '=' def_arg
    | collabel '.' collabel
    ;

opt_on_commit
    : K_ON K_COMMIT K_DROP
    | K_ON K_COMMIT K_DELETE K_ROWS
    | K_ON K_COMMIT K_PRESERVE K_ROWS
    | %empty
    ;

opt_tablespace
    : K_TABLESPACE colid
    | %empty
    ;

opt_index_tablespace
    : K_USING K_INDEX K_TABLESPACE colid
    | %empty
    ;

opt_definition
    : K_WITH definition
    | %empty
    ;

definition
    : '(' def_list ')'
    ;

def_list
    : def_item
    | def_list ',' def_item
    ;

def_item
    : collabel '=' def_arg
    | collabel
    ;

def_arg
    : func_type
    | kw_reserved
    | operator_qualified
    | number
    | SCONST
    | K_NONE
    ;

/* ---- CREATE TABLE AS, materialized views ---- */

create_as_stmt
    : K_CREATE opt_temp K_TABLE create_as_target K_AS select_stmt opt_with_data
        { CREATED_AS($4, $2, $6); }
    | K_CREATE opt_temp K_TABLE if_not_exists create_as_target K_AS select_stmt opt_with_data
        { CREATED_AS($5, $2, $7); }
    | K_CREATE opt_temp K_TABLE create_as_target K_AS K_EXECUTE colid opt_execute_params
      opt_with_data
        { CREATED($4, $2); VERB(SQL_VERB_CREATE_AS); st->cur.inner = SQL_EXECUTE; NAME($7); }
    | K_CREATE opt_temp K_TABLE if_not_exists create_as_target K_AS K_EXECUTE colid
      opt_execute_params opt_with_data
        { CREATED($5, $2); VERB(SQL_VERB_CREATE_AS); st->cur.inner = SQL_EXECUTE; NAME($8); }
    | K_CREATE K_MATERIALIZED K_VIEW matview_target K_AS select_stmt opt_with_data
        { NONE($$); CREATED_AS($4, $$, $6); }
    | K_CREATE K_MATERIALIZED K_VIEW if_not_exists matview_target K_AS select_stmt opt_with_data
        { NONE($$); CREATED_AS($5, $$, $7); }
    | K_CREATE K_UNLOGGED K_MATERIALIZED K_VIEW matview_target K_AS select_stmt opt_with_data
        { NONE($$); FLAG(SQL_F_UNLOGGED); CREATED_AS($5, $$, $7); }
    | K_CREATE K_UNLOGGED K_MATERIALIZED K_VIEW if_not_exists matview_target K_AS select_stmt
      opt_with_data
        { NONE($$); FLAG(SQL_F_UNLOGGED); CREATED_AS($6, $$, $8); }
    ;

create_as_target
    : qname opt_column_list opt_access_method opt_with_storage opt_on_commit opt_tablespace
    ;

matview_target
    : qname opt_column_list opt_access_method opt_storage_options opt_tablespace
    ;

opt_with_data
    : K_WITH K_DATA
    | K_WITH K_NO K_DATA
    | %empty
    ;

refresh_stmt
    : K_REFRESH K_MATERIALIZED K_VIEW opt_concurrently ddl_rel opt_with_data
        { VERB(SQL_VERB_REFRESH); }
    ;

/* ---- views, sequences, indexes ---- */

create_view_stmt
    : K_CREATE opt_temp view_word qname opt_column_list opt_storage_options K_AS select_stmt
      opt_check_option                      { CREATED($4, $2); }
    | K_CREATE K_OR K_REPLACE opt_temp view_word qname opt_column_list opt_storage_options K_AS
      select_stmt opt_check_option          { CREATED($6, $4); }
    | K_CREATE opt_temp K_RECURSIVE K_VIEW qname '(' columns ')' opt_storage_options K_AS
      select_stmt opt_check_option
        {
            if ($12.n)
                BAD("WITH CHECK OPTION not supported on recursive views");
            sqlp_recursive_view(st, &$5, $10.end);
            CREATED($5, $2);
        }
    | K_CREATE K_OR K_REPLACE opt_temp K_RECURSIVE K_VIEW qname '(' columns ')'
      opt_storage_options K_AS select_stmt opt_check_option
        {
            if ($14.n)
                BAD("WITH CHECK OPTION not supported on recursive views");
            sqlp_recursive_view(st, &$7, $12.end);
            CREATED($7, $4);
        }
    ;

view_word
    : K_VIEW
    ;

opt_check_option
    : K_WITH K_CHECK K_OPTION               { $$.n = 1; }
    | K_WITH K_CASCADED K_CHECK K_OPTION    { $$.n = 1; }
    | K_WITH K_LOCAL K_CHECK K_OPTION       { $$.n = 1; }
    | %empty                                { NONE($$); }
    ;

create_sequence_stmt
    : K_CREATE opt_temp K_SEQUENCE qname opt_sequence_options   { CREATED($4, $2); }
    | K_CREATE opt_temp K_SEQUENCE if_not_exists qname opt_sequence_options { CREATED($5, $2); }
    ;

opt_sequence_options
    : sequence_options
    | %empty
    ;

opt_sequence_list
    : '(' sequence_options ')'
    | %empty
    ;

sequence_options
    : sequence_option
    | sequence_options sequence_option
    ;

/* The value's n is 1 for what ALTER COLUMN SET does not take. */
sequence_option
    : K_AS simple_type                      { $$.n = 1; }
    | K_CACHE number                        { $$.n = 0; }
    | K_CYCLE                               { $$.n = 0; }
    | K_NO K_CYCLE                          { $$.n = 0; }
    | K_INCREMENT opt_by number             { $$.n = 0; }
    | K_LOGGED                              { $$.n = 0; }
    | K_UNLOGGED                            { $$.n = 0; }
    | K_MAXVALUE number                     { $$.n = 0; }
    | K_MINVALUE number                     { $$.n = 0; }
    | K_NO K_MAXVALUE                       { $$.n = 0; }
    | K_NO K_MINVALUE                       { $$.n = 0; }
    | K_OWNED K_BY any_name                 { $$.n = 1; }
    | K_SEQUENCE K_NAME any_name            { $$.n = 0; }
    | K_START opt_with_word number          { $$.n = 0; }
    | K_RESTART                             { $$.n = 1; }
    | K_RESTART opt_with_word number        { $$.n = 1; }
    ;

opt_by
    : K_BY
    | %empty
    ;

create_index_stmt
    : K_CREATE opt_unique K_INDEX opt_concurrently opt_single_name K_ON ddl_relation
      opt_index_method '(' index_params ')' opt_index_include opt_nulls_distinct
      opt_storage_options opt_tablespace where_clause
    | K_CREATE opt_unique K_INDEX opt_concurrently if_not_exists colid K_ON ddl_relation
      opt_index_method '(' index_params ')' opt_index_include opt_nulls_distinct
      opt_storage_options opt_tablespace where_clause
    ;

opt_unique
    : K_UNIQUE
    | %empty
    ;

opt_index_method
    : K_USING colid
    | %empty
    ;

index_params
    : index_elem
    | index_params ',' index_elem
    ;

index_elem
    : colid index_elem_options
    | func_plain index_elem_options
    | '(' a_expr ')' index_elem_options
    ;

index_elem_options
    : opt_collate opt_any_name opt_asc_desc opt_nulls_order
    | opt_collate any_name storage_options opt_asc_desc opt_nulls_order
    ;

opt_index_include
    : K_INCLUDE '(' index_params ')'
    | %empty
    ;

