// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.NotSerializableException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.Buffer;
import java.nio.LongBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Passes null, 0 or a name as every argument of every call. */
@Tag("unit")
class ArgumentsTest {
    /** Arguments that may be null: "Class.method argument". */
    private static final Set<String> MAY_BE_NULL = Set.of("Collectives.allgatherv 3", "Collectives.gatherv 3",
            "Collectives.scatterv 3", "Collectives.alltoallv 2", "Collectives.alltoallv 5",
            "Communicator.abort 0", "Context.setLog 0");

    private final Map<Class<?>, Object> samples = new LinkedHashMap<>();
    private final List<String> wrong = new ArrayList<>();
    private int tried;

    private Object sample(Class<?> type) {
        if (type == long[].class) {
            return new long[] {1};
        }
        if (type.isArray()) {
            return Array.newInstance(type.getComponentType(), 0);
        }
        if (type == LongBuffer.class) {
            return Buffers.longs(1);
        }
        if (type == Buffer.class) {
            return Buffers.floats(1);
        }
        return Map.<Class<?>, Object>of(int.class, 0, long.class, 0L, double.class, 0.5, boolean.class, false,
                String.class, "x", Duration.class, Duration.ofSeconds(1), List.class, List.of(), Path.class,
                Path.of("x")).getOrDefault(type, type.isEnum() ? type.getEnumConstants()[0]
                        : samples.get(type));
    }

    private void nulls(Executable of, Object target) {
        Class<?>[] types = of.getParameterTypes();
        for (int i = 0; i < types.length; i++) {
            String where = of.getDeclaringClass().getSimpleName() + "."
                    + (of instanceof Method ? of.getName() : "new") + " " + i;
            if (types[i].isPrimitive() || MAY_BE_NULL.contains(where)) {
                continue;
            }
            Object[] arguments = new Object[types.length];
            for (int j = 0; j < types.length; j++) {
                arguments[j] = j == i ? null : sample(types[j]);
            }
            tried++;
            try {
                if (of instanceof Method method) {
                    method.invoke(target, arguments);
                } else {
                    ((Constructor<?>) of).newInstance(arguments);
                }
                wrong.add(where + ": null is taken");
            } catch (InvocationTargetException error) {
                Throwable found = error.getCause();
                if (!(found instanceof IllegalArgumentException)
                        || !found.getMessage().matches("(?s).*(is null|needs a buffer|counts|does not fit).*")) {
                    wrong.add(where + ": " + found);
                }
            } catch (ReflectiveOperationException error) {
                wrong.add(where + ": " + error);
            }
        }
    }

    @Test
    void nullsAreRefusedByName(@TempDir Path folder) throws Exception {
        try (Context context = Context.create(); Communicator world = context.world();
                Table table = world.table("t", new TableSettings().length(4).rule(Rule.MOMENTUM));
                Gradients queue = world.gradients(new Gradients.Settings());
                Compressor compressor = world.compressor(new Compressor.Settings(Compressor.Kind.F16, 1));
                Graph graph = world.graph(Graph.Kind.RING);
                Persistent persistent = world.prepare().barrier();
                RecordWriter writer = new RecordWriter(folder.resolve("x"))) {
            Request request = world.start().barrier();
            for (Object one : List.of(context, world, table, queue, compressor, graph, persistent, writer,
                    request, new Options(), new Parameters(), new TableSettings(), new Segment(0, 1),
                    new Gradients.Settings(), new Compressor.Settings(Compressor.Kind.F16, 1),
                    new Graph.Settings(), new Checkpoint(table), Join.byEnvironment(),
                    table.states().get(0))) {
                samples.put(one.getClass(), one);
            }
            samples.put(AllGather.class, (AllGather) List::of);
            samples.put(PlaceFunction.class, (PlaceFunction) (first, count, servers) -> 0);
            for (Object one : List.copyOf(samples.values())) {
                Class<?> type = one.getClass();
                if (type.isRecord() || type.isSynthetic() || type.isHidden()) {
                    continue;
                }
                for (Method method : type.getMethods()) {
                    if (method.getDeclaringClass() != Object.class && !method.isBridge()) {
                        nulls(method, Modifier.isStatic(method.getModifiers()) ? null : one);
                    }
                }
                for (Constructor<?> constructor : type.getConstructors()) {
                    nulls(constructor, null);
                }
            }
            for (Constructor<?> constructor : RecordReader.class.getConstructors()) {
                nulls(constructor, null);
            }
            for (Class<?> named : List.of(Op.class, Rule.class, DType.class, Consistency.class, Initial.class,
                    NotFinite.class, Placement.class, Compressor.Kind.class, Graph.Kind.class)) {
                nulls(named.getMethod("of", String.class), null);
            }
            request.await();
        }
        Files.deleteIfExists(Path.of("x"));
        assertEquals(List.of(), wrong);
        assertTrue(tried > 100, tried + " tried");
    }

