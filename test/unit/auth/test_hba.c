/* SPDX-License-Identifier: PostgreSQL
 * test_hba.c: pool_hba.conf and pg_ident.conf: what matches what, what is refused and where, files
 * that include files, and doubts of the oracle. */
#include "config.h"

#include "auth/hba.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/auth_helper.h"
#include "auth/ident.h"

#include "run_suite.h"

#define ALL_METHODS (HBA_WITH_TLS | HBA_WITH_PAM | HBA_WITH_LDAP)

struct seen {
    unsigned n;
    unsigned line[16];
    char file[16][64];
    char text[16][200];
};

static void on_report(const char *file, unsigned line, const char *text, void *ctx)
{
    struct seen *s = ctx;
    const char *base = strrchr(file, '/');

    if (s->n < 16) {
        s->line[s->n] = line;
        snprintf(s->file[s->n], sizeof s->file[0], "%s", base == NULL ? file : base + 1);
        snprintf(s->text[s->n], sizeof s->text[0], "%s", text);
    }
    s->n++;
}

static struct hba *parse(const char *text)
{
    struct seen seen = {0};
    struct hba *h = hba_parse("pool_hba.conf", slice_of_str(text), ALL_METHODS, on_report, &seen);

    ck_assert_msg(h != NULL, "refused: line %u: %s", seen.line[0], seen.text[0]);
    return h;
}

static struct hba_addr addr_of(const char *text)
{
    struct hba_addr a = {0};

    if (text == NULL)
        return a;
    if (inet_pton(AF_INET, text, a.bytes) == 1)
        a.n = 4;
    else if (inet_pton(AF_INET6, text, a.bytes) == 1)
        a.n = 16;
    ck_assert_uint_ne(a.n, 0);
    return a;
}

/* bob is in staff; carol's membership has to be asked for; dave's cannot be had. */
static enum hba_answer in_role(void *ctx, struct slice user, struct slice role)
{
    if (slice_eq_str(user, "carol"))
        return HBA_ASK;
    if (slice_eq_str(user, "dave"))
        return HBA_FAIL;
    return slice_eq_str(user, "bob") && slice_eq_str(role, "staff") ? HBA_YES : HBA_NO;
}

static enum hba_answer has_host(void *ctx, const struct hba_addr *addr, const char *name)
{
    if (addr->n == 4 && addr->bytes[0] == 9)
        return HBA_ASK;
    return addr->n == 4 && addr->bytes[0] == 8 &&
                   (strcmp(name, "db.example.com") == 0 || strcmp(name, ".example.com") == 0)
               ? HBA_YES
               : HBA_NO;
}

static const struct hba_oracle oracle = {NULL, in_role, has_host, hba_ask_interfaces};

/* Line that matches, 0: nobody, -1: pending, -2: refused. */
static int ask(const struct hba *h, const char *addr, bool tls, const char *user, const char *db)
{
    struct hba_query q = {.addr = addr_of(addr), .tls = tls, .user = slice_of_str(user)};
    const struct hba_rule *rule;
    struct err err = {0};

    q.database = slice_of_str(db);
    switch (hba_match(h, &q, &oracle, &rule, &err)) {
    case HBA_MATCHED:
        ck_assert(!err_is_set(&err));
        return (int)rule->line;
    case HBA_NOBODY:
        ck_assert(err_is_set(&err));
        return 0;
    case HBA_PENDING:
        return -1;
    case HBA_REFUSED:
        ck_assert(err_is_set(&err));
        return -2;
    }
    return -3;
}

