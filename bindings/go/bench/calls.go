// Measures the cost of a call from Go, as bench/calls.c does for C.
//
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"fmt"
	"log"
	"sort"
	"time"

	"dtrain.org/dtrain"
)

const rounds, calls, reductions, elements = 51, 20000, 20, 1 << 18

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
	ctx, alone := context.Background(), world.Size() == 1
	x, count := make([]float32, elements), reductions
	if alone {
		x, count = x[:1], calls
	}
	var took []float64
	for round := 0; round < rounds; round++ {
		if err := dtrain.Barrier(ctx, world); err != nil {
			return err
		}
		begin := time.Now()
		for i := 0; i < count; i++ {
			if err := dtrain.AllReduce(ctx, world, x, dtrain.Sum); err != nil {
				return err
			}
		}
		took = append(took, float64(time.Since(begin).Nanoseconds())/float64(count))
	}
	sort.Float64s(took)
	median := took[rounds/2]
	if alone {
		fmt.Printf("Go alone %.0f\n", median)
	} else if world.Rank() == 0 {
		fmt.Printf("Go 1MiB %.1f\n", median/1e3)
	}
	return nil
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
