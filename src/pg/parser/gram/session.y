/* SPDX-License-Identifier: PostgreSQL
 * session.y: part of sqlgram.y: SET, transactions, LOCK, LISTEN, maintenance. Runs in: workers. */

/* ---- statements about the session and the server ---- */

utility_stmt
    : copy_stmt
    | explain_stmt
    | prepare_stmt
    | execute_stmt
    | deallocate_stmt
    | declare_stmt
    | fetch_stmt
    | close_stmt
    | set_stmt
    | reset_stmt
    | show_stmt
    | transaction_stmt
    | truncate_stmt
    | lock_stmt
    | listen_stmt
    | vacuum_stmt                           { KIND(SQL_OTHER); }
    | call_stmt
    | do_stmt
    ;

/* ---- SET, RESET, SHOW ---- */

set_stmt
    : K_SET set_rest                        { NOTE_SET(SQL_SET_SESSION); }
    | K_SET K_LOCAL set_rest                { NOTE_SET(SQL_SET_LOCAL); }
    | K_SET K_SESSION set_rest              { NOTE_SET(SQL_SET_SESSION); }
    | K_SET K_CONSTRAINTS constraint_names constraint_mode
        {
            KIND(SQL_SET);
            st->cur.set.scope = SQL_SET_CONSTRAINTS;
            sqlp_set_named(st, "constraints", &$4);
        }
    ;

constraint_names
    : K_ALL
    | locked_names
    ;

constraint_mode
    : K_DEFERRED
    | K_IMMEDIATE
    ;

set_rest
    : K_TRANSACTION transaction_modes
        { sqlp_set_named(st, "transaction", &$2); st->cur.set.scope = SQL_SET_TRANSACTION; }
    | K_SESSION K_CHARACTERISTICS K_AS K_TRANSACTION transaction_modes
        { sqlp_set_named(st, "transaction", &$5); st->cur.set.scope = SQL_SET_CHARACTERISTICS; }
    | set_more
    ;

set_generic
    : variable K_TO value_list              { sqlp_set(st, &$1, &$3); }
    | variable '=' value_list               { sqlp_set(st, &$1, &$3); }
    | variable K_TO K_DEFAULT               { sqlp_set(st, &$1, NULL); }
    | variable '=' K_DEFAULT                { sqlp_set(st, &$1, NULL); }
    ;

set_more
    : set_generic
    | variable K_FROM K_CURRENT
        { sqlp_set(st, &$1, NULL); st->cur.set.how = SQL_SET_FROM_CURRENT; }
    | K_TIME K_ZONE zone                    { sqlp_set_named(st, "timezone", &$3); }
    | K_SCHEMA SCONST                       { sqlp_set_named(st, "search_path", &$2); }
    | K_NAMES opt_encoding                  { sqlp_set_named(st, "client_encoding", &$2); }
    | K_ROLE word_or_string                 { sqlp_set_named(st, "role", &$2); }
    | K_SESSION K_AUTHORIZATION word_or_string
        { sqlp_set_named(st, "session_authorization", &$3); }
    | K_SESSION K_AUTHORIZATION K_DEFAULT
        { NONE($$); sqlp_set_named(st, "session_authorization", &$$); }
    | K_XML K_OPTION document_or_content    { sqlp_set_named(st, "xmloption", &$3); }
    | K_TRANSACTION K_SNAPSHOT SCONST
        { sqlp_set_named(st, "transaction_snapshot", &$3); st->cur.set.scope = SQL_SET_TRANSACTION; }
    ;

/* A chain of parts, as other names are. */
variable
    : colid                                 { $$.prev = NULL; }
    | variable '.' colid                    { $$ = $3; sqlp_link(st, &$1, &$$); }
    ;

value_list
    : value
    | value_list ',' value                  { $$.end = $3.end; }
    ;

value
    : bool_or_string
    | number
    ;

zone
    : SCONST
    | IDENT
    | interval_type SCONST opt_interval
        {
            if ($3.n > 1)
                BAD("time zone interval must be HOUR or HOUR TO MINUTE");
            $$.end = $3.n ? $3.end : $2.end;
        }
    | interval_type '(' ICONST ')' SCONST   { $$.end = $5.end; }
    | number
    | K_DEFAULT                             { NONE($$); }
    | K_LOCAL                               { NONE($$); }
    ;