/* One line against one connection. */
static const struct {
    const char *line;
    const char *addr;
    bool tls;
    const char *user;
    const char *db;
    int want;
} one[] = {
    {"local all all trust", NULL, false, "a", "b", 1},
    {"local all all trust", "127.0.0.1", false, "a", "b", 0},
    {"host all all 127.0.0.1/32 trust", NULL, false, "a", "b", 0},
    {"host all all 127.0.0.1/32 trust", "127.0.0.1", false, "a", "b", 1},
    {"host all all 127.0.0.1/32 trust", "127.0.0.2", false, "a", "b", 0},
    {"host all all 127.0.0.1/32 trust", "::1", false, "a", "b", 0},
    {"host all all 10.0.0.0/9 trust", "10.127.255.255", false, "a", "b", 1},
    {"host all all 10.0.0.0/9 trust", "10.128.0.0", false, "a", "b", 0},
    {"host all all 10.1.2.3/8 trust", "10.9.9.9", false, "a", "b", 1},
    {"host all all 0.0.0.0/0 trust", "1.2.3.4", false, "a", "b", 1},
    {"host all all 0.0.0.0/0 trust", "::1", false, "a", "b", 0},
    {"host all all ::/0 trust", "fe80::1", false, "a", "b", 1},
    {"host all all 2001:db8::/33 trust", "2001:db8:7fff::1", false, "a", "b", 1},
    {"host all all 2001:db8::/33 trust", "2001:db8:8000::1", false, "a", "b", 0},
    {"host all all 10.1/24 trust", "10.0.0.77", false, "a", "b", 1},
    {"host all all 10.0.0/8 trust", "10.9.9.9", false, "a", "b", 1},
    {"host all all 1and1.example.com trust", "10.9.9.9", false, "a", "b", 0},
    {"host all all ::1/128 trust", "::1", false, "a", "b", 1},
    {"host all all 10.0.0.0 255.0.0.0 trust", "10.200.1.1", false, "a", "b", 1},
    {"host all all 10.0.0.1 255.0.0.255 trust", "10.5.5.1", false, "a", "b", 1},
    {"host all all 10.0.0.1 255.0.0.255 trust", "10.5.5.2", false, "a", "b", 0},
    {"host all all fe80:: ffff:: trust", "fe80::5", false, "a", "b", 1},
    {"host all all all trust", "1.2.3.4", false, "a", "b", 1},
    {"host all all all trust", "::9", true, "a", "b", 1},
    {"host all all samehost trust", "127.0.0.1", false, "a", "b", 1},
    {"host all all samenet trust", "127.9.9.9", false, "a", "b", 1},
    {"host all all samehost trust", "203.0.113.7", false, "a", "b", 0},
    {"host all all samenet trust", "203.0.113.7", false, "a", "b", 0},
    {"host all all db.example.com trust", "8.1.1.1", false, "a", "b", 1},
    {"host all all .example.com trust", "8.1.1.1", false, "a", "b", 1},
    {"host all all .example.org trust", "8.1.1.1", false, "a", "b", 0},
    {"host all all db.example.com trust", "9.1.1.1", false, "a", "b", -1},
    {"hostssl all all all md5", "1.1.1.1", true, "a", "b", 1},
    {"hostssl all all all md5", "1.1.1.1", false, "a", "b", 0},
    {"hostnossl all all all md5", "1.1.1.1", true, "a", "b", 0},
    {"hostnossl all all all md5", "1.1.1.1", false, "a", "b", 1},
    {"hostgssenc all all all md5", "1.1.1.1", true, "a", "b", 0},
    {"hostnogssenc all all all md5", "1.1.1.1", true, "a", "b", 1},
    {"local sales all trust", NULL, false, "a", "sales", 1},
    {"local sales all trust", NULL, false, "a", "Sales", 0},
    {"local sales,hr all trust", NULL, false, "a", "hr", 1},
    {"local sales, hr all trust", NULL, false, "a", "hr", 1},
    {"local sameuser all trust", NULL, false, "ann", "ann", 1},
    {"local sameuser all trust", NULL, false, "ann", "bob", 0},
    {"local \"sameuser\" all trust", NULL, false, "ann", "ann", 0},
    {"local \"sameuser\" all trust", NULL, false, "ann", "sameuser", 1},
    {"local samerole all trust", NULL, false, "bob", "staff", 1},
    {"local samegroup all trust", NULL, false, "bob", "staff", 1},
    {"local samerole all trust", NULL, false, "ann", "staff", 0},
    {"local \"all\" all trust", NULL, false, "a", "b", 0},
    {"local \"all\" all trust", NULL, false, "a", "all", 1},
    {"local all \"all\" trust", NULL, false, "a", "b", 0},
    {"local all +staff trust", NULL, false, "bob", "b", 1},
    {"local all +staff trust", NULL, false, "ann", "b", 0},
    {"local all \"+staff\" trust", NULL, false, "bob", "b", 0},
    {"local all \"+staff\" trust", NULL, false, "+staff", "b", 1},
    {"local all +staff trust", NULL, false, "carol", "b", -1},
    {"local all +staff trust", NULL, false, "dave", "b", -2},
    {"local all carol,+staff trust", NULL, false, "carol", "b", 1},
    {"local all +staff,dave trust", NULL, false, "dave", "b", 1},
    {"local other +staff trust", NULL, false, "dave", "b", 0},
    {"local all \"my user\" trust", NULL, false, "my user", "b", 1},
    {"local all my\" \"user trust", NULL, false, "my user", "b", 1},
    {"local all \"a\"\"b\" trust", NULL, false, "a\"b", "b", 1},
    {"local all \"a#b\" trust # comment", NULL, false, "a#b", "b", 1},
    {"local all \"\" trust", NULL, false, "", "b", 1},
    {"local all \"\" trust", NULL, false, "a", "b", 0},
    {"local /^db[0-9]+$ all trust", NULL, false, "a", "db42", 1},
    {"local /^db[0-9]+$ all trust", NULL, false, "a", "xdb42", 0},
    {"local all /^(a|b)$,zoe trust", NULL, false, "b", "x", 1},
    {"local all \"/^x(a,b)$\" trust", NULL, false, "xa,b", "x", 1},
    {"local all /^(a|b)$,zoe trust", NULL, false, "zoe", "x", 1},
    {"local all /^(a|b)$,zoe trust", NULL, false, "ab", "x", 0},
    {"local all \"/^[]+*(a-c{]{2,3}$\" trust", NULL, false, "]{", "x", 1},
    {"local all /^[[:alpha:]]+\\++$ trust", NULL, false, "abc++", "x", 1},
    {"local all /^a*?b trust", NULL, false, "aab", "x", 1},
    /* PostgreSQL's own, which the C library takes otherwise: */
    {"local all /^\\d+\\D$ trust", NULL, false, "12a", "x", 1},
    {"local all /^\\d$ trust", NULL, false, "d", "x", 0},
    {"local all /^[\\w.-]+$ trust", NULL, false, "a.b-c_1", "x", 1},
    {"local all /^[\\w.-]+$ trust", NULL, false, "a\\b", "x", 0},
    {"local all /^[\\]a\\-c]+$ trust", NULL, false, "]-ca", "x", 1},
    {"local all /^[\\]a\\-c]+$ trust", NULL, false, "b", "x", 0},
    {"local all \"/^a{,2}$\" trust", NULL, false, "a{,2}", "x", 1},
    {"local all \"/^a{,2}$\" trust", NULL, false, "aa", "x", 0},
    {"local all /\\Aapp\\M trust", NULL, false, "app-1", "x", 1},
    {"local all /\\Aapp\\M trust", NULL, false, "apple", "x", 0},
    {"local replication all trust", NULL, false, "a", "replication", 0},
    {"local \"replication\" all trust", NULL, false, "a", "replication", 1},
    {"local all all ident", NULL, false, "a", "b", 1},
    {"local\tall\tall\ttrust\r", NULL, false, "a", "b", 1},
    {"local all \\\nall trust", NULL, false, "a", "b", 1},
};

