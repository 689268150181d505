// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/**
 * A way to run operations of an object: wait for them, start them, or prepare them for many starts.
 */
abstract class Way<R> {
    /** Posts the operation with parameters; returns its request, or 0 when it is done. */
    interface Post {
        long with(long params);
    }

    final Handle owner;
    final Parameters parameters;

    Way(Handle owner, Parameters parameters) {
        this.owner = owner;
        this.parameters = parameters;
    }

    /** kept: objects that the operation uses until it has finished. */
    abstract R run(Post post, Object... kept);

    /** Runs an operation whose result is needed. */
    R find(Post post, Object... kept) {
        return run(post, kept);
    }

    /** Runs an operation that also writes a count, which is valid when it is done. */
    abstract R count(Post post, Room counted);
}
