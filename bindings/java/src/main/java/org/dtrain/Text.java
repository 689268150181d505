// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** Converts texts to and from C: UTF-8 with a zero at the end. */
final class Text {
    /** A function of the C API that copies a text to memory, and returns how long it is. */
    interface Source {
        long copy(long address, long bytes);
    }

    private Text() {
    }

    static byte[] bytes(String text) {
        if (text == null) {
            return null;
        }
        if (text.indexOf('\0') >= 0) {
            throw new IllegalArgumentException("a text contains the character 0");
        }
        return (text + '\0').getBytes(StandardCharsets.UTF_8);
    }

    static String of(byte[] bytes) {
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }

    static String of(ByteBuffer bytes) {
        return StandardCharsets.UTF_8.decode(bytes).toString();
    }

    /** Reads the whole text, which may become longer meanwhile. */
    static String read(Source source) {
        for (long room = 4096;;) {
            Room memory = new Room(room);
            long length = source.copy(memory.address(), room);
            if (length < room) {
                return of(memory.bytes().limit((int) length));
            }
            room = 2 * length;
        }
    }

    /** Memory that holds a text, for structs with a text in them. */
    static Room room(String text) {
        byte[] bytes = bytes(text);
        Room room = new Room(bytes.length);
        room.bytes().duplicate().put(bytes);
        return room;
    }
}
