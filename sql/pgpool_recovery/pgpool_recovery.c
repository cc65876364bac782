/* SPDX-License-Identifier: PostgreSQL
 * pgpool_recovery.c: the SQL functions by which pgpool rebuilds and starts servers.
 * Runs in: a backend of PostgreSQL, usually of the primary. Scripts are plain files in the data
 * folder and get their arguments as they are: no shell stands between, so nothing has to be quoted.
 */
#include "postgres.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/postmaster.h"
#include "storage/latch.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "recovery_run.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(pgpool_recovery);
PG_FUNCTION_INFO_V1(pgpool_remote_start);
PG_FUNCTION_INFO_V1(pgpool_pgctl);
PG_FUNCTION_INFO_V1(pgpool_switch_xlog);

#define START_SCRIPT    "pgpool_remote_start"
#define MAX_SCRIPT_ARGS 10
#define LOOK_MS         100

/* Settings live in statics: PostgreSQL wants their addresses. */
static char *pg_ctl_path = NULL;
static int switch_timeout_s = 300;

void _PG_init(void);

void _PG_init(void)
{
    DefineCustomStringVariable("pgpool.pg_ctl", "Path of pg_ctl for pgpool_pgctl().",
        "Empty: beside the server's own program.", &pg_ctl_path, "", PGC_SUSET, 0, NULL, NULL,
        NULL);
    DefineCustomIntVariable("pgpool.switch_timeout",
        "Longest wait of pgpool_switch_xlog() for the archive.", "0: for ever.", &switch_timeout_s,
        300, 0, INT_MAX / 1000, PGC_SUSET, GUC_UNIT_S, NULL, NULL, NULL);
}

/* A script of the data folder, by its plain name. */
static char *script_path(const char *name)
{
    if (name[0] == '\0' || name[0] == '.' || strchr(name, '/') != NULL)
        ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid script name \"%s\"", name),
                errdetail("A script is a file in the data folder, named without a path.")));
    return psprintf("%s/%s", DataDir, name);
}

/* The script is told PGDATA, host, data folder, port of the primary, node, port of the node, host
 * of the primary; what the caller did not say is empty, but for the port of the primary: this
 * server's. */
Datum pgpool_recovery(PG_FUNCTION_ARGS)
{
    char *argv[MAX_SCRIPT_ARGS] = {NULL};
    int n = 0;

    argv[n++] = script_path(text_to_cstring(PG_GETARG_TEXT_PP(0)));
    argv[n++] = DataDir;
    argv[n++] = text_to_cstring(PG_GETARG_TEXT_PP(1));
    argv[n++] = text_to_cstring(PG_GETARG_TEXT_PP(2));
    argv[n++] =
        PG_NARGS() > 3 ? text_to_cstring(PG_GETARG_TEXT_PP(3)) : psprintf("%d", PostPortNumber);
    argv[n++] = PG_NARGS() > 4 ? psprintf("%d", PG_GETARG_INT32(4)) : pstrdup("");
    argv[n++] = PG_NARGS() > 5 ? text_to_cstring(PG_GETARG_TEXT_PP(5)) : pstrdup("");
    argv[n++] = PG_NARGS() > 6 ? text_to_cstring(PG_GETARG_TEXT_PP(6)) : pstrdup("");
    recovery_run("pgpool_recovery", argv);
    PG_RETURN_BOOL(true);
}

Datum pgpool_remote_start(PG_FUNCTION_ARGS)
{
    char *argv[MAX_SCRIPT_ARGS] = {NULL};

    argv[0] = script_path(START_SCRIPT);
    argv[1] = text_to_cstring(PG_GETARG_TEXT_PP(0));
    argv[2] = text_to_cstring(PG_GETARG_TEXT_PP(1));
    recovery_run("pgpool_remote_start", argv);
    PG_RETURN_BOOL(true);
}

static bool is_one_of(const char *word, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (strcmp(word, *words) == 0)
            return true;
    }
    return false;
}

