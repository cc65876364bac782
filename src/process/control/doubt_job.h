/* SPDX-License-Identifier: PostgreSQL
 * doubt_job.h: what crashes left prepared on servers is finished. Runs in: control. */
#ifndef PGP_PROCESS_DOUBT_JOB_H
#define PGP_PROCESS_DOUBT_JOB_H

struct control;

/* Begins to look, when writes go to all servers; ctl->doubt is NULL when they do not. */
void doubt_job_start(struct control *ctl);
/* Ends that; what is under way ends by itself. */
void doubt_job_stop(struct control *ctl);

#endif
