/* SPDX-License-Identifier: PostgreSQL
 * fuzz_hba.c: fuzz target over pool_hba.conf and pg_ident.conf. Invariants: a file is refused with
 * a report, or accepted without one; matching gives a rule, or an error, or a question, never two
 * of them; the same text gives the same answer twice. */
#include "config.h"

#include "auth/hba.h"
#include "auth/ident.h"

#include "fuzz_auth.h"

static void on_report(const char *file, unsigned line, const char *text, void *ctx)
{
    require(text[0] != '\0', "an empty report");
    ++*(unsigned *)ctx;
}

static enum hba_answer in_role(void *ctx, struct slice user, struct slice role)
{
    return (enum hba_answer)((user.n + role.n) % 4);
}

static enum hba_answer has_host(void *ctx, const struct hba_addr *addr, const char *name)
{
    return (enum hba_answer)(strlen(name) % 4);
}

static enum hba_answer is_same(void *ctx, const struct hba_addr *addr, bool net)
{
    return net ? HBA_YES : HBA_NO;
}

static const struct hba_oracle oracle = {NULL, in_role, has_host, is_same};

static void match(const struct hba *h, const struct hba_query *q)
{
    const struct hba_rule *first;
    const struct hba_rule *second;
    struct err err = {0};
    struct err again = {0};
    enum hba_verdict v = hba_match(h, q, &oracle, &first, &err);

    require((v == HBA_MATCHED) == (first != NULL), "a rule without a match, or the reverse");
    require((v == HBA_NOBODY || v == HBA_REFUSED) == err_is_set(&err), "error and verdict differ");
    require(hba_match(h, q, &oracle, &second, &again) == v && first == second, "not repeatable");
    if (v == HBA_MATCHED) {
        require(first->line > 0 && first->file != NULL, "a rule of no line");
        require(first->method != HBA_CERT || first->conn == HBA_CONN_HOSTSSL, "cert without TLS");
        require(hba_method_text(first->method)[0] != '\0', "a method without a name");
    }
}

static void fuzz_hba(struct slice in)
{
    static const char *const names[] = {"alice", "all", "", "a b"};
    struct hba_query q = {0};
    unsigned nreports = 0;
    struct hba *h;
    int i;

    h = hba_parse(
        "x", in, HBA_WITH_TLS | HBA_WITH_PAM | HBA_WITH_LDAP | HBA_NO_FILES, on_report, &nreports);
    require((h == NULL) == (nreports > 0), "refused without a word, or accepted with one");
    for (i = 0; h != NULL && i < 12; i++) {
        q.addr.n = i % 3 == 0 ? 0 : i % 3 == 1 ? 4 : 16;
        memset(q.addr.bytes, i, sizeof q.addr.bytes);
        q.tls = i % 2 == 0;
        q.user = slice_of_str(names[i % 4]);
        q.database = slice_of_str(names[i / 4]);
        match(h, &q);
    }
    hba_free(&h);
}

static void fuzz_ident(struct slice in)
{
    unsigned nreports = 0;
    struct ident *id = ident_parse("x", in, HBA_NO_FILES, on_report, &nreports);
    struct err err = {0};
    enum hba_answer a;

    require((id == NULL) == (nreports > 0), "refused without a word, or accepted with one");
    if (id == NULL)
        return;
    a = ident_check(id, "m", slice_of_str("ann@x"), slice_of_str("ann"), false, &oracle, &err);
    require((a == HBA_FAIL) == err_is_set(&err), "error and answer differ");
    ident_free(&id);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice in = slice_of((const char *)data, size);

    fuzz_hba(in);
    fuzz_ident(in);
    return 0;
}

static const char *const seeds[] = {
    "local all all trust\nhost all all 127.0.0.1/32 md5\nhost all all ::1/128 scram-sha-256\n",
    "hostssl \"a b\",c /^x(.*)$,+staff .example.com cert map=m clientname=DN\n",
    "host sameuser,samerole all 10.0.0.0 255.0.0.0 ldap ldapserver=s ldapprefix=\"cn=\"\n",
    "hostssl all all samenet ldap ldapurl=\"ldaps://[::1]:636/dc=a%20b?uid?sub\"\n",
    "local replication @users reject # comment\ninclude_dir x\ninclude_if_exists y\n",
    "hostnogssenc all all samehost pam pamservice=x pam_use_hostname=1 \\\n clientcert=1\n",
    "m /^(.*)@x$ \\1\nm \"Ann Lee\" +staff\nm ann all\nm x /^b\n",
    "m \"/(?i)^(?!root@)(?:a|an)(n+?)@[[:alpha:]\\d-]{1,2}$\" \\1\n",
    "m \"/(?<=a)(b|n)\\1*(?#x)(?=@)\\y\" /(?x)^ [\\w\\x40] +? $\nm /***=a.b /(?n)^(a*)*.{2,3}\\Z\n",
};

FUZZ_MAIN(seeds, 60000, " \t\n\r\",#@+/\\.:=0129()[]*?")
