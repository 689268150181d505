// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** A message is longer than the buffer for it. */
public final class TruncatedException extends DtrainException {
    private static final long serialVersionUID = 1;

    TruncatedException(Status status, String text, int rank) {
        super(status, text, rank);
    }
}
