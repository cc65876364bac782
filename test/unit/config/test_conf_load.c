/* SPDX-License-Identifier: PostgreSQL
 * test_conf_load.c: the grammar of the file, includes, errors, rules across parameters, reload. */
#include "config.h"

#include "conf_test.h"

#include <limits.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- grammar ---- */

START_TEST(grammar_of_lines)
{
    struct conf_gen *gen = conf_test_good("# a comment\n"
                                          "\n"
                                          "   port = 5555 # behind a value\r\n"
                                          "pid_file_name '/run/x.pid'\n"
                                          "\tlisten_backlog_multiplier=3\n"
                                          "work_dir'/w'\n"
                                          "log_line_prefix = '%m # %p ' # x\n"
                                          "query_wait_timeout = 5 min # unit apart\n"
                                          "load_balance_mode OFF\n"
                                          "syslog_ident = a-b\n"
                                          "backend_port0 5432");
    const struct conf *c = conf_of(gen);
    ck_assert_int_eq(c->port, 5555);
    ck_assert_str_eq(c->pid_file_name, "/run/x.pid");
    ck_assert_int_eq(c->listen_backlog_multiplier, 3);
    ck_assert_str_eq(c->work_dir, "/w");
    ck_assert_str_eq(c->log_line_prefix, "%m # %p ");
    ck_assert_int_eq(c->query_wait_timeout_ms, 300000);
    ck_assert(!c->load_balance_mode);
    ck_assert_str_eq(c->syslog_ident, "a-b");
    ck_assert_int_eq(c->nodes[0].backend_port, 5432);
    conf_gen_free(&gen);
    ck_assert_ptr_null(gen);
}
END_TEST

START_TEST(quotes)
{
    struct conf_gen *gen = conf_test_good("failover_command = 'a\\'b'\n"
                                          "failback_command = 'a''b'\n"
                                          "follow_primary_command = 'x\\\\'\n"
                                          "syslog_ident = ''\n"
                                          "health_check_user = ''''\n");
    const struct conf *c = conf_of(gen);
    ck_assert_str_eq(c->failover_command, "a\\'b"); /* the backslash is kept */
    ck_assert_str_eq(c->failback_command, "a'b");
    ck_assert_str_eq(c->follow_primary_command, "x\\\\");
    ck_assert_str_eq(c->syslog_ident, "");
    ck_assert_str_eq(c->health_check_user, "'");
    conf_gen_free(&gen);
}
END_TEST

START_TEST(bad_lines)
{
    conf_test_bad("port = \n", 1, "no value");
    conf_test_bad("\nport\n", 2, "no value");
    conf_test_bad("port = # 5\n", 1, "no value");
    conf_test_bad("port = 'x\n", 1, "does not end");
    conf_test_bad("work_dir = 'a\\'\n", 1, "does not end");
    conf_test_bad("port = 5000 6000\n", 1, "more text");
    conf_test_bad("work_dir = '/a' '/b'\n", 1, "more text");
    conf_test_bad("= 5\n", 1, "name is expected");
    conf_test_bad("5 = 5\n", 1, "name is expected");
    conf_test_bad("port; = 5\n", 1, "unexpected character");
    conf_test_bad("port = \"x\"\n", 1, "single quotes");
    conf_test_bad("port == 5\n", 1, "unexpected character");
}
END_TEST

START_TEST(secrets_stay_out_of_errors)
{
    struct conf_report report;
    struct conf_gen *gen = conf_test_load("sr_check_password = 'geheim\n"
                                          "wd_authkey = geheim geheim\n"
                                          "sr_check_passwort = 'geheim'\n",
        &report);
    ck_assert_ptr_null(gen);
    ck_assert_int_eq(report.nerrors, 2);
    ck_assert_int_eq(report.nwarnings, 2); /* the name, and that there is no server */
    ck_assert_ptr_null(strstr(conf_test_findings(&report), "geheim"));
    conf_report_fini(&report);
}
END_TEST

START_TEST(odd_bytes)
{
    static const char nul[] = "port = 5000\nwork_dir = '/a\0b'\n";
    struct conf_report report;
    conf_report_init(&report);
    ck_assert_ptr_null(conf_load_text("x", slice_of(nul, sizeof(nul) - 1), &report));
    ck_assert(conf_test_found(&report, CONF_ERROR, 2, "byte of value 0"));
    conf_report_fini(&report);

    struct conf_gen *gen =
        conf_test_good("\xEF\xBB\xBFport = 5000\nhealth_check_user = \xC3\xA9t\xC3\xA9\n");
    ck_assert_int_eq(conf_of(gen)->port, 5000);
    ck_assert_str_eq(conf_of(gen)->health_check_user, "\xC3\xA9t\xC3\xA9");
    conf_gen_free(&gen);
}
END_TEST

/* ---- names ---- */

