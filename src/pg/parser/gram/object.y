/* SPDX-License-Identifier: PostgreSQL
 * object.y: part of sqlgram.y: CREATE of all but tables, views, sequences and indexes. Runs in: workers. */

/* ---- the other CREATE statements ---- */

ddl_stmt
    : create_table_stmt                     { VERB(SQL_VERB_CREATE); }
    | create_as_stmt
    | create_view_stmt                      { VERB(SQL_VERB_CREATE); }
    | create_sequence_stmt                  { VERB(SQL_VERB_CREATE); }
    | create_index_stmt                     { VERB(SQL_VERB_CREATE); }
    | create_trigger_stmt                   { VERB(SQL_VERB_CREATE); }
    | create_function_stmt                  { VERB(SQL_VERB_CREATE); }
    | create_schema_stmt                    { VERB(SQL_VERB_CREATE); }
    | create_rule_stmt                      { VERB(SQL_VERB_CREATE); }
    | create_define_stmt                    { VERB(SQL_VERB_CREATE); }
    | create_foreign_stmt                   { VERB(SQL_VERB_CREATE); }
    | create_server_object_stmt             { VERB(SQL_VERB_CREATE); }
    | create_database_stmt                  { VERB(SQL_VERB_CREATE_DATABASE); }
    | refresh_stmt
    | alter_table_stmt                      { VERB(SQL_VERB_ALTER); }
    | alter_composite_stmt                  { VERB(SQL_VERB_ALTER); }
    | alter_stmt                            { VERB(SQL_VERB_ALTER); }
    | rename_stmt                           { VERB(SQL_VERB_ALTER); }
    | drop_stmt                             { VERB(SQL_VERB_DROP); }
    | login_stmt
    | drop_database_stmt                    { VERB(SQL_VERB_DROP_DATABASE); FLAG(SQL_F_ALONE); }
    | grant_stmt                            { VERB(SQL_VERB_GRANT); }
    | comment_stmt                          { VERB(SQL_VERB_COMMENT); }
    ;

opt_or_replace
    : K_OR K_REPLACE                        { $$.n = 1; }
    | %empty                                { NONE($$); }
    ;

/* ---- triggers ---- */

create_trigger_stmt
    : K_CREATE opt_or_replace K_TRIGGER colid trigger_time trigger_events K_ON ddl_rel
      opt_transitions opt_trigger_for opt_trigger_when K_EXECUTE function_or_procedure func_name
      '(' opt_trigger_args ')'
    | K_CREATE opt_or_replace K_CONSTRAINT K_TRIGGER colid K_AFTER trigger_events K_ON ddl_rel
      opt_from_rel constraint_attrs K_FOR K_EACH K_ROW opt_trigger_when K_EXECUTE
      function_or_procedure func_name '(' opt_trigger_args ')'
        {
            if ($2.n)
                BAD("CREATE OR REPLACE CONSTRAINT TRIGGER is not supported");
            CHECK_ATTRS($11, ATTR_TIMING);
        }
    | K_CREATE K_EVENT K_TRIGGER colid K_ON collabel opt_event_when K_EXECUTE
      function_or_procedure func_name '(' ')'
    ;

trigger_time
    : K_BEFORE
    | K_AFTER
    | K_INSTEAD K_OF
    ;

/* The value's n holds a bit per event. */
trigger_events
    : trigger_event
    | trigger_events K_OR trigger_event
        {
            if ($1.n & $3.n)
                BAD("duplicate trigger events specified");
            $$.n = $1.n | $3.n;
        }
    ;

trigger_event
    : K_INSERT                              { $$.n = 1; }
    | K_DELETE                              { $$.n = 2; }
    | K_UPDATE                              { $$.n = 4; }
    | K_UPDATE K_OF columns                 { $$.n = 4; }
    | K_TRUNCATE                            { $$.n = 8; }
    ;

opt_transitions
    : K_REFERENCING transitions
    | %empty
    ;

transitions
    : transition
    | transitions transition
    ;

transition
    : old_or_new row_or_table opt_as colid
    ;

