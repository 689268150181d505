/* The processes' output: whole lines, each with its process's name in front.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A live stream is a terminal to its process (rank 0's, when ours is one): of it, the line that is
 * not finished yet shows, too, so that a progress bar works. It stays below the others' lines. */
#ifndef RUN_OUTPUT_H
#define RUN_OUTPUT_H
#include <stdbool.h>
#include <stddef.h>

enum { LINE_MAX_BYTES = 16384, LAST_BYTES = 200 };

typedef struct stream {
    int from; /* read end, non-blocking; -1: at its end */
    int to;   /* STDOUT_FILENO or STDERR_FILENO */
    bool live;
    bool returned; /* live: a carriage return came last */
    char prefix[16];
    size_t length;             /* of line, which begins with the prefix */
    char line[LINE_MAX_BYTES]; /* not finished yet; a longer one is broken */
    char last[LAST_BYTES];     /* start of the last finished line that was not empty */
} stream_t;

/* Makes a pipe, or for `live` a terminal as wide as ours less the prefix; *write_end is for the
 * child. 0, or -1 with errno. All descriptors are closed on exec. */
int stream_open(stream_t *stream, int to, bool live, const char *name, int *write_end);
/* Takes and prints a piece of what there is; at the end of the stream closes it. true: there may be
 * more. */
bool stream_read(stream_t *stream);
/* Takes all that its process, which has ended, has written. */
void stream_drain(stream_t *stream);
/* The same, prints an unfinished last line, too, and closes. */
void stream_finish(stream_t *stream);
/* Our own words on stderr, as printf() would have them, clear of a live line. */
__attribute__((format(printf, 1, 2))) void output_say(const char *format, ...);

#endif
