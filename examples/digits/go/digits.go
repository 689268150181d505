// Handwritten digits in Go: a small network, whose workers' gradients dtrain adds up.
//
//	dtrain-run -n 4 -- digits examples/digits/data               by all-reduce
//	dtrain-run -n 4 -s 1 -- digits examples/digits/data table    on parameter servers
//
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"math/rand"
	"os"
	"path/filepath"

	"dtrain.org/dtrain"
)

const (
	pixels, hidden, classes = 64, 64, 10
	epochs, batch           = 15, 32
	rate, momentum          = 0.1, 0.9
)

type sample struct {
	image [pixels]float32 // 0 to 1
	label int
}

// load reads tf.train.Examples, which all have the same form.
func load(pattern string, shard, shards int) (samples []sample, err error) {
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	reader, err := dtrain.OpenReader(paths, dtrain.ReaderParams{Shard: shard, Shards: shards})
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	for {
		record, err := reader.Next()
		if err == io.EOF {
			return samples, nil
		}
		if err != nil {
			return nil, err
		}
		name := []byte("image")
		image := bytes.Index(record, name) + len(name) + 6 // four lengths
		s := sample{label: int(record[len(record)-1])}
		for i := range s.image {
			s.image[i] = float32(record[image+i]) / 16
		}
		samples = append(samples, s)
	}
}

func trainByAllReduce(ctx context.Context, world *dtrain.Comm, model *model, samples []sample) error {
	velocity := make([]float32, len(model.vector))
	return forBatches(ctx, world, samples, func(batch []sample) error {
		model.computeGradient(batch)
		if err := dtrain.AllReduce(ctx, world, model.gradient, dtrain.Avg); err != nil {
			return err
		}
		for i, g := range model.gradient {
			velocity[i] = momentum*velocity[i] + g
			model.vector[i] -= rate * velocity[i]
		}
		return nil
	})
}

func trainWithTable(ctx context.Context, world *dtrain.Comm, model *model, samples []sample) error {
	table, err := dtrain.NewTable[float32](world, "digits", dtrain.TableParams{
		Length: uint64(len(model.vector)), Rule: dtrain.RuleMomentum, LearningRate: rate,
		Momentum: momentum, Aggregate: dtrain.Avg, Consistency: dtrain.BSP})
	if err != nil {
		return err
	}
	if err := table.Set(ctx, 0, model.vector); err != nil {
		return err
	}
	err = forBatches(ctx, world, samples, func(batch []sample) error {
		if _, err := table.Pull(ctx, 0, model.vector); err != nil {
			return err
		}
		model.computeGradient(batch)
		if _, err := table.Push(ctx, 0, model.gradient); err != nil {
			return err
		}
		return table.Clock(ctx)
	})
	if err == nil {
		_, err = table.Pull(ctx, 0, model.vector)
	}
	return err
}

// forBatches runs step as often on every worker: ranks call collectives together.
func forBatches(ctx context.Context, world *dtrain.Comm, samples []sample,
	step func(batch []sample) error) error {
	fewest := []int64{int64(len(samples))}
	if err := dtrain.AllReduce(ctx, world, fewest, dtrain.Min); err != nil {
		return err
	}
	random := rand.New(rand.NewSource(int64(world.Rank())))
	for epoch := 0; epoch < epochs; epoch++ {
		random.Shuffle(len(samples), func(i, j int) { samples[i], samples[j] = samples[j], samples[i] })
		for first := 0; first+batch <= int(fewest[0]); first += batch {
			if err := step(samples[first : first+batch]); err != nil {
				return err
			}
		}
	}
	return nil
}

func run(data, mode string) error {
	job, err := dtrain.NewContext()
	if err != nil {
		return err
	}
	defer job.Close()
	world, err := job.World()
	if err != nil {
		return err
	}
	samples, err := load(data+"/train-*.tfrecord", world.Rank(), world.Size())
	if err != nil {
		return err
	}
	train := trainByAllReduce
	if mode == "table" {
		train = trainWithTable
	}
	model := newModel()
	if err := train(context.Background(), world, model, samples); err != nil || world.Rank() != 0 {
		return err
	}
	test, err := load(data+"/test.tfrecord", 0, 1)
	if err != nil {
		return err
	}
	accuracy := model.accuracy(test)
	fmt.Printf("%d workers, %s: %.1f %% of the test set\n", world.Size(), mode, 100*accuracy)
	if accuracy < 0.95 {
		return fmt.Errorf("that is less than 95 %%")
	}
	return nil
}

func main() {
	mode := "allreduce"
	if len(os.Args) > 2 {
		mode = os.Args[2]
	}
	if len(os.Args) < 2 {
		log.Fatal("usage: digits DATA [table]")
	}
	if err := run(os.Args[1], mode); err != nil {
		log.Fatal(err)
	}
}