old_or_new
    : K_NEW
    | K_OLD
    ;

row_or_table
    : K_TABLE
    | K_ROW
    ;

opt_trigger_for
    : K_FOR opt_each row_or_statement
    | %empty
    ;

opt_each
    : K_EACH
    | %empty
    ;

row_or_statement
    : K_ROW
    | K_STATEMENT
    ;

opt_trigger_when
    : K_WHEN '(' a_expr ')'
    | %empty
    ;

function_or_procedure
    : K_FUNCTION
    | K_PROCEDURE
    ;

/* The list may even begin with nothing and a comma. */
opt_trigger_args
    : trigger_arg
    | opt_trigger_args ',' trigger_arg
    | %empty
    ;

trigger_arg
    : ICONST
    | FCONST
    | SCONST
    | collabel
    ;

opt_from_rel
    : K_FROM ddl_rel
    | %empty
    ;

opt_event_when
    : K_WHEN event_filters
    | %empty
    ;

event_filters
    : event_filter
    | event_filters K_AND event_filter
    ;

event_filter
    : colid K_IN '(' strings ')'
    ;

strings
    : SCONST
    | strings ',' SCONST
    ;

/* ---- functions ---- */

create_function_stmt
    : K_CREATE opt_or_replace K_FUNCTION func_name params K_RETURNS func_type
      opt_function_options opt_routine_body
    | K_CREATE opt_or_replace K_FUNCTION func_name params K_RETURNS K_TABLE '(' result_columns ')'
      opt_function_options opt_routine_body
        {
            if ($5.n & PARAM_OUT)
                BAD("OUT and INOUT arguments are not allowed in TABLE functions");
        }
    | K_CREATE opt_or_replace K_FUNCTION func_name params opt_function_options opt_routine_body
    | K_CREATE opt_or_replace K_PROCEDURE func_name params opt_function_options opt_routine_body
    ;

/* Parameters with or without defaults; the value's n holds PARAM_ bits. */
params
    : '(' param_list ')'                    { $$.n = $2.n; }
    | '(' ')'                               { $$.n = 0; }
    ;

param_list
    : param
    | param_list ',' param                  { $$.n = $1.n | $3.n; }
    ;

param
    : plain_param
    | plain_param K_DEFAULT a_expr          { $$.n = $1.n | PARAM_DEFAULT; }
    | plain_param '=' a_expr                { $$.n = $1.n | PARAM_DEFAULT; }
    ;

plain_param
    : param_mode typefn func_type
    | typefn param_mode func_type           { $$.n = $2.n; }
    | typefn func_type                      { $$.n = 0; }
    | param_mode func_type
    | func_type                             { $$.n = 0; }
    ;

plain_params
    : '(' plain_param_list ')'
    | '(' ')'
    ;

plain_param_list
    : plain_param
    | plain_param_list ',' plain_param
        { $$.n = ($1.n & PARAM_OUT) | PARAM_MANY | $3.n; }
    ;

param_mode
    : K_IN                                  { $$.n = 0; }
    | K_OUT                                 { $$.n = PARAM_OUT; }
    | K_INOUT                               { $$.n = PARAM_OUT; }
    | K_IN K_OUT                            { $$.n = PARAM_OUT; }
    | K_VARIADIC                            { $$.n = PARAM_VARIADIC; }
    ;

func_type
    : type_name
    | typefn attrs '%' K_TYPE
    | K_SETOF typefn attrs '%' K_TYPE
    ;

result_columns
    : result_column
    | result_columns ',' result_column
    ;

result_column
    : typefn func_type
    ;

opt_function_options
    : function_options
    | %empty
    ;

function_options
    : function_option
    | function_options function_option
    ;

function_option
    : K_AS SCONST
    | K_AS SCONST ',' SCONST
    | K_LANGUAGE word_or_string
    | K_TRANSFORM transform_types
    | K_WINDOW
    | common_function_option
    ;

transform_types
    : K_FOR K_TYPE type_name
    | transform_types ',' K_FOR K_TYPE type_name
    ;

