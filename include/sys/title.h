/* SPDX-License-Identifier: PostgreSQL
 * title.h: the text that ps and top show for a process.
 * Runs in: every process. */
#ifndef PGP_SYS_TITLE_H
#define PGP_SYS_TITLE_H

/* Claims the memory of the command line and the environment (which moves elsewhere) for titles.
 * Call once, first thing in main; later changes of argv are not seen by ps. Returns a copy of argv
 * to use instead, NULL-ended, that lives as long as the process. */
char **title_init(int argc, char **argv);
/* Replaces the title; too long ones are cut. A no-op before title_init. */
void title_set(const char *text);
/* The title as it is; the pointer stays, the text is that of the moment. NULL: there is no room for
 * one. */
const char *title_get(void);

#endif
