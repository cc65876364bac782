/* SPDX-License-Identifier: PostgreSQL
 * expr.y: part of sqlgram.y: types and expressions. Runs in: workers. */

/* ---- types ---- */

type_name
    : simple_type opt_array_bounds
    | K_SETOF simple_type opt_array_bounds  { $$ = $2; }
    | simple_type K_ARRAY '[' ICONST ']'
    | K_SETOF simple_type K_ARRAY '[' ICONST ']' { $$ = $2; }
    | simple_type K_ARRAY
    | K_SETOF simple_type K_ARRAY           { $$ = $2; }
    ;

opt_array_bounds
    : opt_array_bounds '[' ']'
    | opt_array_bounds '[' ICONST ']'
    | %empty
    ;

simple_type
    : generic_type
    | numeric_type
    | bit_type
    | char_type
    | datetime_type
    | interval_type opt_interval
    | interval_type '(' ICONST ')'
    | json_type
    ;

/* What may stand before a string constant as its type. */
const_type
    : numeric_type
    | const_bit
    | const_char
    | datetime_type
    | json_type
    ;

generic_type
    : typefn opt_type_modifiers
    | typefn attrs opt_type_modifiers       { $$ = $2; }
    ;

opt_type_modifiers
    : '(' expr_list ')'
    | %empty
    ;

numeric_type
    : K_INT
    | K_INTEGER
    | K_SMALLINT
    | K_BIGINT
    | K_REAL
    | K_FLOAT opt_float
    | K_DOUBLE K_PRECISION
    | K_DECIMAL opt_type_modifiers
    | K_DEC opt_type_modifiers
    | K_NUMERIC opt_type_modifiers
    | K_BOOLEAN
    ;

opt_float
    : '(' ICONST ')'
        {
            FLAG(SQL_F_LITERAL_DEPENDS);
            if (sqlp_int(&$2) < 1 || sqlp_int(&$2) > 53)
                BAD("precision for type float must be between 1 and 53 bits");
        }
    | %empty
    ;

bit_type
    : bit_sized
    | bit_plain
    ;

const_bit
    : bit_sized
    | bit_plain
    ;

bit_sized
    : K_BIT opt_varying '(' expr_list ')'
    ;

bit_plain
    : K_BIT opt_varying
    ;

char_type
    : char_sized
    | char_plain
    ;

const_char
    : char_sized
    | char_plain
    ;

char_sized
    : char_word '(' ICONST ')'
    ;

char_plain
    : char_word
    ;

char_word
    : K_CHARACTER opt_varying
    | K_CHAR opt_varying
    | K_VARCHAR
    | K_NATIONAL K_CHARACTER opt_varying
    | K_NATIONAL K_CHAR opt_varying
    | K_NCHAR opt_varying
    ;

opt_varying
    : K_VARYING
    | %empty
    ;

datetime_type
    : K_TIMESTAMP '(' ICONST ')' opt_time_zone
    | K_TIMESTAMP opt_time_zone
    | K_TIME '(' ICONST ')' opt_time_zone
    | K_TIME opt_time_zone
    ;

opt_time_zone
    : WITH_LA K_TIME K_ZONE
    | WITHOUT_LA K_TIME K_ZONE
    | %empty
    ;

interval_type
    : K_INTERVAL
    ;

/* The value's n is 1 for hours and minutes, which alone may qualify a time zone; 0 for none. */
opt_interval
    : K_YEAR                                { $$.n = 2; }
    | K_MONTH                               { $$.n = 2; }
    | K_DAY                                 { $$.n = 2; }
    | K_HOUR                                { $$.n = 1; }
    | K_MINUTE                              { $$.n = 1; }
    | interval_second                       { $$.n = 2; }
    | K_YEAR K_TO K_MONTH                   { $$.n = 2; }
    | K_DAY K_TO K_HOUR                     { $$.n = 2; }
    | K_DAY K_TO K_MINUTE                   { $$.n = 2; }
    | K_DAY K_TO interval_second            { $$.n = 2; }
    | K_HOUR K_TO K_MINUTE                  { $$.n = 1; $$.end = $3.end; }
    | K_HOUR K_TO interval_second           { $$.n = 2; }
    | K_MINUTE K_TO interval_second         { $$.n = 2; }
    | %empty                                { NONE($$); }
    ;

interval_second
    : K_SECOND
    | K_SECOND '(' ICONST ')'
    ;

json_type
    : K_JSON
    ;

/* ---- expressions ---- */

