// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.List;

/**
 * Settings of a table: {@code new TableSettings().length(1000).rule(Rule.SGD).learningRate(0.1)}. Unset ones
 * have their defaults. docs/PARAMETER_SERVER.md describes each.
 */
public final class TableSettings extends RuleSettings<TableSettings> {
    private DType dtype = DType.F32;
    private long length;
    private int dim;
    private Consistency consistency = Consistency.ASYNC;
    private int staleness;
    private int quorum;
    private boolean reproducible;
    private Op aggregate;
    private double initial;
    private long rowLength;
    private double compensation;
    private Initial distribution = Initial.CONSTANT;
    private double spread;
    private long seed;
    private long maxBytes;
    private DType storageDtype;
    private DType wireDtype;
    private NotFinite notFinite;
    private Steps steps;
    private MeanOver meanOver;
    private Schedule schedule;
    private long warmupSteps;
    private long decaySteps;
    private double decay;
    private TableMemory memory;
    private Placement placement;
    private int virtualNodes;
    private long placementBlock;
    private long keyCount;
    private long splitBytes;
    private String function;
    private Segment[] segments = {};
    private int[] weights = {};
    private PlaceFunction place;

    /** All settings unset. */
    public TableSettings() {
    }

    @Override
    TableSettings self() {
        return this;
    }

    /**
     * The type of the caller's values.
     *
     * @param value F32 by default
     * @return this
     */
    public TableSettings dtype(DType value) {
        dtype = Arguments.given(value, "dtype");
        return this;
    }

    /**
     * Makes a dense table.
     *
     * @param value elements
     * @return this
     */
    public TableSettings length(long value) {
        length = value;
        return this;
    }

    /**
     * Makes a sparse table, of rows by 64-bit keys.
     *
     * @param value elements of a row
     * @return this
     */
    public TableSettings dim(int value) {
        dim = value;
        return this;
    }

    /**
     * When pushes are applied.
     *
     * @param value ASYNC by default
     * @return this
     */
    public TableSettings consistency(Consistency value) {
        consistency = Arguments.given(value, "consistency");
        return this;
    }

    /**
     * How many clocks workers may be apart under SSP.
     *
     * @param value clocks
     * @return this
     */
    public TableSettings staleness(int value) {
        staleness = value;
        return this;
    }

    /**
     * How many workers' pushes make a step under QUORUM.
     *
     * @param value 1 to all
     * @return this
     */
    public TableSettings quorum(int value) {
        quorum = Arguments.positive(value, "quorum");
        return this;
    }

    /**
     * Makes sums in the order of ranks, so that two runs give the same bits (BSP).
     *
     * @param value whether to do it
     * @return this
     */
    public TableSettings reproducible(boolean value) {
        reproducible = value;
        return this;
    }

    /**
     * How pushes of workers are aggregated under BSP and QUORUM.
     *
     * @param value SUM or AVG
     * @return this
     */
    public TableSettings aggregate(Op value) {
        aggregate = Arguments.given(value, "aggregate");
        return this;
    }

    /**
     * The value of elements before the first push.
     *
     * @param value 0 by default
     * @return this
     */
    public TableSettings initial(double value) {
        initial = value;
        return this;
    }

    /**
     * The length of rows of a dense table, over which rules compute norms.
     *
     * @param value elements of a row
     * @return this
     */
    public TableSettings rowLength(long value) {
        rowLength = value;
        return this;
    }

    /**
     * Lambda of DC_SGD.
     *
     * @param value 0.04 by default
     * @return this
     */
    public TableSettings compensation(double value) {
        say(COMPENSATION);
        compensation = value;
        return this;
    }

    /**
     * The values of a sparse table's rows before their first push.
     *
     * @param value CONSTANT by default
     * @return this
     */
    public TableSettings distribution(Initial value) {
        distribution = Arguments.given(value, "distribution");
        return this;
    }

    /**
     * The spread of UNIFORM and NORMAL.
     *
     * @param value see {@link Initial}
     * @return this
     */
    public TableSettings spread(double value) {
        spread = value;
        return this;
    }

