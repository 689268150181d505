// SPDX-License-Identifier: Apache-2.0
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import org.dtrain.*;

class Average {
    public static void main(String[] arguments) {
        try (Context context = Context.create(new Options());
                Communicator world = context.world()) { // who am I: the environment
            FloatBuffer gradient = ByteBuffer.allocateDirect(8).order(ByteOrder.nativeOrder()).asFloatBuffer();
            gradient.put(0, 1).put(1, world.rank());
            world.allreduce(gradient, Op.AVG); // in place
            System.out.println("rank " + world.rank() + " of " + world.size() + ": " + gradient.get(1));
        }
    }
}