common_function_option
    : K_CALLED K_ON K_NULL K_INPUT
    | K_RETURNS K_NULL K_ON K_NULL K_INPUT
    | K_STRICT
    | K_IMMUTABLE
    | K_STABLE
    | K_VOLATILE
    | K_EXTERNAL K_SECURITY K_DEFINER
    | K_EXTERNAL K_SECURITY K_INVOKER
    | K_SECURITY K_DEFINER
    | K_SECURITY K_INVOKER
    | K_LEAKPROOF
    | K_NOT K_LEAKPROOF
    | K_COST number
    | K_ROWS number
    | K_SUPPORT any_name
    | function_set_reset
    | K_PARALLEL colid
    ;

opt_routine_body
    : K_RETURN a_expr
    | K_BEGIN K_ATOMIC routine_stmts K_END
    | %empty
    ;

routine_stmts
    : routine_stmts opt_routine_stmt ';'
    | %empty
    ;

opt_routine_stmt
    : stmt
    | K_RETURN a_expr
    | %empty
    ;

/* ---- schemas, rules ---- */

create_schema_stmt
    : K_CREATE K_SCHEMA opt_single_name K_AUTHORIZATION role schema_elements
    | K_CREATE K_SCHEMA colid schema_elements
    | K_CREATE K_SCHEMA if_not_exists opt_single_name K_AUTHORIZATION role
    | K_CREATE K_SCHEMA if_not_exists colid
    ;

schema_elements
    : schema_elements schema_element
    | %empty
    ;

schema_element
    : create_table_stmt
    | create_index_stmt
    | create_sequence_stmt
    | create_trigger_stmt
    | grant_on_stmt
    | create_view_stmt
    ;

create_rule_stmt
    : K_CREATE opt_or_replace K_RULE colid K_AS K_ON rule_event K_TO ddl_rel where_clause K_DO
      opt_instead rule_actions
    ;

rule_event
    : K_SELECT
    | K_UPDATE
    | K_DELETE
    | K_INSERT
    ;

opt_instead
    : K_INSTEAD
    | K_ALSO
    | %empty
    ;

rule_actions
    : K_NOTHING
    | rule_action
    | '(' rule_action_list ')'
    ;

rule_action_list
    : rule_action_list ';' opt_rule_action
    | opt_rule_action
    ;

opt_rule_action
    : rule_action
    | %empty
    ;

rule_action
    : select_stmt
    | insert_stmt
    | update_stmt
    | delete_stmt
    | listen_stmt
        {
            if (st->cur.kind != SQL_NOTIFY)
                BAD("syntax error");
        }
    ;

/* ---- CREATE AGGREGATE, OPERATOR, TYPE, ... ---- */