START_TEST(old_names)
{
    struct conf_gen *gen =
        conf_test_good("logdir = '/l'\nsocket_dir = '/s'\ndelegate_IP = '10.0.0.1'\n"
                       "fail_over_on_backend_error = on\nblack_function_list = 'f'\n"
                       "follow_master_command = 'x'\n");
    const struct conf *c = conf_of(gen);
    ck_assert_str_eq(c->work_dir, "/l");
    ck_assert_str_eq(c->unix_socket_directories.item[0], "/s");
    ck_assert_str_eq(c->delegate_ip, "10.0.0.1");
    ck_assert(c->failover_on_backend_error);
    ck_assert_int_eq(c->write_function_list.n, 1);
    ck_assert_str_eq(c->follow_primary_command, "x");
    conf_gen_free(&gen);
    conf_test_warns("\nlogdir = '/l'\n", CONF_WARNING, 2, "use \"work_dir\"");
    conf_test_warns("wd_port = 9000\n", CONF_WARNING, 1, "\"wd_port\" was removed");
    conf_test_warns("other_pgpool_hostname1 = 'x'\n", CONF_WARNING, 1, "hostnameN");
    conf_test_warns("master_slave_mode = on\n", CONF_WARNING, 1, "backend_clustering_mode");
}
END_TEST

START_TEST(unknown_names)
{
    conf_test_warns("backend_prot0 = 5\n", CONF_WARNING, 1, "backend_port0");
    conf_test_warns("num_init_childern = 5\n", CONF_WARNING, 1, "num_init_children");
    conf_test_warns("\nload_balance_mod = 5\n", CONF_WARNING, 2, "load_balance_mode");
    struct conf_report report;
    struct conf_gen *gen = conf_test_load("zzzzqqqq = 1\n", &report);
    ck_assert_ptr_nonnull(gen);
    ck_assert(!conf_test_found(&report, CONF_WARNING, 1, "Did you mean"));
    ck_assert(conf_test_found(&report, CONF_WARNING, 1, "passed over"));
    conf_gen_free(&gen);
    conf_report_fini(&report);
    conf_test_warns("prot = 5000\n", CONF_WARNING, 1, "Did you mean \"port\"");
    conf_test_warns("backend_port01 = 5432\n", CONF_WARNING, 1, "Did you mean \"backend_port1\"");
    gen = conf_test_load("pxxt = 5000\n", &report); /* too far from port */
    ck_assert(!conf_test_found(&report, CONF_WARNING, 1, "Did you mean"));
    conf_gen_free(&gen);
    conf_report_fini(&report);
}
END_TEST

START_TEST(any_case_of_a_name)
{
    struct conf_gen *gen = conf_test_good("PORT = 2345\nBackend_Port1 = 5432\n");
    ck_assert_int_eq(conf_of(gen)->port, 2345);
    ck_assert_int_eq(conf_of(gen)->nnodes, 2);
    conf_gen_free(&gen);
}
END_TEST

START_TEST(numbers_of_servers)
{
    struct conf_gen *gen =
        conf_test_good("backend_port127 = 5432\nheartbeat_port255 = 9694\nwd_port2 = 9000\n");
    ck_assert_int_eq(conf_of(gen)->nnodes, 128);
    ck_assert_int_eq(conf_of(gen)->nheartbeats, 256);
    ck_assert_int_eq(conf_of(gen)->nwd_nodes, 3);
    ck_assert(conf_has_node(conf_of(gen), 127));
    ck_assert(!conf_has_node(conf_of(gen), 126));
    volatile int beyond = 128; /* keeps the compiler from looking through the call */
    ck_assert(!conf_has_node(conf_of(gen), beyond));
    ck_assert(!conf_has_node(conf_of(gen), -1));
    conf_gen_free(&gen);
    conf_test_bad("backend_port128 = 5432\n", 1, "between 0 and 127");
    conf_test_bad("backend_port99999999999999999999 = 5432\n", 1, "between 0 and 127");
    conf_test_bad("backend_port = 5432\n", 1, "needs a number");
    conf_test_warns("backend_port01 = 5432\n", CONF_WARNING, 1, "unrecognized");
    conf_test_warns("port0 = 5432\n", CONF_WARNING, 1, "unrecognized");
}
END_TEST

/* ---- all errors at once ---- */