START_TEST(test_one_line)
{
    struct hba *h = parse(one[_i].line);

    ck_assert_msg(ask(h, one[_i].addr, one[_i].tls, one[_i].user, one[_i].db) == one[_i].want,
        "%s: got %d", one[_i].line, ask(h, one[_i].addr, one[_i].tls, one[_i].user, one[_i].db));
    hba_free(&h);
}
END_TEST

START_TEST(test_first_match_wins)
{
    struct hba *h = parse("# a comment\n"
                          "\n"
                          "local   all  postgres               peer map=m\n"
                          "local   all  all                    reject\n"
                          "host    all  +staff  10.0.0.0/8     reject\n"
                          "host    all  all     10.0.0.0/8     scram-sha-256\n"
                          "hostssl all  all     0.0.0.0/0      cert clientname=DN map=certs\n");

    ck_assert_uint_eq(hba_count(h), 5);
    ck_assert_int_eq(ask(h, NULL, false, "postgres", "x"), 3);
    ck_assert_int_eq(ask(h, NULL, false, "ann", "x"), 4);
    ck_assert_int_eq(ask(h, "10.1.1.1", false, "bob", "x"), 5);
    ck_assert_int_eq(ask(h, "10.1.1.1", false, "ann", "x"), 6);
    ck_assert_int_eq(ask(h, "11.1.1.1", true, "ann", "x"), 7);
    ck_assert_int_eq(ask(h, "11.1.1.1", false, "ann", "x"), 0);
    /* A doubt about the reject line does not fall through to the next one. */
    ck_assert_int_eq(ask(h, "10.1.1.1", false, "carol", "x"), -1);
    ck_assert_int_eq(ask(h, "10.1.1.1", false, "dave", "x"), -2);
    hba_free(&h);
}
END_TEST

START_TEST(test_no_oracle_refuses)
{
    struct hba *h = parse("host all +staff all reject\nhost all all all trust\n");
    struct hba *n = parse("host all all bad.example.com reject\nhost all all all trust\n");
    struct hba *s = parse("host all all samehost reject\nhost all all all trust\n");
    struct hba_query q = {.addr = addr_of("1.1.1.1"), .user = slice_of_str("ann")};
    const struct hba_oracle empty = {0};
    const struct hba_rule *rule;
    struct err err = {0};

    q.database = slice_of_str("x");
    ck_assert_int_eq(hba_match(h, &q, NULL, &rule, &err), HBA_REFUSED);
    ck_assert_int_eq(hba_match(n, &q, &empty, &rule, &err), HBA_REFUSED);
    ck_assert_int_eq(hba_match(s, &q, &empty, &rule, &err), HBA_REFUSED);
    ck_assert_ptr_null(rule);
    hba_free(&h);
    hba_free(&n);
    hba_free(&s);
}
END_TEST

