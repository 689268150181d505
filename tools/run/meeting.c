/* Reads and writes the file by rename, as the library does, and removes it at the end.
 * SPDX-License-Identifier: Apache-2.0 */
#include "meeting.h"

#include "output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void remove_folder(const char *folder) {
    char path[600];
    DIR *list = opendir(folder);
    struct dirent *entry;
    while (list != NULL && (entry = readdir(list)) != NULL) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.') unlink(path);
    }
    if (list != NULL) closedir(list);
    rmdir(folder);
}

/* A process that removes the folder when this one has ended, however it ends. */
static int start_keeper(meeting_t *meeting) {
    int ends[2];
    char byte;
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    meeting->keeper = fork();
    if (meeting->keeper == 0) {
        setpgid(0, 0); /* neither keys nor a shell's signals to the launcher's group reach it */
        close(ends[1]);
        for (int fd = 0; fd < 3; fd++) close(fd); /* readers of the output see its end */
        while (read(ends[0], &byte, 1) < 0 && errno == EINTR) continue;
        remove_folder(meeting->folder);
        _exit(0);
    }
    const int error = errno;
    close(ends[0]);
    meeting->alive = ends[1];
    if (meeting->keeper > 0) return 0;
    close(ends[1]);
    errno = error;
    return -1;
}

int meeting_open(meeting_t *meeting) {
    const char *temporary = getenv("TMPDIR");
    if (temporary == NULL || temporary[0] != '/' || strlen(temporary) > 200) temporary = "/tmp";
    *meeting = (meeting_t){.alive = -1};
    snprintf(meeting->folder, sizeof meeting->folder, "%s/dtrain-run-XXXXXX", temporary);
    const bool made = mkdtemp(meeting->folder) != NULL;
    snprintf(meeting->path, sizeof meeting->path, "%s/rendezvous", meeting->folder);
    snprintf(meeting->url, sizeof meeting->url, "file://%s", meeting->path);
    if (made && start_keeper(meeting) == 0) return 0;
    output_say("cannot make a folder in %s for the rendezvous: %s", temporary, strerror(errno));
    if (made) rmdir(meeting->folder);
    meeting->folder[0] = 0;
    return -1;
}

/* Keeps a text, whose last number says how many generations have formed. */
static void keep(meeting_t *meeting, const char *text, size_t length) {
    int formed = 0;
    memcpy(meeting->text, text, length);
    meeting->text[length] = 0;
    meeting->length = length;
    if (sscanf(meeting->text, "dtrain-rendezvous %*s %*s %*s %d", &formed) != 1) return;
    if (formed > meeting->formed) meeting->formed = formed;
}

static size_t read_file(const char *path, char text[MEETING_BYTES]) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const ssize_t length = fd >= 0 ? read(fd, text, MEETING_BYTES - 1) : 0;
    if (fd >= 0) close(fd);
    return length > 0 ? (size_t)length : 0;
}

bool meeting_look(meeting_t *meeting) {
    char text[MEETING_BYTES];
    if (meeting->folder[0] == 0) return false;
    const size_t length = read_file(meeting->path, text);
    /* A coordinator that leaves removes its file; another one will write its own. */
    if (length == 0 || (length == meeting->length && memcmp(text, meeting->text, length) == 0))
        return false;
    keep(meeting, text, length);
    return true;
}

static int write_file(const char *path, const char *text, size_t length) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return -1;
    const ssize_t written = write(fd, text, length);
    close(fd);
    return written == (ssize_t)length ? 0 : -1;
}

void meeting_write(meeting_t *meeting, const char *text, size_t length) {
    char fresh[272];
    if (meeting->folder[0] == 0 || length >= MEETING_BYTES) return;
    if (length == 0) {
        unlink(meeting->path);
        meeting->length = 0;
        meeting->formed = 0;
        return;
    }
    if (length == meeting->length && memcmp(text, meeting->text, length) == 0) return;
    keep(meeting, text, length);
    snprintf(fresh, sizeof fresh, "%s/fresh", meeting->folder);
    if (write_file(fresh, text, length) != 0 || rename(fresh, meeting->path) != 0)
        output_say("%s: %s; newcomers on this host cannot find the job", meeting->path,
                   strerror(errno));
}

void meeting_close(meeting_t *meeting) {
    if (meeting->folder[0] == 0) return;
    close(meeting->alive);
    waitpid(meeting->keeper, NULL, 0);
    *meeting = (meeting_t){.alive = -1};
}