create_define_stmt
    : K_CREATE opt_or_replace K_AGGREGATE func_name aggregate_params definition
    | K_CREATE opt_or_replace K_AGGREGATE func_name '(' old_aggregate_items ')'
    | K_CREATE K_OPERATOR operator_any definition
    | K_CREATE K_OPERATOR K_CLASS any_name opt_default K_FOR K_TYPE type_name K_USING colid
      opt_family K_AS opclass_items
    | K_CREATE K_OPERATOR K_FAMILY any_name K_USING colid
    | K_CREATE K_TYPE any_name definition                    { sqlp_new_type(st, &$3); }
    | K_CREATE K_TYPE any_name                               { sqlp_new_type(st, &$3); }
    | K_CREATE K_TYPE any_name K_AS '(' ')'                  { sqlp_new_type(st, &$3); }
    | K_CREATE K_TYPE any_name K_AS '(' column_defs ')'      { sqlp_new_type(st, &$3); }
    | K_CREATE K_TYPE any_name K_AS K_ENUM '(' ')'           { sqlp_new_type(st, &$3); }
    | K_CREATE K_TYPE any_name K_AS K_ENUM '(' strings ')'   { sqlp_new_type(st, &$3); }
    | K_CREATE K_TYPE any_name K_AS K_RANGE definition       { sqlp_new_type(st, &$3); }
    | K_CREATE K_TEXT K_SEARCH text_search_kind any_name definition
    | K_CREATE K_COLLATION any_name definition
    | K_CREATE K_COLLATION if_not_exists any_name definition
    | K_CREATE K_COLLATION any_name K_FROM any_name
    | K_CREATE K_COLLATION if_not_exists any_name K_FROM any_name
    | K_CREATE opt_default K_CONVERSION any_name K_FOR SCONST K_TO SCONST K_FROM any_name
    | K_CREATE K_CAST '(' type_name K_AS type_name ')' K_WITH K_FUNCTION function_ref cast_context
    | K_CREATE K_CAST '(' type_name K_AS type_name ')' K_WITHOUT K_FUNCTION cast_context
    | K_CREATE K_CAST '(' type_name K_AS type_name ')' K_WITH K_INOUT cast_context
    | K_CREATE opt_or_replace K_TRANSFORM K_FOR type_name K_LANGUAGE colid '(' transforms ')'
    | K_CREATE K_DOMAIN any_name opt_as type_name column_quals { sqlp_new_type(st, &$3); }
    | K_CREATE K_STATISTICS opt_any_name opt_name_list K_ON stats_params K_FROM from_list
    | K_CREATE K_STATISTICS if_not_exists any_name opt_name_list K_ON stats_params K_FROM from_list
    ;

text_search_kind
    : K_PARSER
    | K_DICTIONARY
    | K_TEMPLATE
    | K_CONFIGURATION
    ;

opt_default
    : K_DEFAULT
    | %empty
    ;

cast_context
    : K_AS K_IMPLICIT
    | K_AS K_ASSIGNMENT
    | %empty
    ;

aggregate_params
    : '(' '*' ')'
    | '(' aggregate_args ')'
    | '(' K_ORDER K_BY aggregate_args ')'
    | '(' aggregate_args K_ORDER K_BY aggregate_args ')'
        {
            if (($2.n & PARAM_VARIADIC) &&
                (!($5.n & PARAM_VARIADIC) || ($5.n & PARAM_MANY)))
                BAD("a VARIADIC direct argument needs one VARIADIC aggregated argument");
        }
    ;

aggregate_args
    : plain_param_list
        {
            if ($1.n & PARAM_OUT)
                BAD("aggregates cannot have output arguments");
        }
    ;

old_aggregate_items
    : old_aggregate_item
    | old_aggregate_items ',' old_aggregate_item
    ;

old_aggregate_item
    : IDENT '=' def_arg
    ;

opt_family
    : K_FAMILY any_name
    | %empty
    ;

opclass_items
    : opclass_item
    | opclass_items ',' opclass_item
    ;

opclass_item
    : K_OPERATOR ICONST operator_any opclass_purpose opt_recheck
    | K_OPERATOR ICONST operator_ref opclass_purpose opt_recheck
    | K_FUNCTION ICONST function_ref
    | K_FUNCTION ICONST '(' type_list ')' function_ref
    | K_STORAGE type_name
    ;

/* No server has wanted it since 8.4; those up to 17 take it with a notice. */
opt_recheck
    : K_RECHECK
    | %empty
    ;

opclass_purpose
    : K_FOR K_SEARCH
    | K_FOR K_ORDER K_BY any_name
    | %empty
    ;

transforms
    : transform_from ',' transform_to
    | transform_to ',' transform_from
    | transform_from
    | transform_to
    ;

transform_from
    : K_FROM K_SQL K_WITH K_FUNCTION function_ref
    ;

transform_to
    : K_TO K_SQL K_WITH K_FUNCTION function_ref
    ;

stats_params
    : stats_param
    | stats_params ',' stats_param
    ;

stats_param
    : colid
    | func_plain
    | '(' a_expr ')'
    ;

/* ---- references to functions, aggregates, operators, as DDL writes them ---- */

function_ref
    : func_name plain_params
    | kw_typefunc
    | colid
    | colid indirection
        {
            if ($2.flags & (TOK_STAR | TOK_SUBSCRIPT))
                BAD("syntax error");
        }
    ;

