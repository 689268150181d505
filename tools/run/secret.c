/* Makes secrets, and stores them in sealed memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include "secret.h"

#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

int secret_make(char secret[SECRET_LENGTH + 1]) {
    unsigned char random[SECRET_LENGTH / 2];
    secret[0] = 0;
    if (getenv("DTRAIN_SECRET") != NULL || getenv("DTRAIN_SECRET_FILE") != NULL) return 0;
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        output_say("cannot create a secret: %s", strerror(errno));
        return -1;
    }
    for (size_t i = 0; i < sizeof random; i++) sprintf(secret + 2 * i, "%02x", random[i]);
    explicit_bzero(random, sizeof random);
    return 0;
}

int secret_store(const char *secret, char path[SECRET_PATH]) {
    const ssize_t length = (ssize_t)strlen(secret);
    const int fd = memfd_create("dtrain-secret", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || write(fd, secret, (size_t)length) != length || fchmod(fd, 0400) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return -1;
    snprintf(path, SECRET_PATH, "/proc/%d/fd/%d", (int)getpid(), fd);
    return 0;
}
