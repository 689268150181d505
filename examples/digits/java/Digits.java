// Handwritten digits in Java: dtrain adds up the workers' gradients, which stay where they are.
//
//     dtrain-run -n 4 -- java -cp dtrain.jar examples/digits/java/Digits.java              by all-reduce
//     dtrain-run -n 4 -s 1 -- java -cp dtrain.jar examples/digits/java/Digits.java table   on parameter servers
//
// SPDX-License-Identifier: Apache-2.0
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.function.Consumer;
import org.dtrain.Communicator;
import org.dtrain.Consistency;
import org.dtrain.Context;
import org.dtrain.Op;
import org.dtrain.RecordReader;
import org.dtrain.Rule;
import org.dtrain.Table;
import org.dtrain.TableSettings;

/** Trains a classifier. */
final class Digits {
    private static final Path DATA = Path.of("examples", "digits", "data");
    private static final int EPOCHS = 15;
    private static final int BATCH = 32;
    private static final float RATE = 0.1f;
    private static final float MOMENTUM = 0.9f;

    private record Sample(float[] image, int label) {
    }

    /** Images (0 to 1) and labels: tf.train.Examples that all have the same form. */
    private static List<Sample> load(String pattern, int shard, int shards) throws IOException {
        List<Path> files = new ArrayList<>();
        try (var found = Files.newDirectoryStream(DATA, pattern)) {
            found.forEach(files::add);
        }
        Collections.sort(files);
        List<Sample> samples = new ArrayList<>();
        try (RecordReader reader = new RecordReader(files, shard, shards, 0)) {
            for (byte[] record = reader.next(); record != null; record = reader.next()) {
                int first = new String(record, StandardCharsets.ISO_8859_1).indexOf("image") + 5 + 6; // lengths
                float[] image = new float[Model.PIXELS];
                for (int i = 0; i < image.length; i++) {
                    image[i] = record[first + i] / 16f;
                }
                samples.add(new Sample(image, record[record.length - 1]));
            }
        }
        return samples;
    }

    /** One hidden layer, tanh and softmax; all parameters in one vector. */
    private static final class Model {
        static final int PIXELS = 64;
        static final int HIDDEN = 64;
        static final int CLASSES = 10;
        static final int BIAS1 = PIXELS * HIDDEN;
        static final int WEIGHTS2 = BIAS1 + HIDDEN;
        static final int BIAS2 = WEIGHTS2 + HIDDEN * CLASSES;
        final FloatBuffer vector = floats(BIAS2 + CLASSES);
        final FloatBuffer gradient = floats(BIAS2 + CLASSES);
        private final float[] hidden = new float[HIDDEN];
        private final float[] scores = new float[CLASSES];

        Model() {
            Random random = new Random(1); // the same on every worker
            for (int i = 0; i < vector.capacity(); i++) {
                vector.put(i, (float) random.nextGaussian() / 10);
            }
        }

        private static FloatBuffer floats(int count) {
            return ByteBuffer.allocateDirect(4 * count).order(ByteOrder.nativeOrder()).asFloatBuffer();
        }

        /** Probabilities in `scores`; returns the likeliest class. */
        int predict(float[] image) {
            for (int h = 0; h < HIDDEN; h++) {
                float sum = vector.get(BIAS1 + h);
                for (int i = 0; i < PIXELS; i++) {
                    sum += image[i] * vector.get(i * HIDDEN + h);
                }
                hidden[h] = (float) Math.tanh(sum);
            }
            int best = 0;
            float total = 0;
            for (int c = 0; c < CLASSES; c++) {
                scores[c] = vector.get(BIAS2 + c);
                for (int h = 0; h < HIDDEN; h++) {
                    scores[c] += hidden[h] * vector.get(WEIGHTS2 + h * CLASSES + c);
                }
                best = scores[c] > scores[best] ? c : best;
            }
            float highest = scores[best];
            for (int c = 0; c < CLASSES; c++) {
                scores[c] = (float) Math.exp(scores[c] - highest);
                total += scores[c];
            }
            for (int c = 0; c < CLASSES; c++) {
                scores[c] /= total;
            }
            return best;
        }

