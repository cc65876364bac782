/* SPDX-License-Identifier: PostgreSQL
 * wd_id.c: the file pgpool_node_id: one number. Scripts that set pgpool-II up write it, and look
 * for these texts. Runs in: supervisor, watchdog, control. */
#include "config.h"

#include "config/wd_id.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 4096

int wd_id_read(const struct conf_gen *gen, int *id, struct err *err)
{
    const struct conf *conf = conf_of(gen);
    char path[PATH_BYTES];
    char text[32] = "";
    char *end;
    long n;
    int fd;

    if (conf_path(gen, "pgpool_node_id", path, sizeof path, err) == -1)
        return -1;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd == -1) {
        err_set(err, "58P01", "Pgpool node id file %s does not exist", path);
        err_hint(err, "With use_watchdog the file pgpool_node_id beside pgpool.conf says which of "
                      "the pgpools this one is: 0, 1, ...");
        return -1;
    }
    if (read(fd, text, sizeof text - 1) <= 0)
        text[0] = '\0';
    close(fd);
    n = strtol(text, &end, 10);
    if (text[0] == '\0' || text[0] == '\n') {
        err_set(err, "22023", "pgpool_node_id file is empty");
        return -1;
    }
    if (end == text || (*end != '\0' && strspn(end, " \r\n\t") != strlen(end))) {
        err_set(err, "22023", "pgpool_node_id is not a numeric value");
        return -1;
    }
    if (n < 0 || n >= conf->nwd_nodes || conf->wd_nodes[n].wd_port == 0 ||
        conf->wd_nodes[n].hostname[0] == '\0') {
        err_set(err, "22023", "pgpool_node_id is %ld, but the settings have no such pgpool", n);
        err_hint(err, "Set hostname%ld and wd_port%ld.", n, n);
        return -1;
    }
    *id = (int)n;
    return 0;
}
