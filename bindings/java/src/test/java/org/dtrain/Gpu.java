// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.nio.Buffer;

/** Memory of a GPU for tests, by the driver for tests (tests/fakecuda). */
final class Gpu {
    static {
        System.load(System.getProperty("gpu"));
    }

    private Gpu() {
    }

    static native long allocate(long bytes);

    static native void free(long address);

    static native void write(long address, Buffer from, long bytes);

    static native void read(Buffer into, long address, long bytes);

    static native long stream();

    static native void fillLater(long stream, long address, int value, long bytes);
}
