// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** Takes the lines of the log. */
@FunctionalInterface
public interface LogSink {
    /** How grave a line is. */
    enum Level {
        /** Something failed. */
        ERROR,
        /** Something may be wrong. */
        WARN,
        /** Something worth to know. */
        INFO,
        /** Everything else. */
        DEBUG
    }

    /**
     * Called by any thread; it must not call into dtrain. What it throws goes to the thread's handler
     * of uncaught exceptions.
     *
     * @param level how grave it is
     * @param line the text
     */
    void log(Level level, String line);
}
