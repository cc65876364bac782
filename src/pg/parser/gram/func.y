/* SPDX-License-Identifier: PostgreSQL
 * func.y: part of sqlgram.y: function calls, syntax that looks like one, SQL/JSON. Runs in: workers. */

/* ---- function calls ---- */

func_expr
    : func_call opt_within_group opt_filter opt_over
        {
            if ($2.n != 0 && ($1.flags & ARG_SORT))
                BAD("cannot use multiple ORDER BY clauses with WITHIN GROUP");
            if ($2.n != 0 && ($1.flags & ARG_DISTINCT))
                BAD("cannot use DISTINCT with WITHIN GROUP");
            if ($2.n != 0 && ($1.flags & ARG_VARIADIC))
                BAD("cannot use VARIADIC with WITHIN GROUP");
            $$.flags = 0;
        }
    | json_aggregate opt_filter opt_over    { $$.flags = 0; }
    | func_special                          { $$.flags = 0; }
    ;

/* A call where no window may follow: FROM, index expressions. */
func_plain
    : func_call                             { $$.flags = 0; }
    | func_special                          { $$.flags |= FUNC_SYNTAX; }
    | json_aggregate                        { $$.flags |= FUNC_SYNTAX; }
    ;

func_call
    : func_name '(' ')'
        { NOTE_CALL($1, 0, 0, $3); $$.flags = 0; }
    | func_name '(' func_args opt_order_by ')'
        { NOTE_CALL($1, $3.n, 0, $5); $$.flags = SORT_FLAG($4); }
    | func_name '(' K_VARIADIC func_arg opt_order_by ')'
        { NOTE_CALL($1, 1, 0, $6); $$.flags = ARG_VARIADIC | SORT_FLAG($5); }
    | func_name '(' func_args ',' K_VARIADIC func_arg opt_order_by ')'
        { NOTE_CALL($1, $3.n + 1, 0, $8); $$.flags = ARG_VARIADIC | SORT_FLAG($7); }
    | func_name '(' K_ALL func_args opt_order_by ')'
        { NOTE_CALL($1, $4.n, 0, $6); $$.flags = SORT_FLAG($5); }
    | func_name '(' K_DISTINCT func_args opt_order_by ')'
        {
            NOTE_CALL($1, $4.n, SQL_FUNC_DISTINCT, $6);
            $$.flags = ARG_DISTINCT | SORT_FLAG($5);
        }
    | func_name '(' '*' ')'
        { NOTE_CALL($1, 0, SQL_FUNC_STAR, $4); $$.flags = 0; }
    ;

/* n counts; ARG_NAMED when one has a name. */
func_args
    : func_arg                              { $$.n = 1; }
    | func_args ',' func_arg                { $$.n = $1.n + 1; $$.flags = $1.flags | $3.flags; }
    ;

func_arg
    : a_expr                                { $$.flags = 0; }
    | typefn COLON_EQUALS a_expr            { $$.flags = ARG_NAMED; }
    | typefn EQUALS_GREATER a_expr          { $$.flags = ARG_NAMED; }
    ;

opt_within_group
    : K_WITHIN K_GROUP '(' order_by ')'     { $$.n = 1; }
    | %empty                                { NONE($$); }
    ;

opt_filter
    : K_FILTER '(' K_WHERE a_expr ')'
    | %empty
    ;

opt_over
    : K_OVER window_spec
    | K_OVER colid
    | %empty
    ;

