// Spark in Java: tasks of a barrier stage compute the gradients of their samples and add them up, in rounds.
//
//     javac -cp "$SPARK_HOME/jars/*:dtrain.jar" -d classes SparkDigits.java && jar cf digits.jar -C classes .
//     spark-submit --jars dtrain.jar --class SparkDigits digits.jar TASKS FOLDER_OF_DATA
//
// SPDX-License-Identifier: Apache-2.0
import java.io.IOException;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.SparkSession;
import org.dtrain.Op;
import org.dtrain.RecordReader;
import org.dtrain.Rounds;
import scala.Function1;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag$;

/** Softmax regression. */
public final class SparkDigits {
    private static final int PIXELS = 64;
    private static final int CLASSES = 10;
    private static final int ROUNDS = 300;
    private static final double RATE = 0.5;

    private record Sample(double[] image, int label) {
    }

    /** What each task does. Serializable: Spark sends it. */
    private interface Task extends Function1<Iterator<Integer>, Iterator<double[]>>, Serializable {
    }

    private SparkDigits() {
    }

    /** Images (0 to 1, and a 1) and labels: tf.train.Examples that all have the same form. */
    private static List<Sample> load(String folder, String pattern, int shard, int shards) throws IOException {
        List<Path> files = new ArrayList<>();
        try (var found = Files.newDirectoryStream(Path.of(folder), pattern)) {
            found.forEach(files::add);
        }
        Collections.sort(files);
        List<Sample> samples = new ArrayList<>();
        try (RecordReader reader = new RecordReader(files, shard, shards, 0)) {
            for (byte[] record = reader.next(); record != null; record = reader.next()) {
                int first = new String(record, StandardCharsets.ISO_8859_1).indexOf("image") + 5 + 6; // lengths
                double[] image = new double[PIXELS + 1];
                for (int i = 0; i < PIXELS; i++) {
                    image[i] = record[first + i] / 16.0;
                }
                image[PIXELS] = 1;
                samples.add(new Sample(image, record[record.length - 1]));
            }
        }
        return samples;
    }

    private static double[] predict(double[] model, double[] image) {
        double[] scores = new double[CLASSES];
        double total = 0;
        for (int c = 0; c < CLASSES; c++) {
            for (int i = 0; i <= PIXELS; i++) {
                scores[c] += model[c * (PIXELS + 1) + i] * image[i];
            }
            scores[c] = Math.exp(scores[c]);
            total += scores[c];
        }
        for (int c = 0; c < CLASSES; c++) {
            scores[c] /= total;
        }
        return scores;
    }

    /** The sum over the samples, and at the end how many there are. */
    private static double[] gradient(double[] model, List<Sample> samples) {
        double[] sum = new double[model.length + 1];
        for (Sample sample : samples) {
            double[] error = predict(model, sample.image());
            error[sample.label()] -= 1;
            for (int c = 0; c < CLASSES; c++) {
                for (int i = 0; i <= PIXELS; i++) {
                    sum[c * (PIXELS + 1) + i] += error[c] * sample.image()[i];
                }
            }
        }
        sum[model.length] = samples.size();
        return sum;
    }

    private static double[] train(int tasks, String folder) throws IOException {
        BarrierTaskContext context = BarrierTaskContext.get();
        List<Sample> samples = load(folder, "train-*.tfrecord", context.partitionId(), tasks);
        try (Rounds rounds = Rounds.join(context.partitionId(), tasks, context::allGather)) {
            return rounds.run(new double[CLASSES * (PIXELS + 1)], ROUNDS, Op.SUM,
                    (round, model) -> gradient(model, samples),
                    (model, sum) -> {
                        for (int i = 0; i < model.length; i++) {
                            model[i] -= RATE * sum[i] / sum[model.length];
                        }
                    });
        }
    }

    private static double accuracy(double[] model, List<Sample> samples) {
        int right = 0;
        for (Sample sample : samples) {
            double[] scores = predict(model, sample.image());
            int best = 0;
            for (int c = 0; c < CLASSES; c++) {
                best = scores[c] > scores[best] ? c : best;
            }
            right += best == sample.label() ? 1 : 0;
        }
        return (double) right / samples.size();
    }

    public static void main(String[] arguments) throws IOException {
        int tasks = Integer.parseInt(arguments[0]);
        String folder = arguments[1];
        List<Integer> ranks = Collections.nCopies(tasks, 0);
        try (SparkSession spark = SparkSession.builder().appName("digits").getOrCreate();
                JavaSparkContext context = new JavaSparkContext(spark.sparkContext())) {
            Task task = nothing -> {
                try {
                    return CollectionConverters.asScala(List.of(train(tasks, folder)).iterator());
                } catch (IOException error) {
                    throw new java.io.UncheckedIOException(error);
                }
            };
            List<double[]> models = context.parallelize(ranks, tasks).rdd().barrier()
                    .mapPartitions(task, false, ClassTag$.MODULE$.<double[]>apply(double[].class))
                    .toJavaRDD().collect();
            double accuracy = accuracy(models.get(0), load(folder, "test.tfrecord", 0, 1));
            System.out.printf("spark, in Java: %d tasks, %.1f %% of the test set%n", models.size(), 100 * accuracy);
            if (accuracy < 0.93) {
                System.exit(1);
            }
        }
    }
}
