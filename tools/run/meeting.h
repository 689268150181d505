/* The file where the generations of an elastic job meet: the rendezvous of the processes on this
 * host, in a folder that only their user can enter.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each host of the job has such a folder, made by the launcher or the agent there. The process that
 * coordinates the job writes its host's file; the agents and the launcher tell each other what is
 * in it, so that the files of all hosts say the same, whichever host is lost. */
#ifndef RUN_MEETING_H
#define RUN_MEETING_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { MEETING_BYTES = 1024, MEETING_LOOKS = 100 /* milliseconds between looks at it */ };

typedef struct meeting {
    char folder[256]; /* empty: it is not open */
    char path[272];   /* of the file */
    char url[280];    /* file:// and the path */
    char text[MEETING_BYTES];
    size_t length; /* of the text, what was last read or written; 0: nothing yet */
    int formed;    /* how many generations of the job have formed, as far as the texts have said */
    int alive;     /* a pipe whose end tells the keeper that this process has ended */
    pid_t keeper;  /* the process that then removes the folder */
} meeting_t;

/* Makes the folder, in $TMPDIR or /tmp. Returns 0, or -1 with the reason on stderr. */
int meeting_open(meeting_t *meeting);
/* Reads the file. True: a process here has written it anew. */
bool meeting_look(meeting_t *meeting);
/* Writes what another host's file says; nothing: removes the file, for a job that begins again. */
void meeting_write(meeting_t *meeting, const char *text, size_t length);
void meeting_close(meeting_t *meeting); /* removes the folder */

#endif
