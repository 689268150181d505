// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** A file or connection failed: a system call, a transport, or the authentication. */
public final class ConnectionException extends DtrainException {
    private static final long serialVersionUID = 1;

    ConnectionException(Status status, String text, int rank) {
        super(status, text, rank);
    }
}
