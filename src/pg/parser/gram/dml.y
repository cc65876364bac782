/* SPDX-License-Identifier: PostgreSQL
 * dml.y: part of sqlgram.y: INSERT, UPDATE, DELETE, MERGE, COPY, EXPLAIN, prepared statements, cursors. Runs in: workers. */

/* ---- INSERT, UPDATE, DELETE, MERGE ---- */

insert_stmt
    : opt_with K_INSERT K_INTO insert_target insert_rest opt_on_conflict returning
        { KIND(SQL_INSERT); sqlp_close_with(st, &$1); }
    ;

insert_target
    : qname                                 { sqlp_rel(st, &$1, SQL_TABLE_TARGET); }
    | qname K_AS colid                      { sqlp_rel(st, &$1, SQL_TABLE_TARGET); }
    ;

insert_rest
    : insert_source
    | K_OVERRIDING user_or_system K_VALUE insert_source
    | '(' insert_columns ')' insert_source
    | '(' insert_columns ')' K_OVERRIDING user_or_system K_VALUE insert_source
    | K_DEFAULT K_VALUES                    { FLAG(SQL_F_DEFAULTS); }
    ;

insert_source
    : select_stmt
        {
            if ($1.flags & SEL_VALUES)
                FLAG(SQL_F_INSERT_VALUES);
        }
    ;

user_or_system
    : K_USER
    | K_SYSTEM
    ;

insert_columns
    : insert_column
    | insert_columns ',' insert_column
    ;

insert_column
    : colid opt_indirection
    ;

opt_on_conflict
    : K_ON K_CONFLICT opt_conflict_target K_DO K_UPDATE K_SET set_clauses where_clause
    | K_ON K_CONFLICT opt_conflict_target K_DO K_NOTHING
    | %empty
    ;

opt_conflict_target
    : '(' index_params ')' where_clause
    | K_ON K_CONSTRAINT colid
    | %empty
    ;

returning
    : K_RETURNING returning_options targets { FLAG(SQL_F_RETURNING); }
    | %empty
    ;

returning_options
    : K_WITH '(' returning_option_list ')'  { NEWER(); }
    | %empty
    ;

returning_option_list
    : returning_option
    | returning_option_list ',' returning_option
    ;

returning_option
    : K_OLD K_AS colid
    | K_NEW K_AS colid
    ;

delete_stmt
    : opt_with K_DELETE K_FROM target_relation opt_using where_or_current returning
        { KIND(SQL_DELETE); sqlp_close_with(st, &$1); }
    ;

opt_using
    : K_USING from_list
    | %empty
    ;

where_or_current
    : K_WHERE a_expr
    | K_WHERE K_CURRENT K_OF colid
    | %empty
    ;

/* The relation that a statement writes. SET may follow it, so a bare SET is no alias. */
target_relation
    : target_name %prec UMINUS
    | target_name colid
    | target_name K_AS colid
    ;

target_name
    : relation                              { sqlp_rel(st, &$1, SQL_TABLE_TARGET); }
    ;

update_stmt
    : opt_with K_UPDATE target_relation K_SET set_clauses from_clause where_or_current returning
        { KIND(SQL_UPDATE); sqlp_close_with(st, &$1); }
    ;

set_clauses
    : set_clause
    | set_clauses ',' set_clause
    ;

set_clause
    : set_target '=' a_expr
    | '(' set_targets ')' '=' a_expr
    ;

set_targets
    : set_target
    | set_targets ',' set_target
    ;

set_target
    : colid opt_indirection
    ;

merge_stmt
    : opt_with K_MERGE K_INTO target_relation K_USING table_ref K_ON a_expr merge_whens returning
        {
            KIND(SQL_MERGE);
            sqlp_close_with(st, &$1);
            if (st->cur.flags & SQL_F_RETURNING)
                NEWER();
        }
    ;

merge_whens
    : merge_when
    | merge_whens merge_when
    ;

merge_when
    : merge_matched opt_merge_condition K_THEN merge_change
    | merge_not_matched opt_merge_condition K_THEN merge_insert
    ;

merge_matched
    : K_WHEN K_MATCHED
    | K_WHEN K_NOT K_MATCHED K_BY K_SOURCE  { NEWER(); }
    ;

merge_not_matched
    : K_WHEN K_NOT K_MATCHED
    | K_WHEN K_NOT K_MATCHED K_BY K_TARGET  { NEWER(); }
    ;

opt_merge_condition
    : K_AND a_expr
    | %empty
    ;

merge_change
    : K_UPDATE K_SET set_clauses
    | K_DELETE
    | K_DO K_NOTHING
    ;

merge_insert
    : K_INSERT merge_values
    | K_INSERT K_OVERRIDING user_or_system K_VALUE merge_values
    | K_INSERT '(' insert_columns ')' merge_values
    | K_INSERT '(' insert_columns ')' K_OVERRIDING user_or_system K_VALUE merge_values
    | K_INSERT K_DEFAULT K_VALUES
    | K_DO K_NOTHING
    ;

