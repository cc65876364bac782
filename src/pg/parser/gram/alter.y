/* SPDX-License-Identifier: PostgreSQL
 * alter.y: part of sqlgram.y: ALTER but of tables, RENAME, DROP, GRANT, COMMENT. Runs in: workers. */

/* ---- ALTER of everything but tables ---- */

alter_stmt
    : K_ALTER K_EVENT K_TRIGGER colid trigger_switch
    | K_ALTER K_TYPE any_name K_SET '(' def_list ')'
    | K_ALTER K_TYPE any_name K_ADD K_VALUE SCONST
    | K_ALTER K_TYPE any_name K_ADD K_VALUE if_not_exists SCONST
    | K_ALTER K_TYPE any_name K_ADD K_VALUE SCONST before_or_after SCONST
    | K_ALTER K_TYPE any_name K_ADD K_VALUE if_not_exists SCONST before_or_after SCONST
    | K_ALTER K_TYPE any_name K_RENAME K_VALUE SCONST K_TO SCONST
    | K_ALTER K_OPERATOR operator_ref K_SET '(' def_list ')'
    | K_ALTER K_OPERATOR K_FAMILY any_name K_USING colid K_ADD opclass_items
    | K_ALTER K_OPERATOR K_FAMILY any_name K_USING colid K_DROP opclass_drops
    | K_ALTER routine_kind function_ref alter_function_options opt_restrict_word
    | K_ALTER K_COLLATION any_name K_REFRESH K_VERSION
    | K_ALTER K_DOMAIN any_name column_default
    | K_ALTER K_DOMAIN any_name K_DROP K_NOT K_NULL
    | K_ALTER K_DOMAIN any_name K_SET K_NOT K_NULL
    | K_ALTER K_DOMAIN any_name K_ADD domain_constraint
    | K_ALTER K_DOMAIN any_name K_DROP K_CONSTRAINT colid opt_behavior
    | K_ALTER K_DOMAIN any_name K_DROP K_CONSTRAINT K_IF K_EXISTS colid opt_behavior
    | K_ALTER K_DOMAIN any_name K_VALIDATE K_CONSTRAINT colid
    | K_ALTER K_TEXT K_SEARCH K_DICTIONARY any_name definition
    | K_ALTER K_TEXT K_SEARCH K_CONFIGURATION any_name K_ADD K_MAPPING K_FOR name_list any_with
      any_name_list
    | K_ALTER K_TEXT K_SEARCH K_CONFIGURATION any_name K_ALTER K_MAPPING K_FOR name_list any_with
      any_name_list
    | K_ALTER K_TEXT K_SEARCH K_CONFIGURATION any_name K_ALTER K_MAPPING K_REPLACE any_name any_with
      any_name
    | K_ALTER K_TEXT K_SEARCH K_CONFIGURATION any_name K_ALTER K_MAPPING K_FOR name_list K_REPLACE
      any_name any_with any_name
    | K_ALTER K_TEXT K_SEARCH K_CONFIGURATION any_name K_DROP K_MAPPING K_FOR name_list
    | K_ALTER K_TEXT K_SEARCH K_CONFIGURATION any_name K_DROP K_MAPPING K_IF K_EXISTS K_FOR
      name_list
    | K_ALTER K_DATABASE colid K_WITH opt_database_options
    | K_ALTER K_DATABASE colid opt_database_options
    | K_ALTER K_DATABASE colid K_SET K_TABLESPACE colid { FLAG(SQL_F_ALONE); NAME($3); }
    | K_ALTER K_DATABASE colid K_REFRESH K_COLLATION K_VERSION
    | K_ALTER K_GROUP role K_ADD K_USER role_list
    | K_ALTER K_GROUP role K_DROP K_USER role_list
    | K_ALTER K_DEFAULT K_PRIVILEGES default_acl_options default_acl_action
    | K_ALTER K_EXTENSION colid K_UPDATE extension_updates
    | K_ALTER K_EXTENSION colid add_or_drop extension_object
    | K_ALTER K_FOREIGN K_DATA K_WRAPPER colid opt_wrapper_options alter_fdw_options
    | K_ALTER K_FOREIGN K_DATA K_WRAPPER colid wrapper_options
    | K_ALTER K_SERVER colid server_version alter_fdw_options
    | K_ALTER K_SERVER colid server_version
    | K_ALTER K_SERVER colid alter_fdw_options
    | K_ALTER K_USER K_MAPPING K_FOR mapped_user K_SERVER colid alter_fdw_options
    | K_ALTER K_POLICY colid K_ON ddl_rel opt_policy_to opt_policy_using opt_policy_check
    | K_ALTER K_PUBLICATION colid K_SET definition
    | K_ALTER K_PUBLICATION colid K_ADD publication_objects
    | K_ALTER K_PUBLICATION colid K_SET publication_objects
    | K_ALTER K_PUBLICATION colid K_DROP publication_objects
    | K_ALTER K_SUBSCRIPTION colid K_SET definition
    | K_ALTER K_SUBSCRIPTION colid K_CONNECTION SCONST
    | K_ALTER K_SUBSCRIPTION colid K_REFRESH K_PUBLICATION opt_definition
    | K_ALTER K_SUBSCRIPTION colid K_ADD K_PUBLICATION name_list opt_definition
    | K_ALTER K_SUBSCRIPTION colid K_DROP K_PUBLICATION name_list opt_definition
    | K_ALTER K_SUBSCRIPTION colid K_SET K_PUBLICATION name_list opt_definition
    | K_ALTER K_SUBSCRIPTION colid K_ENABLE
    | K_ALTER K_SUBSCRIPTION colid K_DISABLE
    | K_ALTER K_SUBSCRIPTION colid K_SKIP definition
    | K_ALTER K_STATISTICS any_name K_SET K_STATISTICS statistics_target
    | K_ALTER K_STATISTICS K_IF K_EXISTS any_name K_SET K_STATISTICS statistics_target
    | K_ALTER K_TABLESPACE colid K_SET storage_options
    | K_ALTER K_TABLESPACE colid K_RESET storage_options
    | K_REASSIGN K_OWNED K_BY role_list K_TO role
    ;

