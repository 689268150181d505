/* Reads the processes' pipes and terminals, and prints their lines with a prefix.
 * SPDX-License-Identifier: Apache-2.0 */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static stream_t *shown; /* the live stream whose unfinished line is on the terminal, or NULL */

static void write_all(int fd, const char *data, size_t size) {
    while (size > 0) {
        ssize_t n = write(fd, data, size);
        if (n < 0 && errno == EAGAIN) /* another process made the terminal non-blocking */
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        else if (n < 0 && errno != EINTR)
            return; /* the reader is gone */
        else if (n > 0)
            data += n, size -= (size_t)n;
    }
}

static void hide_live(void) {
    if (shown != NULL) write_all(shown->to, "\r\033[K", 4);
    shown = NULL;
}

static void show_live(stream_t *s) {
    if (s == NULL || s->length <= strlen(s->prefix)) return;
    hide_live();
    write_all(s->to, s->line, s->length);
    shown = s;
}

static void begin_line(stream_t *s) {
    s->length = strlen(s->prefix);
    memcpy(s->line, s->prefix, s->length);
    s->returned = false;
}

static void end_line(stream_t *s) {
    const size_t prefix = strlen(s->prefix);
    if (s->length > prefix)
        snprintf(s->last, sizeof s->last, "%.*s", (int)(s->length - prefix), s->line + prefix);
    s->line[s->length++] = '\n'; /* take_byte() leaves room for it */
    write_all(s->to, s->line, s->length);
    begin_line(s);
}

static void take_byte(stream_t *s, char byte) {
    if (byte == '\n') {
        end_line(s);
        return;
    }
    if (s->returned) begin_line(s); /* the next bytes overwrite the line */
    if (s->live && byte == '\r')
        s->returned = true;
    else
        s->line[s->length++] = byte;
    if (s->length == sizeof s->line - 1) end_line(s);
}

static void stream_close(stream_t *s) {
    stream_t *live = s == shown ? NULL : shown;
    if (s->from < 0 && !s->fed) return;
    if (s->from >= 0) close(s->from);
    s->from = -1;
    s->fed = false;
    hide_live();
    if (s->length > strlen(s->prefix)) end_line(s);
    show_live(live);
}

void stream_feed(stream_t *s, const char *bytes, size_t size) {
    stream_t *live = s->live ? s : shown;
    hide_live();
    for (size_t i = 0; i < size; i++) take_byte(s, bytes[i]);
    show_live(live);
}

bool stream_read(stream_t *s) {
    char chunk[16384];
    if (s->from < 0) return false;
    const ssize_t n = read(s->from, chunk, sizeof chunk);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return errno == EINTR;
    if (n <= 0) { /* also EIO: the terminal's other side is closed */
        stream_close(s);
        return false;
    }
    stream_feed(s, chunk, (size_t)n);
    return true;
}

void stream_drain(stream_t *s) {
    /* More reads than a full pipe needs, but limited, in case another process is still writing. */
    for (int pieces = 0; pieces < 128 && stream_read(s); pieces++) continue;
}

void stream_finish(stream_t *s) {
    stream_drain(s);
    stream_close(s);
}

void output_say(const char *format, ...) {
    stream_t *live = shown;
    char text[1024] = "dtrain-run: ";
    const size_t begin = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + begin, sizeof text - begin - 1, format, args);
    va_end(args);
    strcat(text, "\n");
    hide_live();
    write_all(STDERR_FILENO, text, strlen(text));
    show_live(live);
}

static int open_terminal(int like, int columns, int *master, int *slave) {
    struct winsize size = {0};
    struct termios mode;
    *master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (*master < 0 || grantpt(*master) != 0 || unlockpt(*master) != 0) return -1;
    *slave = open(ptsname(*master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (*slave < 0 || tcgetattr(*slave, &mode) != 0) return -1;
    cfmakeraw(&mode); /* passes bytes unchanged */
    if (tcsetattr(*slave, TCSANOW, &mode) != 0) return -1;
    if (ioctl(like, TIOCGWINSZ, &size) == 0 && size.ws_col > columns) {
        size.ws_col = (unsigned short)(size.ws_col - columns);
        ioctl(*slave, TIOCSWINSZ, &size);
    }
    return 0;
}

void stream_begin(stream_t *s, int to, const char *name) {
    *s = (stream_t){.from = -1, .to = to, .fed = true};
    snprintf(s->prefix, sizeof s->prefix, "[%s] ", name);
    begin_line(s);
}

int stream_open(stream_t *s, int to, bool live, const char *name, int *write_end) {
    int ends[2] = {-1, -1};
    stream_begin(s, to, name);
    s->fed = false;
    s->live = live;
    if (live ? open_terminal(to, (int)s->length, &ends[0], &ends[1]) : pipe2(ends, O_CLOEXEC))
        return -1;
    s->from = ends[0];
    *write_end = ends[1];
    return fcntl(s->from, F_SETFL, O_NONBLOCK);
}