START_TEST(test_nobody_text)
{
    struct hba *h = parse("local all nobody trust\n");
    struct hba_query q = {.addr = addr_of("192.0.2.7"), .user = slice_of_str("ann")};
    const struct hba_rule *rule;
    struct err err = {0};

    q.database = slice_of_str("sales");
    ck_assert_int_eq(hba_match(h, &q, &oracle, &rule, &err), HBA_NOBODY);
    ck_assert_str_eq(err.msg, "client authentication failed");
    ck_assert_str_eq(err.detail, "no pool_hba.conf entry for host \"192.0.2.7\", user \"ann\", "
                                 "database \"sales\", SSL off");
    ck_assert_int_eq(err.severity, ERR_FATAL);
    err_clear(&err);
    q.addr.n = 0;
    q.tls = true;
    ck_assert_int_eq(hba_match(h, &q, &oracle, &rule, &err), HBA_NOBODY);
    ck_assert_str_eq(err.detail, "no pool_hba.conf entry for host \"[local]\", user \"ann\", "
                                 "database \"sales\", SSL on");
    hba_free(&h);
}
END_TEST

START_TEST(test_replication)
{
    struct hba *h = parse("local all all trust\nlocal replication rep md5\n");
    struct hba_query q = {.replication = true, .user = slice_of_str("rep")};
    const struct hba_rule *rule;
    struct err err = {0};

    q.database = slice_of_str("rep");
    ck_assert_int_eq(hba_match(h, &q, &oracle, &rule, &err), HBA_MATCHED);
    ck_assert_uint_eq(rule->line, 2);
    q.user = slice_of_str("ann");
    ck_assert_int_eq(hba_match(h, &q, &oracle, &rule, &err), HBA_NOBODY);
    hba_free(&h);
}
END_TEST

START_TEST(test_mapped_address)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr local = {.sa_family = AF_UNIX};
    struct hba_addr a;

    inet_pton(AF_INET6, "::ffff:10.1.2.3", &six.sin6_addr);
    inet_pton(AF_INET, "10.1.2.3", &four.sin_addr);
    a = hba_addr_of((struct sockaddr *)&six);
    ck_assert_uint_eq(a.n, 4);
    ck_assert_mem_eq(a.bytes, &four.sin_addr, 4);
    a = hba_addr_of((struct sockaddr *)&four);
    ck_assert_mem_eq(a.bytes, &four.sin_addr, 4);
    ck_assert_uint_eq(hba_addr_of(&local).n, 0);
}
END_TEST

/* A slip beside a password does not put the password into the log. */
START_TEST(test_no_secret_in_reports)
{
    static const char *const lines[] = {
        "host all all all ldap ldapserver=s ldapbasedn=b ldapbindpasswd= hunter2",
        "host all all all ldap ldapserver=s ldapbindpasswd=hunter2 ldapprefix=p",
        "host all all all ldap ldapserver=s ldapbindpasswd=hunter2 ldapport=0",
        "host all all all md5 ldapbindpasswd=hunter2",
        "host all all all ldap ldapbindpasswd hunter2",
    };
    struct seen seen;
    size_t i;

    for (i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        memset(&seen, 0, sizeof seen);
        ck_assert_ptr_null(hba_parse("x", slice_of_str(lines[i]), ALL_METHODS, on_report, &seen));
        ck_assert_uint_eq(seen.n, 1);
        ck_assert_msg(strstr(seen.text[0], "hunter2") == NULL, "%s", seen.text[0]);
    }
}
END_TEST

