// A Go worker of an elastic job; test_reform.py says what happens to it.
//
// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"dtrain.org/dtrain"
)

var ctx = context.Background()

func addUp(world *dtrain.Comm) error {
	sum := []int64{int64(world.Rank())}
	err := dtrain.AllReduce(ctx, world, sum, dtrain.Sum)
	fmt.Println("sum", sum[0], "of", world.Size())
	return err
}

func reform(world *dtrain.Comm, params dtrain.ReformParams) (*dtrain.Comm, error) {
	made, err := world.Reform(params)
	if err != nil {
		return nil, err
	}
	if made != nil {
		changes, err := made.Changes()
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(changes)
		if err != nil {
			return nil, err
		}
		fmt.Println("changes", string(text))
	}
	return made, world.Close()
}

func grow(world *dtrain.Comm) (*dtrain.Comm, error) {
	_, err := world.With(dtrain.Params{Timeout: time.Second}).Reform(dtrain.ReformParams{MinSize: 9})
	if errors.Is(err, dtrain.ErrTimeout) {
		fmt.Println("too few:", err)
	}
	for there := []int32{0}; there[0] == 0; {
		count, err := world.Newcomers()
		if err != nil {
			return nil, err
		}
		there[0] = int32(count)
		if err := dtrain.AllReduce(ctx, world, there, dtrain.Min); err != nil {
			return nil, err
		}
	}
	return reform(world, dtrain.ReformParams{MinSize: 3})
}

func run() error {
	job, err := dtrain.NewContext()
	if err != nil {
		return err
	}
	defer job.Close()
	world, err := job.World()
	if err == nil && os.Getenv("DTRAIN_RANK") != "new" {
		world, err = grow(world)
	}
	if err == nil {
		err = addUp(world)
	}
	for err == nil {
		err = dtrain.Barrier(ctx, world)
	}
	if !errors.Is(err, dtrain.ErrPeer) {
		return err
	}
	if world, err = reform(world, dtrain.ReformParams{MinSize: 2}); err != nil {
		return err
	}
	if err := addUp(world); err != nil {
		return err
	}
	world, err = reform(world, dtrain.ReformParams{Leave: world.Rank() == 1})
	if err != nil {
		return err
	}
	fmt.Println(map[bool]string{true: "left", false: "alone"}[world == nil])
	return nil
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
