/* SPDX-License-Identifier: PostgreSQL
 * select.y: part of sqlgram.y: SELECT, WITH, FROM, windows, XMLTABLE, JSON_TABLE. Runs in: workers. */

/* ---- SELECT ---- */

select_stmt
    : select_bare %prec UMINUS
    | select_parens %prec UMINUS
    ;

select_parens
    : '(' select_bare ')'                   { $$.flags = $2.flags; }
    | '(' select_parens ')'                 { $$.flags = $2.flags; }
    ;

/* A select outside parentheses: with its sorting, limits, locking and WITH, each once. */
select_bare
    : select_simple
    | select_term order_by                  { MORE($$, $1, SEL_SORT); }
    | select_term opt_order_by locking opt_limits
                                            { MORE($$, $1, $2.flags | $3.flags | $4.flags); }
    | select_term opt_order_by limits opt_locking
                                            { MORE($$, $1, $2.flags | $3.flags | $4.flags); }
    | with select_term                      { MORE($$, $2, SEL_WITH); sqlp_close_with(st, &$1); }
    | with select_term order_by
        { MORE($$, $2, SEL_WITH | SEL_SORT); sqlp_close_with(st, &$1); }
    | with select_term opt_order_by locking opt_limits
        {
            MORE($$, $2, SEL_WITH | $3.flags | $4.flags | $5.flags);
            sqlp_close_with(st, &$1);
        }
    | with select_term opt_order_by limits opt_locking
        {
            MORE($$, $2, SEL_WITH | $3.flags | $4.flags | $5.flags);
            sqlp_close_with(st, &$1);
        }
    ;

select_term
    : select_simple
    | select_parens
    ;

select_simple
    : K_SELECT opt_all opt_targets select_into from_clause where_clause group_clause having_clause
      window_clause                         { $$.flags = 0; }
    | K_SELECT distinct targets select_into from_clause where_clause group_clause having_clause
      window_clause                         { $$.flags = 0; }
    | values_clause                         { $$.flags = SEL_VALUES; }
    | K_TABLE relation_ref                  { $$.flags = 0; }
    | select_term K_UNION set_quantifier select_term      { $$.flags = 0; }
    | select_term K_INTERSECT set_quantifier select_term  { $$.flags = 0; }
    | select_term K_EXCEPT set_quantifier select_term     { $$.flags = 0; }
    ;

set_quantifier
    : K_ALL
    | K_DISTINCT
    | %empty
    ;

opt_all
    : K_ALL
    | %empty
    ;

distinct
    : K_DISTINCT
    | K_DISTINCT K_ON '(' expr_list ')'
    ;

opt_targets
    : targets
    | %empty
    ;

targets
    : target
    | targets ',' target
    ;

target
    : a_expr K_AS collabel
    | a_expr barelabel
    | a_expr
    | '*'
    ;

select_into
    : K_INTO into_target                    { FLAG(SQL_F_INTO); }
    | %empty
    ;

into_target
    : temp_word opt_table_word qname
        { FLAG(SQL_F_TEMP); sqlp_rel(st, &$3, SQL_TABLE_CREATED | SQL_TABLE_TEMP); }
    | K_UNLOGGED opt_table_word qname
        { FLAG(SQL_F_UNLOGGED); sqlp_rel(st, &$3, SQL_TABLE_CREATED); }
    | K_TABLE qname                         { sqlp_rel(st, &$2, SQL_TABLE_CREATED); }
    | qname                                 { sqlp_rel(st, &$1, SQL_TABLE_CREATED); }
    ;

temp_word
    : K_TEMPORARY
    | K_TEMP
    | K_LOCAL K_TEMPORARY
    | K_LOCAL K_TEMP
    | K_GLOBAL K_TEMPORARY
    | K_GLOBAL K_TEMP
    ;

opt_table_word
    : K_TABLE
    | %empty
    ;

values_clause
    : K_VALUES '(' expr_list ')'
    | values_clause ',' '(' expr_list ')'
    ;

/* ---- WITH ---- */

with
    : K_WITH cte_list                       { $$.flags = 0; $$.n = $2.n; FLAG(SQL_F_WITH_CTE); }
    | WITH_LA cte_list                      { $$.flags = 0; $$.n = $2.n; FLAG(SQL_F_WITH_CTE); }
    | K_WITH K_RECURSIVE cte_list           { $$.flags = 1; $$.n = $3.n; FLAG(SQL_F_WITH_CTE); }
    ;

opt_with
    : with
    | %empty                                { NONE($$); }
    ;

