// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** This library, transport or element type does not support the call. */
public final class UnsupportedException extends DtrainException {
    private static final long serialVersionUID = 1;

    UnsupportedException(Status status, String text, int rank) {
        super(status, text, rank);
    }
}