a_expr
    : c_expr
    | a_expr TYPECAST type_name
    | a_expr K_COLLATE any_name
    | a_expr K_AT K_TIME K_ZONE a_expr %prec K_AT
    | a_expr K_AT K_LOCAL %prec K_AT
    | '+' a_expr %prec UMINUS
    | '-' a_expr %prec UMINUS
    | a_expr '+' a_expr
    | a_expr '-' a_expr
    | a_expr '*' a_expr
    | a_expr '/' a_expr
    | a_expr '%' a_expr
    | a_expr '^' a_expr
    | a_expr '<' a_expr
    | a_expr '>' a_expr
    | a_expr '=' a_expr
    | a_expr LESS_EQUALS a_expr
    | a_expr GREATER_EQUALS a_expr
    | a_expr NOT_EQUALS a_expr
    | a_expr operator a_expr %prec OP
    | operator a_expr %prec OP
    | a_expr K_AND a_expr
    | a_expr K_OR a_expr
    | K_NOT a_expr
    | NOT_LA a_expr %prec K_NOT
    | a_expr K_LIKE a_expr %prec K_LIKE
    | a_expr K_LIKE a_expr K_ESCAPE a_expr %prec K_LIKE
    | a_expr NOT_LA K_LIKE a_expr %prec NOT_LA
    | a_expr NOT_LA K_LIKE a_expr K_ESCAPE a_expr %prec NOT_LA
    | a_expr K_ILIKE a_expr %prec K_ILIKE
    | a_expr K_ILIKE a_expr K_ESCAPE a_expr %prec K_ILIKE
    | a_expr NOT_LA K_ILIKE a_expr %prec NOT_LA
    | a_expr NOT_LA K_ILIKE a_expr K_ESCAPE a_expr %prec NOT_LA
    | a_expr K_SIMILAR K_TO a_expr %prec K_SIMILAR
    | a_expr K_SIMILAR K_TO a_expr K_ESCAPE a_expr %prec K_SIMILAR
    | a_expr NOT_LA K_SIMILAR K_TO a_expr %prec NOT_LA
    | a_expr NOT_LA K_SIMILAR K_TO a_expr K_ESCAPE a_expr %prec NOT_LA
    | a_expr K_IS K_NULL %prec K_IS
    | a_expr K_ISNULL
    | a_expr K_IS K_NOT K_NULL %prec K_IS
    | a_expr K_NOTNULL
    | row K_OVERLAPS row
        {
            if ($1.n != 2 || $3.n != 2)
                BAD("wrong number of parameters on a side of OVERLAPS expression");
        }
    | a_expr K_IS K_TRUE %prec K_IS
    | a_expr K_IS K_NOT K_TRUE %prec K_IS
    | a_expr K_IS K_FALSE %prec K_IS
    | a_expr K_IS K_NOT K_FALSE %prec K_IS
    | a_expr K_IS K_UNKNOWN %prec K_IS
    | a_expr K_IS K_NOT K_UNKNOWN %prec K_IS
    | a_expr K_IS K_DISTINCT K_FROM a_expr %prec K_IS
    | a_expr K_IS K_NOT K_DISTINCT K_FROM a_expr %prec K_IS
    | a_expr K_BETWEEN opt_asymmetric b_expr K_AND a_expr %prec K_BETWEEN
    | a_expr NOT_LA K_BETWEEN opt_asymmetric b_expr K_AND a_expr %prec NOT_LA
    | a_expr K_BETWEEN K_SYMMETRIC b_expr K_AND a_expr %prec K_BETWEEN
    | a_expr NOT_LA K_BETWEEN K_SYMMETRIC b_expr K_AND a_expr %prec NOT_LA
    | a_expr K_IN in_list
    | a_expr NOT_LA K_IN in_list %prec NOT_LA
    | a_expr sub_operator sub_quantifier select_parens %prec OP
    | a_expr sub_operator sub_quantifier '(' a_expr ')' %prec OP
    | a_expr K_IS K_DOCUMENT %prec K_IS
    | a_expr K_IS K_NOT K_DOCUMENT %prec K_IS
    | a_expr K_IS K_NORMALIZED %prec K_IS
    | a_expr K_IS normal_form K_NORMALIZED %prec K_IS
    | a_expr K_IS K_NOT K_NORMALIZED %prec K_IS
    | a_expr K_IS K_NOT normal_form K_NORMALIZED %prec K_IS
    | a_expr K_IS json_predicate opt_json_unique %prec K_IS { NEWER(); }
    | a_expr K_IS K_NOT json_predicate opt_json_unique %prec K_IS { NEWER(); }
    | K_DEFAULT                             { FLAG(SQL_F_DEFAULTS); }
    ;