/* The value's n is the number of the last CTE of the list. */
cte_list
    : cte                                   { sqlp_cte(st, &$$, &$1, -1); }
    | cte_list ',' cte                      { $$ = $3; sqlp_cte(st, &$$, &$3, (int32_t)$1.n); }
    ;

/* The value is the name, its end that of the body. */
cte
    : colid opt_name_list K_AS opt_materialized '(' cte_body ')' opt_search opt_cycle
                                            { $$ = $1; $$.end = $7.off; }
    ;

cte_body
    : select_stmt
    | insert_stmt                           { FLAG(SQL_F_DML_IN_CTE); }
    | update_stmt                           { FLAG(SQL_F_DML_IN_CTE); }
    | delete_stmt                           { FLAG(SQL_F_DML_IN_CTE); }
    | merge_stmt                            { FLAG(SQL_F_DML_IN_CTE); }
    ;

opt_materialized
    : K_MATERIALIZED
    | K_NOT K_MATERIALIZED
    | %empty
    ;

opt_search
    : K_SEARCH K_DEPTH K_FIRST K_BY name_list K_SET colid
    | K_SEARCH K_BREADTH K_FIRST K_BY name_list K_SET colid
    | %empty
    ;

opt_cycle
    : K_CYCLE name_list K_SET colid K_TO const_expr K_DEFAULT const_expr K_USING colid
    | K_CYCLE name_list K_SET colid K_USING colid
    | %empty
    ;

/* ---- FROM ---- */

from_clause
    : K_FROM from_list
    | %empty
    ;

from_list
    : table_ref
    | from_list ',' table_ref
    ;

/* A relation that is read: noted here. */
relation_ref
    : relation                              { sqlp_rel(st, &$1, 0); }
    ;

relation
    : qname
    | qname '*'
    | K_ONLY qname                          { $$ = $2; $$.flags |= TOK_ONLY; }
    | K_ONLY '(' qname ')'                  { $$ = $3; $$.flags |= TOK_ONLY; }
    ;

relation_list
    : relation_ref
    | relation_list ',' relation_ref
    ;

table_ref
    : relation_ref opt_alias
    | relation_ref opt_alias table_sample
    | from_func func_alias                  { sqlp_from_func(st, &$1, &$2); }
    | K_LATERAL from_func func_alias        { sqlp_from_func(st, &$2, &$3); }
    | xmltable opt_alias
    | K_LATERAL xmltable opt_alias
    | json_table opt_alias
    | K_LATERAL json_table opt_alias
    | select_parens derived_alias
    | K_LATERAL select_parens derived_alias
    | joined
    | '(' joined ')' alias
    ;

joined
    : '(' joined ')'
    | table_ref K_CROSS K_JOIN table_ref
    | table_ref join_type K_JOIN table_ref join_qual
    | table_ref K_JOIN table_ref join_qual
    | table_ref K_NATURAL join_type K_JOIN table_ref
    | table_ref K_NATURAL K_JOIN table_ref
    ;

join_type
    : K_FULL opt_outer
    | K_LEFT opt_outer
    | K_RIGHT opt_outer
    | K_INNER
    ;

opt_outer
    : K_OUTER
    | %empty
    ;

join_qual
    : K_USING '(' name_list ')' opt_using_alias
    | K_ON a_expr
    ;

opt_using_alias
    : K_AS colid
    | %empty
    ;

/* The value is the name. */
alias
    : K_AS colid '(' name_list ')'          { $$ = $2; }
    | K_AS colid                            { $$ = $2; }
    | colid '(' name_list ')'
    | colid
    ;

opt_alias
    : alias
    | %empty
    ;

derived_alias
    : alias
    | %empty                                { NEWER(); }
    ;

func_alias
    : alias
    | K_AS '(' column_defs ')'
    | K_AS colid '(' column_defs ')'
    | colid '(' column_defs ')'
    | %empty                                { NONE($$); }
    ;

column_defs
    : column_def
    | column_defs ',' column_def
    ;

column_def
    : colid type_name opt_collate
    ;

opt_collate
    : K_COLLATE any_name
    | %empty
    ;

table_sample
    : K_TABLESAMPLE func_name '(' expr_list ')' opt_repeatable { FLAG(SQL_F_TABLESAMPLE); }
    ;

opt_repeatable
    : K_REPEATABLE '(' a_expr ')'
    | %empty
    ;