opt_encoding
    : SCONST
    | K_DEFAULT                             { NONE($$); }
    | %empty                                { NONE($$); }
    ;

reset_stmt
    : K_RESET reset_rest                    { KIND(SQL_RESET); st->cur.set.scope = SQL_SET_SESSION; }
    ;

reset_rest
    : reset_generic
    | K_TIME K_ZONE                         { NONE($$); sqlp_set_named(st, "timezone", &$$); }
    | K_TRANSACTION K_ISOLATION K_LEVEL
        { NONE($$); sqlp_set_named(st, "transaction_isolation", &$$); }
    | K_SESSION K_AUTHORIZATION
        { NONE($$); sqlp_set_named(st, "session_authorization", &$$); }
    ;

reset_generic
    : variable                              { sqlp_set(st, &$1, NULL); }
    | K_ALL                                 { FLAG(SQL_F_ALL); st->cur.set.how = SQL_SET_RESET_ALL; }
    ;

show_stmt
    : K_SHOW show_rest                      { KIND(SQL_SHOW); }
    ;

show_rest
    : variable                              { sqlp_set(st, &$1, NULL); }
    | K_TIME K_ZONE                         { NONE($$); sqlp_set_named(st, "timezone", &$$); }
    | K_TRANSACTION K_ISOLATION K_LEVEL
        { NONE($$); sqlp_set_named(st, "transaction_isolation", &$$); }
    | K_SESSION K_AUTHORIZATION
        { NONE($$); sqlp_set_named(st, "session_authorization", &$$); }
    | K_ALL                                 { FLAG(SQL_F_ALL); }
    ;

/* SET and RESET inside ALTER ... and CREATE FUNCTION: about no setting of this session. */
set_or_reset
    : K_SET set_rest                        { FORGET_SET(); }
    | K_RESET reset_rest                    { FORGET_SET(); }
    ;

function_set_reset
    : K_SET set_more                        { FORGET_SET(); }
    | K_RESET reset_rest                    { FORGET_SET(); }
    ;

/* ---- transactions ---- */

transaction_stmt
    : K_ABORT opt_work opt_chain            { TX(SQL_ROLLBACK, SQL_TX_ROLLBACK); }
    | K_START K_TRANSACTION opt_transaction_modes   { TX(SQL_BEGIN, SQL_TX_BEGIN); }
    | K_COMMIT opt_work opt_chain           { TX(SQL_COMMIT, SQL_TX_COMMIT); }
    | K_ROLLBACK opt_work opt_chain         { TX(SQL_ROLLBACK, SQL_TX_ROLLBACK); }
    | K_SAVEPOINT colid
        { TX(SQL_SAVEPOINT, SQL_TX_SAVEPOINT); st->cur.tx.name = sqlp_fold(st, &$2); }
    | K_RELEASE K_SAVEPOINT colid
        { TX(SQL_SAVEPOINT, SQL_TX_RELEASE); st->cur.tx.name = sqlp_fold(st, &$3); }
    | K_RELEASE colid
        { TX(SQL_SAVEPOINT, SQL_TX_RELEASE); st->cur.tx.name = sqlp_fold(st, &$2); }
    | K_ROLLBACK opt_work K_TO K_SAVEPOINT colid
        { TX(SQL_SAVEPOINT, SQL_TX_ROLLBACK_TO); st->cur.tx.name = sqlp_fold(st, &$5); }
    | K_ROLLBACK opt_work K_TO colid
        { TX(SQL_SAVEPOINT, SQL_TX_ROLLBACK_TO); st->cur.tx.name = sqlp_fold(st, &$4); }
    | K_PREPARE K_TRANSACTION SCONST
        { TX(SQL_OTHER, SQL_TX_PREPARE); TX_GID($3); }
    | K_COMMIT K_PREPARED SCONST
        { TX(SQL_OTHER, SQL_TX_COMMIT_PREPARED); TX_GID($3); }
    | K_ROLLBACK K_PREPARED SCONST
        { TX(SQL_OTHER, SQL_TX_ROLLBACK_PREPARED); TX_GID($3); }
    ;

/* Not inside BEGIN ATOMIC bodies, where BEGIN and END mean something else. */
begin_or_end
    : K_BEGIN opt_work opt_transaction_modes    { TX(SQL_BEGIN, SQL_TX_BEGIN); }
    | K_END opt_work opt_chain              { TX(SQL_COMMIT, SQL_TX_COMMIT); }
    ;

