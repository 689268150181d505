// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** Something that this library, transport or type of element does not support. */
public final class UnsupportedException extends DtrainException {
    private static final long serialVersionUID = 1;

    UnsupportedException(Status status, String text, int rank) {
        super(status, text, rank);
    }
}
