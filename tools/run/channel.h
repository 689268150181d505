/* Frames between the launcher and its agent on another host, over the two pipes of an ssh.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A frame is three little-endian numbers of 32 bits (kind, process, length) and `length` bytes. No
 * frame is longer than PIPE_BUF, so each is written to a pipe as a whole: the launcher's heart
 * (heart.h) may write to the same pipe at any time. */
#ifndef RUN_CHANNEL_H
#define RUN_CHANNEL_H
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FRAME_HEAD = 12, FRAME_BYTES = PIPE_BUF - FRAME_HEAD };

/* New kinds come at the end: every version must understand another one's HELLO. */
enum frame_kind {
    /* To the agent. */
    FRAME_SECRET = 1, /* the job's secret */
    FRAME_LISTEN,     /* open the port where the ranks meet: LISTENING */
    FRAME_RECIPE,     /* a piece of the next process's recipe */
    FRAME_START,      /* starts it: STARTED or FAILED; the bytes are START_*                    */
    FRAME_SIGNAL,     /* sends a signal: a number */
    FRAME_INPUT,      /* bytes for its input, none: the end; TAKEN says that it has them */
    FRAME_PING,       /* the launcher lives */
    FRAME_FINISH,     /* end what runs, and the agent itself */
    /* To the launcher. */
    FRAME_HELLO,     /* the agent's version, NUL, and its SSH_CONNECTION */
    FRAME_ALIVE,     /* the agent lives */
    FRAME_LISTENING, /* the port, a number */
    FRAME_STARTED,
    FRAME_FAILED, /* what failed and the errno: two numbers (child.h) */
    FRAME_OUTPUT, /* of the process */
    FRAME_ERRORS, /* of the process: from its second output, stderr */
    FRAME_TAKEN,
    FRAME_ENDED, /* exit status and signal: two numbers */
    /* To the agent. */
    FRAME_MEET,    /* make a place where the generations of an elastic job meet (meeting.h) */
    FRAME_RELEASE, /* forget a process that has ended: end what it has left running */
    /* In both directions. */
    FRAME_PLACE, /* what the file of the meeting says; to the agent also nothing: remove it */
};

/* Flags in the bytes of FRAME_START. */
#define START_INPUT    'i' /* it gets the launcher's input   */
#define START_LISTENER 'l' /* it inherits the port           */

typedef struct frame {
    uint32_t kind, process, length;
    const char *bytes; /* valid until the next call of channel_next() */
} frame_t;

typedef struct channel {
    int from, to; /* non-blocking; -1: closed */
    char *unread;
    size_t unread_begin, unread_end;
    char *unsent; /* frames */
    size_t unsent_begin, unsent_end, unsent_room;
    size_t frame_left; /* bytes of the first unsent frame; 0: it has not been begun */
} channel_t;

void channel_open(channel_t *channel, int from, int to);
void channel_close(channel_t *channel);
/* Appends frames to what is unsent, which channel_flush() writes: for more bytes than fit in one
 * frame, several. */
void channel_send(channel_t *channel, uint32_t kind, uint32_t process, const void *bytes,
                  size_t length);
void channel_send_numbers(channel_t *channel, uint32_t kind, uint32_t process, int32_t first,
                          int32_t second);
size_t channel_unsent(const channel_t *channel);
/* Writes what can be written now. False: nobody reads it any more. */
bool channel_flush(channel_t *channel);
/* Reads what has come. False: the other side has closed, or sends no frames. */
bool channel_read(channel_t *channel);
/* Skips what stands before the text, and the text. False: it has not come yet. */
bool channel_skip(channel_t *channel, const char *text);
/* Takes the next frame that has come completely; its length is at most FRAME_BYTES. */
bool channel_next(channel_t *channel, frame_t *frame);
/* The numbers of a frame that has `count` of them; false: it has not. */
bool frame_numbers(const frame_t *frame, int count, int32_t numbers[]);

#endif