    /**
     * Seed of UNIFORM and NORMAL.
     *
     * @param value any number
     * @return this
     */
    public TableSettings seed(long value) {
        seed = value;
        return this;
    }

    /**
     * Memory of a sparse table on each server.
     *
     * @param value more than 0; option ps.memory by default
     * @return this
     */
    public TableSettings maxBytes(long value) {
        maxBytes = Arguments.positive(value, "maxBytes");
        return this;
    }

    /**
     * The type in which servers store an F32 table; or F32 for a table of F16 or BF16.
     *
     * @param value F16, BF16 or I8; F32
     * @return this
     */
    public TableSettings storageDtype(DType value) {
        storageDtype = Arguments.given(value, "storageDtype");
        return this;
    }

    /**
     * The type in which pushes and pulls of an F32 table travel.
     *
     * @param value F16, BF16 or I8
     * @return this
     */
    public TableSettings wireDtype(DType value) {
        wireDtype = Arguments.given(value, "wireDtype");
        return this;
    }

    /**
     * How pushes that contain a NaN or an infinity are treated.
     *
     * @param value TAKE by default
     * @return this
     */
    public TableSettings notFinite(NotFinite value) {
        notFinite = Arguments.given(value, "notFinite");
        return this;
    }

    /**
     * The count of updates that rules use.
     *
     * @param value OWN by default
     * @return this
     */
    public TableSettings steps(Steps value) {
        steps = Arguments.given(value, "steps");
        return this;
    }

    /**
     * The workers that a mean counts, with {@link Op#AVG}.
     *
     * @param value WORKERS by default
     * @return this
     */
    public TableSettings meanOver(MeanOver value) {
        meanOver = Arguments.given(value, "meanOver");
        return this;
    }

    /**
     * Where servers keep the values and the rule's state.
     *
     * @param value HOST by default
     * @return this
     */
    public TableSettings memory(TableMemory value) {
        memory = Arguments.given(value, "memory");
        return this;
    }

    /**
     * The learning rate as a function of the number of the table's update.
     *
     * @param value CONSTANT by default
     * @return this
     */
    public TableSettings schedule(Schedule value) {
        schedule = Arguments.given(value, "schedule");
        return this;
    }

    /**
     * Updates in which the learning rate rises to its full value.
     *
     * @param value 0, none, by default
     * @return this
     */
    public TableSettings warmupSteps(long value) {
        warmupSteps = value;
        return this;
    }

    /**
     * Length of schedules other than CONSTANT.
     *
     * @param value updates, at least 1
     * @return this
     */
    public TableSettings decaySteps(long value) {
        decaySteps = value;
        return this;
    }

    /**
     * Final factor of LINEAR and COSINE, or factor per step of EXPONENTIAL and STAIRCASE.
     *
     * @param value LINEAR, COSINE: at least 0, 0 by default; else more than 0
     * @return this
     */
    public TableSettings decay(double value) {
        decay = value;
        return this;
    }

    /**
     * Which servers hold the table's parts.
     *
     * @param value RANGE of a dense table, HASH of a sparse one, by default
     * @return this
     */
    public TableSettings placement(Placement value) {
        placement = Arguments.given(value, "placement");
        return this;
    }

    /**
     * Virtual nodes of CONSISTENT.
     *
     * @param value more than 0; 256 by default
     * @return this
     */
    public TableSettings virtualNodes(int value) {
        virtualNodes = Arguments.positive(value, "virtualNodes");
        return this;
    }

    /**
     * Elements of a block of a dense table, which lies on one server.
     *
     * @param value more than 0; about 65536 by default
     * @return this
     */
    public TableSettings placementBlock(long value) {
        placementBlock = Arguments.positive(value, "placementBlock");
        return this;
    }

    /**
     * Keys of a sparse table with RANGE or USER are below this.
     *
     * @param value more than 0; any by default
     * @return this
     */
    public TableSettings keyCount(long value) {
        keyCount = Arguments.positive(value, "keyCount");
        return this;
    }

    /**
     * Tables of ROUND_ROBIN and GREEDY that take more bytes lie on all servers.
     *
     * @param value more than 0; none does by default
     * @return this
     */
    public TableSettings splitBytes(long value) {
        splitBytes = Arguments.positive(value, "splitBytes");
        return this;
    }

