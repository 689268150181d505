/* SPDX-License-Identifier: Apache-2.0 */
#include "status.h"

#include <stdio.h>

int report(dtrain_status_t status, const char *what) {
    char text[512];
    if (status == DTRAIN_OK) return 0;
    dtrain_last_error(text, sizeof text);
    fprintf(stderr, "%s: %s (%s)\n", what, text, dtrain_status_name(status));
    return -1;
}

int report_text(const char *text) {
    fprintf(stderr, "%s\n", text);
    return -1;
}
