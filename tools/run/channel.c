/* Writes and reads frames without blocking.
 * SPDX-License-Identifier: Apache-2.0 */
#include "channel.h"

#include "signals.h"
#include "texts.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { UNREAD_ROOM = 1 << 16 };

static void set_nonblocking(int fd) {
    const int flags = fcntl(fd, F_GETFL);
    if (flags >= 0) fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

void channel_open(channel_t *channel, int from, int to) {
    *channel = (channel_t){.from = from, .to = to, .unread = own_memory(NULL, UNREAD_ROOM)};
    set_nonblocking(from);
    set_nonblocking(to);
}

void channel_close(channel_t *channel) {
    if (channel->from >= 0) close(channel->from);
    if (channel->to >= 0) close(channel->to);
    free(channel->unread);
    free(channel->unsent);
    *channel = (channel_t){.from = -1, .to = -1};
}

static void put_number(char *to, uint32_t number) {
    number = htole32(number);
    memcpy(to, &number, sizeof number);
}

static uint32_t number_at(const char *from) {
    uint32_t number;
    memcpy(&number, from, sizeof number);
    return le32toh(number);
}

static char *room_for(channel_t *channel, size_t size) {
    if (channel->unsent_begin == channel->unsent_end)
        channel->unsent_begin = channel->unsent_end = 0;
    if (channel->unsent_end + size > channel->unsent_room) {
        if (channel->unsent_begin > 0)
            memmove(channel->unsent, channel->unsent + channel->unsent_begin,
                    channel_unsent(channel));
        channel->unsent_end -= channel->unsent_begin;
        channel->unsent_begin = 0;
        if (channel->unsent_end + size > channel->unsent_room) {
            channel->unsent_room = 2 * (channel->unsent_end + size);
            channel->unsent = own_memory(channel->unsent, channel->unsent_room);
        }
    }
    channel->unsent_end += size;
    return channel->unsent + channel->unsent_end - size;
}

void channel_send(channel_t *channel, uint32_t kind, uint32_t process, const void *bytes,
                  size_t length) {
    if (channel->to < 0) return;
    do {
        const size_t piece = length < FRAME_BYTES ? length : FRAME_BYTES;
        char *frame = room_for(channel, FRAME_HEAD + piece);
        put_number(frame, kind);
        put_number(frame + 4, process);
        put_number(frame + 8, (uint32_t)piece);
        if (piece > 0) memcpy(frame + FRAME_HEAD, bytes, piece);
        length -= piece;
        if (length > 0) bytes = (const char *)bytes + piece;
    } while (length > 0);
}

void channel_send_numbers(channel_t *channel, uint32_t kind, uint32_t process, int32_t first,
                          int32_t second) {
    char bytes[8];
    put_number(bytes, (uint32_t)first);
    put_number(bytes + 4, (uint32_t)second);
    channel_send(channel, kind, process, bytes, sizeof bytes);
}

size_t channel_unsent(const channel_t *channel) {
    return channel->unsent_end - channel->unsent_begin;
}

bool channel_flush(channel_t *channel) {
    while (channel_unsent(channel) > 0) {
        const char *next = channel->unsent + channel->unsent_begin;
        if (channel->frame_left == 0) channel->frame_left = FRAME_HEAD + number_at(next + 8);
        const ssize_t n = write_quietly(channel->to, next, channel->frame_left);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno == EAGAIN;
        channel->unsent_begin += (size_t)n;
        channel->frame_left -= (size_t)n; /* a socket may take a part of a frame */
    }
    return true;
}

bool channel_read(channel_t *channel) {
    if (channel->from < 0) return false;
    for (;;) {
        if (channel->unread_begin > 0) {
            memmove(channel->unread, channel->unread + channel->unread_begin,
                    channel->unread_end - channel->unread_begin);
            channel->unread_end -= channel->unread_begin;
            channel->unread_begin = 0;
        }
        if (channel->unread_end == UNREAD_ROOM) return true; /* take frames first */
        const ssize_t n = read(channel->from, channel->unread + channel->unread_end,
                               UNREAD_ROOM - channel->unread_end);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno == EAGAIN;
        if (n == 0) return false;
        channel->unread_end += (size_t)n;
    }
}

bool channel_skip(channel_t *channel, const char *text) {
    const size_t size = channel->unread_end - channel->unread_begin, length = strlen(text);
    char *begin = channel->unread + channel->unread_begin;
    char *found = memmem(begin, size, text, length);
    if (found != NULL)
        channel->unread_begin = (size_t)(found - channel->unread) + length;
    else if (size >= length)
        channel->unread_begin = channel->unread_end - length + 1; /* the text may have begun */
    return found != NULL;
}

bool channel_next(channel_t *channel, frame_t *frame) {
    const char *head = channel->unread + channel->unread_begin;
    const size_t size = channel->unread_end - channel->unread_begin;
    if (channel->from < 0 || size < FRAME_HEAD) return false;
    *frame = (frame_t){.kind = number_at(head),
                       .process = number_at(head + 4),
                       .length = number_at(head + 8),
                       .bytes = head + FRAME_HEAD};
    if (frame->length > FRAME_BYTES) { /* no frame: nothing that follows can be understood */
        close(channel->from);
        channel->from = -1;
        return false;
    }
    if (size < FRAME_HEAD + frame->length) return false;
    channel->unread_begin += FRAME_HEAD + frame->length;
    return true;
}

bool frame_numbers(const frame_t *frame, int count, int32_t numbers[]) {
    if (frame->length < (uint32_t)count * 4) return false;
    for (int i = 0; i < count; i++) numbers[i] = (int32_t)number_at(frame->bytes + 4 * i);
    return true;
}