trigger_switch
    : K_ENABLE
    | K_ENABLE K_REPLICA
    | K_ENABLE K_ALWAYS
    | K_DISABLE
    ;

before_or_after
    : K_BEFORE
    | K_AFTER
    ;

opclass_drops
    : opclass_drop
    | opclass_drops ',' opclass_drop
    ;

opclass_drop
    : K_OPERATOR ICONST '(' type_list ')'
    | K_FUNCTION ICONST '(' type_list ')'
    ;

routine_kind
    : K_FUNCTION
    | K_PROCEDURE
    | K_ROUTINE
    ;

alter_function_options
    : common_function_option
    | alter_function_options common_function_option
    ;

opt_restrict_word
    : K_RESTRICT
    | %empty
    ;

any_with
    : K_WITH
    | WITH_LA
    ;

opt_in_database
    : K_IN K_DATABASE colid
    | %empty
    ;

default_acl_options
    : default_acl_options default_acl_option
    | %empty
    ;

default_acl_option
    : K_IN K_SCHEMA name_list
    | K_FOR K_ROLE role_list
    | K_FOR K_USER role_list
    ;

default_acl_action
    : K_GRANT privileges K_ON default_acl_target K_TO grantees opt_grant_option
    | K_REVOKE privileges K_ON default_acl_target K_FROM grantees opt_behavior
    | K_REVOKE K_GRANT K_OPTION K_FOR privileges K_ON default_acl_target K_FROM grantees
      opt_behavior
    ;

default_acl_target
    : K_TABLES
    | K_FUNCTIONS
    | K_ROUTINES
    | K_SEQUENCES
    | K_TYPES
    | K_SCHEMAS
    | K_LARGE K_OBJECTS
    ;

extension_updates
    : extension_updates K_TO word_or_string
    | %empty
    ;

add_or_drop
    : K_ADD
    | K_DROP
    ;