merge_values
    : K_VALUES '(' expr_list ')'
    ;

/* ---- COPY ---- */

copy_stmt
    : K_COPY opt_binary qname opt_column_list copy_direction opt_program copy_file
      opt_copy_delimiter opt_with_word copy_options copy_where
        {
            bool from = $5.flags != 0;

            if ($6.flags && $7.flags)
                BAD("STDIN/STDOUT not allowed with PROGRAM");
            if (!from && $11.n)
                BAD("WHERE clause not allowed with COPY TO");
            KIND(from ? SQL_COPY_FROM : SQL_COPY_TO);
            sqlp_rel(st, &$3, from ? SQL_TABLE_TARGET : 0);
        }
    | K_COPY '(' preparable ')' K_TO opt_program copy_file opt_with_word copy_options
        {
            if ($6.flags && $7.flags)
                BAD("STDIN/STDOUT not allowed with PROGRAM");
            st->cur.inner = st->cur.kind;
            st->cur.body.offset = $2.end;
            st->cur.body.len = $4.off - $2.end;
            FLAG(SQL_F_COPY_QUERY);
            KIND(SQL_COPY_TO);
        }
    ;

copy_where
    : K_WHERE a_expr                        { $$.n = 1; }
    | %empty                                { NONE($$); }
    ;

opt_binary
    : K_BINARY
    | %empty
    ;

copy_direction
    : K_FROM                                { $$.flags = 1; }
    | K_TO                                  { $$.flags = 0; }
    ;

opt_program
    : K_PROGRAM                             { $$.flags = 1; FLAG(SQL_F_COPY_PROGRAM); }
    | %empty                                { NONE($$); }
    ;

copy_file
    : SCONST                                { $$.flags = 0; }
    | K_STDIN                               { $$.flags = 1; FLAG(SQL_F_COPY_STDIO); }
    | K_STDOUT                              { $$.flags = 1; FLAG(SQL_F_COPY_STDIO); }
    ;

opt_copy_delimiter
    : K_USING K_DELIMITERS SCONST
    | K_DELIMITERS SCONST
    | %empty
    ;

opt_with_word
    : K_WITH
    | %empty
    ;

copy_options
    : copy_old_options
    | '(' copy_new_options ')'
    ;

copy_old_options
    : copy_old_options copy_old_option
    | %empty
    ;

copy_old_option
    : K_BINARY
    | K_FREEZE
    | K_DELIMITER opt_as SCONST
    | K_NULL opt_as SCONST
    | K_CSV
    | K_HEADER
    | K_QUOTE opt_as SCONST
    | K_ESCAPE opt_as SCONST
    | K_FORCE K_QUOTE columns
    | K_FORCE K_QUOTE '*'
    | K_FORCE K_NOT K_NULL columns
    | K_FORCE K_NOT K_NULL '*'
    | K_FORCE K_NULL columns
    | K_FORCE K_NULL '*'
    | K_ENCODING SCONST
    ;

opt_as
    : K_AS
    | %empty
    ;

copy_new_options
    : copy_new_option
    | copy_new_options ',' copy_new_option
    ;

copy_new_option
    : collabel copy_new_arg
    | format_word copy_new_arg
    ;

copy_new_arg
    : bool_or_string
    | number
    | '*'
    | K_DEFAULT
    | '(' copy_arg_list ')'
    | %empty
    ;

copy_arg_list
    : bool_or_string
    | copy_arg_list ',' bool_or_string
    ;

/* FORMAT before JSON comes as a token of its own. */
format_word
    : FORMAT_LA
    ;

/* n counts. */
columns
    : colid                                 { $$.n = 1; }
    | columns ',' colid                     { $$.n = $1.n + 1; }
    ;

opt_column_list
    : '(' columns ')'                       { $$.n = $2.n; }
    | %empty                                { NONE($$); }
    ;

/* ---- EXPLAIN, PREPARE, EXECUTE, DEALLOCATE ---- */

explain_stmt
    : K_EXPLAIN explainable                 { take_inner(st, $1.end); KIND(SQL_EXPLAIN); }
    | K_EXPLAIN analyze_word explainable
        { take_inner(st, $2.end); KIND(SQL_EXPLAIN); FLAG(SQL_F_ANALYZE); }
    | K_EXPLAIN analyze_word K_VERBOSE explainable
        { take_inner(st, $3.end); KIND(SQL_EXPLAIN); FLAG(SQL_F_ANALYZE); }
    | K_EXPLAIN K_VERBOSE explainable       { take_inner(st, $2.end); KIND(SQL_EXPLAIN); }
    | K_EXPLAIN '(' explain_options ')' explainable
        { take_inner(st, $4.end); KIND(SQL_EXPLAIN); }
    ;

explainable
    : select_stmt               { set_select_kind(st, &$1); }
    | insert_stmt
    | update_stmt
    | delete_stmt
    | merge_stmt
    | declare_stmt
    | create_as_stmt            { KIND(SQL_DDL); }
    | refresh_stmt              { KIND(SQL_DDL); }
    | execute_stmt
    ;

