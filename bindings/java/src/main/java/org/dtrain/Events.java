// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.nio.ByteBuffer;

/** Memory for events of the C API, whose layout is frozen (calls.h checks it). */
final class Events {
    private static final int BYTES = 64;
    private final Room room;
    private final ByteBuffer bytes;
    private final int max;

    Events(int max) {
        this.max = max;
        room = new Room((long) BYTES * max);
        bytes = room.bytes();
    }

    int max() {
        return max;
    }

    long address() {
        return room.address();
    }

    long request(int index) {
        return bytes.getLong(index * BYTES + 8);
    }

    long bytes(int index) {
        return bytes.getLong(index * BYTES + 16);
    }

    int status(int index) {
        return bytes.getInt(index * BYTES + 24);
    }

    int peer(int index) {
        return bytes.getInt(index * BYTES + 28);
    }

    long version(int index) {
        return bytes.getLong(index * BYTES + 32);
    }
}
