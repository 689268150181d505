/* The secret by which the processes of a job authenticate each other.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_SECRET_H
#define RUN_SECRET_H

enum { SECRET_LENGTH = 64, SECRET_PATH = 64 };

/* Makes a random secret; an empty one if the environment has a secret. Returns 0, or -1 with the
 * reason on stderr. */
int secret_make(char secret[SECRET_LENGTH + 1]);
/* Stores it in memory that ends with this process, and writes the path by which processes of the
 * same user on this host read it: it is neither on disk nor in an environment, and programs that
 * wrappers start without their descriptors find it, too. Returns 0, or -1 with errno. */
int secret_store(const char *secret, char path[SECRET_PATH]);

#endif
