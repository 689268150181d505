/* The processes' output: whole lines, each with its process's name in front.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A live stream is a terminal for its process (rank 0, if the launcher's output is a terminal). Its
 * unfinished line is also shown, below the lines of other processes, so that progress bars work. */
#ifndef RUN_OUTPUT_H
#define RUN_OUTPUT_H
#include <stdbool.h>
#include <stddef.h>

enum { LINE_MAX_BYTES = 16384, LAST_BYTES = 200 };

typedef struct stream {
    int from; /* read end, non-blocking; -1: it has ended */
    int to;   /* STDOUT_FILENO or STDERR_FILENO; -1: lines are not printed */
    bool fed; /* stream_feed() brings its bytes */
    bool live;
    bool returned; /* live: the last byte was a carriage return */
    char prefix[16];
    size_t length;             /* of line, which begins with the prefix */
    char line[LINE_MAX_BYTES]; /* the unfinished line; longer lines are broken */
    char last[LAST_BYTES];     /* start of the last finished line that was not empty */
} stream_t;

/* Makes a pipe, or for `live` a terminal as wide as the launcher's less the prefix; *write_end is
 * for the child. Returns 0, or -1 with errno. All descriptors are closed on exec. */
int stream_open(stream_t *stream, int to, bool live, const char *name, int *write_end);
/* For a process on another host: stream_feed() gets its output. */
void stream_begin(stream_t *stream, int to, const char *name);
void stream_feed(stream_t *stream, const char *bytes, size_t size);
/* Reads and prints available output; closes the stream at its end. Returns true if there may be
 * more. */
bool stream_read(stream_t *stream);
/* Reads and prints all output of its process, which has ended. */
void stream_drain(stream_t *stream);
/* As stream_drain(), and prints an unfinished last line, then closes the stream. */
void stream_finish(stream_t *stream);
/* Prints a message of the launcher on stderr, as printf() does, without disturbing a live line. */
__attribute__((format(printf, 1, 2))) void output_say(const char *format, ...);

#endif