/* Stopping and restarting end this very backend: pg_ctl is left alone to do it. */
Datum pgpool_pgctl(PG_FUNCTION_ARGS)
{
    static const char *const actions[] = {"reload", "restart", "stop", NULL};
    static const char *const modes[] = {"smart", "s", "fast", "f", "immediate", "i", NULL};
    char *action = text_to_cstring(PG_GETARG_TEXT_PP(0));
    char *mode = text_to_cstring(PG_GETARG_TEXT_PP(1));
    char *program = pg_ctl_path != NULL && pg_ctl_path[0] != '\0'
                        ? pstrdup(pg_ctl_path)
                        : psprintf("%s/pg_ctl", recovery_bindir());
    char *argv[MAX_SCRIPT_ARGS] = {program, action, "-D", DataDir, NULL};

    if (!is_one_of(action, actions))
        ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid action \"%s\"", action),
                errdetail("The action is reload, restart or stop.")));
    if (strcmp(action, "reload") == 0) {
        recovery_run("pgpool_pgctl", argv);
        PG_RETURN_BOOL(true);
    }
    if (!is_one_of(mode, modes))
        ereport(
            ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid mode \"%s\"", mode),
                       errdetail("The mode is smart, fast or immediate.")));
    argv[4] = "-m";
    argv[5] = mode;
    recovery_launch("pgpool_pgctl", argv);
    PG_RETURN_BOOL(true);
}

/* The segment as the archiver leaves it, plain or packed. */
static bool is_archived(const char *dir, const char *segment)
{
    static const char *const endings[] = {"", ".gz", ".bz2", ".lz4", ".zst", ".xz"};
    size_t i;

    for (i = 0; i < lengthof(endings); i++) {
        char *path = psprintf("%s/%s%s", dir, segment, endings[i]);
        struct stat st;
        bool found = stat(path, &st) == 0 && S_ISREG(st.st_mode);

        pfree(path);
        if (found)
            return true;
    }
    return false;
}

static TimeLineID this_timeline(void)
{
#if PG_VERSION_NUM >= 150000
    return GetWALInsertionTimeLine();
#elif PG_VERSION_NUM >= 140000
    TimeLineID tli;

    (void)GetFlushRecPtr(&tli);
    return tli;
#else
    return ThisTimeLineID;
#endif
}

Datum pgpool_switch_xlog(PG_FUNCTION_ARGS)
{
    char *dir = text_to_cstring(PG_GETARG_TEXT_PP(0));
    TimestampTz began = GetCurrentTimestamp();
    char segment[MAXFNAMELEN];
    XLogSegNo number;
    XLogRecPtr at;

    if (RecoveryInProgress())
        ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("recovery is in progress"),
                errhint("A standby cannot switch the write-ahead log.")));
    if (!XLogArchivingActive())
        ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                errmsg("pgpool_switch_xlog: nothing is archived"), errhint("Set archive_mode.")));
    at = RequestXLogSwitch(false);
    XLByteToPrevSeg(at, number, wal_segment_size);
    XLogFileName(segment, this_timeline(), number, wal_segment_size);
    while (!is_archived(dir, segment)) {
        if (switch_timeout_s > 0 &&
            TimestampDifferenceExceeds(began, GetCurrentTimestamp(), switch_timeout_s * 1000))
            ereport(
                ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                           errmsg("pgpool_switch_xlog: segment %s is not in \"%s\" after %d s",
                               segment, dir, switch_timeout_s),
                           errhint("Look at archive_command, pg_stat_archiver and the folder.")));
        (void)WaitLatch(
            MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, LOOK_MS, PG_WAIT_EXTENSION);
        ResetLatch(MyLatch);
        CHECK_FOR_INTERRUPTS();
    }
    PG_RETURN_TEXT_P(cstring_to_text(psprintf("%X/%X", (uint32)(at >> 32), (uint32)at)));
}