func_special
    : K_COLLATION K_FOR '(' a_expr ')'
    | K_CURRENT_DATE
        { sqlp_time(st, SQL_TIME_DATE, $1.off, $1.end); }
    | K_CURRENT_TIME
        { sqlp_time(st, SQL_TIME_TIME, $1.off, $1.end); }
    | K_CURRENT_TIME '(' ICONST ')'
        { sqlp_time(st, SQL_TIME_TIME, $1.off, $4.end); }
    | K_CURRENT_TIMESTAMP
        { sqlp_time(st, SQL_TIME_TIMESTAMP, $1.off, $1.end); }
    | K_CURRENT_TIMESTAMP '(' ICONST ')'
        { sqlp_time(st, SQL_TIME_TIMESTAMP, $1.off, $4.end); }
    | K_LOCALTIME
        { sqlp_time(st, SQL_TIME_LOCALTIME, $1.off, $1.end); }
    | K_LOCALTIME '(' ICONST ')'
        { sqlp_time(st, SQL_TIME_LOCALTIME, $1.off, $4.end); }
    | K_LOCALTIMESTAMP
        { sqlp_time(st, SQL_TIME_LOCALTIMESTAMP, $1.off, $1.end); }
    | K_LOCALTIMESTAMP '(' ICONST ')'
        { sqlp_time(st, SQL_TIME_LOCALTIMESTAMP, $1.off, $4.end); }
    | K_CURRENT_ROLE
    | K_CURRENT_USER
    | K_SESSION_USER
    | K_SYSTEM_USER                         { $$.flags = FUNC_BARE_NAME; /* in 15 it may be a table's */ }
    | K_USER
    | K_CURRENT_CATALOG
    | K_CURRENT_SCHEMA
    | K_CAST '(' a_expr K_AS type_name ')'
    | K_EXTRACT '(' extract_field K_FROM a_expr ')'
    | K_NORMALIZE '(' a_expr ')'
    | K_NORMALIZE '(' a_expr ',' normal_form ')'
    | K_OVERLAY '(' overlay_list ')'
    | K_OVERLAY '(' opt_func_args ')'       { NOTE_CALL($1, $3.n, 0, $4); }
    | K_POSITION '(' b_expr K_IN b_expr ')'
    | K_SUBSTRING '(' substring_list ')'
    | K_SUBSTRING '(' opt_func_args ')'     { NOTE_CALL($1, $3.n, 0, $4); }
    | K_TREAT '(' a_expr K_AS type_name ')' { sqlp_treat(st, &$5); }
    | K_TRIM '(' K_BOTH trim_list ')'
    | K_TRIM '(' K_LEADING trim_list ')'
    | K_TRIM '(' K_TRAILING trim_list ')'
    | K_TRIM '(' trim_list ')'
    | K_NULLIF '(' a_expr ',' a_expr ')'
    | K_COALESCE '(' expr_list ')'
    | K_GREATEST '(' expr_list ')'
    | K_LEAST '(' expr_list ')'
    | K_XMLCONCAT '(' expr_list ')'
    | K_XMLELEMENT '(' K_NAME collabel ')'
    | K_XMLELEMENT '(' K_NAME collabel ',' xml_attributes ')'
    | K_XMLELEMENT '(' K_NAME collabel ',' expr_list ')'
    | K_XMLELEMENT '(' K_NAME collabel ',' xml_attributes ',' expr_list ')'
    | K_XMLEXISTS '(' c_expr xml_passing ')'
    | K_XMLFOREST '(' xml_attribute_list ')'
    | K_XMLPARSE '(' document_or_content a_expr opt_xml_whitespace ')'
    | K_XMLPI '(' K_NAME collabel ')'
    | K_XMLPI '(' K_NAME collabel ',' a_expr ')'
    | K_XMLROOT '(' a_expr ',' xml_version opt_xml_standalone ')'
    | K_XMLSERIALIZE '(' document_or_content a_expr K_AS simple_type opt_xml_indent ')'
    | K_JSON_OBJECT '(' func_args ')'       { NOTE_CALL($1, $3.n, 0, $4); }
    | K_JSON_OBJECT '(' json_pairs opt_json_null opt_json_unique opt_json_returning ')' { NEWER(); }
    | K_JSON_OBJECT '(' opt_json_returning ')'
        { NOTE_OLD_CALL(!$3.n, $1, 0, $4); }
    | K_JSON_ARRAY '(' json_values opt_json_null opt_json_returning ')'
        { NOTE_OLD_CALL(!($3.flags & ARG_GIVEN || $4.n || $5.n), $1, $3.n, $6); }
    | K_JSON_ARRAY '(' select_bare opt_json_format opt_json_returning ')' { NEWER(); }
    | K_JSON_ARRAY '(' opt_json_returning ')'
        { NOTE_OLD_CALL(!$3.n, $1, 0, $4); }
    | K_JSON '(' json_value opt_json_unique ')'
        { NOTE_OLD_CALL(!($3.flags & ARG_GIVEN || $4.n), $1, 1, $5); }
    | K_JSON_SCALAR '(' a_expr ')'          { NOTE_OLD_CALL(true, $1, 1, $4); }
    | K_JSON_SERIALIZE '(' json_value opt_json_returning ')'
        { NOTE_OLD_CALL(!($3.flags & ARG_GIVEN || $4.n), $1, 1, $5); }
    | K_JSON_QUERY '(' json_value ',' a_expr opt_json_passing opt_json_returning opt_json_wrapper
      opt_json_quotes opt_json_behavior ')'
        {
            NOTE_OLD_CALL(!($3.flags & ARG_GIVEN || $6.n || $7.n || $8.n || $9.n || $10.n), $1, 2,
                $11);
        }
    | K_JSON_EXISTS '(' json_value ',' a_expr opt_json_passing opt_json_on_error ')'
        { NOTE_OLD_CALL(!($3.flags & ARG_GIVEN || $6.n || $7.n), $1, 2, $8); }
    | K_JSON_VALUE '(' json_value ',' a_expr opt_json_passing opt_json_returning
      opt_json_behavior ')'
        { NOTE_OLD_CALL(!($3.flags & ARG_GIVEN || $6.n || $7.n || $8.n), $1, 2, $9); }
    | K_MERGE_ACTION '(' ')'                { NOTE_OLD_CALL(true, $1, 0, $3); }
    ;

