// A Go rank of a job of several languages: an all-reduce, and a table.
//
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"fmt"
	"log"

	"dtrain.org/dtrain"
)

const length = 1000

func run() error {
	job, err := dtrain.NewContext()
	if err != nil {
		return err
	}
	defer job.Close()
	world, err := job.World()
	if err != nil {
		return err
	}
	ctx, rank, size := context.Background(), world.Rank(), world.Size()
	ranks := float32(size * (size + 1) / 2) // sum of rank + 1
	vector := make([]float32, length)
	for i := range vector {
		vector[i] = float32(rank + 1 + i)
	}
	if err := dtrain.AllReduce(ctx, world, vector, dtrain.Sum); err != nil {
		return err
	}
	table, err := dtrain.NewTable[float32](world, "shared", dtrain.TableParams{Length: length,
		Rule: dtrain.RuleAdd, Consistency: dtrain.BSP})
	if err != nil {
		return err
	}
	values := make([]float32, length)
	for i := range values {
		values[i] = float32(rank + 1)
	}
	if _, err := table.Push(ctx, 0, values); err != nil {
		return err
	}
	if err := table.Clock(ctx); err != nil {
		return err
	}
	if _, err := table.Pull(ctx, 0, values); err != nil {
		return err
	}
	fmt.Printf("Go rank %d of %d: sum %.1f pulled %.1f\n", rank, size, vector[10], values[10])
	for i := range vector {
		if vector[i] != ranks+float32(size*i) || values[i] != ranks {
			return fmt.Errorf("element %d: sum %v pulled %v", i, vector[i], values[i])
		}
	}
	return nil
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