function_refs
    : function_ref
    | function_refs ',' function_ref
    ;

aggregate_ref
    : func_name aggregate_params
    ;

aggregate_refs
    : aggregate_ref
    | aggregate_refs ',' aggregate_ref
    ;

operator_ref
    : operator_any '(' type_name ',' type_name ')'
    | operator_any '(' K_NONE ',' type_name ')'
    | operator_any '(' type_name ',' K_NONE ')'
    ;

operator_refs
    : operator_ref
    | operator_refs ',' operator_ref
    ;

/* ---- foreign data, extensions, languages ---- */

create_foreign_stmt
    : K_CREATE K_FOREIGN K_TABLE qname table_body opt_inherits K_SERVER colid opt_fdw_options
        { sqlp_rel(st, &$4, SQL_TABLE_CREATED); }
    | K_CREATE K_FOREIGN K_TABLE if_not_exists qname table_body opt_inherits K_SERVER colid
      opt_fdw_options                       { sqlp_rel(st, &$5, SQL_TABLE_CREATED); }
    | K_CREATE K_FOREIGN K_TABLE qname K_PARTITION K_OF ddl_rel opt_typed_elements partition_bound
      K_SERVER colid opt_fdw_options        { sqlp_rel(st, &$4, SQL_TABLE_CREATED); }
    | K_CREATE K_FOREIGN K_TABLE if_not_exists qname K_PARTITION K_OF ddl_rel opt_typed_elements
      partition_bound K_SERVER colid opt_fdw_options { sqlp_rel(st, &$5, SQL_TABLE_CREATED); }
    | K_CREATE K_FOREIGN K_DATA K_WRAPPER colid opt_wrapper_options opt_fdw_options
    | K_CREATE K_SERVER colid opt_server_type opt_server_version K_FOREIGN K_DATA K_WRAPPER colid
      opt_fdw_options
    | K_CREATE K_SERVER if_not_exists colid opt_server_type opt_server_version K_FOREIGN K_DATA
      K_WRAPPER colid opt_fdw_options
    | K_CREATE K_USER K_MAPPING K_FOR mapped_user K_SERVER colid opt_fdw_options
    | K_CREATE K_USER K_MAPPING if_not_exists K_FOR mapped_user K_SERVER colid opt_fdw_options
    | K_IMPORT K_FOREIGN K_SCHEMA colid import_filter K_FROM K_SERVER colid K_INTO colid
      opt_fdw_options
    ;

opt_wrapper_options
    : wrapper_options
    | %empty
    ;

wrapper_options
    : wrapper_option
    | wrapper_options wrapper_option
    ;

wrapper_option
    : K_HANDLER any_name
    | K_NO K_HANDLER
    | K_VALIDATOR any_name
    | K_NO K_VALIDATOR
    ;

opt_server_type
    : K_TYPE SCONST
    | %empty
    ;

server_version
    : K_VERSION SCONST
    | K_VERSION K_NULL
    ;

opt_server_version
    : server_version
    | %empty
    ;

mapped_user
    : role
    | K_USER
    ;

import_filter
    : K_LIMIT K_TO '(' relation_list ')'
    | K_EXCEPT '(' relation_list ')'
    | %empty
    ;

create_server_object_stmt
    : K_CREATE K_EXTENSION colid opt_with_word extension_options
    | K_CREATE K_EXTENSION if_not_exists colid opt_with_word extension_options
    | K_CREATE opt_or_replace opt_trusted opt_procedural K_LANGUAGE colid
    | K_CREATE opt_or_replace opt_trusted opt_procedural K_LANGUAGE colid K_HANDLER any_name
      opt_inline opt_validator
    | K_CREATE K_POLICY colid K_ON ddl_rel opt_policy_as opt_policy_for opt_policy_to
      opt_policy_using opt_policy_check
    | K_CREATE K_ACCESS K_METHOD colid K_TYPE reindex_relation K_HANDLER any_name
    | K_CREATE K_PUBLICATION colid opt_definition
    | K_CREATE K_PUBLICATION colid K_FOR K_ALL K_TABLES opt_definition
    | K_CREATE K_PUBLICATION colid K_FOR publication_objects opt_definition
    | K_CREATE K_SUBSCRIPTION colid K_CONNECTION SCONST K_PUBLICATION name_list opt_definition
    | K_CREATE K_TABLESPACE colid opt_owner K_LOCATION SCONST opt_storage_options
    | K_CREATE K_ROLE role_id opt_with_word create_role_options
    | K_CREATE K_USER role_id opt_with_word create_role_options
    | K_CREATE K_GROUP role_id opt_with_word create_role_options
    ;