opt_work
    : K_WORK
    | K_TRANSACTION
    | %empty
    ;

opt_chain
    : K_AND K_CHAIN                         { FLAG(SQL_F_CHAIN); }
    | K_AND K_NO K_CHAIN
    | %empty
    ;

opt_transaction_modes
    : transaction_modes
    | %empty
    ;

transaction_modes
    : transaction_mode
    | transaction_modes ',' transaction_mode    { $$.end = $3.end; }
    | transaction_modes transaction_mode    { $$.end = $2.end; }
    ;

transaction_mode
    : K_ISOLATION K_LEVEL isolation         { $$.end = $3.end; }
    | K_READ K_ONLY                         { $$.end = $2.end; st->cur.tx.read_only = SQL_YES; }
    | K_READ K_WRITE                        { $$.end = $2.end; st->cur.tx.read_only = SQL_NO; }
    | K_DEFERRABLE                          { st->cur.tx.deferrable = SQL_YES; }
    | K_NOT K_DEFERRABLE                    { $$.end = $2.end; st->cur.tx.deferrable = SQL_NO; }
    ;

isolation
    : K_READ K_UNCOMMITTED
        { $$.end = $2.end; st->cur.tx.isolation = SQL_ISO_READ_UNCOMMITTED; }
    | K_READ K_COMMITTED
        { $$.end = $2.end; st->cur.tx.isolation = SQL_ISO_READ_COMMITTED; }
    | K_REPEATABLE K_READ
        { $$.end = $2.end; st->cur.tx.isolation = SQL_ISO_REPEATABLE_READ; }
    | K_SERIALIZABLE                        { st->cur.tx.isolation = SQL_ISO_SERIALIZABLE; }
    ;

/* ---- TRUNCATE, LOCK ---- */

truncate_stmt
    : K_TRUNCATE opt_table_word written_relations opt_restart opt_behavior { KIND(SQL_TRUNCATE); }
    ;

written_relations
    : target_name
    | written_relations ',' target_name
    ;

opt_restart
    : K_CONTINUE K_IDENTITY
    | K_RESTART K_IDENTITY
    | %empty
    ;

opt_behavior
    : K_CASCADE
    | K_RESTRICT
    | %empty
    ;

lock_stmt
    : K_LOCK opt_table_word written_relations opt_lock_mode opt_nowait  { KIND(SQL_LOCK); }
    ;

opt_lock_mode
    : K_IN lock_mode K_MODE
    | %empty                                { LOCKMODE(SQL_LOCK_ACCESS_EXCLUSIVE); }
    ;

lock_mode
    : K_ACCESS K_SHARE                      { LOCKMODE(SQL_LOCK_ACCESS_SHARE); }
    | K_ROW K_SHARE                         { LOCKMODE(SQL_LOCK_ROW_SHARE); }
    | K_ROW K_EXCLUSIVE                     { LOCKMODE(SQL_LOCK_ROW_EXCLUSIVE); }
    | K_SHARE K_UPDATE K_EXCLUSIVE          { LOCKMODE(SQL_LOCK_SHARE_UPDATE_EXCLUSIVE); }
    | K_SHARE                               { LOCKMODE(SQL_LOCK_SHARE); }
    | K_SHARE K_ROW K_EXCLUSIVE             { LOCKMODE(SQL_LOCK_SHARE_ROW_EXCLUSIVE); }
    | K_EXCLUSIVE                           { LOCKMODE(SQL_LOCK_EXCLUSIVE); }
    | K_ACCESS K_EXCLUSIVE                  { LOCKMODE(SQL_LOCK_ACCESS_EXCLUSIVE); }
    ;

opt_nowait
    : K_NOWAIT                              { FLAG(SQL_F_NOWAIT); }
    | %empty
    ;

/* ---- LISTEN, NOTIFY, CALL, DO ---- */

listen_stmt
    : K_LISTEN colid                        { KIND(SQL_LISTEN); NAME($2); }
    | K_UNLISTEN colid                      { KIND(SQL_OTHER); VERB(SQL_VERB_UNLISTEN); NAME($2); }
    | K_UNLISTEN '*'
        { KIND(SQL_OTHER); VERB(SQL_VERB_UNLISTEN); FLAG(SQL_F_ALL); }
    | K_NOTIFY colid                        { KIND(SQL_NOTIFY); NAME($2); }
    | K_NOTIFY colid ',' SCONST             { KIND(SQL_NOTIFY); NAME($2); }
    ;

