// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** In use: another thread is in a call of the object, the operation has not finished, ... */
public final class BusyException extends DtrainException {
    private static final long serialVersionUID = 1;

    BusyException(Status status, String text, int rank) {
        super(status, text, rank);
    }
}
