// Measures the cost of a call from Java, as bench/calls.c does for C.
// SPDX-License-Identifier: Apache-2.0
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.Arrays;
import org.dtrain.Communicator;
import org.dtrain.Context;

/** Prints "Java alone NS" or "Java 1MiB US". */
final class Calls {
    private static final int ROUNDS = 51;
    private static final int CALLS = 20000;
    private static final int REDUCTIONS = 20;
    private static final int ELEMENTS = 1 << 18;

    public static void main(String[] arguments) {
        try (Context context = Context.create(); Communicator world = context.world()) {
            boolean alone = world.size() == 1;
            int calls = alone ? CALLS : REDUCTIONS;
            FloatBuffer x = ByteBuffer.allocateDirect(alone ? 4 : 4 * ELEMENTS).order(ByteOrder.nativeOrder())
                    .asFloatBuffer();
            FloatBuffer first = x.slice(0, 1);
            for (int i = 0; i < CALLS; i++) { // until the machine has compiled it
                world.allreduce(first);
            }
            double[] rounds = new double[ROUNDS];
            for (int round = 0; round < ROUNDS; round++) {
                world.barrier();
                long begin = System.nanoTime();
                for (int i = 0; i < calls; i++) {
                    world.allreduce(x);
                }
                rounds[round] = (double) (System.nanoTime() - begin) / calls;
            }
            Arrays.sort(rounds);
            if (alone) {
                System.out.printf("Java alone %.0f%n", rounds[ROUNDS / 2]);
            } else if (world.rank() == 0) {
                System.out.printf("Java 1MiB %.1f%n", rounds[ROUNDS / 2] / 1e3);
            }
        }
    }
}