extension_object
    : object_by_name colid
    | object_by_any_name any_name
    | K_AGGREGATE aggregate_ref
    | K_CAST '(' type_name K_AS type_name ')'
    | K_DOMAIN type_name
    | routine_kind function_ref
    | K_OPERATOR operator_ref
    | K_OPERATOR K_CLASS any_name K_USING colid
    | K_OPERATOR K_FAMILY any_name K_USING colid
    | K_TRANSFORM K_FOR type_name K_LANGUAGE colid
    | K_TYPE type_name
    ;

statistics_target
    : signed_iconst
    | K_DEFAULT
    ;

/* Kinds of objects by how their names are written. */
object_by_any_name
    : K_TABLE
    | K_SEQUENCE
    | K_VIEW
    | K_MATERIALIZED K_VIEW
    | K_INDEX
    | K_FOREIGN K_TABLE
    | K_COLLATION
    | K_CONVERSION
    | K_STATISTICS
    | K_TEXT K_SEARCH text_search_kind
    ;

object_by_name
    : droppable_by_name
    | K_DATABASE
    | K_ROLE
    | K_SUBSCRIPTION
    | K_TABLESPACE
    ;

droppable_by_name
    : K_ACCESS K_METHOD
    | K_EVENT K_TRIGGER
    | K_EXTENSION
    | K_FOREIGN K_DATA K_WRAPPER
    | opt_procedural K_LANGUAGE
    | K_PUBLICATION
    | K_SCHEMA
    | K_SERVER
    ;

object_on_table
    : K_POLICY
    | K_RULE
    | K_TRIGGER
    ;

/* ---- RENAME, OWNER TO, SET SCHEMA, DEPENDS ON ---- */

rename_stmt
    : K_ALTER K_DATABASE colid rename_to        { FLAG(SQL_F_ALONE); NAME($3); }
    | K_ALTER K_DATABASE colid owner_to
    | K_ALTER K_FOREIGN K_DATA K_WRAPPER colid rename_or_owner
    | K_ALTER opt_procedural K_LANGUAGE colid rename_or_owner
    | K_ALTER K_PUBLICATION colid rename_or_owner
    | K_ALTER K_SCHEMA colid rename_or_owner
    | K_ALTER K_SERVER colid rename_or_owner
    | K_ALTER K_SUBSCRIPTION colid rename_or_owner
    | K_ALTER K_EVENT K_TRIGGER colid rename_or_owner
    | K_ALTER K_TABLESPACE colid rename_or_owner
    | K_ALTER K_COLLATION any_name rename_owner_schema
    | K_ALTER K_CONVERSION any_name rename_owner_schema
    | K_ALTER K_DOMAIN any_name rename_owner_schema
    | K_ALTER K_DOMAIN any_name K_RENAME K_CONSTRAINT colid K_TO colid
    | K_ALTER K_STATISTICS any_name rename_owner_schema
    | K_ALTER K_TEXT K_SEARCH K_DICTIONARY any_name rename_owner_schema
    | K_ALTER K_TEXT K_SEARCH K_CONFIGURATION any_name rename_owner_schema
    | K_ALTER K_TEXT K_SEARCH K_PARSER any_name rename_or_schema
    | K_ALTER K_TEXT K_SEARCH K_TEMPLATE any_name rename_or_schema
    | K_ALTER K_TYPE any_name rename_owner_schema
    | K_ALTER K_TYPE any_name K_RENAME K_ATTRIBUTE colid K_TO colid opt_behavior
    | K_ALTER K_AGGREGATE aggregate_ref rename_owner_schema
    | K_ALTER routine_kind function_ref rename_owner_schema
    | K_ALTER routine_kind function_ref depends
    | K_ALTER K_OPERATOR operator_ref owner_to
    | K_ALTER K_OPERATOR operator_ref set_schema
    | K_ALTER K_OPERATOR K_CLASS any_name K_USING colid rename_owner_schema
    | K_ALTER K_OPERATOR K_FAMILY any_name K_USING colid rename_owner_schema
    | K_ALTER K_LARGE K_OBJECT number owner_to
    | K_ALTER K_EXTENSION colid set_schema
    | K_ALTER K_POLICY colid K_ON ddl_rel rename_to
    | K_ALTER K_POLICY K_IF K_EXISTS colid K_ON ddl_rel rename_to
    | K_ALTER K_RULE colid K_ON ddl_rel rename_to
    | K_ALTER K_TRIGGER colid K_ON ddl_rel rename_to
    | K_ALTER K_TRIGGER colid K_ON ddl_rel depends
    | K_ALTER K_TABLE ddl_relation table_rename
    | K_ALTER K_TABLE K_IF K_EXISTS ddl_relation table_rename
    | K_ALTER K_FOREIGN K_TABLE ddl_relation column_rename
    | K_ALTER K_FOREIGN K_TABLE K_IF K_EXISTS ddl_relation column_rename
    | K_ALTER K_VIEW ddl_rel column_rename
    | K_ALTER K_VIEW K_IF K_EXISTS ddl_rel column_rename
    | K_ALTER K_MATERIALIZED K_VIEW ddl_rel column_rename
    | K_ALTER K_MATERIALIZED K_VIEW K_IF K_EXISTS ddl_rel column_rename
    | K_ALTER K_MATERIALIZED K_VIEW ddl_rel depends
    | K_ALTER K_INDEX ddl_rel rename_to
    | K_ALTER K_INDEX K_IF K_EXISTS ddl_rel rename_to
    | K_ALTER K_INDEX ddl_rel depends
    | K_ALTER K_SEQUENCE ddl_rel rename_or_schema
    | K_ALTER K_SEQUENCE K_IF K_EXISTS ddl_rel rename_or_schema
    ;

