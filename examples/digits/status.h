/* Failures on stderr.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STATUS_H
#define STATUS_H
#include "dtrain.h"

/* 0 for DTRAIN_OK; else -1, having printed "<what>: <the library's error text>". */
int report(dtrain_status_t status, const char *what);
int report_text(const char *text); /* prints it; -1 */

#endif
