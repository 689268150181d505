// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/**
 * Computes the counts of operations and checks that they fit the buffers, since the C API does not know the
 * buffers' lengths.
 */
final class Shapes {
    private Shapes() {
    }

    static IllegalArgumentException refuse(String format, Object... arguments) {
        return new IllegalArgumentException(String.format(format, arguments));
    }

    static void sameType(Span a, Span b) {
        if (a.dtype() != b.dtype()) {
            throw refuse("the buffers have elements of %s and %s; both must have the same", a.dtype(),
                    b.dtype());
        }
    }

    /** Both have the same number of elements. */
    static long alike(Span send, Span recv) {
        sameType(send, recv);
        if (send.count() != recv.count()) {
            throw refuse("the input has %d elements, the output %d; both need the same", send.count(),
                    recv.count());
        }
        return send.count();
    }

    /** The elements of a block, where `one` holds one block and `whole` holds `blocks` blocks. */
    static long blocks(Span one, Span whole, int blocks) {
        sameType(one, whole);
        if (whole.count() != one.count() * blocks) {
            throw refuse("one buffer has %d elements and the other %d; it must have %d blocks of the first size",
                    one.count(), whole.count(), blocks);
        }
        return one.count();
    }

    /** Both hold `blocks` blocks. */
    static long exchanged(Span send, Span recv, int blocks) {
        if (alike(send, recv) % blocks != 0) {
            throw refuse("the buffers have %d elements, which are not %d equal blocks", send.count(),
                    blocks);
        }
        return send.count() / blocks;
    }

    /**
     * Checks that the blocks of all ranks, at displs or one after the other, lie within the buffer.
     */
    static void within(Span whole, long[] counts, long[] displs, int size) {
        if (counts == null || counts.length != size || displs != null && displs.length != size) {
            throw refuse("counts and displacements must be %d numbers, one for each rank", size);
        }
        long packed = 0;
        for (int i = 0; i < size; i++) {
            long first = displs == null ? packed : displs[i];
            long left = whole.count() - first;
            if (counts[i] < 0 || first < 0 || left < counts[i]) {
                throw refuse("the block of rank %d, %d elements from %d on, does not fit into the buffer "
                        + "of %d", i, counts[i], first, whole.count());
            }
            packed += counts[i];
        }
    }

    /**
     * Checks this rank's block, and, on the ranks that have it (else null), the buffer of all
     * blocks.
     */
    static void ragged(Span own, Span whole, long[] counts, long[] displs, int size, int rank) {
        if (counts == null || counts.length != size) {
            throw refuse("counts must be %d numbers, one for each rank", size);
        }
        for (long count : counts) {
            if (count < 0) {
                throw refuse("a count cannot be %d elements", count);
            }
        }
        if (own.count() != counts[rank]) {
            throw refuse("the buffer of this rank's block has %d elements, counts say %d", own.count(),
                    counts[rank]);
        }
        if (whole != null) {
            sameType(own, whole);
            within(whole, counts, displs, size);
        }
    }

    /** Checks that there are `width` values for each key. */
    static long rows(Span keys, Span values, long width) {
        if (keys.count() != 0 ? values.count() % keys.count() != 0 || values.count() / keys.count() != width
                : values.count() != 0) {
            throw refuse("%d keys need %d values each, not %d in all", keys.count(), width, values.count());
        }
        return keys.count();
    }
}