/* Expressions where words like IN, BETWEEN, AND would be ambiguous. */
b_expr
    : c_expr
    | b_expr TYPECAST type_name
    | '+' b_expr %prec UMINUS
    | '-' b_expr %prec UMINUS
    | b_expr '+' b_expr
    | b_expr '-' b_expr
    | b_expr '*' b_expr
    | b_expr '/' b_expr
    | b_expr '%' b_expr
    | b_expr '^' b_expr
    | b_expr '<' b_expr
    | b_expr '>' b_expr
    | b_expr '=' b_expr
    | b_expr LESS_EQUALS b_expr
    | b_expr GREATER_EQUALS b_expr
    | b_expr NOT_EQUALS b_expr
    | b_expr operator b_expr %prec OP
    | operator b_expr %prec OP
    | b_expr K_IS K_DISTINCT K_FROM b_expr %prec K_IS
    | b_expr K_IS K_NOT K_DISTINCT K_FROM b_expr %prec K_IS
    | b_expr K_IS K_DOCUMENT %prec K_IS
    | b_expr K_IS K_NOT K_DOCUMENT %prec K_IS
    ;

c_expr
    : column_ref
    | const_expr
    | PARAM opt_fields
    | '(' a_expr ')' opt_fields             { $$.flags = 0; }
    | case_expr
    | func_expr
    | select_parens %prec UMINUS
    | select_parens fields
    | K_EXISTS select_parens
    | K_ARRAY select_parens
    | K_ARRAY array_expr
    | explicit_row
    | implicit_row
    | K_GROUPING '(' expr_list ')'
    ;

/* Behind a value: each name calls a function when the value has no field of that name. */
fields
    : indirection_el                        { sqlp_field(st, &$1); }
    | fields indirection_el
        {
            if ($1.flags & TOK_STAR)
                BAD("improper use of \"*\"");
            $$ = $2;
            sqlp_field(st, &$2);
        }
    ;

opt_fields
    : fields
    | %empty                                { NONE($$); }
    ;

column_ref
    : colid
    | colid indirection                     { sqlp_column(st, &$1, &$2); }
    ;

const_expr
    : ICONST
    | FCONST
    | SCONST
    | BCONST
    | XCONST
    | func_name SCONST
    | func_name '(' func_args opt_order_by ')' SCONST
        {
            if (($3.flags & ARG_NAMED) || ($4.flags & SEL_SORT))
                BAD("type modifier cannot have parameter names or ORDER BY");
        }
    | const_type SCONST
    | interval_type SCONST opt_interval
    | interval_type '(' ICONST ')' SCONST
    | K_TRUE
    | K_FALSE
    | K_NULL
    ;

opt_asymmetric
    : K_ASYMMETRIC
    | %empty
    ;

normal_form
    : K_NFC
    | K_NFD
    | K_NFKC
    | K_NFKD
    ;

in_list
    : select_parens
    | '(' expr_list ')'
    ;

sub_quantifier
    : K_ANY
    | K_SOME
    | K_ALL
    ;

sub_operator
    : operator_all
    | K_OPERATOR '(' operator_any ')'
    | K_LIKE
    | NOT_LA K_LIKE
    | K_ILIKE
    | NOT_LA K_ILIKE
    ;

operator_all
    : OP
    | math_operator
    ;

math_operator
    : '+'
    | '-'
    | '*'
    | '/'
    | '%'
    | '^'
    | '<'
    | '>'
    | '='
    | LESS_EQUALS
    | GREATER_EQUALS
    | NOT_EQUALS
    ;

/* An infix or prefix operator that is not one of those with their own precedence. */
operator
    : OP
    | K_OPERATOR '(' operator_any ')'
    ;

operator_any
    : operator_all
    | colid '.' operator_any
    ;

operator_qualified
    : operator_all
    | K_OPERATOR '(' operator_any ')'
    ;

/* n counts. */
expr_list
    : a_expr                                { $$.n = 1; }
    | expr_list ',' a_expr                  { $$.n = $1.n + 1; }
    ;

case_expr
    : K_CASE case_arg when_list case_default K_END { $$.flags = 0; }
    ;

case_arg
    : a_expr
    | %empty
    ;

when_list
    : when
    | when_list when
    ;

when
    : K_WHEN a_expr K_THEN a_expr
    ;

case_default
    : K_ELSE a_expr
    | %empty
    ;

row
    : K_ROW '(' expr_list ')'               { $$.n = $3.n; }
    | K_ROW '(' ')'                         { $$.n = 0; }
    | '(' expr_list ',' a_expr ')'          { $$.n = $2.n + 1; }
    ;

explicit_row
    : K_ROW '(' expr_list ')'
    | K_ROW '(' ')'
    ;

implicit_row
    : '(' expr_list ',' a_expr ')'
    ;

array_expr
    : '[' expr_list ']'
    | '[' array_expr_list ']'
    | '[' ']'
    ;

array_expr_list
    : array_expr
    | array_expr_list ',' array_expr
    ;

