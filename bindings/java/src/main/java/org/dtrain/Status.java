// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** How an operation ended; the numbers are those of the C API. */
public enum Status {
    /** Success. */
    OK(0),
    /** Not finished. */
    IN_PROGRESS(1),
    /** Invalid argument. */
    INVALID(-1, InvalidException::new),
    /** Out of memory. */
    NO_MEMORY(-2),
    /** Not supported. */
    UNSUPPORTED(-3, UnsupportedException::new),
    /** Version mismatch. */
    VERSION(-4),
    /** Wrong state: closed, not finished, ... */
    STATE(-5, StateException::new),
    /** Resource busy. */
    BUSY(-6, BusyException::new),
    /** Timed out. */
    TIMEOUT(-7, TimedOutException::new),
    /** Canceled. */
    CANCELED(-8, CanceledException::new),
    /** Buffer too small. */
    TRUNCATED(-9, TruncatedException::new),
    /** Not found. */
    NOT_FOUND(-10, NotFoundException::new),
    /** Limit exceeded. */
    LIMIT(-11, LimitException::new),
    /** Corrupt data. */
    CORRUPT(-12, CorruptException::new),
    /** Bad configuration. */
    CONFIG(-13, InvalidException::new),
    /** System call failed. */
    IO(-20, ConnectionException::new),
    /** Transport failed. */
    TRANSPORT(-21, ConnectionException::new),
    /** Authentication failed. */
    AUTH(-22, ConnectionException::new),
    /** A peer failed. */
    PEER(-40, PeerException::new),
    /** The communicator was aborted. */
    ABORTED(-41, AbortedException::new),
    /** Ranks made different calls. */
    MISMATCH(-42, MismatchException::new),
    /** The group went on without this rank. */
    FENCED(-43, FencedException::new),
    /** Device failed. */
    DEVICE(-60),
    /** A bug in dtrain. */
    INTERNAL(-99),
    /** A status of a newer library that this package does not know. */
    UNKNOWN(Integer.MIN_VALUE);

    interface Kind {
        DtrainException make(Status status, String text, int rank);
    }

    private final int number;
    private final Kind kind;

    Status(int number) {
        this(number, DtrainException::new);
    }

    Status(int number, Kind kind) {
        this.number = number;
        this.kind = kind;
    }

    /**
     * The number of the C API.
     *
     * @return 0, or less for failures
     */
    public int number() {
        return number;
    }

    /** The exception for this status. */
    DtrainException exception(String text, int rank) {
        return kind.make(this, text, rank);
    }

    static Status of(int number) {
        for (Status status : values()) {
            if (status.number == number) {
                return status;
            }
        }
        return UNKNOWN;
    }
}