    /**
     * The name of the servers' function, with FUNCTION.
     *
     * @param value the name that they have registered
     * @return this
     */
    public TableSettings function(String value) {
        function = Arguments.given(value, "function");
        return rule(Rule.FUNCTION);
    }

    /**
     * Separate rules for columns of the rows.
     *
     * @param value all columns, in order
     * @return this
     */
    public TableSettings segments(Segment... value) {
        for (Segment segment : Arguments.given(value, "segments")) {
            Arguments.given(segment, "a segment");
        }
        segments = value.clone();
        return this;
    }

    /**
     * How much each server holds relative to the others.
     *
     * @param value one for each server
     * @return this
     */
    public TableSettings weights(int... value) {
        weights = Arguments.given(value, "weights").clone();
        return this;
    }

    /**
     * The function that chooses the server of each block.
     *
     * @param value the same on all workers
     * @return this
     */
    public TableSettings place(PlaceFunction value) {
        place = Arguments.given(value, "place");
        return placement(Placement.USER);
    }

    DType dtype() {
        return dtype;
    }

    int dim() {
        return dim;
    }

    /** Writes them to a struct of the C API; `kept` gets the memory that must live as long. */
    Room write(List<Room> kept) {
        Room room = new Room(TableParams.bytes());
        TableParams params = new TableParams(room);
        params.prepare();
        write(params);
        params.setDtype(dtype.number());
        params.setLength(length);
        params.setDim(dim);
        params.setConsistency(consistency.number());
        params.setStaleness(staleness);
        params.setQuorum(quorum);
        params.setReproducible(reproducible ? 1 : 0);
        params.setAggregate(aggregate == null ? 0 : aggregate.number());
        params.setInitial(initial);
        params.setRow_length(rowLength);
        params.setCompensation(compensation);
        params.setDistribution(dim == 0 ? 0 : distribution.number());
        params.setSpread(spread);
        params.setSeed(seed);
        params.setMax_bytes(maxBytes);
        params.setStorage_dtype(number(storageDtype));
        params.setWire_dtype(number(wireDtype));
        params.setNot_finite(notFinite == null ? 0 : notFinite.number());
        params.setSteps(steps == null ? 0 : steps.number());
        params.setMean_over(meanOver == null ? 0 : meanOver.number());
        params.setMemory(memory == null ? 0 : memory.number());
        params.setSchedule(schedule == null ? 0 : schedule.number());
        params.setWarmup_steps(warmupSteps);
        params.setDecay_steps(decaySteps);
        params.setDecay(decay);
        params.setPlacement(placement == null ? 0 : placement.number());
        params.setVirtual_nodes(virtualNodes);
        params.setPlacement_block(placementBlock);
        params.setKey_count(keyCount);
        params.setSplit_bytes(splitBytes);
        if (function != null) {
            params.setFunction(keep(kept, Text.room(function)));
        }
        if (segments.length > 0) {
            params.setSegments(keep(kept, Segment.write(segments)));
            params.setSegment_count(segments.length);
        }
        if (weights.length > 0) {
            params.setWeights(keep(kept, Room.of(weights)));
            params.setWeight_count(weights.length);
        }
        kept.add(room);
        return room;
    }

    /** Creates the table; an exception of the place function is the cause of the failure. */
    long create(long comm, String name) {
        List<Room> kept = new ArrayList<>();
        Room room = write(kept);
        Callbacks.Place places = place == null ? null : new Callbacks.Place(place);
        long number = places == null ? 0 : Callbacks.add(places);
        TableParams params = new TableParams(room);
        params.setPlace(number);
        params.setPlace_arg(number);
        try {
            return Native.dtrain_table_create(comm, name, room.address());
        } catch (DtrainException error) {
            throw places == null ? error : places.explain(error);
        } finally {
            Callbacks.remove(number);
            Reference.reachabilityFence(kept);
        }
    }

    private static long keep(List<Room> kept, Room room) {
        kept.add(room);
        return room.address();
    }

    private static int number(DType dtype) {
        return dtype == null ? 0 : dtype.number();
    }
}