opt_func_args
    : func_args
    | %empty                                { NONE($$); }
    ;

extract_field
    : IDENT
    | K_YEAR
    | K_MONTH
    | K_DAY
    | K_HOUR
    | K_MINUTE
    | K_SECOND
    | SCONST
    ;

overlay_list
    : a_expr K_PLACING a_expr K_FROM a_expr K_FOR a_expr
    | a_expr K_PLACING a_expr K_FROM a_expr
    ;

substring_list
    : a_expr K_FROM a_expr K_FOR a_expr
    | a_expr K_FOR a_expr K_FROM a_expr
    | a_expr K_FROM a_expr
    | a_expr K_FOR a_expr
    | a_expr K_SIMILAR a_expr K_ESCAPE a_expr
    ;

trim_list
    : a_expr K_FROM expr_list
    | K_FROM expr_list
    | expr_list
    ;

xml_attributes
    : K_XMLATTRIBUTES '(' xml_attribute_list ')'
    ;

xml_attribute_list
    : xml_attribute
    | xml_attribute_list ',' xml_attribute
    ;

xml_attribute
    : a_expr K_AS collabel
    | a_expr
    ;

document_or_content
    : K_DOCUMENT
    | K_CONTENT
    ;

opt_xml_whitespace
    : K_PRESERVE K_WHITESPACE
    | K_STRIP K_WHITESPACE
    | %empty
    ;

xml_version
    : K_VERSION a_expr
    | K_VERSION K_NO K_VALUE
    ;

opt_xml_standalone
    : ',' K_STANDALONE K_YES
    | ',' K_STANDALONE K_NO
    | ',' K_STANDALONE K_NO K_VALUE
    | %empty
    ;

opt_xml_indent
    : K_INDENT
    | K_NO K_INDENT
    | %empty
    ;

/* ---- SQL/JSON ---- */

json_aggregate
    : K_JSON_OBJECTAGG '(' json_pair opt_json_null opt_json_unique opt_json_returning ')' { NEWER(); }
    | K_JSON_ARRAYAGG '(' json_value opt_order_by opt_json_null opt_json_returning ')'
        { NOTE_OLD_CALL(!($3.flags & ARG_GIVEN || $5.n || $6.n), $1, 1, $7); }
    ;

