/* Writes the command line of ssh. No secret and no word of the user's program is in it: what is to
 * be run goes through its input.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ssh.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In single quotes, as every shell understands them. Returns malloc()ed text. */
static char *quoted(const char *text) {
    char *out = own_memory(NULL, 4 * strlen(text) + 3), *to = out;
    *to++ = '\'';
    for (; *text != 0; text++) {
        if (*text == '\'')
            to = stpcpy(to, "'\\''");
        else
            *to++ = *text;
    }
    stpcpy(to, "'");
    return out;
}

/* Runs the agent by the path that this program has here, or else by the PATH there. `sh` because
 * the user's shell there may be any. */
static char *agent_command(double host_timeout) {
    char own[4096] = "", *command = NULL, *inner = NULL;
    const ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    own[length > 0 ? length : 0] = 0;
    char *path = quoted(own);
    if (asprintf(&inner, "p=%s; test -x \"$p\" || p=dtrain-run; exec \"$p\" --agent %g", path,
                 host_timeout) < 0)
        inner = NULL;
    free(path);
    path = inner != NULL ? quoted(inner) : NULL;
    if (path == NULL || asprintf(&command, "exec sh -c %s", path) < 0) command = NULL;
    free(path);
    free(inner);
    return command != NULL ? command : own_memory(NULL, 1);
}

void ssh_command(const options_t *options, const char *host, texts_t *arguments) {
    static const char *const fixed[] = {
        "-T", "-x", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-o", "LogLevel=ERROR"};
    char *words = own_memory(NULL, strlen(options->ssh) + 1), *state, *word;
    strcpy(words, options->ssh);
    for (word = strtok_r(words, " \t", &state); word != NULL; word = strtok_r(NULL, " \t", &state))
        texts_add(arguments, word);
    free(words);
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) texts_add(arguments, fixed[i]);
    if (options->ssh_port != NULL) {
        texts_add(arguments, "-p");
        texts_add(arguments, options->ssh_port);
    }
    if (options->ssh_identity != NULL) {
        texts_add(arguments, "-i");
        texts_add(arguments, options->ssh_identity);
    }
    texts_add(arguments, host);
    char *command = agent_command(options->host_timeout);
    texts_add(arguments, command);
    free(command);
}
