// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.time.Duration;
import java.util.List;

/**
 * Writes tables to the folder of the option checkpoint.directory, and restores them. One worker calls it.
 * {@code new Checkpoint(weights, biases).everySteps(100).save(step)}.
 */
public final class Checkpoint {
    private static final long NEWEST = -1;
    private final List<Table> tables;
    private int everySteps;
    private long every;   // ns; 0: at each call
    private long timeout; // ns; 0: the option's

    /**
     * A checkpoint of these tables.
     *
     * @param tables of one job, with different names
     */
    public Checkpoint(Table... tables) {
        for (Table table : Arguments.given(tables, "tables")) {
            Arguments.given(table, "a table");
        }
        this.tables = List.of(tables);
    }

    /**
     * Saves only when this many steps have passed since the last checkpoint.
     *
     * @param steps the number of steps
     * @return this
     */
    public Checkpoint everySteps(int steps) {
        everySteps = steps;
        return this;
    }

    /**
     * Saves only when this time has passed since the last checkpoint.
     *
     * @param time more than 0
     * @return this
     */
    public Checkpoint every(Duration time) {
        every = Durations.of(time, "every");
        return this;
    }

    /**
     * How long a call may take.
     *
     * @param timeout instead of the option op.timeout
     * @return this
     */
    public Checkpoint timeout(Duration timeout) {
        this.timeout = Durations.ofTimeout(timeout, "timeout");
        return this;
    }

    /**
     * Writes the tables.
     *
     * @param step its number
     * @return false: no checkpoint was due
     */
    public boolean save(long step) {
        Room saved = new Room(4);
        run((list, count, params) ->
                Native.dtrain_checkpoint_save(list, count, step, params, saved.address()));
        return saved.bytes().getInt(0) != 0;
    }

    /**
     * Restores the tables from the newest checkpoint.
     *
     * @return its step
     * @throws NotFoundException there is no checkpoint
     */
    public long restore() {
        return restore(NEWEST);
    }

    /**
     * Restores the tables.
     *
     * @param step the checkpoint's step
     * @return the step
     * @throws NotFoundException there is no checkpoint of this step
     */
    public long restore(long step) {
        Room found = new Room(8);
        run((list, count, params) ->
                Native.dtrain_checkpoint_restore(list, count, step, params, found.address()));
        return found.bytes().getLong(0);
    }

    /**
     * Waits until there is a checkpoint of all tables.
     *
     * @return the step of the newest
     */
    public long await() {
        return await(NEWEST);
    }

    /**
     * Waits until the newest checkpoint of all tables is another one; for an evaluator, which has made
     * the tables in a job of its own, and then restores it.
     *
     * @param after the step of the last checkpoint that was read
     * @return the step of the newest
     */
    public long await(long after) {
        Room found = new Room(8);
        run((list, count, params) ->
                Native.dtrain_checkpoint_wait(list, count, after, params, found.address()));
        return found.bytes().getLong(0);
    }

    private interface Call {
        long with(long tables, int count, long params);
    }

    private void run(Call call) {
        Room room = new Room(CheckpointParams.bytes());
        CheckpointParams params = new CheckpointParams(room);
        params.prepare();
        params.setEvery_steps(everySteps);
        params.setEvery_ns(every);
        params.setTimeout_ns(timeout);
        int entered = 0;
        try {
            for (; entered < tables.size(); entered++) {
                tables.get(entered).handle().enter();
            }
            Room list = Room.of(tables.stream().mapToLong(table -> table.handle().address).toArray());
            call.with(list.address(), tables.size(), room.address());
            list.keep();
        } finally {
            while (entered-- > 0) {
                tables.get(entered).handle().leave();
            }
            room.keep();
        }
    }
}