json_pairs
    : json_pair
    | json_pairs ',' json_pair
    ;

json_pair
    : c_expr K_VALUE json_value
    | a_expr ':' json_value
    ;

json_values
    : json_value                            { $$.n = 1; }
    | json_values ',' json_value            { $$.n = $1.n + 1; $$.flags = $1.flags | $3.flags; }
    ;

json_value
    : a_expr opt_json_format                { $$.flags = $2.n ? ARG_GIVEN : 0; }
    ;

json_format
    : FORMAT_LA K_JSON
    | FORMAT_LA K_JSON K_ENCODING colid
        {
            if (!sqlp_is_json_encoding(&$4))
                BAD("unrecognized JSON encoding");
        }
    ;

opt_json_format
    : json_format                           { $$.n = 1; }
    | %empty                                { NONE($$); }
    ;

opt_json_returning
    : K_RETURNING type_name opt_json_format { $$.n = 1; }
    | %empty                                { NONE($$); }
    ;

opt_json_null
    : K_NULL K_ON K_NULL                    { $$.n = 1; }
    | K_ABSENT K_ON K_NULL                  { $$.n = 1; }
    | %empty                                { NONE($$); }
    ;

opt_json_unique
    : K_WITH K_UNIQUE K_KEYS                { $$.n = 1; }
    | K_WITH K_UNIQUE %prec K_UNBOUNDED     { $$.n = 1; }
    | K_WITHOUT K_UNIQUE K_KEYS             { $$.n = 1; }
    | K_WITHOUT K_UNIQUE %prec K_UNBOUNDED  { $$.n = 1; }
    | %empty %prec K_UNBOUNDED              { NONE($$); }
    ;

json_predicate
    : K_JSON %prec K_UNBOUNDED
    | K_JSON K_VALUE
    | K_JSON K_ARRAY
    | K_JSON K_OBJECT
    | K_JSON K_SCALAR
    ;

opt_json_passing
    : K_PASSING json_arguments              { $$.n = 1; }
    | %empty                                { NONE($$); }
    ;

json_arguments
    : json_argument
    | json_arguments ',' json_argument
    ;

json_argument
    : json_value K_AS collabel
    ;

opt_json_wrapper
    : K_WITHOUT opt_array_word K_WRAPPER    { $$.n = 1; }
    | K_WITH opt_array_word K_WRAPPER       { $$.n = 1; }
    | K_WITH K_CONDITIONAL opt_array_word K_WRAPPER { $$.n = 1; }
    | K_WITH K_UNCONDITIONAL opt_array_word K_WRAPPER { $$.n = 1; }
    | %empty                                { NONE($$); }
    ;

opt_array_word
    : K_ARRAY
    | %empty
    ;

opt_json_quotes
    : K_KEEP K_QUOTES opt_scalar_string     { $$.n = 1; }
    | K_OMIT K_QUOTES opt_scalar_string     { $$.n = 1; }
    | %empty                                { NONE($$); }
    ;

opt_scalar_string
    : K_ON K_SCALAR K_STRING
    | %empty
    ;

json_behavior
    : K_DEFAULT a_expr
    | K_ERROR
    | K_NULL
    | K_TRUE
    | K_FALSE
    | K_UNKNOWN
    | K_EMPTY
    | K_EMPTY K_ARRAY
    | K_EMPTY K_OBJECT
    ;

opt_json_behavior
    : json_behavior K_ON K_EMPTY            { $$.n = 1; }
    | json_behavior K_ON K_ERROR            { $$.n = 1; }
    | json_behavior K_ON K_EMPTY json_behavior K_ON K_ERROR { $$.n = 1; }
    | %empty                                { NONE($$); }
    ;

opt_json_on_error
    : json_behavior K_ON K_ERROR            { $$.n = 1; }
    | %empty                                { NONE($$); }
    ;

