/* What the files of this example do about a call that fails: say so on stderr, and return -1.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WORDS_STATUS_H
#define WORDS_STATUS_H
#include <dtrain.h>
#include <stdio.h>

static inline int report(const char *call) {
    char text[512];
    dtrain_last_error(text, sizeof text);
    fprintf(stderr, "%s: %s\n", call, text);
    return -1;
}
#define TRY(call)                                                                                  \
    do {                                                                                           \
        if ((call) != DTRAIN_OK) return report(#call);                                             \
    } while (0)

#endif