START_TEST(all_errors_at_once)
{
    struct conf_report report;
    struct conf_gen *gen = conf_test_load("log_statement = maybe\n"        /* 1 */
                                          "port = 70000\n"                 /* 2 */
                                          "include = 'not-there.conf'\n"   /* 3 */
                                          "client_idle_limit = 5 apples\n" /* 4 */
                                          "log_min_messages = loud\n"      /* 5 */
                                          "unknown_thing = 1\n"            /* 6 */
                                          "work_dir = '/unfinished\n"      /* 7 */
                                          "reserved_connections = 20000\n" /* 8 */
                                          "ssl = on\n",                    /* 9 */
        &report);
    ck_assert_ptr_null(gen);
    ck_assert_msg(report.nerrors == 8, "%s", conf_test_findings(&report));
    ck_assert(conf_test_found(&report, CONF_ERROR, 1, "requires a Boolean value"));
    ck_assert(conf_test_found(&report, CONF_ERROR, 2, "(1024 .. 65535)"));
    ck_assert(conf_test_found(&report, CONF_ERROR, 3, "No such file"));
    ck_assert(conf_test_found(&report, CONF_ERROR, 4, "Valid units"));
    ck_assert(conf_test_found(&report, CONF_ERROR, 5, "debug5, debug4"));
    ck_assert(conf_test_found(&report, CONF_WARNING, 6, "unrecognized"));
    ck_assert(conf_test_found(&report, CONF_ERROR, 7, "does not end"));
    ck_assert(conf_test_found(&report, CONF_ERROR, 8, "must be less than max_clients"));
    ck_assert(conf_test_found(&report, CONF_ERROR, 9, "ssl_cert"));
    for (int i = 1; i < report.n; i++) /* in the order of the lines; the file as a whole last */
        ck_assert(report.issue[i].line == 0 || report.issue[i].line >= report.issue[i - 1].line);
    conf_report_fini(&report);
}
END_TEST

START_TEST(text_of_a_finding)
{
    struct conf_report report;
    struct buf b = {0};
    ck_assert_ptr_null(conf_test_load("\nport = x\n" CONF_TEST_SERVER, &report));
    conf_report_format(&report, &b);
    buf_put_byte(&b, '\0');
    ck_assert_str_eq(b.data,
        "/nowhere/pgpool.conf:2: error: invalid value for parameter \"port\": \"x\"\n"
        "  hint: A whole number without a unit is expected.\n"
        "1 error, 0 warnings\n");
    buf_free(&b);
    conf_report_fini(&report);
}
END_TEST

START_TEST(flood_of_errors_is_counted)
{
    struct buf b = {0};
    struct conf_report report;
    for (int i = 0; i < 5000; i++)
        buf_printf(&b, "=\n");
    buf_put_byte(&b, '\0');
    ck_assert_ptr_null(conf_test_load(b.data, &report));
    ck_assert_int_eq(report.nerrors, 5000);
    ck_assert_int_eq(report.n, CONF_MAX_ISSUES);
    ck_assert_int_gt(report.nleft_out, 0);
    conf_report_fini(&report);
    buf_free(&b);
}
END_TEST

/* ---- files ---- */

static char conf_dir[PATH_MAX];

