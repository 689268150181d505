// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The numbers of enums and constants are those of dtrain.h. */
@Tag("unit")
class ConstantsTest {
    private static Map<String, Integer> read() throws IOException {
        String header = Files.readString(Path.of(System.getProperty("source"), "include/dtrain.h"));
        Map<String, Integer> found = new HashMap<>();
        Matcher matcher = Pattern.compile("DTRAIN_([A-Z0-9_]+) = (\\d+)|X\\((?:ERR_)?(\\w+), (-?\\d+), "
                + "|define DTRAIN_(\\w+) +(?:UINT\\d+_C)?\\((-?\\d[x\\da-f]*)\\)").matcher(header);
        while (matcher.find()) {
            for (int group = 1; group < 7; group += 2) {
                if (matcher.group(group) != null) {
                    found.put((group == 3 ? "STATUS_" : "") + matcher.group(group),
                            Integer.decode(matcher.group(group + 1)));
                }
            }
        }
        return found;
    }

    @Test
    void numbersAreThoseOfTheHeader() throws IOException {
        Map<String, Integer> header = read();
        for (Status status : Status.values()) {
            if (status != Status.UNKNOWN) {
                assertEquals(header.get("STATUS_" + status), status.number(), status.name());
            }
        }
        long statuses = header.keySet().stream().filter(name -> name.startsWith("STATUS_")).count();
        assertEquals(statuses, Status.values().length - 1);
        for (DType dtype : DType.values()) {
            assertEquals(header.get(dtype.name()), dtype.number(), dtype.name());
            assertEquals(Native.dtrain_dtype_size(dtype.number()), dtype.bytes());
            assertEquals(dtype, DType.of(dtype.number()));
        }
        for (Op op : Op.values()) {
            assertEquals(header.get(op.name()), op.number(), op.name());
        }
        for (Rule rule : Rule.values()) {
            assertEquals(header.get("RULE_" + rule), rule.number(), rule.name());
        }
        for (Consistency consistency : Consistency.values()) {
            assertEquals(header.get(consistency.name()), consistency.number(), consistency.name());
        }
        for (Initial initial : Initial.values()) {
            assertEquals(header.get("INITIAL_" + initial), initial.number(), initial.name());
        }
        for (NotFinite notFinite : NotFinite.values()) {
            assertEquals(header.get("NOT_FINITE_" + notFinite), notFinite.number(), notFinite.name());
        }
        for (Steps steps : Steps.values()) {
            assertEquals(header.get("STEPS_" + steps), steps.number(), steps.name());
        }
        for (MeanOver meanOver : MeanOver.values()) {
            assertEquals(header.get("MEAN_" + meanOver), meanOver.number(), meanOver.name());
        }
        for (TableMemory memory : TableMemory.values()) {
            assertEquals(header.get("MEM_" + memory), memory.number(), memory.name());
        }
        for (Schedule schedule : Schedule.values()) {
            assertEquals(header.get("SCHEDULE_" + schedule), schedule.number(), schedule.name());
        }
        for (Placement placement : Placement.values()) {
            assertEquals(header.get("PLACE_" + placement), placement.number(), placement.name());
        }
        for (Compressor.Kind kind : Compressor.Kind.values()) {
            assertEquals(header.get("COMPRESS_" + kind), kind.number(), kind.name());
        }
        for (Graph.Kind kind : Graph.Kind.values()) {
            assertEquals(header.get("GRAPH_" + kind), kind.number(), kind.name());
        }
        for (LogSink.Level level : LogSink.Level.values()) {
            assertEquals(header.get("LOG_" + level), level.ordinal() + 1);
        }
        assertEquals(header.get("ANY_RANK"), Collectives.ANY_RANK);
        assertEquals(header.get("OP_PERSISTENT"), Parameters.PERSISTENT);
        assertEquals(header.get("OP_AWAITED"), Parameters.AWAITED);
        assertEquals(header.get("OP_FACTORS"), Parameters.FACTORS);
        int[] given = {RuleSettings.LEARNING_RATE, RuleSettings.MOMENTUM, RuleSettings.BETA1,
            RuleSettings.BETA2, RuleSettings.EPSILON, RuleSettings.RHO, RuleSettings.TRUST,
            RuleSettings.FTRL_BETA, RuleSettings.COMPENSATION, RuleSettings.ACCUMULATOR};
        String[] names = {"LEARNING_RATE", "MOMENTUM", "BETA1", "BETA2", "EPSILON", "RHO", "TRUST",
            "FTRL_BETA", "COMPENSATION", "ACCUMULATOR"};
        for (int i = 0; i < names.length; i++) {
            assertEquals(header.get("GIVEN_" + names[i]), given[i], names[i]);
        }
    }

    @Test
    void texts() {
        assertEquals("DTRAIN_ERR_PEER", Native.dtrain_status_name(Status.PEER.number()));
        assertNotNull(Context.version());
        assertEquals("grün \uD83D\uDE00", Text.of(Text.bytes("grün \uD83D\uDE00")).replace("\0", ""));
    }

    @Test
    void whatIsGeneratedIsHidden() throws Exception {
        Path jar = Path.of(Context.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        int hidden = 0;
        try (JarFile file = new JarFile(jar.toFile())) {
            for (JarEntry entry : file.stream().toList()) {
                String name = entry.getName();
                assertFalse(name.contains("SWIG"), name);
                if (name.matches("org/dtrain/(Native\\w*|\\w+Params|GradientsCounters).class")) {
                    Class<?> type = Class.forName(name.replace('/', '.').replace(".class", ""), false,
                            Context.class.getClassLoader());
                    assertFalse(Modifier.isPublic(type.getModifiers()), name);
                    hidden++;
                }
            }
        }
        assertTrue(hidden > 15, hidden + " classes");
    }
}
