// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** Converts failed calls of the C API to exceptions. */
final class Failures {
    private Failures() {
    }

    /** Returns the call's result, or throws its error. */
    static long check(long result) {
        if (result < 0) {
            throw last((int) result);
        }
        return result;
    }

    /** The error of this thread's last call. */
    static DtrainException last(int status) {
        return of(status, Text.read(Native::dtrain_last_error), -1);
    }

    static DtrainException of(int number, String text, int rank) {
        Status status = Status.of(number);
        return status.exception(status == Status.UNKNOWN ? "status " + number + ": " + text : text, rank);
    }
}