rename_to
    : K_RENAME K_TO colid
    ;

owner_to
    : K_OWNER K_TO role
    ;

set_schema
    : K_SET K_SCHEMA colid
    ;

rename_or_owner
    : rename_to
    | owner_to
    ;

rename_or_schema
    : rename_to
    | set_schema
    ;

rename_owner_schema
    : rename_to
    | owner_to
    | set_schema
    ;

depends
    : opt_no K_DEPENDS K_ON K_EXTENSION colid
    ;

opt_no
    : K_NO
    | %empty
    ;

column_rename
    : K_RENAME K_TO colid
    | K_RENAME opt_column_word colid K_TO colid
    | set_schema
    ;

table_rename
    : column_rename
    | K_RENAME K_CONSTRAINT colid K_TO colid
    ;

/* ---- DROP ---- */

drop_stmt
    : K_DROP object_by_any_name K_IF K_EXISTS any_name_list opt_behavior
    | K_DROP object_by_any_name any_name_list opt_behavior
    | K_DROP droppable_by_name K_IF K_EXISTS name_list opt_behavior
    | K_DROP droppable_by_name name_list opt_behavior
    | K_DROP object_on_table colid K_ON any_name opt_behavior
    | K_DROP object_on_table K_IF K_EXISTS colid K_ON any_name opt_behavior
    | K_DROP type_or_domain type_list opt_behavior
    | K_DROP type_or_domain K_IF K_EXISTS type_list opt_behavior
    | K_DROP K_INDEX K_CONCURRENTLY any_name_list opt_behavior  { FLAG(SQL_F_CONCURRENTLY); }
    | K_DROP K_INDEX K_CONCURRENTLY K_IF K_EXISTS any_name_list opt_behavior
        { FLAG(SQL_F_CONCURRENTLY); }
    | K_DROP routine_kind function_refs opt_behavior
    | K_DROP routine_kind K_IF K_EXISTS function_refs opt_behavior
    | K_DROP K_AGGREGATE aggregate_refs opt_behavior
    | K_DROP K_AGGREGATE K_IF K_EXISTS aggregate_refs opt_behavior
    | K_DROP K_OPERATOR operator_refs opt_behavior
    | K_DROP K_OPERATOR K_IF K_EXISTS operator_refs opt_behavior
    | K_DROP operator_group any_name K_USING colid opt_behavior
    | K_DROP operator_group K_IF K_EXISTS any_name K_USING colid opt_behavior
    | K_DROP K_OWNED K_BY role_list opt_behavior
    | K_DROP K_CAST opt_if_exists '(' type_name K_AS type_name ')' opt_behavior
    | K_DROP K_TRANSFORM opt_if_exists K_FOR type_name K_LANGUAGE colid opt_behavior
    | K_DROP K_USER K_MAPPING K_FOR mapped_user K_SERVER colid
    | K_DROP K_USER K_MAPPING K_IF K_EXISTS K_FOR mapped_user K_SERVER colid
    | K_DROP K_SUBSCRIPTION colid opt_behavior
    | K_DROP K_SUBSCRIPTION K_IF K_EXISTS colid opt_behavior
    | K_DROP K_TABLESPACE colid
    | K_DROP K_TABLESPACE K_IF K_EXISTS colid
    ;