from_func
    : func_plain opt_ordinality
        {
            if ($1.flags & FUNC_BARE_NAME)
                sqlp_rel(st, &$1, 0);
        }
    | K_ROWS K_FROM '(' rows_from_list ')' opt_ordinality   { $$.flags = FUNC_SYNTAX; }
    ;

rows_from_list
    : rows_from_item
    | rows_from_list ',' rows_from_item
    ;

rows_from_item
    : func_plain
    | func_plain K_AS '(' column_defs ')'
    ;

opt_ordinality
    : WITH_LA K_ORDINALITY
    | %empty
    ;

/* ---- the other clauses ---- */

where_clause
    : K_WHERE a_expr
    | %empty
    ;

group_clause
    : K_GROUP K_BY set_quantifier group_list
    | %empty
    ;

group_list
    : group_item
    | group_list ',' group_item
    ;

group_item
    : a_expr
    | '(' ')'
    | K_CUBE '(' expr_list ')'
    | K_ROLLUP '(' expr_list ')'
    | K_GROUPING K_SETS '(' group_list ')'
    ;

having_clause
    : K_HAVING a_expr
    | %empty
    ;

window_clause
    : K_WINDOW window_defs
    | %empty
    ;

window_defs
    : window_def
    | window_defs ',' window_def
    ;

window_def
    : colid K_AS window_spec
    ;

window_spec
    : '(' opt_window_name opt_partition_by opt_order_by opt_frame ')'
    ;

opt_window_name
    : colid
    | %empty %prec OP
    ;

opt_partition_by
    : K_PARTITION K_BY expr_list
    | %empty
    ;

opt_frame
    : frame_unit frame_extent opt_exclusion
    | %empty
    ;

frame_unit
    : K_RANGE
    | K_ROWS
    | K_GROUPS
    ;

/* The value's n orders the bounds: 1 unbounded preceding ... 5 unbounded following. */
frame_extent
    : frame_bound
        {
            if ($1.n > 3)
                BAD("invalid start of window frame");
        }
    | K_BETWEEN frame_bound K_AND frame_bound
        {
            if ($2.n == 5 || $4.n == 1 || ($2.n > $4.n))
                BAD("invalid bounds of window frame");
        }
    ;

frame_bound
    : K_UNBOUNDED K_PRECEDING               { $$.n = 1; }
    | K_UNBOUNDED K_FOLLOWING               { $$.n = 5; }
    | K_CURRENT K_ROW                       { $$.n = 3; }
    | a_expr K_PRECEDING                    { $$.n = 2; }
    | a_expr K_FOLLOWING                    { $$.n = 4; }
    ;

opt_exclusion
    : K_EXCLUDE K_CURRENT K_ROW
    | K_EXCLUDE K_GROUP
    | K_EXCLUDE K_TIES
    | K_EXCLUDE K_NO K_OTHERS
    | %empty
    ;

opt_order_by
    : order_by                              { $$.flags = SEL_SORT; }
    | %empty                                { NONE($$); }
    ;

order_by
    : K_ORDER K_BY sort_list
    ;

sort_list
    : sort_item
    | sort_list ',' sort_item
    ;

sort_item
    : a_expr K_USING operator_qualified opt_nulls_order
    | a_expr opt_asc_desc opt_nulls_order
    ;

opt_asc_desc
    : K_ASC
    | K_DESC
    | %empty
    ;

opt_nulls_order
    : NULLS_LA K_FIRST
    | NULLS_LA K_LAST
    | %empty
    ;

opt_limits
    : limits
    | %empty                                { NONE($$); }
    ;

limits
    : limit offset                          { $$.flags = $1.flags | $2.flags; }
    | offset limit                          { $$.flags = $1.flags | $2.flags; }
    | limit
    | offset
    ;

limit
    : K_LIMIT limit_value                   { $$.flags = SEL_LIMIT; }
    | K_FETCH first_or_next fetch_value row_or_rows K_ONLY      { $$.flags = SEL_LIMIT; }
    | K_FETCH first_or_next fetch_value row_or_rows K_WITH K_TIES { $$.flags = SEL_LIMIT | SEL_TIES; }
    | K_FETCH first_or_next row_or_rows K_ONLY                  { $$.flags = SEL_LIMIT; }
    | K_FETCH first_or_next row_or_rows K_WITH K_TIES           { $$.flags = SEL_LIMIT | SEL_TIES; }
    ;

offset
    : K_OFFSET a_expr                       { $$.flags = SEL_OFFSET; }
    | K_OFFSET fetch_value row_or_rows      { $$.flags = SEL_OFFSET; }
    ;

