/* The command that starts an agent on another host.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_SSH_H
#define RUN_SSH_H
#include "options.h"
#include "texts.h"

void ssh_command(const options_t *options, const char *host, texts_t *arguments);

#endif
