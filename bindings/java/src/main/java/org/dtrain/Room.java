// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Zeroed memory that C reads or writes. It lives as long as the object: see keep(). */
final class Room {
    private final ByteBuffer bytes;
    private final long address;

    Room(long size) {
        bytes = ByteBuffer.allocateDirect(Math.toIntExact(size)).order(ByteOrder.nativeOrder());
        address = NativeJNI.address(bytes);
    }

    /** Numbers of 64 bits. */
    static Room of(long... numbers) {
        Room room = new Room(8L * numbers.length);
        room.bytes.asLongBuffer().put(numbers);
        return room;
    }

    /** Numbers of 32 bits. */
    static Room of(int... numbers) {
        Room room = new Room(4L * numbers.length);
        room.bytes.asIntBuffer().put(numbers);
        return room;
    }

    ByteBuffer bytes() {
        return bytes;
    }

    long address() {
        return address;
    }

    /** Keeps the memory alive until here; call it when C has returned. */
    void keep() {
        Reference.reachabilityFence(this);
    }
}