limit_value
    : a_expr
    | K_ALL
    ;

fetch_value
    : c_expr
    | '+' number_const
    | '-' number_const
    ;

number_const
    : ICONST
    | FCONST
    ;

row_or_rows
    : K_ROW
    | K_ROWS
    ;

first_or_next
    : K_FIRST
    | K_NEXT
    ;

opt_locking
    : locking
    | %empty                                { NONE($$); }
    ;

locking
    : locking_items
    | K_FOR K_READ K_ONLY                   { $$.flags = 0; }
    ;

locking_items
    : locking_item
    | locking_items locking_item            { $$.flags = $1.flags | $2.flags; }
    ;

locking_item
    : K_FOR locking_strength locked_rels lock_wait
                                            { $$.flags = $4.flags; FLAG(SQL_F_LOCKING); }
    ;

locking_strength
    : K_UPDATE
    | K_NO K_KEY K_UPDATE
    | K_SHARE
    | K_KEY K_SHARE
    ;

locked_rels
    : K_OF locked_names
    | %empty
    ;

locked_names
    : qname
    | locked_names ',' qname
    ;

lock_wait
    : K_NOWAIT                              { $$.flags = 0; FLAG(SQL_F_NOWAIT); }
    | K_SKIP K_LOCKED                       { $$.flags = SEL_SKIP; }
    | %empty                                { NONE($$); }
    ;

/* ---- XMLTABLE, JSON_TABLE ---- */

xmltable
    : K_XMLTABLE '(' c_expr xml_passing K_COLUMNS xmltable_columns ')'
    | K_XMLTABLE '(' K_XMLNAMESPACES '(' xml_namespaces ')' ',' c_expr xml_passing
      K_COLUMNS xmltable_columns ')'
    ;

xmltable_columns
    : xmltable_column
    | xmltable_columns ',' xmltable_column
    ;

xmltable_column
    : colid type_name
    | colid type_name xmltable_options
    | colid K_FOR K_ORDINALITY
    ;

/* The value's n holds a bit per option seen. */
xmltable_options
    : xmltable_option
    | xmltable_options xmltable_option
        {
            if ($1.n & $2.n)
                BAD("conflicting or redundant column options");
            $$.n = $1.n | $2.n;
        }
    ;

xmltable_option
    : K_DEFAULT b_expr                      { $$.n = 1; }
    | K_PATH b_expr                         { $$.n = 2; }
    | IDENT b_expr
        {
            if (!sqlp_is_word(&$1, "path"))
                BAD("unrecognized column option");
            $$.n = 2;
        }
    | K_NOT K_NULL                          { $$.n = 4; }
    | K_NULL                                { $$.n = 4; }
    ;

xml_namespaces
    : xml_namespace
    | xml_namespaces ',' xml_namespace
    ;

xml_namespace
    : b_expr K_AS collabel
    | K_DEFAULT b_expr
    ;

xml_passing
    : K_PASSING c_expr
    | K_PASSING c_expr xml_mechanism
    | K_PASSING xml_mechanism c_expr
    | K_PASSING xml_mechanism c_expr xml_mechanism
    ;

xml_mechanism
    : K_BY K_REF
    | K_BY K_VALUE
    ;

json_table
    : K_JSON_TABLE '(' json_value ',' json_table_path opt_json_path_name opt_json_passing
      K_COLUMNS '(' json_columns ')' opt_json_on_error ')' { NEWER(); }
    ;

json_table_path
    : a_expr
        {
            if (!($1.flags & TOK_STRING) || $1.off != st->prev_off)
                BAD("only string constants are supported in JSON_TABLE path specification");
        }
    ;

opt_json_path_name
    : K_AS colid
    | %empty
    ;

json_columns
    : json_column
    | json_columns ',' json_column
    ;

json_column
    : colid K_FOR K_ORDINALITY
    | colid type_name opt_json_column_path opt_json_wrapper opt_json_quotes opt_json_behavior
    | colid type_name json_format opt_json_column_path opt_json_wrapper opt_json_quotes
      opt_json_behavior
    | colid type_name K_EXISTS opt_json_column_path opt_json_on_error
    | K_NESTED opt_path SCONST K_COLUMNS '(' json_columns ')'
    | K_NESTED opt_path SCONST K_AS colid K_COLUMNS '(' json_columns ')'
    ;

opt_path
    : K_PATH
    | %empty
    ;

opt_json_column_path
    : K_PATH SCONST
    | %empty
    ;

