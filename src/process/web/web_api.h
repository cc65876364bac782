/* SPDX-License-Identifier: PostgreSQL
 * web_api.h: what is asked for as JSON. Runs in: web. */
#ifndef PGP_PROCESS_WEB_API_H
#define PGP_PROCESS_WEB_API_H

#include "web_int.h"

#define WEB_API "/api/v1/"

web_page_fn web_api_index;    /* all there is, with its columns */
web_page_fn web_api_report;   /* one report of SHOW */
web_page_fn web_api_settings; /* settings: value, default, when a change is taken up */
web_page_fn web_api_health;   /* what is wrong, in sentences */

/* --- web_log.c --- */

web_page_fn web_log_page; /* the end of the log */

#endif