static void conf_dir_make(void)
{
    snprintf(conf_dir, sizeof(conf_dir), "/tmp/test_conf.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(conf_dir));
}

static void conf_dir_path(char *out, const char *name)
{
    ck_assert_int_lt(snprintf(out, PATH_MAX, "%.200s/%s", conf_dir, name), PATH_MAX);
}

static void conf_dir_write(const char *name, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void conf_dir_write(const char *name, const char *fmt, ...)
{
    char path[PATH_MAX];
    va_list ap;
    conf_dir_path(path, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    va_start(ap, fmt);
    vfprintf(f, fmt, ap);
    va_end(ap);
    ck_assert_int_eq(fclose(f), 0);
}

static void conf_dir_remove(void)
{
    static const char *const names[] = {"pgpool.conf", "a.conf", "sub/b.conf", "sub", "f0", "f1",
        "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "f10", "f11"};
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        conf_dir_path(path, names[i]);
        remove(path);
    }
    ck_assert_int_eq(rmdir(conf_dir), 0);
}

static struct conf_gen *conf_dir_load(struct conf_report *report)
{
    char path[PATH_MAX];
    conf_dir_path(path, "pgpool.conf");
    conf_report_init(report);
    return conf_load(path, NULL, report);
}

START_TEST(missing_file_is_an_error)
{
    struct conf_report report;
    conf_report_init(&report);
    ck_assert_ptr_null(conf_load("/nowhere/at/all.conf", NULL, &report));
    ck_assert_int_eq(report.nerrors, 1);
    ck_assert_int_eq(report.n, 1); /* no talk about servers that are missing in a missing file */
    ck_assert(conf_test_found(&report, CONF_ERROR, 0, "/nowhere/at/all.conf"));
    conf_report_fini(&report);
    conf_report_init(&report);
    ck_assert_ptr_null(conf_load("/tmp", NULL, &report));
    ck_assert(conf_test_found(&report, CONF_ERROR, 0, "not a regular file"));
    conf_report_fini(&report);
}
END_TEST

START_TEST(includes)
{
    char path[PATH_MAX];
    struct conf_report report;
    conf_dir_make();
    conf_dir_path(path, "sub");
    ck_assert_int_eq(mkdir(path, 0700), 0);
    conf_dir_write("pgpool.conf", "port = 2000\ninclude = 'a.conf'\nmax_clients = 7\n");
    conf_dir_write("a.conf", "port = 3000\nmax_clients = 9\ninclude 'sub/b.conf'\n");
    conf_dir_write("sub/b.conf", "backend_port0 = 5432\ninclude = '../f0'\n");
    conf_dir_write("f0", "syslog_ident = 'deep'\n");
    struct conf_gen *gen = conf_dir_load(&report);
    ck_assert_msg(gen != NULL, "%s", conf_test_findings(&report));
    ck_assert_int_eq(conf_of(gen)->port, 3000);
    ck_assert_int_eq(conf_of(gen)->max_clients, 7);
    ck_assert_int_eq(conf_of(gen)->nodes[0].backend_port, 5432);
    ck_assert_str_eq(conf_of(gen)->syslog_ident, "deep");
    ck_assert_ptr_null(strstr(conf_test_findings(&report), "again in line"));
    ck_assert_str_eq(conf_base_dir(gen), conf_dir);
    conf_gen_free(&gen);
    conf_report_fini(&report);
    conf_dir_remove();
}
END_TEST

START_TEST(errors_of_included_files_name_them)
{
    char path[PATH_MAX];
    struct conf_report report;
    conf_dir_make();
    conf_dir_write("pgpool.conf", "include = 'a.conf'\ninclude = ''\n");
    conf_dir_write("a.conf", "\n\nport = x\n");
    ck_assert_ptr_null(conf_dir_load(&report));
    ck_assert_int_eq(report.nerrors, 2);
    conf_dir_path(path, "a.conf");
    bool found = false;
    for (int i = 0; i < report.n; i++)
        found |= report.issue[i].line == 3 && strcmp(report.issue[i].file, path) == 0;
    ck_assert(found);
    ck_assert(conf_test_found(&report, CONF_ERROR, 2, "names no file"));
    conf_report_fini(&report);
    conf_dir_remove();
}
END_TEST

START_TEST(depth_of_includes)
{
    struct conf_report report;
    conf_dir_make();
    /* pgpool.conf -> f1 -> ... -> f10 is ten deep */
    conf_dir_write("pgpool.conf", "include = 'f1'\n");
    for (int i = 1; i < 10; i++) {
        char name[16];
        snprintf(name, sizeof(name), "f%d", i);
        conf_dir_write(name, "include = 'f%d'\n", i + 1);
    }
    conf_dir_write("f10", "port = 2222\n");
    struct conf_gen *gen = conf_dir_load(&report);
    ck_assert_msg(gen != NULL, "%s", conf_test_findings(&report));
    ck_assert_int_eq(conf_of(gen)->port, 2222);
    conf_gen_free(&gen);
    conf_report_fini(&report);

    conf_dir_write("f10", "include = 'f11'\n");
    conf_dir_write("f11", "port = 3333\n");
    ck_assert_ptr_null(conf_dir_load(&report));
    ck_assert_int_eq(report.nerrors, 1);
    ck_assert(conf_test_found(&report, CONF_ERROR, 1, "nesting depth"));
    conf_report_fini(&report);
    conf_dir_remove();
}
END_TEST

START_TEST(cycles_of_includes)
{
    struct conf_report report;
    conf_dir_make();
    conf_dir_write("pgpool.conf", "include = 'pgpool.conf'\n");
    ck_assert_ptr_null(conf_dir_load(&report));
    ck_assert_int_eq(report.nerrors, 1);
    ck_assert(conf_test_found(&report, CONF_ERROR, 1, "includes itself"));
    conf_report_fini(&report);

    conf_dir_write("pgpool.conf", "port = 2000\ninclude = 'a.conf'\n");
    conf_dir_write("a.conf", "\n\ninclude = 'pgpool.conf'\n");
    ck_assert_ptr_null(conf_dir_load(&report));
    ck_assert_int_eq(report.nerrors, 1);
    ck_assert(conf_test_found(&report, CONF_ERROR, 3, "includes itself"));
    conf_report_fini(&report);
    conf_dir_remove();
}
END_TEST

START_TEST(includes_that_multiply_are_bounded)
{
    struct conf_report report;
    conf_dir_make();
    conf_dir_write("pgpool.conf", "include = 'f1'\n");
    for (int i = 1; i < 10; i++) {
        char name[16];
        snprintf(name, sizeof(name), "f%d", i);
        conf_dir_write(
            name, "include = 'f%d'\ninclude = 'f%d'\ninclude = 'f%d'\n", i + 1, i + 1, i + 1);
    }
    conf_dir_write("f10", "port = 2222\n");
    ck_assert_ptr_null(conf_dir_load(&report));
    ck_assert_int_eq(report.nerrors, 1);
    ck_assert_ptr_nonnull(strstr(conf_test_findings(&report), "more than 1000 files"));
    conf_report_fini(&report);
    conf_dir_remove();
}
END_TEST

START_TEST(command_line_wins_and_stays)
{
    char path[PATH_MAX];
    struct conf_report report;
    conf_dir_make();
    conf_dir_write("pgpool.conf", "log_min_messages = error\n" CONF_TEST_SERVER);
    conf_dir_path(path, "pgpool.conf");
    conf_report_init(&report);
    struct conf_gen *gen = conf_load(path, "log_min_messages = debug1", &report);
    ck_assert_ptr_nonnull(gen);
    ck_assert_int_eq(conf_of(gen)->log_min_messages, LVL_DEBUG1);
    struct conf_gen *next = conf_reload(gen, path, &report);
    ck_assert_ptr_nonnull(next);
    ck_assert_int_eq(conf_of(next)->log_min_messages, LVL_DEBUG1);
    ck_assert_uint_eq(conf_number(next), 2);
    conf_gen_free(&gen);
    conf_gen_free(&next);
    ck_assert_ptr_null(conf_load(path, "log_min_messages = loud", &report));
    ck_assert_ptr_nonnull(strstr(conf_test_findings(&report), "command line:1: error"));
    conf_report_fini(&report);
    conf_dir_remove();
}
END_TEST

START_TEST(names_of_files)
{
    char out[64];
    struct err err = {0};
    struct conf_gen *gen = conf_test_good(CONF_TEST_SERVER);
    ck_assert_str_eq(conf_file(gen), "/nowhere/pgpool.conf");
    ck_assert_str_eq(conf_base_dir(gen), "/nowhere");
    ck_assert_int_eq(conf_path(gen, "pool_passwd", out, sizeof(out), &err), 0);
    ck_assert_str_eq(out, "/nowhere/pool_passwd");
    ck_assert_int_eq(conf_path(gen, "/etc/x", out, sizeof(out), &err), 0);
    ck_assert_str_eq(out, "/etc/x");
    ck_assert_int_eq(conf_path(gen, "pool_passwd", out, 20, &err), -1);
    conf_gen_free(&gen);
}
END_TEST

/* ---- rules across parameters ---- */

/* What the watchdog would find out too late. Off: nobody minds. */
START_TEST(rules_of_the_watchdog)
{
    static const struct {
        const char *line;
        const char *finding;
    } bad[] = {{"delegate_ip = 'db.example'\n", "\"db.example\" is no address"},
        {"delegate_ip = '192.0.2.9/24'\n", "is no address"},
        {"trusted_servers = 'gw, a;b'\n", "\"a;b\", which is no host"}};
    struct conf_report report;
    struct conf_gen *gen;
    char text[256];
    size_t i;

    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(text, sizeof text, "%suse_watchdog = on\n", bad[i].line);
        gen = conf_test_load(text, &report);
        ck_assert_ptr_null(gen);
        ck_assert_msg(conf_test_found(&report, CONF_ERROR, 1, bad[i].finding), "%s",
            conf_test_findings(&report));
        conf_report_fini(&report);
        gen = conf_test_load(bad[i].line, &report);
        ck_assert_msg(gen != NULL, "%s", conf_test_findings(&report));
        conf_gen_free(&gen);
        conf_report_fini(&report);
    }
    gen = conf_test_load("use_watchdog = on\nhostname1 = 'a b'\nwd_port1 = 9000\n"
                         "wd_lifecheck_method = query\nwd_fence_command = 'fence %h'\n",
        &report);
    ck_assert_ptr_null(gen);
    ck_assert(conf_test_found(&report, CONF_ERROR, 4, "pgpool_port1 is not set"));
    ck_assert(conf_test_found(&report, CONF_ERROR, 5, "\"a b\" is no plain host"));
    conf_report_fini(&report);
    gen = conf_test_load(
        "delegate_ip = '2001:db8::9'\ntrusted_servers = 'gw-1.example, fe80::1%eth0'\n"
        "use_watchdog = on\n",
        &report);
    ck_assert(!conf_test_found(&report, CONF_ERROR, 1, "delegate_ip"));
    ck_assert(!conf_test_found(&report, CONF_ERROR, 2, "trusted_servers"));
    ck_assert(conf_test_found(&report, CONF_WARNING, 0, "would forget its votes"));
    conf_gen_free(&gen);
    conf_report_fini(&report);
    conf_test_warns(
        "work_dir = '/run/p'\nuse_watchdog = on\n", CONF_WARNING, 1, "would forget its votes");
    conf_test_warns("work_dir = '/tmp'\nreplication_commit = two_phase\n", CONF_WARNING, 1,
        "two_phase had decided would be forgotten");
    conf_test_warns("wd_authkey = ''\nuse_watchdog = on\n", CONF_WARNING, 1,
        "whoever reaches wd_port is taken for a member");
    gen = conf_test_load("work_dir = '/var/lib/p'\nuse_watchdog = on\nwd_authkey = 'k'\n", &report);
    ck_assert_ptr_null(strstr(conf_test_findings(&report), "votes"));
    ck_assert_ptr_null(strstr(conf_test_findings(&report), "wd_authkey"));
    conf_gen_free(&gen);
    conf_report_fini(&report);
}
END_TEST

START_TEST(rules_across_parameters)
{
    conf_test_bad("reserved_connections = 10\nmax_clients = 10\n", 1, "max_clients");
    conf_test_bad(
        "process_management_mode = dynamic\nmin_spare_children = 10\n", 2, "max_spare_children");
    conf_test_bad("memqcache_maxcache = 2MB\n", 1, "memqcache_cache_block_size");
    conf_test_bad("memqcache_total_size = 512kB\n", 1, "at least one block");
    conf_test_bad(
        "listen_addresses = ''\nunix_socket_directories = ''\n", 1, "nothing to listen on");
    conf_test_bad("pcp_port = 9999\n", 1, "both 9999");
    conf_test_bad("http_port = 9999\n", 1, "used already");
    conf_test_bad("read_only_function_list = 'a'\nwrite_function_list = 'b'\n", 2, "both set");
    conf_test_bad(
        "backend_port3 = 5432\nbackend_flag3 = 'ALLOW_TO_FAILOVER|DISALLOW_TO_FAILOVER'\n", 2,
        "says both");
    conf_test_bad(
        CONF_TEST_SERVER "recovery_1st_stage_command = 'x'\n", 0, "backend_data_directory0");
    conf_test_bad("recovery_password = 'md5d41d8cd98f00b204e9800998ecf8427e'\n", 1, "MD5");
    conf_test_bad("ssl_max_protocol_version = 'TLSv1.1'\n", 1, "older than");
    conf_test_bad(CONF_TEST_SERVER "backend_ssl_cert0 = 'c'\n", 3, "only one of");
    conf_test_bad("auth_query = 'select 1'\n", 1, "auth_user");
    conf_test_bad("log_destination = ''\n", 1, "stderr, syslog");
    conf_test_bad("log_destination = 'stderr,jsonlog'\n", 1, "one stream");
    conf_test_bad("log_filename = 'a/b'\n", 1, "log_directory");
}
END_TEST

START_TEST(warnings_across_parameters)
{
    conf_test_warns("port = 5000\n", CONF_WARNING, 0, "there is no server");
    conf_test_warns("backend_hostname1 = 'x'\n", CONF_WARNING, 1, "there is no server 1");
    conf_test_warns(CONF_TEST_SERVER "backend_hostname1 = 'h0'\nbackend_port1 = 5432\n",
        CONF_WARNING, 4, "servers 0 and 1");
    conf_test_warns(CONF_TEST_SERVER "backend_weight0 = 0\n", CONF_WARNING, 0, "all weights are 0");
    conf_test_warns("num_init_children = 100\n", CONF_WARNING, 1, "100 worker processes");
    conf_test_warns("log_line_prefix = '%t %q '\n", CONF_WARNING, 1, "unknown escape \"%q\"");
    conf_test_warns("sr_check_period = 0\ndelay_threshold = 5\n", CONF_WARNING, 2, "no effect");
    conf_test_warns(
        "min_pool_size = 30\ndefault_pool_size = 20\n", CONF_WARNING, 1, "default_pool_size");
    conf_test_warns("max_backend_connections = 10\ndefault_pool_size = 20\n", CONF_WARNING, 1,
        "default_pool_size");
}
END_TEST

START_TEST(an_ordinary_file_is_quiet)
{
    struct conf_report report;
    struct conf_gen *gen = conf_test_load(CONF_TEST_SERVER
        "port = 5433\nlisten_addresses = '*'\nmax_clients = 500\nlog_connections = on\n"
        "log_line_prefix = '%m: %a pid %-10p: '\nclient_idle_limit = 1h\n",
        &report);
    ck_assert_ptr_nonnull(gen);
    ck_assert_msg(report.n == 0, "%s", conf_test_findings(&report));
    conf_gen_free(&gen);
    conf_report_fini(&report);
}
END_TEST

/* ---- derived values ---- */

START_TEST(values_per_server_fall_back)
{
    struct conf_gen *gen = conf_test_good("backend_port0 = 1111\nbackend_port1 = 2222\n"
                                          "health_check_period = 7\nhealth_check_period1 = 3\n"
                                          "health_check_user = 'u'\nconnect_timeout0 = 2s\n");
    const struct conf *c = conf_of(gen);
    ck_assert_int_eq(c->health_check_period_ms, 7000);
    ck_assert_int_eq(c->nodes[0].health_check_period_ms, 7000);
    ck_assert_int_eq(c->nodes[1].health_check_period_ms, 3000);
    ck_assert_str_eq(c->nodes[1].health_check_user, "u");
    ck_assert_int_eq(c->nodes[0].connect_timeout_ms, 2000);
    ck_assert_int_eq(c->nodes[1].connect_timeout_ms, 10000);
    conf_gen_free(&gen);
}
END_TEST

START_TEST(idle_timeout_has_two_names)
{
    struct conf_gen *gen = conf_test_good("connection_life_time = 50\n");
    ck_assert_int_eq(conf_of(gen)->server_idle_timeout_ms, 50000);
    conf_gen_free(&gen);
    gen = conf_test_good("connection_life_time = 50\nserver_idle_timeout = 70\n");
    ck_assert_int_eq(conf_of(gen)->server_idle_timeout_ms, 70000);
    conf_gen_free(&gen);
}
END_TEST

START_TEST(flags_of_servers)
{
    struct conf_gen *gen =
        conf_test_good("backend_port0 = 1111\nbackend_flag0 = 'ALWAYS_PRIMARY'\n"
                       "backend_port1 = 2222\n"
                       "backend_flag1 = 'disallow_to_failover | ALWAYS_PRIMARY'\n");
    const struct conf *c = conf_of(gen);
    ck_assert_uint_eq(
        c->nodes[0].backend_flag, CONF_BACKEND_ALWAYS_PRIMARY | CONF_BACKEND_ALLOW_FAILOVER);
    ck_assert_uint_eq(
        c->nodes[1].backend_flag, CONF_BACKEND_ALWAYS_PRIMARY | CONF_BACKEND_DISALLOW_FAILOVER);
    ck_assert_uint_eq(c->nodes[2].backend_flag, CONF_BACKEND_ALLOW_FAILOVER);
    conf_gen_free(&gen);
    conf_test_bad("backend_flag0 = 'ALLOW'\n", 1, "ALWAYS_PRIMARY");
    conf_test_bad("backend_flag0 = 'ALWAYS_PRIMARY||'\n", 1, "invalid value");
}
END_TEST

/* ---- reload ---- */

/* Loads `before`, reloads with `after`. */
static struct conf_gen *conf_test_reload(
    const char *before, const char *after, struct conf_report *report)
{
    char path[PATH_MAX];
    conf_dir_make();
    conf_dir_write("pgpool.conf", "%s", before);
    struct conf_gen *old = conf_dir_load(report);
    ck_assert_msg(old != NULL, "%s", conf_test_findings(report));
    conf_report_fini(report);
    conf_report_init(report);
    conf_dir_write("pgpool.conf", "%s", after);
    conf_dir_path(path, "pgpool.conf");
    struct conf_gen *gen = conf_reload(old, path, report);
    conf_gen_free(&old);
    conf_dir_remove();
    return gen;
}

START_TEST(reload_keeps_startup_parameters)
{
    struct conf_report report;
    struct conf_gen *gen = conf_test_reload(
        "port = 5000\nlisten_addresses = 'a,b'\nquery_wait_timeout = 1\n" CONF_TEST_SERVER,
        "\nport = 6000\nlisten_addresses = 'c'\nquery_wait_timeout = 2\n"
        "unix_socket_group = 'x'\n" CONF_TEST_SERVER,
        &report);
    ck_assert_ptr_nonnull(gen);
    const struct conf *c = conf_of(gen);
    ck_assert_int_eq(c->port, 5000);
    ck_assert_int_eq(c->listen_addresses.n, 2);
    ck_assert_str_eq(c->listen_addresses.item[1], "b");
    ck_assert_int_eq(c->query_wait_timeout_ms, 2000);
    ck_assert_str_eq(c->unix_socket_group, "");
    ck_assert_uint_eq(conf_number(gen), 2);
    ck_assert_int_eq(report.nwarnings, 3);
    ck_assert(conf_test_found(
        &report, CONF_WARNING, 2, "parameter \"port\" cannot be changed without restarting"));
    ck_assert(conf_test_found(&report, CONF_WARNING, 3, "listen_addresses"));
    ck_assert(conf_test_found(&report, CONF_WARNING, 5, "unix_socket_group"));
    conf_gen_free(&gen);
    conf_report_fini(&report);
}
END_TEST

START_TEST(reload_of_servers)
{
    struct conf_report report;
    struct conf_gen *gen =
        conf_test_reload("backend_hostname0 = 'a'\nbackend_port0 = 1111\nbackend_weight0 = 1\n"
                         "backend_hostname1 = 'b'\nbackend_port1 = 2222\nbackend_weight1 = 5\n",
            "backend_hostname0 = 'z'\nbackend_port0 = 1112\nbackend_weight0 = 2\n"
            "backend_hostname2 = 'c'\nbackend_port2 = 3333\n",
            &report);
    ck_assert_ptr_nonnull(gen);
    const struct conf *c = conf_of(gen);
    ck_assert_str_eq(c->nodes[0].backend_hostname, "a");
    ck_assert_int_eq(c->nodes[0].backend_port, 1111);
    ck_assert_double_eq(c->nodes[0].backend_weight, 2.0);
    ck_assert_str_eq(c->nodes[1].backend_hostname, "b"); /* taken out: kept until restart */
    ck_assert_int_eq(c->nodes[1].backend_port, 2222);
    ck_assert_double_eq(c->nodes[1].backend_weight, 5.0);
    ck_assert_int_eq(c->nodes[2].backend_port, 3333);
    ck_assert_int_eq(c->nnodes, 3);
    ck_assert(conf_test_found(&report, CONF_WARNING, 1, "backend_hostname0"));
    ck_assert(conf_test_found(&report, CONF_WARNING, 2, "backend_port0"));
    ck_assert(conf_test_found(&report, CONF_WARNING, 0, "server 1 is no longer in the file"));
    conf_gen_free(&gen);
    conf_report_fini(&report);
}
END_TEST

START_TEST(reload_is_refused_whole)
{
    struct conf_report report;
    struct conf_gen *gen = conf_test_reload(CONF_TEST_SERVER,
        CONF_TEST_SERVER "query_wait_timeout = 9\nlog_statement = huh\n", &report);
    ck_assert_ptr_null(gen);
    ck_assert(conf_test_found(&report, CONF_ERROR, 4, "Boolean"));
    conf_report_fini(&report);
}
END_TEST

START_TEST(reload_keeps_what_startup_parameters_decide)
{
    struct conf_report report;
    struct conf_gen *gen = conf_test_reload("connection_life_time = 50\n" CONF_TEST_SERVER,
        "connection_life_time = 60\n" CONF_TEST_SERVER, &report);
    ck_assert_ptr_nonnull(gen);
    ck_assert_int_eq(conf_of(gen)->connection_life_time_ms, 50000);
    ck_assert_int_eq(conf_of(gen)->server_idle_timeout_ms, 50000);
    conf_gen_free(&gen);
    conf_report_fini(&report);
}
END_TEST

/* A changed startup parameter must not make a rule fail that holds with its old value. */
START_TEST(reload_judges_what_will_be)
{
    struct conf_report report;
    struct conf_gen *gen = conf_test_reload("max_clients = 100\n" CONF_TEST_SERVER,
        "max_clients = 5\nreserved_connections = 10\n" CONF_TEST_SERVER, &report);
    ck_assert_msg(gen != NULL, "%s", conf_test_findings(&report));
    ck_assert_int_eq(conf_of(gen)->max_clients, 100);
    ck_assert_int_eq(conf_of(gen)->reserved_connections, 0);
    conf_gen_free(&gen);
    conf_report_fini(&report);
}
END_TEST

static Suite *conf_load_suite(void)
{
    Suite *s = suite_create("conf_load");
    TCase *lines = tcase_create("lines");
    tcase_add_test(lines, grammar_of_lines);
    tcase_add_test(lines, quotes);
    tcase_add_test(lines, bad_lines);
    tcase_add_test(lines, secrets_stay_out_of_errors);
    tcase_add_test(lines, odd_bytes);
    tcase_add_test(lines, old_names);
    tcase_add_test(lines, unknown_names);
    tcase_add_test(lines, any_case_of_a_name);
    tcase_add_test(lines, numbers_of_servers);
    tcase_add_test(lines, all_errors_at_once);
    tcase_add_test(lines, text_of_a_finding);
    tcase_add_test(lines, flood_of_errors_is_counted);
    suite_add_tcase(s, lines);
    TCase *files = tcase_create("files");
    tcase_add_test(files, missing_file_is_an_error);
    tcase_add_test(files, includes);
    tcase_add_test(files, errors_of_included_files_name_them);
    tcase_add_test(files, depth_of_includes);
    tcase_add_test(files, cycles_of_includes);
    tcase_add_test(files, includes_that_multiply_are_bounded);
    tcase_add_test(files, command_line_wins_and_stays);
    tcase_add_test(files, names_of_files);
    suite_add_tcase(s, files);
    TCase *rules = tcase_create("rules");
    tcase_add_test(rules, rules_across_parameters);
    tcase_add_test(rules, rules_of_the_watchdog);
    tcase_add_test(rules, warnings_across_parameters);
    tcase_add_test(rules, an_ordinary_file_is_quiet);
    tcase_add_test(rules, values_per_server_fall_back);
    tcase_add_test(rules, idle_timeout_has_two_names);
    tcase_add_test(rules, flags_of_servers);
    suite_add_tcase(s, rules);
    TCase *reload = tcase_create("reload");
    tcase_add_test(reload, reload_keeps_startup_parameters);
    tcase_add_test(reload, reload_of_servers);
    tcase_add_test(reload, reload_is_refused_whole);
    tcase_add_test(reload, reload_keeps_what_startup_parameters_decide);
    tcase_add_test(reload, reload_judges_what_will_be);
    suite_add_tcase(s, reload);
    return s;
}

int main(void)
{
    return conf_test_run(conf_load_suite());
}
