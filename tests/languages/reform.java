// A Java worker of an elastic job; test_reform.py says what happens to it.
// SPDX-License-Identifier: Apache-2.0
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.time.Duration;
import java.util.Optional;
import org.dtrain.Communicator;
import org.dtrain.Context;
import org.dtrain.Op;
import org.dtrain.PeerException;
import org.dtrain.Reform;
import org.dtrain.TimedOutException;

final class ReformedWorker {
    private static ByteBuffer memory() {
        return ByteBuffer.allocateDirect(Long.BYTES).order(ByteOrder.nativeOrder());
    }

    private static void addUp(Communicator world) {
        LongBuffer sum = memory().asLongBuffer().put(0, world.rank());
        world.allreduce(sum);
        System.out.printf("sum %d of %d%n", sum.get(0), world.size());
    }

    private static Optional<Communicator> reform(Communicator world, Reform how) {
        Optional<Communicator> made = world.reform(how);
        world.close();
        made.ifPresent(next -> System.out.println("changes " + next.changes()));
        return made;
    }

    private static Communicator grow(Communicator world) {
        try {
            world.reform(new Reform().minSize(9).timeout(Duration.ofSeconds(1)));
        } catch (TimedOutException error) {
            System.out.println("too few: " + error.getMessage());
        }
        IntBuffer there = memory().asIntBuffer().limit(1);
        while (there.get(0) == 0) {
            there.put(0, world.newcomers());
            world.allreduce(there, Op.MIN);
        }
        return reform(world, new Reform().minSize(3)).orElseThrow();
    }

    public static void main(String[] arguments) {
        try (Context context = Context.create()) {
            Communicator world = context.world();
            if (!System.getenv("DTRAIN_RANK").equals("new")) {
                world = grow(world);
            }
            addUp(world);
            try {
                while (true) {
                    world.barrier();
                }
            } catch (PeerException error) {
                world = reform(world, new Reform().minSize(2)).orElseThrow();
            }
            addUp(world);
            Reform last = world.rank() == 1 ? new Reform().leave() : new Reform();
            System.out.println(reform(world, last).isPresent() ? "alone" : "left");
        }
    }
}