static const char *const bad_lines[] = {
    "bogus all all trust",
    "local",
    "local all",
    "local all all",
    "host all all",
    "host all all 127.0.0.1/32",
    "host all all 127.0.0.1 trust",
    "host all all 127.0.0.1",
    "host all all 127.0.0.1/33 trust",
    "host all all 127.0.0.1/-1 trust",
    "host all all 127.0.0.1/ trust",
    "host all all 127.0.0.1/8x trust",
    "host all all ::1/129 trust",
    "host all all 10.0.0.0 ffff:: trust",
    "host all all host.example.com/8 trust",
    "host all all 1.2.3.4:5432 trust",
    "host all all \"\" trust",
    "local,host all all trust",
    "local all all trust,md5",
    "local all all bogus",
    "local all all krb5",
    "host all all all gss",
    "host all all all sspi",
    "host all all all radius",
    "host all all all ident",
    "host all all all peer",
    "host all all all cert",
    "hostnossl all all all cert",
    "local all all cert",
    "local all all trust bogus",
    "local all all trust bogus=1",
    "local all all trust map=m",
    "local all all md5 map=m",
    "host all all all md5 clientcert=verify-full",
    "hostssl all all all md5 clientcert=2",
    "hostssl all all all md5 clientcert=verify-full map=m",
    "host all all 10.0.0.0.0/8 trust",
    "host all all 8 trust",
    "local all all ldap ldapurl=ldap://x",
    "hostssl all all all cert clientcert=verify-ca",
    "hostssl all all all cert clientname=XX",
    "local all all md5 pamservice=x",
    "local all all pam pam_use_hostname=yes",
    "local all all md5 ldapserver=x",
    "local all all ldap",
    "local all all ldap ldapserver=x",
    "local all all ldap ldapserver=x ldapprefix=a ldapbasedn=b",
    "local all all ldap ldapserver=x ldapbasedn=b ldapsearchattribute=a ldapsearchfilter=f",
    "local all all ldap ldapserver=x ldapprefix=a ldapport=99999",
    "local all all ldap ldapserver=x ldapprefix=a ldapport=x",
    "local all all ldap ldapserver=x ldapprefix=a ldaptls=2",
    "local all all ldap ldapserver=x ldapprefix=a ldapscheme=http",
    "local all all ldap ldapurl=http://x/",
    "local all all ldap ldapurl=ldap://x/dc=a?b?many",
    "local all all ldap ldapurl=ldap://x:7x/dc=a",
    "local all all ldap ldapurl=ldap://x:99999/dc=a",
    "local all all ldap ldapurl=ldapi://x/dc=a",
    "local all all ldap ldapurl=ldap://x/dc=a?uid?sub?(x=*)?y=1",
    "local all all ldap ldapserver=x ldapprefix=a ldapbogus=1",
    "local /( all trust",
    "local all /\\q trust",
    "local all /(?e)a trust",
    "local all /[\\m] trust",
    "local all /[[.hyphen.]] trust",
    "local all /^* trust",
    "local all /a) trust",
    "local all /\\1 trust",
    "local all /(a\\1) trust",
    "local all /(a)+\\1 trust",
    "local all /[b-a] trust",
    "local all /a\\ trust",
    "local /a++ all trust",
    "local /a*+ all trust",
    "local /a+?? all trust",
    "local /a{2}{3} all trust",
    "local \"/(a{99}){99}\" all trust",
    "local /((((((((((a+)+)+)+)+)+)+)+)+)+) all trust",
    "local all /[ trust",
    "local all \"open trust",
    "include",
    "include a b",
    "include_dir",
    "include /nonexistent/file",
    "include_dir /nonexistent/dir",
    "local @/nonexistent/file all trust",
    "",
    "# nothing here\n\n",
};

START_TEST(test_bad_line)
{
    struct seen seen = {0};
    struct hba *h;

    h = hba_parse("x", slice_of_str(bad_lines[_i]), ALL_METHODS, on_report, &seen);
    ck_assert_msg(h == NULL, "accepted: %s", bad_lines[_i]);
    ck_assert_uint_ge(seen.n, 1);
}
END_TEST

START_TEST(test_what_the_build_lacks)
{
    static const char *const lines[] = {"hostssl all all all trust", "local all all pam",
        "local all all ldap ldapserver=x ldapprefix=a", "local all all md5",
        "local all all scram-sha-256"};
    struct hba *h;
    size_t i;

    for (i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        h = hba_parse("x", slice_of_str(lines[i]), 0, NULL, NULL);
        ck_assert_ptr_null(h);
        h = hba_parse("x", slice_of_str(lines[i]), ALL_METHODS, NULL, NULL);
        ck_assert_ptr_nonnull(h);
        hba_free(&h);
    }
}
END_TEST

/* All errors of a file, with their lines; and then nothing of it is used. */
START_TEST(test_all_errors_with_lines)
{
    static const char text[] = "local all all trust\n"
                               "bogus\n"
                               "# fine\n"
                               "local all \\\n"
                               "  all bogus\n"
                               "host all all all trust x=1\n"
                               "local all all md5\n";
    static const unsigned want[] = {2, 4, 6};
    struct seen seen = {0};
    int i;

    ck_assert_ptr_null(hba_parse("x", slice_of_str(text), ALL_METHODS, on_report, &seen));
    ck_assert_uint_eq(seen.n, 3);
    for (i = 0; i < 3; i++)
        ck_assert_uint_eq(seen.line[i], want[i]);
}
END_TEST