extension_options
    : extension_options extension_option
    | %empty
    ;

extension_option
    : K_SCHEMA colid
    | K_VERSION word_or_string
    | K_CASCADE
    ;

opt_trusted
    : K_TRUSTED
    | %empty
    ;

opt_procedural
    : K_PROCEDURAL
    | %empty
    ;

opt_inline
    : K_INLINE any_name
    | %empty
    ;

opt_validator
    : K_VALIDATOR any_name
    | K_NO K_VALIDATOR
    | %empty
    ;

opt_policy_as
    : K_AS IDENT
        {
            if (!sqlp_is_word(&$2, "permissive") && !sqlp_is_word(&$2, "restrictive"))
                BAD("unrecognized row security option");
        }
    | %empty
    ;

opt_policy_for
    : K_FOR K_ALL
    | K_FOR rule_event
    | %empty
    ;

opt_policy_to
    : K_TO role_list
    | %empty
    ;

opt_policy_using
    : K_USING '(' a_expr ')'
    | %empty
    ;

opt_policy_check
    : K_WITH K_CHECK '(' a_expr ')'
    | %empty
    ;

opt_owner
    : K_OWNER role
    | %empty
    ;

/* An object without a key word continues the kind before it; the value's flags say which. */
publication_objects
    : publication_object
        {
            if (!($1.flags & (PUB_TABLES | PUB_SCHEMAS)))
                BAD("invalid publication object list");
        }
    | publication_objects ',' publication_object
        {
            uint32_t own = $3.flags & (PUB_TABLES | PUB_SCHEMAS);
            uint32_t kind = own ? own : $1.flags & (PUB_TABLES | PUB_SCHEMAS);

            if ((kind & PUB_SCHEMAS) && ($3.flags & PUB_NOT_SCHEMA))
                BAD("invalid schema name");
            if ((kind & PUB_TABLES) && ($3.flags & PUB_CURRENT_SCHEMA))
                BAD("invalid table name");
            if (kind == PUB_TABLES && own == 0)
                sqlp_rel(st, &$3, SQL_TABLE_DDL);
            $$.flags = kind;
        }
    ;

publication_object
    : K_TABLE ddl_relation opt_column_list opt_exclusion_where  { $$.flags = PUB_TABLES; }
    | K_TABLES K_IN K_SCHEMA colid          { $$.flags = PUB_SCHEMAS; }
    | K_TABLES K_IN K_SCHEMA K_CURRENT_SCHEMA   { $$.flags = PUB_SCHEMAS; }
    | qname opt_column_list publication_where
        {
            if ($1.prev != NULL || $2.n || $3.n)
                $$.flags |= PUB_NOT_SCHEMA;
        }
    | relation_marked opt_column_list opt_exclusion_where   { $$.flags |= PUB_NOT_SCHEMA; }
    | K_CURRENT_SCHEMA                      { $$.flags = PUB_CURRENT_SCHEMA; }
    ;

publication_where
    : K_WHERE '(' a_expr ')'                { $$.n = 1; }
    | %empty                                { NONE($$); }
    ;

/* relation with a mark that says that it is one. */
relation_marked
    : qname '*'
    | K_ONLY qname                          { $$ = $2; $$.flags |= TOK_ONLY; }
    | K_ONLY '(' qname ')'                  { $$ = $3; $$.flags |= TOK_ONLY; }
    ;