/* ---- what decides who may log in, and with which settings ---- */

login_stmt
    : K_ALTER K_DATABASE colid set_or_reset         { VERB(SQL_VERB_ALTER_DATABASE); NAME($3); }
    | K_ALTER K_ROLE role opt_with_word role_options    { VERB(SQL_VERB_ALTER_ROLE); NAME($3); }
    | K_ALTER K_USER role opt_with_word role_options    { VERB(SQL_VERB_ALTER_ROLE); NAME($3); }
    | K_ALTER K_ROLE role opt_in_database set_or_reset  { VERB(SQL_VERB_ALTER_ROLE_SET); NAME($3); }
    | K_ALTER K_USER role opt_in_database set_or_reset  { VERB(SQL_VERB_ALTER_ROLE_SET); NAME($3); }
    | K_ALTER K_ROLE K_ALL opt_in_database set_or_reset
        { VERB(SQL_VERB_ALTER_ROLE_SET); FLAG(SQL_F_ALL); }
    | K_ALTER K_USER K_ALL opt_in_database set_or_reset
        { VERB(SQL_VERB_ALTER_ROLE_SET); FLAG(SQL_F_ALL); }
    | K_ALTER K_ROLE role_id K_RENAME K_TO role_id
        { VERB(SQL_VERB_RENAME_ROLE); NAME($3); sqlp_add_name(st, &$6); }
    | K_ALTER K_USER role_id K_RENAME K_TO role_id
        { VERB(SQL_VERB_RENAME_ROLE); NAME($3); sqlp_add_name(st, &$6); }
    | K_ALTER K_GROUP role_id K_RENAME K_TO role_id
        { VERB(SQL_VERB_RENAME_ROLE); NAME($3); sqlp_add_name(st, &$6); }
    | K_DROP K_ROLE dropped_roles                   { VERB(SQL_VERB_DROP_ROLE); }
    | K_DROP K_USER dropped_roles                   { VERB(SQL_VERB_DROP_ROLE); }
    | K_DROP K_GROUP dropped_roles                  { VERB(SQL_VERB_DROP_ROLE); }
    | K_DROP K_ROLE K_IF K_EXISTS dropped_roles     { VERB(SQL_VERB_DROP_ROLE); }
    | K_DROP K_USER K_IF K_EXISTS dropped_roles     { VERB(SQL_VERB_DROP_ROLE); }
    | K_DROP K_GROUP K_IF K_EXISTS dropped_roles    { VERB(SQL_VERB_DROP_ROLE); }
    ;

dropped_roles
    : role                      { NAME($1); }
    | dropped_roles ',' role    { sqlp_add_name(st, &$3); }
    ;

opt_if_exists
    : K_IF K_EXISTS
    | %empty
    ;

type_or_domain
    : K_TYPE
    | K_DOMAIN
    ;

operator_group
    : K_OPERATOR K_CLASS
    | K_OPERATOR K_FAMILY
    ;

drop_database_stmt
    : K_DROP K_DATABASE colid               { NAME($3); }
    | K_DROP K_DATABASE K_IF K_EXISTS colid { NAME($5); }
    | K_DROP K_DATABASE colid opt_with_word '(' drop_database_options ')'   { NAME($3); }
    | K_DROP K_DATABASE K_IF K_EXISTS colid opt_with_word '(' drop_database_options ')'
        { NAME($5); }
    ;

