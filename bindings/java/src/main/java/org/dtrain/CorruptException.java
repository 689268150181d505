// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** A file is damaged. */
public final class CorruptException extends DtrainException {
    private static final long serialVersionUID = 1;

    CorruptException(Status status, String text, int rank) {
        super(status, text, rank);
    }
}
