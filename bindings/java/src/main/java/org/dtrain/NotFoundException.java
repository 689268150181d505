// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** There is no such option, checkpoint, ... */
public final class NotFoundException extends DtrainException {
    private static final long serialVersionUID = 1;

    NotFoundException(Status status, String text, int rank) {
        super(status, text, rank);
    }
}