drop_database_options
    : K_FORCE
    | drop_database_options ',' K_FORCE
    ;

/* ---- GRANT, REVOKE ---- */

grant_stmt
    : grant_on_stmt
    | K_REVOKE privileges K_ON privilege_target K_FROM grantees opt_granted_by opt_behavior
    | K_REVOKE K_GRANT K_OPTION K_FOR privileges K_ON privilege_target K_FROM grantees
      opt_granted_by opt_behavior
    | K_GRANT privilege_list K_TO role_list opt_granted_by
    | K_GRANT privilege_list K_TO role_list K_WITH grant_role_options opt_granted_by
    | K_REVOKE privilege_list K_FROM role_list opt_granted_by opt_behavior
    | K_REVOKE colid K_OPTION K_FOR privilege_list K_FROM role_list opt_granted_by opt_behavior
    ;

grant_on_stmt
    : K_GRANT privileges K_ON privilege_target K_TO grantees opt_grant_option opt_granted_by
    ;

privileges
    : privilege_list
    | K_ALL
    | K_ALL K_PRIVILEGES
    | K_ALL '(' columns ')'
    | K_ALL K_PRIVILEGES '(' columns ')'
    ;

privilege_list
    : privilege
    | privilege_list ',' privilege
    ;

privilege
    : K_SELECT opt_column_list
    | K_REFERENCES opt_column_list
    | K_CREATE opt_column_list
    | K_ALTER K_SYSTEM
    | colid opt_column_list
    ;

privilege_target
    : ddl_rels
    | K_TABLE ddl_rels
    | K_SEQUENCE ddl_rels
    | K_FOREIGN K_DATA K_WRAPPER name_list
    | K_FOREIGN K_SERVER name_list
    | routine_kind function_refs
    | K_DATABASE name_list
    | K_DOMAIN any_name_list
    | K_LANGUAGE name_list
    | K_LARGE K_OBJECT number_list
    | K_PARAMETER parameter_names
    | K_SCHEMA name_list
    | K_TABLESPACE name_list
    | K_TYPE any_name_list
    | K_ALL many_objects K_IN K_SCHEMA name_list
    ;

many_objects
    : K_TABLES
    | K_SEQUENCES
    | K_FUNCTIONS
    | K_PROCEDURES
    | K_ROUTINES
    ;

number_list
    : number
    | number_list ',' number
    ;

parameter_names
    : variable
    | parameter_names ',' variable
    ;

grantees
    : grantee
    | grantees ',' grantee
    ;

grantee
    : role
    | K_GROUP role
    ;

opt_grant_option
    : K_WITH K_GRANT K_OPTION
    | %empty
    ;

opt_granted_by
    : K_GRANTED K_BY role
    | %empty
    ;

grant_role_options
    : grant_role_option
    | grant_role_options ',' grant_role_option
    ;

grant_role_option
    : collabel K_OPTION
    | collabel K_TRUE
    | collabel K_FALSE
    ;

/* ---- COMMENT, SECURITY LABEL ---- */

comment_stmt
    : K_COMMENT K_ON commented K_IS string_or_null
    | K_SECURITY K_LABEL opt_provider K_ON labelled K_IS string_or_null
    ;

string_or_null
    : SCONST
    | K_NULL
    ;

opt_provider
    : K_FOR word_or_string
    | %empty
    ;

labelled
    : object_by_any_name any_name
    | K_COLUMN any_name
    | object_by_name colid
    | type_or_domain type_name
    | K_AGGREGATE aggregate_ref
    | routine_kind function_ref
    | K_LARGE K_OBJECT number
    ;

commented
    : labelled
    | K_OPERATOR operator_ref
    | K_CONSTRAINT colid K_ON any_name
    | K_CONSTRAINT colid K_ON K_DOMAIN any_name
    | object_on_table colid K_ON any_name
    | K_TRANSFORM K_FOR type_name K_LANGUAGE colid
    | operator_group any_name K_USING colid
    | K_CAST '(' type_name K_AS type_name ')'
    ;

