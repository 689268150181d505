// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/** Columns of a table's rows, updated by a separate rule. */
public final class Segment extends RuleSettings<Segment> {
    private final long first;
    private final long count;

    /**
     * Columns [first, first + count).
     *
     * @param first the first column
     * @param count the number of columns
     */
    public Segment(long first, long count) {
        this.first = first;
        this.count = count;
    }

    @Override
    Segment self() {
        return this;
    }

    /** Writes all segments of a table, one after the other. */
    static Room write(Segment[] segments) {
        int bytes = (int) SegmentParams.bytes();
        Room room = new Room((long) bytes * segments.length);
        for (int i = 0; i < segments.length; i++) {
            SegmentParams params = new SegmentParams(room.address() + (long) i * bytes);
            params.prepare();
            params.setFirst(segments[i].first);
            params.setCount(segments[i].count);
            segments[i].write(params);
        }
        return room;
    }
}
