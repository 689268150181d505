// The last rank of a job dies half-way, and the others go on without it: README.md tells how.
// SPDX-License-Identifier: Apache-2.0
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import org.dtrain.AbortedException;
import org.dtrain.Communicator;
import org.dtrain.Context;
import org.dtrain.Op;
import org.dtrain.PeerException;
import org.dtrain.TimedOutException;

final class LostRank {
    private static final int STEPS = 100;
    private static final int STEPS_OF_THE_LAST_RANK = 50;
    private static final int LENGTH = 1000;

    /** What is trained, and how many steps of it are done. */
    private static final class Model {
        private int step;
        private FloatBuffer weights = memory(LENGTH * Float.BYTES).asFloatBuffer();

        /**
         * The share stands for the gradient of this rank's data: computed anew when a step is done again.
         * The model changes only once the sum is complete.
         */
        void train(Communicator world, float share) {
            FloatBuffer gradient = memory(LENGTH * Float.BYTES).asFloatBuffer();
            for (int i = 0; i < LENGTH; i++) {
                gradient.put(i, share);
            }
            world.allreduce(gradient);
            for (int i = 0; i < LENGTH; i++) {
                weights.put(i, weights.get(i) + gradient.get(i));
            }
            step++;
        }

        /**
         * One rank may have done a step that failed on another: all take the model of the one that came
         * furthest. Before the first step all begin alike by this.
         */
        void agree(Communicator world) {
            LongBuffer furthest = memory(Long.BYTES).asLongBuffer();
            furthest.put(0, (long) step * world.size() + world.rank());
            world.allreduce(furthest, Op.MAX);
            FloatBuffer taken = memory(LENGTH * Float.BYTES).asFloatBuffer();
            taken.put(0, weights, 0, LENGTH); // this may fail, too, and leave anything in its buffer
            world.broadcast(taken, (int) (furthest.get(0) % world.size()));
            step = (int) (furthest.get(0) / world.size());
            weights = taken;
        }
    }

    private static ByteBuffer memory(int bytes) {
        return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
    }

    private static void die() throws Exception {
        new ProcessBuilder("sh", "-c", "kill -KILL " + ProcessHandle.current().pid()).start().waitFor();
        Thread.sleep(Long.MAX_VALUE);
    }

    public static void main(String[] arguments) throws Exception {
        try (Context context = Context.create()) {
            Communicator world = context.world();
            Model model = new Model();
            boolean agreed = false;
            int ownRank = world.rank();
            int last = world.size() - 1;
            while (model.step < STEPS) {
                if (ownRank == last && model.step == STEPS_OF_THE_LAST_RANK) {
                    die();
                }
                // quoted: when a rank dies
                try {
                    if (!agreed) {
                        model.agree(world); // on the step to go on from
                    }
                    agreed = true;
                    model.train(world, ownRank + 1);
                } catch (PeerException | AbortedException | TimedOutException error) {
                    Communicator smaller = world.shrink(); // all who are left call it
                    if (smaller.size() == world.size()) { // nobody is lost
                        throw error;
                    }
                    world.failed().forEach(rank ->
                            System.out.println("rank " + rank + " is lost: " + error.getMessage()));
                    world.close();
                    world = smaller;
                    agreed = false;
                }
                // quoted so far
            }
            System.out.printf("rank %d of %d: %d steps, weight %.1f%n", world.rank(), world.size(), model.step,
                    model.weights.get(LENGTH - 1));
        }
    }
}
