// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/**
 * A way to run operations of an object: to wait for them, to begin them, or to prepare them for many
 * starts.
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

    /** kept: what the operation uses, until it has finished. */
    abstract R run(Post post, Object... kept);

    /** One whose result is wanted. */
    R find(Post post, Object... kept) {
        return run(post, kept);
    }

    /** One that also counts; the number is there when it is done. */
    abstract R count(Post post, Room counted);
}
