// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Which ranks average with which, made by {@link Communicator#graph}; see docs/DECENTRALIZED.md.
 */
public final class Graph extends BlockingGraph implements AutoCloseable {
    /** Predefined graphs. */
    public enum Kind {
        /** The ranks before and after. */
        RING,
        /** A torus, as square as possible. */
        GRID,
        /** From ranks 1, 2, 4, ... before. */
        EXPONENTIAL,
        /** All ranks. */
        FULL;

        int number() {
            return ordinal() + 1;
        }

        /**
         * Finds a value by its name, in upper or lower case.
         *
         * @param name for example "ring"
         * @return the value
         * @throws IllegalArgumentException no value has this name; the text lists all names
         */
        public static Kind of(String name) {
            return Names.find(Kind.class, name, Map.of());
        }
    }

    /**
     * A neighbor.
     *
     * @param rank its rank
     * @param weight of its values
     */
    public record Neighbor(int rank, double weight) {
    }

    /** This rank's part of a graph that the program defines. */
    public static final class Settings {
        static final int CUSTOM = 5;
        static final long ROWS_ONLY = 1;
        static final long SIGNED = 2;
        private final int[] in;
        private final double[] weights;
        private int[] out;
        private double selfWeight;
        private long flags;

        /**
         * In-neighbors with Metropolis-Hastings weights; all edges must go both ways.
         *
         * @param ranks ranks whose values this rank gets, not itself
         */
        public Settings(int... ranks) {
            in = Arguments.given(ranks, "ranks").clone();
            weights = null;
        }

        /**
         * In-neighbors with weights.
         *
         * @param selfWeight of this rank's values
         * @param neighbors ranks whose values this rank gets, not itself
         */
        public Settings(double selfWeight, List<Neighbor> neighbors) {
            this.selfWeight = selfWeight;
            for (Neighbor neighbor : Arguments.given(neighbors, "neighbors")) {
                Arguments.given(neighbor, "a neighbor");
            }
            in = neighbors.stream().mapToInt(Neighbor::rank).toArray();
            weights = neighbors.stream().mapToDouble(Neighbor::weight).toArray();
        }

        /**
         * The ranks that get this rank's values; checked against what they give.
         *
         * @param ranks other ranks
         * @return this
         */
        public Settings out(int... ranks) {
            out = Arguments.given(ranks, "ranks").clone();
            return this;
        }

        /**
         * Columns need not sum to one; the same on all ranks.
         *
         * @return this
         */
        public Settings rowsOnly() {
            flags |= ROWS_ONLY;
            return this;
        }

        /**
         * Weights may be negative; the same on all ranks.
         *
         * @return this
         */
        public Settings signed() {
            flags |= SIGNED;
            return this;
        }

        private long create(long comm) {
            return Graph.create(comm, CUSTOM, params -> {
                params.setFlags(flags);
                params.setIn_count(in.length);
                params.setSelf_weight(selfWeight);
                List<Room> kept = new ArrayList<>();
                kept.add(Room.of(in));
                params.setIn_neighbors(kept.get(0).address());
                if (weights != null) {
                    Room room = new Room(8L * weights.length);
                    room.bytes().asDoubleBuffer().put(weights);
                    kept.add(room);
                    params.setIn_weights(room.address());
                }
                if (out != null) {
                    Room room = Room.of(out);
                    kept.add(room);
                    params.setOut_count(out.length);
                    params.setOut_neighbors(room.address());
                }
                return kept;
            });
        }
    }

    private static final int IN = 1;
    private static final int OUT = 2;
    private final Context context;
    private final Handle handle;

    private Graph(Context context, Handle handle) {
        super(context, handle, new Parameters(), neighbors(handle, IN).size(), neighbors(handle, OUT).size());
        this.context = context;
        this.handle = handle;
    }

    static Graph create(Context context, Handle comm, Kind kind) {
        return of(context, comm, of -> create(of, kind.number(), params -> List.of()));
    }

    static Graph create(Context context, Handle comm, Settings settings) {
        return of(context, comm, settings::create);
    }

    /**
     * The same operations with parameters.
     *
     * @param parameters copied during this call
     * @return the operations
     */
    public BlockingGraph using(Parameters parameters) {
        return new BlockingGraph(context, handle, Parameters.copyOf(parameters), incoming(), outgoing());
    }

    /**
     * The ranks whose values this rank gets.
     *
     * @return in ascending order
     */
    public List<Neighbor> inNeighbors() {
        return neighbors(handle, IN);
    }

    /**
     * The ranks that get this rank's values.
     *
     * @return in ascending order
     */
    public List<Neighbor> outNeighbors() {
        return neighbors(handle, OUT);
    }

    /**
     * The weight of this rank's own values.
     *
     * @return the weight
     */
    public double selfWeight() {
        return number(Native::dtrain_graph_self_weight);
    }

    /**
     * How fast averages converge: k of them leave about (1 - gap)^k of the distance to the mean.
     *
     * @return 1 for FULL
     */
    public double spectralGap() {
        return number(Native::dtrain_graph_spectral_gap);
    }

    /** Frees the graph. */
    @Override
    public void close() {
        handle.close();
    }

    private interface Filling {
        List<Room> fill(GraphParams params);
    }

    private interface Number {
        long write(long graph, long address);
    }

    private double number(Number call) {
        Room room = new Room(8);
        handle.call(graph -> call.write(graph, room.address()));
        return room.bytes().getDouble(0);
    }

    private static Graph of(Context context, Handle comm, Handle.Call create) {
        return new Graph(context, comm.make("graph", create, Native::dtrain_graph_destroy));
    }

    private static long create(long comm, int kind, Filling filling) {
        Room room = new Room(GraphParams.bytes());
        GraphParams params = new GraphParams(room);
        params.prepare();
        params.setKind(kind);
        List<Room> kept = filling.fill(params);
        try {
            return Native.dtrain_graph_create(comm, room.address());
        } finally {
            room.keep();
            kept.forEach(Room::keep);
        }
    }

    private static List<Neighbor> neighbors(Handle handle, int direction) {
        int count = (int) handle.call(graph -> Native.dtrain_graph_neighbors(graph, direction, 0, 0, 0));
        Room ranks = new Room(4L * count);
        Room weights = new Room(8L * count);
        handle.call(graph -> Native.dtrain_graph_neighbors(graph, direction, ranks.address(),
                weights.address(), count));
        List<Neighbor> found = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            found.add(new Neighbor(ranks.bytes().getInt(4 * i), weights.bytes().getDouble(8 * i)));
        }
        return found;
    }
}