    @Test
    void zerosAreNotTakenForDefaults() {
        List<org.junit.jupiter.api.function.Executable> zeros = List.of(
                () -> new Parameters().timeout(Duration.ZERO), () -> new Parameters().weight(0),
                () -> new Parameters().prescale(Double.NaN), () -> new Parameters().weight(-1),
                () -> new TableSettings().quorum(0), () -> new TableSettings().maxBytes(0),
                () -> new TableSettings().virtualNodes(0),
                () -> new Compressor.Settings(Compressor.Kind.TOPK, 1).ratio(0),
                () -> new Gradients.Settings().cycle(Duration.ZERO), () -> Join.at("x").size(0),
                () -> Join.at("x").timeout(Duration.ZERO),
                () -> new Checkpoint().every(Duration.ofSeconds(-1)));
        for (var zero : zeros) {
            assertNotNull(assertThrows(IllegalArgumentException.class, zero).getMessage());
        }
        String text = assertThrows(IllegalArgumentException.class, () -> new TableSettings().maxBytes(0))
                .getMessage();
        assertTrue(text.contains("maxBytes of 0; it must be more than 0"), text);
    }

    @Test
    void names() {
        assertEquals(Op.SUM, Op.of("sum"));
        assertEquals(Op.AVG, Op.of("Mean"));
        assertEquals(Rule.ADAGRAD, Rule.of("adagrad"));
        assertEquals(Rule.ADAGRAD_ROWS, Rule.of("adagrad-rows"));
        assertEquals(DType.BF16, DType.of("bfloat16"));
        assertEquals(DType.F32, DType.of("f32"));
        assertEquals(Consistency.BSP, Consistency.of("bsp"));
        assertEquals(Initial.NORMAL, Initial.of("normal"));
        assertEquals(Placement.ROUND_ROBIN, Placement.of("round_robin"));
        assertEquals(Compressor.Kind.ONEBIT, Compressor.Kind.of("1bit"));
        assertEquals(Graph.Kind.RING, Graph.Kind.of("ring"));
        String text = assertThrows(IllegalArgumentException.class, () -> Op.of("summ")).getMessage();
        assertTrue(text.contains("Op has no \"summ\"; it is one of sum, avg, "), text);
        for (Op op : Op.values()) {
            assertEquals(op, Op.of(op.name()));
        }
    }

    @Test
    void optionsThatAreDurations() {
        assertEquals("1500ms", new Options().set("op.timeout", Duration.ofMillis(1500)).get("op.timeout")
                .replace("1500000000ns", "1500ms"));
        assertThrows(IllegalArgumentException.class,
                () -> new Options().set("op.timeout", Duration.ofSeconds(-1)));
    }

    @Test
    void longWaits() {
        try (Context context = Context.create(); Communicator world = context.world();
                Persistent prepared = world.prepare().barrier()) {
            Duration longest = Duration.ofSeconds(Long.MAX_VALUE);
            world.start().barrier().await(longest);
            prepared.start();
            prepared.await(longest);
            assertThrows(IllegalArgumentException.class, () -> prepared.await(Duration.ofSeconds(-1)));
            world.using(new Parameters().timeout(longest)).barrier();
            try (Table table = world.table("t", new TableSettings().length(1))) {
                DtrainException error = assertThrows(DtrainException.class,
                        () -> new Checkpoint(table).every(longest).timeout(longest).save(1));
                assertTrue(error.getMessage().contains("checkpoint.directory"), error.getMessage());
            }
        }
    }

    /** Handles belong to the process and are not serializable; exceptions are. */
    @Test
    void serialized() throws Exception {
        try (Context context = Context.create(); Communicator world = context.world()) {
            for (Object handle : List.of(context, world, world.start(), world.start().barrier())) {
                NotSerializableException error = assertThrows(NotSerializableException.class,
                        () -> write(handle));
                assertTrue(error.getMessage().startsWith("org.dtrain."), error.getMessage());
            }
            assertFalse(Cloneable.class.isAssignableFrom(Communicator.class));
            DtrainException error = assertThrows(InvalidException.class,
                    () -> world.broadcast(Buffers.floats(1), 5));
            DtrainException copy = (DtrainException) new ObjectInputStream(
                    new ByteArrayInputStream(write(error))).readObject();
            assertSame(Status.INVALID, copy.status());
            assertEquals(error.getMessage(), copy.getMessage());
        }
    }

    private static byte[] write(Object object) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        new ObjectOutputStream(bytes).writeObject(object);
        return bytes.toByteArray();
    }
}