START_TEST(test_options)
{
    struct hba *h = parse(
        "hostssl all a all cert map=\"my map\" clientname=DN\n"
        "hostssl all b all scram-sha-256 clientcert=verify-ca\n"
        "hostssl all c all md5 clientcert=verify-full\n"
        "hostssl all d all pam pamservice=svc pam_use_hostname=1\n"
        "hostssl all e all ldap ldapserver=s ldapprefix=\"cn=\" ldapsuffix=\", dc=x\" ldaptls=1 "
        "backend_use_passwd=1\n"
        "hostssl all f all ldap ldapurl=\"ldaps://h:1636/dc=a%20b??one?(x=*)\"\n"
        "hostssl all g all ldap ldapserver=s ldapbasedn=dc=x ldapsearchattribute=uid ldapport=1\n"
        "hostssl all h all md5 clientcert=1\n"
        "hostssl all i all ldap ldapurl=ldaps://h:700/dc=x ldapurl=ldap:///dc=y "
        "ldapscheme=ldaps\n");
    const struct hba_rule *r;
    struct hba_query q = {.addr = addr_of("1.1.1.1"), .tls = true, .database = slice_of_str("x")};
    struct err err = {0};

    q.user = slice_of_str("a");
    ck_assert_int_eq(hba_match(h, &q, &oracle, &r, &err), HBA_MATCHED);
    ck_assert_int_eq(r->method, HBA_CERT);
    ck_assert_int_eq(r->clientcert, HBA_CERT_VERIFY_FULL);
    ck_assert_str_eq(r->map, "my map");
    ck_assert(r->clientname_is_dn);
    q.user = slice_of_str("b");
    ck_assert_int_eq(hba_match(h, &q, &oracle, &r, &err), HBA_MATCHED);
    ck_assert_int_eq(r->clientcert, HBA_CERT_VERIFY_CA);
    q.user = slice_of_str("c");
    ck_assert_int_eq(hba_match(h, &q, &oracle, &r, &err), HBA_MATCHED);
    ck_assert_int_eq(r->clientcert, HBA_CERT_VERIFY_FULL);
    q.user = slice_of_str("d");
    ck_assert_int_eq(hba_match(h, &q, &oracle, &r, &err), HBA_MATCHED);
    ck_assert_str_eq(r->pam_service, "svc");
    ck_assert(r->pam_use_hostname);
    q.user = slice_of_str("e");
    ck_assert_int_eq(hba_match(h, &q, &oracle, &r, &err), HBA_MATCHED);
    ck_assert_str_eq(r->ldap.prefix, "cn=");
    ck_assert_str_eq(r->ldap.suffix, ", dc=x");
    ck_assert(r->ldap.start_tls && r->ldap.use_password_for_server);
    ck_assert_int_eq(r->ldap.port, 389);
    q.user = slice_of_str("f");
    ck_assert_int_eq(hba_match(h, &q, &oracle, &r, &err), HBA_MATCHED);
    ck_assert_str_eq(r->ldap.server, "h");
    ck_assert_str_eq(r->ldap.scheme, "ldaps");
    ck_assert_str_eq(r->ldap.base_dn, "dc=a b");
    ck_assert_str_eq(r->ldap.search_filter, "(x=*)");
    ck_assert_int_eq(r->ldap.scope, 1);
    ck_assert_int_eq(r->ldap.port, 1636);
    q.user = slice_of_str("g");
    ck_assert_int_eq(hba_match(h, &q, &oracle, &r, &err), HBA_MATCHED);
    ck_assert_int_eq(r->ldap.port, 1);
    ck_assert_int_eq(r->ldap.scope, 2);
    q.user = slice_of_str("h");
    ck_assert_int_eq(hba_match(h, &q, &oracle, &r, &err), HBA_MATCHED);
    ck_assert_int_eq(r->clientcert, HBA_CERT_VERIFY_CA);
    q.user =
        slice_of_str("i"); /* what a later URL does not say is the default's, not the first's */
    ck_assert_int_eq(hba_match(h, &q, &oracle, &r, &err), HBA_MATCHED);
    ck_assert_str_eq(r->ldap.server, "h");
    ck_assert_str_eq(r->ldap.base_dn, "dc=y");
    ck_assert_int_eq(r->ldap.port, 389);
    hba_free(&h);
}
END_TEST

static char folder[] = "/tmp/test_hba.XXXXXX";

static void put(const char *name, const char *text)
{
    char path[200];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

static void make_folder(void)
{
    char path[200];

    if (mkdtemp(folder) == NULL)
        exit(EXIT_FAILURE);
    snprintf(path, sizeof path, "%s/d", folder);
    mkdir(path, 0700);
}

static void remove_folder(void)
{
    static const char *const names[] = {"main.conf", "users", "more", "d/a.conf", "d/b.conf",
        "d/.hidden.conf", "d/b.conf~", "loop.conf", "d"};
    char path[200];
    size_t i;

    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        remove(path);
    }
    rmdir(folder);
}