analyze_word
    : K_ANALYZE
    | K_ANALYSE
    ;

opt_verbose
    : K_VERBOSE
    | %empty
    ;

/* The options of EXPLAIN: the one that matters is ANALYZE. */
explain_options
    : explain_option
    | explain_options ',' explain_option
    ;

explain_option
    : utility_option_name utility_option_arg
        { sqlp_explain_option(st, &$1, &$2); }
    ;

/* The options of VACUUM, ANALYZE, REINDEX, CLUSTER, CHECKPOINT. */
utility_options
    : utility_option
    | utility_options ',' utility_option
    ;

utility_option
    : utility_option_name utility_option_arg
    ;

utility_option_name
    : nonreserved
    | analyze_word
    | format_word
    ;

utility_option_arg
    : bool_or_string                        { $$.flags |= ARG_GIVEN; }
    | number                                { $$.flags |= ARG_GIVEN; }
    | %empty                                { NONE($$); }
    ;

prepare_stmt
    : K_PREPARE colid opt_prepare_types K_AS preparable
        {
            st->cur.inner = st->cur.kind;
            st->cur.body.offset = $4.end;
            KIND(SQL_PREPARE);
            NAME($2);
        }
    ;

opt_prepare_types
    : '(' type_list ')'
    | %empty
    ;

type_list
    : type_name
    | type_list ',' type_name
    ;

execute_stmt
    : K_EXECUTE colid opt_execute_params    { KIND(SQL_EXECUTE); NAME($2); }
    ;

opt_execute_params
    : '(' expr_list ')'
    | %empty
    ;

deallocate_stmt
    : K_DEALLOCATE colid                    { KIND(SQL_DEALLOCATE); NAME($2); }
    | K_DEALLOCATE K_PREPARE colid          { KIND(SQL_DEALLOCATE); NAME($3); }
    | K_DEALLOCATE K_ALL                    { KIND(SQL_DEALLOCATE); FLAG(SQL_F_ALL); }
    | K_DEALLOCATE K_PREPARE K_ALL          { KIND(SQL_DEALLOCATE); FLAG(SQL_F_ALL); }
    ;

/* ---- cursors ---- */

declare_stmt
    : K_DECLARE colid cursor_options K_CURSOR opt_hold K_FOR select_stmt
        {
            set_select_kind(st, &$7);
            st->cur.inner = st->cur.kind;
            st->cur.body.offset = $6.end;
            KIND(SQL_DECLARE);
            NAME($2);
        }
    ;

cursor_options
    : cursor_options K_NO K_SCROLL
    | cursor_options K_SCROLL               { FLAG(SQL_F_SCROLL); }
    | cursor_options K_BINARY               { FLAG(SQL_F_BINARY); }
    | cursor_options K_ASENSITIVE
    | cursor_options K_INSENSITIVE
    | %empty
    ;

opt_hold
    : K_WITH K_HOLD                         { FLAG(SQL_F_WITH_HOLD); }
    | K_WITHOUT K_HOLD
    | %empty
    ;

fetch_stmt
    : K_FETCH fetch_args                    { KIND(SQL_FETCH); NAME($2); }
    | K_MOVE fetch_args                     { KIND(SQL_FETCH); FLAG(SQL_F_MOVE); NAME($2); }
    ;

fetch_args
    : colid
    | from_or_in colid                      { $$ = $2; }
    | K_NEXT opt_from_in colid              { $$ = $3; }
    | K_PRIOR opt_from_in colid             { $$ = $3; }
    | K_FIRST opt_from_in colid             { $$ = $3; }
    | K_LAST opt_from_in colid              { $$ = $3; }
    | K_ABSOLUTE signed_iconst opt_from_in colid     { $$ = $4; }
    | K_RELATIVE signed_iconst opt_from_in colid     { $$ = $4; }
    | signed_iconst opt_from_in colid       { $$ = $3; }
    | K_ALL opt_from_in colid               { $$ = $3; }
    | K_FORWARD opt_from_in colid           { $$ = $3; }
    | K_FORWARD signed_iconst opt_from_in colid      { $$ = $4; }
    | K_FORWARD K_ALL opt_from_in colid     { $$ = $4; }
    | K_BACKWARD opt_from_in colid          { $$ = $3; }
    | K_BACKWARD signed_iconst opt_from_in colid     { $$ = $4; }
    | K_BACKWARD K_ALL opt_from_in colid    { $$ = $4; }
    ;

from_or_in
    : K_FROM
    | K_IN
    ;

opt_from_in
    : from_or_in
    | %empty
    ;

close_stmt
    : K_CLOSE colid                         { KIND(SQL_CLOSE); NAME($2); }
    | K_CLOSE K_ALL                         { KIND(SQL_CLOSE); FLAG(SQL_F_ALL); }
    ;