        /** The mean over the samples, in `gradient`. */
        void computeGradient(List<Sample> samples) {
            for (int i = 0; i < gradient.capacity(); i++) {
                gradient.put(i, 0);
            }
            for (Sample sample : samples) {
                predict(sample.image);
                scores[sample.label] -= 1;
                for (int c = 0; c < CLASSES; c++) {
                    scores[c] /= samples.size();
                    add(BIAS2 + c, scores[c]);
                }
                for (int h = 0; h < HIDDEN; h++) {
                    float back = 0;
                    for (int c = 0; c < CLASSES; c++) {
                        back += vector.get(WEIGHTS2 + h * CLASSES + c) * scores[c];
                        add(WEIGHTS2 + h * CLASSES + c, hidden[h] * scores[c]);
                    }
                    back *= 1 - hidden[h] * hidden[h];
                    add(BIAS1 + h, back);
                    for (int i = 0; i < PIXELS; i++) {
                        add(i * HIDDEN + h, sample.image[i] * back);
                    }
                }
            }
        }

        private void add(int index, float value) {
            gradient.put(index, gradient.get(index) + value);
        }
    }

    /** Runs a step on each batch: as many on every worker, since ranks call collectives together. */
    private static void forBatches(Communicator world, List<Sample> samples, Consumer<List<Sample>> step) {
        FloatBuffer fewest = Model.floats(1).put(0, samples.size());
        world.allreduce(fewest, Op.MIN);
        List<Sample> order = new ArrayList<>(samples);
        Random random = new Random(world.rank());
        for (int epoch = 0; epoch < EPOCHS; epoch++) {
            Collections.shuffle(order, random);
            for (int first = 0; first + BATCH <= fewest.get(0); first += BATCH) {
                step.accept(order.subList(first, first + BATCH));
            }
        }
    }

    private static void trainByAllreduce(Communicator world, Model model, List<Sample> samples) {
        float[] velocity = new float[model.vector.capacity()];
        forBatches(world, samples, batch -> {
            model.computeGradient(batch);
            world.allreduce(model.gradient, Op.AVG);
            for (int i = 0; i < velocity.length; i++) {
                velocity[i] = MOMENTUM * velocity[i] + model.gradient.get(i);
                model.vector.put(i, model.vector.get(i) - RATE * velocity[i]);
            }
        });
    }

    private static void trainWithTable(Communicator world, Model model, List<Sample> samples) {
        try (Table table = world.table("digits", new TableSettings().length(model.vector.capacity())
                .rule(Rule.MOMENTUM).learningRate(RATE).momentum(MOMENTUM).aggregate(Op.AVG)
                .consistency(Consistency.BSP))) {
            table.set(model.vector, 0);
            forBatches(world, samples, batch -> {
                table.pull(model.vector);
                model.computeGradient(batch);
                table.push(model.gradient);
                table.clock();
            });
            table.pull(model.vector);
        }
    }

    public static void main(String[] arguments) throws IOException {
        boolean withTable = arguments.length > 0 && arguments[0].equals("table");
        Model model = new Model();
        try (Context context = Context.create(); Communicator world = context.world()) {
            List<Sample> samples = load("train-*.tfrecord", world.rank(), world.size());
            if (withTable) {
                trainWithTable(world, model, samples);
            } else {
                trainByAllreduce(world, model, samples);
            }
            if (world.rank() == 0) {
                List<Sample> test = load("test.tfrecord", 0, 1);
                double right = test.stream().filter(sample -> model.predict(sample.image) == sample.label).count();
                System.out.printf("%d workers, %s: %.1f %% of the test set%n", world.size(),
                        withTable ? "with a table" : "by all-reduce", 100 * right / test.size());
                if (right / test.size() < 0.95) {
                    throw new AssertionError("that is less than 95 %");
                }
            }
        }
    }
}