START_TEST(test_files)
{
    char path[200];
    struct seen seen = {0};
    struct hba *h;

    snprintf(path, sizeof path, "%s/main.conf", folder);
    put("users", "# names\nann, \"all\"\nbob @more\n");
    put("more", "zoe\n");
    put("d/b.conf", "local fromb all trust\n");
    put("d/a.conf", "local froma all trust\nlocal fromab all trust\n");
    put("d/.hidden.conf", "bogus\n");
    put("d/b.conf~", "bogus\n");
    put("main.conf", "local db @users trust\n"
                     "include_if_exists missing.conf\n"
                     "include_dir d\n"
                     "local db,@more all reject\n");
    h = hba_load(path, ALL_METHODS, on_report, &seen);
    ck_assert_msg(h != NULL, "%s:%u: %s", seen.file[0], seen.line[0], seen.text[0]);
    ck_assert_int_eq(ask(h, NULL, false, "ann", "db"), 1);
    ck_assert_int_eq(ask(h, NULL, false, "bob", "db"), 1);
    ck_assert_int_eq(ask(h, NULL, false, "zoe", "db"), 1);
    ck_assert_int_eq(ask(h, NULL, false, "eve", "db"), 4); /* quoted all is a name */
    ck_assert_int_eq(ask(h, NULL, false, "eve", "zoe"), 4);
    ck_assert_int_eq(ask(h, NULL, false, "eve", "fromab"), 2);
    ck_assert_int_eq(ask(h, NULL, false, "eve", "fromb"), 1);
    ck_assert_int_eq(ask(h, NULL, false, "eve", "other"), 0);
    hba_free(&h);

    put("d/b.conf", "local x all trust\nbogus line\n");
    ck_assert_ptr_null(hba_load(path, ALL_METHODS, on_report, &seen));
    ck_assert_uint_eq(seen.n, 1);
    ck_assert_str_eq(seen.file[0], "b.conf");
    ck_assert_uint_eq(seen.line[0], 2);

    put("loop.conf", "local all all trust\ninclude loop.conf\n");
    snprintf(path, sizeof path, "%s/loop.conf", folder);
    memset(&seen, 0, sizeof seen);
    ck_assert_ptr_null(hba_load(path, ALL_METHODS, on_report, &seen));
    ck_assert_uint_eq(seen.n, 1);
    ck_assert_ptr_null(hba_load(path, ALL_METHODS | HBA_NO_FILES, NULL, NULL));
    ck_assert_ptr_null(hba_load("/nonexistent/hba", ALL_METHODS, NULL, NULL));
}
END_TEST

static enum hba_answer ident(const char *text, const char *map, const char *sys, const char *user)
{
    struct seen seen = {0};
    struct ident *id = ident_parse("pg_ident.conf", slice_of_str(text), 0, on_report, &seen);
    enum hba_answer a;

    ck_assert_msg(id != NULL, "line %u: %s", seen.line[0], seen.text[0]);
    a = ident_check(id, map, slice_of_str(sys), slice_of_str(user), false, &oracle, NULL);
    ident_free(&id);
    return a;
}