call_stmt
    : K_CALL func_call                      { KIND(SQL_CALL); sqlp_call_procedure(st); }
    ;

do_stmt
    : K_DO do_items                         { KIND(SQL_DO); }
    ;

do_items
    : do_item
    | do_items do_item
    ;

do_item
    : SCONST
    | K_LANGUAGE word_or_string             { FLAG(SQL_F_LITERAL_DEPENDS); NAME($2); }
    ;

/* ---- maintenance ---- */

vacuum_stmt
    : K_VACUUM vacuum_old_options opt_vacuum_relations  { VERB(SQL_VERB_VACUUM); }
    | K_VACUUM '(' utility_options ')' opt_vacuum_relations { VERB(SQL_VERB_VACUUM); }
    | analyze_word opt_verbose opt_vacuum_relations     { VERB(SQL_VERB_ANALYZE); }
    | analyze_word '(' utility_options ')' opt_vacuum_relations { VERB(SQL_VERB_ANALYZE); }
    | K_CLUSTER opt_verbose qname opt_cluster_index
        { VERB(SQL_VERB_CLUSTER); sqlp_rel(st, &$3, SQL_TABLE_DDL); }
    | K_CLUSTER opt_verbose                 { VERB(SQL_VERB_CLUSTER); }
    | K_CLUSTER '(' utility_options ')' qname opt_cluster_index
        { VERB(SQL_VERB_CLUSTER); sqlp_rel(st, &$5, SQL_TABLE_DDL); }
    | K_CLUSTER '(' utility_options ')'     { VERB(SQL_VERB_CLUSTER); }
    | K_CLUSTER opt_verbose colid K_ON qname
        { VERB(SQL_VERB_CLUSTER); sqlp_rel(st, &$5, SQL_TABLE_DDL); }
    | K_REINDEX opt_reindex_options reindex_relation opt_concurrently qname
        { VERB(SQL_VERB_REINDEX); sqlp_rel(st, &$5, SQL_TABLE_DDL); }
    | K_REINDEX opt_reindex_options K_SCHEMA opt_concurrently colid { VERB(SQL_VERB_REINDEX); }
    | K_REINDEX opt_reindex_options reindex_all opt_concurrently opt_single_name
        { VERB(SQL_VERB_REINDEX); }
    | K_CHECKPOINT                          { VERB(SQL_VERB_CHECKPOINT); }
    | K_DISCARD discard_what                { VERB(SQL_VERB_DISCARD); NAME($2); }
    | K_LOAD SCONST                         { VERB(SQL_VERB_LOAD); }
    | K_ALTER K_SYSTEM K_SET set_generic    { VERB(SQL_VERB_ALTER_SYSTEM); }
    | K_ALTER K_SYSTEM K_RESET reset_generic    { VERB(SQL_VERB_ALTER_SYSTEM); }
    ;

vacuum_old_options
    : opt_full opt_freeze opt_verbose opt_analyze
    ;

opt_full
    : K_FULL
    | %empty
    ;

opt_freeze
    : K_FREEZE
    | %empty
    ;

opt_analyze
    : analyze_word
    | %empty
    ;

opt_vacuum_relations
    : vacuum_relations
    | %empty
    ;

vacuum_relations
    : vacuum_relation
    | vacuum_relations ',' vacuum_relation
    ;

vacuum_relation
    : relation opt_name_list                { sqlp_rel(st, &$1, SQL_TABLE_DDL); }
    ;

opt_cluster_index
    : K_USING colid
    | %empty
    ;

opt_reindex_options
    : '(' utility_options ')'
    | %empty
    ;

reindex_relation
    : K_INDEX
    | K_TABLE
    ;

reindex_all
    : K_SYSTEM
    | K_DATABASE
    ;

opt_concurrently
    : K_CONCURRENTLY                        { FLAG(SQL_F_CONCURRENTLY); }
    | %empty
    ;

opt_single_name
    : colid
    | %empty
    ;

discard_what
    : K_ALL
    | K_TEMP
    | K_TEMPORARY
    | K_PLANS
    | K_SEQUENCES
    ;

