// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.time.Duration;
import java.util.function.LongUnaryOperator;

/**
 * How to join a job: {@code context.join(Join.at("tcp://host:port").size(4).rank(0))}. Unset values come
 * from the environment, as dtrain-run, torchrun or TF_CONFIG set it.
 */
public final class Join {
    private final String rendezvous;
    private final AllGather allGather;
    private int size;
    private int rank;
    private int servers;
    private int index;
    private long timeout; // ns; 0: the option's

    private Join(String rendezvous, AllGather allGather) {
        this.rendezvous = rendezvous;
        this.allGather = allGather;
    }

    /**
     * Everything from the environment; without one a job of one rank.
     *
     * @return a new object
     */
    public static Join byEnvironment() {
        return new Join(null, null);
    }

    /**
     * Joins at an address or file.
     *
     * @param rendezvous "tcp://host:port", where rank 0 listens, or "file:///dir/name", where it
     *     writes its address
     * @return a new object
     */
    public static Join at(String rendezvous) {
        return new Join(Arguments.given(rendezvous, "rendezvous"), null);
    }

    /**
     * Joins by a function of the program that exchanges bytes. {@link #size} and {@link #rank} are required.
     *
     * @param allGather the exchange
     * @return a new object
     */
    public static Join by(AllGather allGather) {
        return new Join("oob", Arguments.given(allGather, "allGather"));
    }

    /**
     * The number of workers.
     *
     * @param size of all of them
     * @return this
     */
    public Join size(int size) {
        this.size = Arguments.positive(size, "size");
        return this;
    }

    /**
     * This process has no rank yet: it waits until the workers of a running elastic job take it in.
     *
     * @return this
     */
    public Join newcomer() {
        this.size = -1; // DTRAIN_NEWCOMER
        return this;
    }

    /**
     * This worker's rank.
     *
     * @param rank from 0
     * @return this
     */
    public Join rank(int rank) {
        this.rank = rank;
        return this;
    }

    /**
     * The number of dedicated parameter servers.
     *
     * @param servers 0 or more
     * @return this
     */
    public Join servers(int servers) {
        this.servers = servers;
        return this;
    }

    /**
     * Which server this is, for {@link Context#serve}.
     *
     * @param index from 0
     * @return this
     */
    public Join index(int index) {
        this.index = index;
        return this;
    }

    /**
     * How long to wait for the other ranks.
     *
     * @param timeout instead of the option join.timeout
     * @return this
     */
    public Join timeout(Duration timeout) {
        this.timeout = Durations.ofTimeout(timeout, "timeout");
        return this;
    }

    /**
     * How this process would join: as what, where, and what says so or stands against it; and what
     * each launcher's environment says here.
     *
     * @return a JSON text
     */
    public String describe() {
        Room room = new Room(CommParams.bytes());
        fill(new CommParams(room));
        String text = Text.read((address, bytes) ->
                Native.dtrain_join_describe(rendezvous, room.address(), address, bytes));
        room.keep();
        return text;
    }

    /** What the environment starts a process as. */
    public enum Role {
        /** Joins by {@link Context#join}. */
        WORKER(1),
        /** Joins by {@link Context#serve}. */
        SERVER(2),
        /** No member of the job: it follows the job's checkpoints. */
        EVALUATOR(3);

        private final int number;

        Role(int number) {
            this.number = number;
        }
    }

    /**
     * As what the environment starts this process.
     *
     * @return {@link Role#WORKER} where nothing tells
     */
    public static Role role() {
        Room room = new Room(4);
        Native.dtrain_join_role(room.address());
        int number = room.bytes().getInt(0);
        for (Role role : Role.values()) {
            if (role.number == number) {
                return role;
            }
        }
        throw new IllegalStateException("unknown role " + number);
    }

    private CommParams fill(CommParams params) {
        params.prepare();
        params.setSize(size);
        params.setRank(rank);
        params.setServers(servers);
        params.setTimeout_ns(timeout);
        return params;
    }

    /** Creates a communicator of the C API. */
    long run(long context) {
        Room room = new Room(CommParams.bytes());
        CommParams params = fill(new CommParams(room));
        return exchanging(number -> {
            params.setOob(number);
            params.setOob_arg(number);
            long made = Native.dtrain_comm_create(context, rendezvous, room.address());
            room.keep();
            return made;
        });
    }

    /** Creates a server of the C API. */
    long serve(long context) {
        Room room = new Room(ServerParams.bytes());
        ServerParams params = new ServerParams(room);
        params.prepare();
        params.setSize(size);
        params.setServers(servers);
        params.setIndex(index);
        params.setTimeout_ns(timeout);
        return exchanging(number -> {
            params.setOob(number);
            params.setOob_arg(number);
            long made = Native.dtrain_server_create(context, rendezvous, room.address());
            room.keep();
            return made;
        });
    }

    /** creation: called with the number of the exchange, or 0. */
    private long exchanging(LongUnaryOperator creation) {
        if (allGather == null) {
            return creation.applyAsLong(0);
        }
        Callbacks.Exchange exchange = new Callbacks.Exchange(allGather, size + servers);
        long number = Callbacks.add(exchange);
        try {
            return creation.applyAsLong(number);
        } catch (DtrainException error) {
            throw exchange.explain(error);
        } finally {
            Callbacks.remove(number);
        }
    }
}