static const struct {
    const char *text;
    const char *map;
    const char *sys;
    const char *user;
    enum hba_answer want;
} idents[] = {
    {"", NULL, "ann", "ann", HBA_YES},
    {"", NULL, "ann", "bob", HBA_NO},
    {"", "", "ann", "ann", HBA_YES},
    {"", "m", "ann", "ann", HBA_NO},
    {"m ann bob", "m", "ann", "bob", HBA_YES},
    {"m ann bob", "m", "ann", "ann", HBA_NO},
    {"m ann bob", "n", "ann", "bob", HBA_NO},
    {"m ann bob\nm ann eve", "m", "ann", "eve", HBA_YES},
    {"m \"Ann Lee\" bob", "m", "Ann Lee", "bob", HBA_YES},
    {"m /^(.*)@example\\.com$ \\1", "m", "ann@example.com", "ann", HBA_YES},
    {"m /^(.*)@example\\.com$ \\1", "m", "ann@example.com", "bob", HBA_NO},
    {"m /^(.*)@example\\.com$ \\1", "m", "ann@example.org", "ann", HBA_NO},
    {"m /^(.*)@example\\.com$ x_\\1_y", "m", "ann@example.com", "x_ann_y", HBA_YES},
    {"m /^(.*)@example\\.com$ guest", "m", "ann@example.com", "guest", HBA_YES},
    {"m /^.*$ \\1", "m", "ann", "ann", HBA_FAIL},
    {"m /^.*$ \\1\nm ann ann", "m", "ann", "ann", HBA_FAIL}, /* as PostgreSQL: no further line */
    {"m /^(x)|.*$ \\1\nm bob bob", "m", "bob", "bob", HBA_FAIL},
    {"m /^(.*?)@(.*)$ \\1", "m", "a@b@c", "a", HBA_YES},
    {"m /^(.*?)@(.*)$ \\1", "m", "a@b@c", "a@b", HBA_NO},
    {"m /^(.*)@(.*)$ \\1", "m", "a@b@c", "a@b", HBA_YES},
    {"m \"/^(?:cn|CN)=([^,]+),\" \\1", "m", "CN=ann,dc=x", "ann", HBA_YES},
    {"m /^(?!root@)(.*)@x$ \\1", "m", "ann@x", "ann", HBA_YES},
    {"m /^(?!root@)(.*)@x$ \\1", "m", "root@x", "root", HBA_NO},
    {"m /(?i)^(ann|bob)@X$ \\1", "m", "Bob@x", "Bob", HBA_YES},
    {"m /^(\\w+)\\x40[\\D]$ \\1", "m", "ann@x", "ann", HBA_YES},
    {"m /^(.*)$ +\\1", "m", "staff", "bob", HBA_NO}, /* a role of the name \1 */
    {"m ann all", "m", "ann", "whoever", HBA_YES},
    {"m ann \"all\"", "m", "ann", "whoever", HBA_NO},
    {"m ann +staff", "m", "ann", "bob", HBA_YES},
    {"m ann +staff", "m", "ann", "eve", HBA_NO},
    {"m ann +staff", "m", "ann", "carol", HBA_ASK},
    {"m ann +staff", "m", "ann", "dave", HBA_FAIL},
    {"m ann +staff\nm ann dave", "m", "ann", "dave", HBA_YES},
    {"m ann /^b", "m", "ann", "bob", HBA_YES},
    {"m ann /^b", "m", "ann", "abb", HBA_NO},
    {"m /^(.*)$ \\1", "m", "all", "whoever", HBA_NO}, /* what the client says is only a name */
    {"m /^(.*)$ \\1", "m", "+staff", "bob", HBA_NO},
};

START_TEST(test_ident)
{
    ck_assert_msg(
        ident(idents[_i].text, idents[_i].map, idents[_i].sys, idents[_i].user) == idents[_i].want,
        "%s: %s as %s", idents[_i].text, idents[_i].sys, idents[_i].user);
}
END_TEST

START_TEST(test_ident_refuses)
{
    static const char *const bad[] = {
        "m", "m a", "m a b c", "m a,b c", "m /( c", "m a /(", "m \"a", "m /(a)+ \\1"};
    size_t i;

    for (i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_ptr_null(ident_parse("x", slice_of_str(bad[i]), 0, NULL, NULL));
    ck_assert_int_eq(
        ident_check(NULL, NULL, slice_of_str("Ann"), slice_of_str("ann"), true, NULL, NULL),
        HBA_YES);
    ck_assert_int_eq(
        ident_check(NULL, NULL, slice_of_str("Ann"), slice_of_str("ann"), false, NULL, NULL),
        HBA_NO);
}
END_TEST

/* What cannot be compared is not passed over: the next line might let it in. */
START_TEST(test_name_too_long)
{
    char name[1100];

    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    ck_assert_int_eq(ident("m /^b x\nm /a /a", "m", name, name), HBA_FAIL);
    name[1024] = '\0';
    ck_assert_int_eq(ident("m /^b x\nm /a /a", "m", name, name), HBA_YES);
}
END_TEST

#define LOOP(tc, fn, table) tcase_add_loop_test(tc, fn, 0, (int)(sizeof(table) / sizeof(table)[0]))

int main(void)
{
    Suite *s = suite_create("hba");
    TCase *tc = tcase_create("hba");

    tcase_add_unchecked_fixture(tc, make_folder, remove_folder);
    LOOP(tc, test_one_line, one);
    tcase_add_test(tc, test_first_match_wins);
    tcase_add_test(tc, test_no_oracle_refuses);
    tcase_add_test(tc, test_nobody_text);
    tcase_add_test(tc, test_replication);
    tcase_add_test(tc, test_mapped_address);
    LOOP(tc, test_bad_line, bad_lines);
    tcase_add_test(tc, test_no_secret_in_reports);
    tcase_add_test(tc, test_what_the_build_lacks);
    tcase_add_test(tc, test_all_errors_with_lines);
    if (auth_ldap_is_built()) /* which reads URLs */
        tcase_add_test(tc, test_options);
    tcase_add_test(tc, test_files);
    LOOP(tc, test_ident, idents);
    tcase_add_test(tc, test_ident_refuses);
    tcase_add_test(tc, test_name_too_long);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
