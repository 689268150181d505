// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** The wrong state: the object is closed, the operation has not finished, ... */
public final class StateException extends DtrainException {
    private static final long serialVersionUID = 1;

    StateException(Status status, String text, int rank) {
        super(status, text, rank);
    }
}
