/* SPDX-License-Identifier: PostgreSQL
 * prec.y: part of sqlgram.y: precedence, statements, names. Runs in: workers. */

%left K_UNION K_EXCEPT
%left K_INTERSECT
%left K_OR
%left K_AND
%right K_NOT
%nonassoc K_IS K_ISNULL K_NOTNULL
%nonassoc '<' '>' '=' LESS_EQUALS GREATER_EQUALS NOT_EQUALS
%nonassoc K_BETWEEN K_IN K_LIKE K_ILIKE K_SIMILAR NOT_LA
%nonassoc K_ESCAPE
/* Words that may follow an expression and may also be names: at IDENT's level the grammar prefers
 * to go on; K_UNBOUNDED and K_NESTED stand just below it. */
%nonassoc K_UNBOUNDED K_NESTED
%nonassoc IDENT K_PARTITION K_RANGE K_ROWS K_GROUPS K_PRECEDING K_FOLLOWING K_CUBE K_ROLLUP
    K_SET K_KEYS K_OBJECT K_SCALAR K_VALUE K_WITH K_WITHOUT K_PATH
%left OP K_OPERATOR
%left '+' '-'
%left '*' '/' '%'
%left '^'
%left K_AT
%left K_COLLATE
%right UMINUS
%left '[' ']'
%left '(' ')'
%left TYPECAST
%left '.'
%left K_JOIN K_CROSS K_LEFT K_FULL K_RIGHT K_INNER K_NATURAL

%start script
%%

script
    : script ';' script_stmt
    | script_stmt
    ;

script_stmt
    : stmt                                  { sqlp_end_stmt(st); }
    | begin_or_end                          { sqlp_end_stmt(st); }
    | %empty
    ;

stmt
    : select_stmt                           { set_select_kind(st, &$1); }
    | insert_stmt
    | update_stmt
    | delete_stmt
    | merge_stmt
    | utility_stmt
    | ddl_stmt                              { KIND(SQL_DDL); FORGET_SET(); }
    ;

/* What may stand in a CTE, PREPARE and COPY. */
preparable
    : select_stmt                           { set_select_kind(st, &$1); }
    | insert_stmt
    | update_stmt
    | delete_stmt
    | merge_stmt
    ;

/* ---- names ---- */

colid
    : IDENT
    | kw_unreserved
    | kw_colname
    ;

typefn
    : IDENT
    | kw_unreserved
    | kw_typefunc
    ;

nonreserved
    : IDENT
    | kw_unreserved
    | kw_colname
    | kw_typefunc
    ;

collabel
    : IDENT
    | kw_unreserved
    | kw_colname
    | kw_typefunc
    | kw_reserved
    ;

barelabel
    : IDENT
    | kw_bare
    ;

name_list
    : colid                                 { $$.n = 1; }
    | name_list ',' colid                   { $$.n = $1.n + 1; }
    ;

opt_name_list
    : '(' name_list ')'
    | %empty
    ;

attrs
    : '.' collabel                          { $$ = $2; $$.prev = NULL; }
    | attrs '.' collabel                    { $$ = $3; sqlp_link(st, &$1, &$$); }
    ;

any_name
    : colid
    | colid attrs                           { $$ = $2; sqlp_join(st, &$1, &$$); }
    ;

any_name_list
    : any_name
    | any_name_list ',' any_name
    ;

/* A relation's name; who uses it notes it. */
qname
    : colid
    | colid indirection
        {
            $$ = $2;
            sqlp_join(st, &$1, &$$);
            if (sqlp_check_relname(st, &$$) == -1)
                YYABORT;
        }
    ;

func_name
    : typefn
    | colid indirection
        {
            $$ = $2;
            sqlp_join(st, &$1, &$$);
            if ($$.flags & (TOK_STAR | TOK_SUBSCRIPT))
                BAD("syntax error");
        }
    ;

indirection_el
    : '.' collabel                          { $$ = $2; $$.prev = NULL; }
    | '.' '*'                               { $$ = $2; $$.flags |= TOK_STAR; }
    | '[' a_expr ']'                        { $$ = $3; $$.flags = TOK_SUBSCRIPT; $$.prev = NULL; }
    | '[' opt_slice_bound ':' opt_slice_bound ']'
                                            { $$ = $5; $$.flags = TOK_SUBSCRIPT; $$.prev = NULL; }
    ;

opt_slice_bound
    : a_expr
    | %empty
    ;

indirection
    : indirection_el
    | indirection indirection_el
        {
            if ($1.flags & TOK_STAR)
                BAD("improper use of \"*\"");
            if ($1.flags & TOK_SUBSCRIPT)
                sqlp_field(st, &$2); /* of an element */
            $$ = $2;
            sqlp_link(st, &$1, &$$);
        }
    ;

opt_indirection
    : %empty                                { NONE($$); }
    | opt_indirection indirection_el
        {
            if ($1.flags & TOK_STAR)
                BAD("improper use of \"*\"");
            $$ = $2;
        }
    ;

number
    : FCONST
    | '+' FCONST                            { $$.end = $2.end; }
    | '-' FCONST                            { $$.end = $2.end; $$.flags |= TOK_NEGATIVE; }
    | signed_iconst
    ;

signed_iconst
    : ICONST
    | '+' ICONST                            { $$.end = $2.end; }
    | '-' ICONST                            { $$.end = $2.end; $$.flags |= TOK_NEGATIVE; }
    ;

word_or_string
    : nonreserved
    | SCONST
    ;

bool_or_string
    : K_TRUE
    | K_FALSE
    | K_ON
    | word_or_string
    ;

role
    : nonreserved
        {
            if (sqlp_is_word(&$1, "none"))
                BAD("role name \"none\" is reserved");
        }
    | K_CURRENT_ROLE
    | K_CURRENT_USER
    | K_SESSION_USER
    ;

role_id
    : nonreserved
        {
            if (sqlp_is_word(&$1, "none") || sqlp_is_word(&$1, "public"))
                BAD("role name is reserved");
        }
    ;

role_list
    : role
    | role_list ',' role
    ;

