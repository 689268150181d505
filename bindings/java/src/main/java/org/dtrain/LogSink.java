// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** Receives the lines of the log. */
@FunctionalInterface
public interface LogSink {
    /** The level of a line. */
    enum Level {
        /** Something failed. */
        ERROR,
        /** Something may be wrong. */
        WARN,
        /** Something worth knowing. */
        INFO,
        /** Everything else. */
        DEBUG
    }

    /**
     * Called by any thread; must not call dtrain. Its exceptions go to the thread's handler of uncaught
     * exceptions.
     *
     * @param level its level
     * @param line the text
     */
    void log(Level level, String line);
}
