/* SPDX-License-Identifier: PostgreSQL
 * role.y: part of sqlgram.y: options of roles and databases. Runs in: workers. */

/* ---- roles, databases ---- */

create_role_options
    : create_role_options create_role_option
    | %empty
    ;

create_role_option
    : role_option
    | K_SYSID ICONST
    | K_ADMIN role_list
    | K_ROLE role_list
    | K_IN K_ROLE role_list
    | K_IN K_GROUP role_list
    ;

role_options
    : role_options role_option
    | %empty
    ;

role_option
    : K_PASSWORD SCONST
    | K_PASSWORD K_NULL
    | K_ENCRYPTED K_PASSWORD SCONST
    | K_INHERIT
    | K_CONNECTION K_LIMIT signed_iconst
    | K_VALID K_UNTIL SCONST
    | K_USER role_list
    | IDENT
        {
            if (!sqlp_is_role_option(&$1))
                BAD("unrecognized role option");
        }
    ;

create_database_stmt
    : new_database opt_with_word opt_database_options   { FLAG(SQL_F_ALONE); }
    ;

/* Behind its name stands that of the template, when it is written. */
new_database
    : K_CREATE K_DATABASE colid                         { NAME($3); }
    ;

opt_database_options
    : database_options
    | %empty
    ;

database_options
    : database_option
    | database_options database_option
    ;

database_option
    : database_option_name opt_equal number
    | database_option_name opt_equal bool_or_string
    | database_option_name opt_equal K_DEFAULT
    | K_TEMPLATE opt_equal word_or_string
        { FLAG(SQL_F_LITERAL_DEPENDS); sqlp_add_name(st, &$3); }
    | K_TEMPLATE opt_equal K_DEFAULT
    ;

database_option_name
    : IDENT
    | K_CONNECTION K_LIMIT
    | K_ENCODING
    | K_LOCATION
    | K_OWNER
    | K_TABLESPACE
    ;

opt_equal
    : '='
    | %empty
    ;

