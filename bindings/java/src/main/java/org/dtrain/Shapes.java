// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/**
 * How many elements operations take from and bring to their buffers. The C API cannot know how long
 * these are, so whatever it will read or write is checked here.
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

    /** Both hold as much. */
    static long alike(Span send, Span recv) {
        sameType(send, recv);
        if (send.count() != recv.count()) {
            throw refuse("the input has %d elements, the output %d; both need the same", send.count(),
                    recv.count());
        }
        return send.count();
    }

    /** Elements of each of so many equal blocks of `whole`, one of which the other buffer holds. */
    static long blocks(Span one, Span whole, int blocks) {
        sameType(one, whole);
        if (whole.count() != one.count() * blocks) {
            throw refuse("one buffer has %d elements, the other %d, not %d blocks of this many",
                    one.count(), whole.count(), blocks);
        }
        return one.count();
    }

    /** Both hold so many blocks. */
    static long exchanged(Span send, Span recv, int blocks) {
        if (alike(send, recv) % blocks != 0) {
            throw refuse("the buffers have %d elements, which are not %d equal blocks", send.count(),
                    blocks);
        }
        return send.count() / blocks;
    }

    /** Blocks of all ranks, where displs say or one after the other, lie within the buffer. */
    static void within(Span whole, long[] counts, long[] displs, int size) {
        if (counts == null || counts.length != size || displs != null && displs.length != size) {
            throw refuse("counts, and displacements, are %d numbers, one for each rank", size);
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

    /** This rank's block, and on who has them (else null) those of all. */
    static void ragged(Span own, Span whole, long[] counts, long[] displs, int size, int rank) {
        if (counts == null || counts.length != size) {
            throw refuse("counts are %d numbers, one for each rank", size);
        }
        for (long count : counts) {
            if (count < 0) {
                throw refuse("a count of %d elements", count);
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

    /** A row of so many values for each key. */
    static long rows(Span keys, Span values, long width) {
        if (keys.count() != 0 ? values.count() % keys.count() != 0 || values.count() / keys.count() != width
                : values.count() != 0) {
            throw refuse("%d keys need %d values each, not %d in all", keys.count(), width, values.count());
        }
        return keys.count();
    }
}
