// A rank written in Java, in a job whose other ranks may be in other languages.
// SPDX-License-Identifier: Apache-2.0
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import org.dtrain.Communicator;
import org.dtrain.Consistency;
import org.dtrain.Context;
import org.dtrain.Table;
import org.dtrain.TableSettings;

final class Member {
    private static final int LENGTH = 1000;

    private static void expect(float expected, float found, String what, int index) {
        if (expected != found) {
            throw new AssertionError(what + " " + index + ": " + found + " instead of " + expected);
        }
    }

    public static void main(String[] arguments) {
        try (Context context = Context.create(); Communicator world = context.world()) {
            int rank = world.rank();
            int size = world.size();
            int ranks = size * (size + 1) / 2; // 1 + ... + size
            FloatBuffer x = ByteBuffer.allocateDirect(4 * LENGTH).order(ByteOrder.nativeOrder()).asFloatBuffer();
            for (int i = 0; i < LENGTH; i++) {
                x.put(i, rank + 1 + i);
            }
            world.allreduce(x);
            float sum = x.get(10);
            for (int i = 0; i < LENGTH; i++) {
                expect(ranks + size * i, x.get(i), "all-reduced element", i);
                x.put(i, rank + 1);
            }
            try (Table table = world.table("shared", new TableSettings().length(LENGTH)
                    .consistency(Consistency.BSP))) {
                table.push(x);
                table.clock();
                table.pull(x);
            }
            for (int i = 0; i < LENGTH; i++) {
                expect(ranks, x.get(i), "pulled element", i);
            }
            System.out.printf("Java rank %d of %d: sum %.1f pulled %.1f%n", rank, size, sum, x.get(10));
        }
    }
}
