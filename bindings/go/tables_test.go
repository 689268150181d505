package dtrain_test

// SPDX-License-Identifier: Apache-2.0

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"dtrain.org/dtrain"
)

func table[T dtrain.Element](t *testing.T, params dtrain.TableParams) *dtrain.Table[T] {
	t.Helper()
	made, err := dtrain.NewTable[T](world, fmt.Sprint(t.Name(), params.Dim), params)
	check(t, err)
	t.Cleanup(func() {
		check(t, dtrain.Barrier(background, world)) // of what others may still need
		check(t, made.Close())
	})
	return made
}

func full[T dtrain.Element](count int, value T) []T {
	x := make([]T, count)
	for i := range x {
		x[i] = value
	}
	return x
}

func TestDense(t *testing.T) {
	w := table[float32](t, dtrain.TableParams{Length: 1000, Consistency: dtrain.BSP, Initial: 1})
	x, n := make([]float32, 1000), float32(world.Size())
	_, err := w.Push(background, 0, full[float32](1000, 1))
	check(t, err)
	check(t, w.Clock(background))
	result, err := w.Pull(background, 0, x)
	check(t, err)
	equal(t, x, full(1000, 1+n))
	equal(t, []int{result.Bytes, int(result.Version)}, []int{4000, 1})
	_, err = w.PushPull(background, 10, full[float32](5, 2), x[:5])
	check(t, err)
	equal(t, x[:5], full(5, 1+3*n))
	if world.Rank() == 0 {
		check(t, w.Set(background, 999, []float32{-1}))
	}
	check(t, dtrain.Barrier(background, world))
	_, err = w.Pull(background, 999, x[:1])
	check(t, err)
	equal(t, x[0], float32(-1))
	for _, first := range []int{-1, 999, 1 << 40} {
		_, err = w.Pull(background, first, x[:2])
		refused(t, err, dtrain.ErrInvalid)
	}
	_, err = w.PushPull(background, 0, x[:2], x[:1])
	refused(t, err, dtrain.ErrInvalid)
	servers, err := w.Servers()
	check(t, err)
	elements := uint64(0)
	for _, server := range servers {
		elements += server.Elements
	}
	equal(t, elements, uint64(1000))
	where, err := w.Locate([]uint64{0, 999})
	check(t, err)
	equal(t, where[0] < uint32(len(servers)), true)
	stats, err := w.Stats(-1)
	check(t, err)
	equal(t, stats.Requests >= 4, true)
	equal(t, len(stats.Latency), 40)
}

func TestRows(t *testing.T) {
	rows := table[float64](t, dtrain.TableParams{Dim: 3, Rule: dtrain.RuleMax})
	keys := []uint64{7, 1 << 63, 7}
	x := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9}
	_, err := rows.PushRows(background, keys, x)
	check(t, err)
	check(t, dtrain.Barrier(background, world))
	y := make([]float64, 6)
	_, err = rows.PullRows(background, keys[:2], y)
	check(t, err)
	equal(t, y, []float64{7, 8, 9, 4, 5, 6})
	_, err = rows.PushPullRows(background, keys[:2], y, y)
	check(t, err)
	count, err := rows.CountRows(background)
	check(t, err)
	equal(t, count, uint64(2))
	_, err = rows.PullRows(background, keys, y)
	refused(t, err, dtrain.ErrInvalid)
	check(t, dtrain.Barrier(background, world)) // all have seen this
	check(t, rows.SetRows(background, keys[:1], x[:3]))
	check(t, dtrain.Barrier(background, world))
	check(t, rows.EraseRows(background, keys[:1]))
	check(t, dtrain.Barrier(background, world))
	count, err = rows.CountRows(background)
	check(t, err)
	equal(t, count, uint64(1))
}

func TestFailingPlace(t *testing.T) {
	for _, place := range []func(uint64, uint64, uint32) (uint32, error){
		func(uint64, uint64, uint32) (uint32, error) { return 0, os.ErrPermission },
		func(uint64, uint64, uint32) (uint32, error) { panic(os.ErrPermission) },
	} {
		_, err := dtrain.NewTable[float32](world, "placed", dtrain.TableParams{Length: 8,
			Placement: dtrain.PlaceUser, Place: place})
		refused(t, err, dtrain.ErrInvalid)
		equal(t, errors.Is(err, os.ErrPermission), true)
	}
}

func TestStartedTable(t *testing.T) {
	w := table[int32](t, dtrain.TableParams{Length: 10})
	rows := table[int32](t, dtrain.TableParams{Dim: 2, Rule: dtrain.RuleAssign})
	x, keys := alloc[int32](t, 10).Data, alloc[uint64](t, 1).Data
	copy(x, full[int32](10, 5))
	run := func(r *dtrain.Request, err error) {
		t.Helper()
		check(t, err)
		check(t, wait(r))
	}
	run(w.StartSet(0, x))
	check(t, dtrain.Barrier(background, world))
	run(w.StartPush(0, x))
	check(t, dtrain.Barrier(background, world))
	run(w.StartPull(0, x))
	equal(t, x[9], int32(5+5*world.Size()))
	run(rows.StartPushRows(keys, x[:2]))
	run(rows.StartPullRows(keys, x[:2]))
	run(rows.StartPushPullRows(keys, x[:2], x[2:4]))
	run(rows.StartSetRows(keys, x[:2]))
	count := alloc[uint64](t, 1).Data
	run(rows.StartCountRows(count))
	equal(t, count[0], uint64(1))
	check(t, dtrain.Barrier(background, world))
	run(rows.StartEraseRows(keys))
	run(w.StartClock())
	run(w.StartSetReady())
	run(w.StartWaitReady())
	_, err := w.StartPush(0, make([]int32, 10))
	refused(t, err, dtrain.ErrInvalid)
}

func TestReady(t *testing.T) {
	w := table[float32](t, dtrain.TableParams{Length: 10})
	ctx, cancel := context.WithCancel(background)
	time.AfterFunc(time.Millisecond, cancel)
	equal(t, errors.Is(w.WaitReady(ctx), context.Canceled), true)
	check(t, dtrain.Barrier(background, world))
	if world.Rank() == 0 {
		check(t, w.SetReady(background))
	}
	check(t, w.WaitReady(background))
	check(t, w.SetConsistency(dtrain.TableParams{Consistency: dtrain.BSP}))
}

func TestState(t *testing.T) {
	w := table[float32](t, dtrain.TableParams{Length: 4, Rule: dtrain.RuleMomentum, LearningRate: 0.5})
	states, err := w.States()
	check(t, err)
	equal(t, states, []dtrain.State{{Index: 0, Name: "momentum", Type: dtrain.TypeF32, Count: 4}})
	x := make([]float32, 4)
	check(t, dtrain.SetState(background, w, 0, 0, []float32{1, 2, 3, 4}))
	check(t, dtrain.PullState(background, w, 0, 0, x))
	equal(t, x, []float32{1, 2, 3, 4})
	data := alloc[float32](t, 4).Data
	pulled, err := dtrain.StartPullState(w, 0, 0, data)
	check(t, err)
	check(t, wait(pulled))
	equal(t, data, x)
	refused(t, dtrain.PullState(background, w, 0, 0, make([]uint8, 4)), dtrain.ErrInvalid)
	refused(t, dtrain.PullState(background, w, 1, 0, x), dtrain.ErrNotFound)
	check(t, w.SetRate(background, 0.1))
	check(t, w.SetUpdates(background, 7))
	refused(t, w.SetUpdates(background, 1<<54), dtrain.ErrInvalid)
	rows := table[float32](t, dtrain.TableParams{Dim: 2, Rule: dtrain.RuleAdam})
	keys := []uint64{5}
	_, err = rows.PushRows(background, keys, x[:2])
	check(t, err)
	check(t, dtrain.PullStateRows(background, rows, 0, keys, x[:2]))
	check(t, dtrain.SetStateRows(background, rows, 0, keys, x[:2]))
	refused(t, dtrain.PullStateRows(background, rows, 0, keys, x[:1]), dtrain.ErrInvalid)
}

func TestParams(t *testing.T) {
	parts := table[float32](t, dtrain.TableParams{Length: 40, RowLength: 4, Segments: []dtrain.Segment{
		{Rule: dtrain.RuleSGD, First: 0, Count: 1, LearningRate: 1}, {Rule: dtrain.RuleAdd, First: 1,
			Count: 3}}})
	_, err := parts.Push(background, 0, full[float32](40, 1))
	check(t, err)
	placed := 0
	_, err = dtrain.NewTable[float32](world, "panic", dtrain.TableParams{Length: 10,
		Placement: dtrain.PlaceUser, PlacementBlock: 5,
		Place: func(first, count uint64, servers uint32) (uint32, error) { placed++; return servers, nil }})
	refused(t, err, dtrain.ErrInvalid)
	equal(t, placed > 0, true)
	_, err = dtrain.NewTable[float32](world, "nothing", dtrain.TableParams{})
	refused(t, err, dtrain.ErrInvalid)
	_, err = dtrain.NewTable[float32](world, "weights", dtrain.TableParams{Length: 10,
		Weights: full[uint32](100, 1)})
	refused(t, err, dtrain.ErrInvalid)
	weights, err := dtrain.ServerWeights(4, 2, 2)
	check(t, err)
	equal(t, len(weights), 4)
}

func TestCheckpoints(t *testing.T) {
	folder := t.TempDir()
	c, comm := alone(t, dtrain.WithOption("checkpoint.directory", folder))
	defer c.Close()
	w, err := dtrain.NewTable[float32](comm, "w", dtrain.TableParams{Length: 10})
	check(t, err)
	_, err = dtrain.NewestCheckpoint(w)
	refused(t, err, dtrain.ErrNotFound)
	check(t, w.Set(background, 0, full[float32](10, 3)))
	saved, err := dtrain.SaveCheckpoint(background, []dtrain.AnyTable{w}, 5, dtrain.CheckpointParams{})
	check(t, err)
	equal(t, saved, true)
	saved, err = dtrain.SaveCheckpoint(background, []dtrain.AnyTable{w}, 6,
		dtrain.CheckpointParams{Every: time.Hour})
	check(t, err)
	equal(t, saved, false)
	next, err := dtrain.WaitCheckpoint(background, []dtrain.AnyTable{w}, dtrain.Newest)
	check(t, err)
	equal(t, next, uint64(5))
	soon, cancel := context.WithTimeout(background, 50*time.Millisecond)
	defer cancel()
	_, err = dtrain.WaitCheckpoint(soon, []dtrain.AnyTable{w}, 5)
	refused(t, err, dtrain.ErrTimeout)
	check(t, w.Set(background, 0, make([]float32, 10)))
	step, err := dtrain.RestoreCheckpoint(background, []dtrain.AnyTable{w}, dtrain.Newest)
	check(t, err)
	equal(t, step, uint64(5))
	x := make([]float32, 10)
	_, err = w.Pull(background, 0, x)
	check(t, err)
	equal(t, x, full[float32](10, 3))
	_, restored, err := w.Restored()
	check(t, err)
	equal(t, restored, false)
}

func TestServer(t *testing.T) {
	c, err := dtrain.NewContext()
	check(t, err)
	defer c.Close()
	rendezvous := "file://" + t.TempDir() + "/job"
	served := make(chan error)
	go func() {
		server, err := c.Serve(background, dtrain.ServeParams{Rendezvous: rendezvous, Size: 1, Servers: 1})
		if err == nil {
			_, err = server.Stats()
			if err == nil {
				err = server.Wait(background)
			}
			if closed := server.Close(); err == nil {
				err = closed
			}
		}
		served <- err
	}()
	worker, err := dtrain.NewContext()
	check(t, err)
	comm, err := worker.Join(background, dtrain.JoinParams{Rendezvous: rendezvous, Size: 1, Servers: 1})
	check(t, err)
	w, err := dtrain.NewTable[float32](comm, "w", dtrain.TableParams{Length: 10})
	check(t, err)
	_, err = w.Push(background, 0, make([]float32, 10))
	check(t, err)
	check(t, worker.Close())
	check(t, <-served)
}

func TestZerosAreTaken(t *testing.T) {
	for _, c := range []struct {
		params dtrain.TableParams
		want   float32
	}{
		{dtrain.TableParams{Rule: dtrain.RuleSGD, Given: dtrain.GivenLearningRate}, 0},
		{dtrain.TableParams{Rule: dtrain.RuleMomentum, LearningRate: 1, Given: dtrain.GivenMomentum}, -2},
		{dtrain.TableParams{RowLength: 4, Segments: []dtrain.Segment{{Count: 4, LearningRate: 1,
			Rule: dtrain.RuleMomentum, Given: dtrain.GivenMomentum}}}, -2},
	} {
		c.params.Length = 4
		w, err := dtrain.NewTable[float32](world, t.Name(), c.params)
		check(t, err)
		for i := 0; i < 2; i++ {
			_, err = w.Push(background, 0, full[float32](4, 1))
			check(t, err)
		}
		check(t, dtrain.Barrier(background, world))
		x := make([]float32, 4)
		_, err = w.Pull(background, 0, x)
		check(t, err)
		equal(t, x, full(4, c.want*float32(world.Size())))
		check(t, dtrain.Barrier(background, world))
		check(t, w.Close())
	}
	_, err := dtrain.NewTable[float32](world, "idle", dtrain.TableParams{Length: 4, Rule: dtrain.RuleSGD,
		Given: dtrain.GivenMomentum})
	refused(t, err, dtrain.ErrInvalid)
	x := full[float32](4, 1)
	check(t, dtrain.AllReduce(background, world.With(dtrain.Params{Postscale: 1, Factors: true}), x,
		dtrain.Sum))
	equal(t, x, full[float32](4, 0))
}

func TestNotFinite(t *testing.T) {
	w := table[float32](t, dtrain.TableParams{Length: 2, NotFinite: dtrain.NotFiniteDrop})
	_, err := w.Push(background, 0, full(2, float32(math.Inf(1))))
	check(t, err)
	stats, err := w.Stats(-1)
	check(t, err)
	equal(t, stats.NotFinite > 0, true) // of each server that has a part
	check(t, dtrain.Barrier(background, world))
	x := full[float32](2, 5)
	_, err = w.Pull(background, 0, x)
	check(t, err)
	equal(t, x, full[float32](2, 0))
}

// Valid parameters make a table, differences between ranks are reported, and invalid parameters are
// refused.
func TestNumbersArrive(t *testing.T) {
	decaying := dtrain.TableParams{Length: 2, Rule: dtrain.RuleAdam, Steps: dtrain.StepsTable,
		Schedule: dtrain.ScheduleCosine, WarmupSteps: 3, DecaySteps: 9, Decay: 0.25}
	averaged := dtrain.TableParams{Dim: 2, Consistency: dtrain.BSP, Aggregate: dtrain.Avg,
		MeanOver: dtrain.MeanOverPushers}
	begun := dtrain.TableParams{Length: 2, Rule: dtrain.RuleAdagrad, Accumulator: 0.5}
	part := dtrain.TableParams{Dim: 2, Segments: []dtrain.Segment{{Count: 2, Rule: dtrain.RuleFTRL,
		Accumulator: 0.5}}}
	type Params = dtrain.TableParams
	for _, c := range []struct {
		params Params
		name   string
		other  func(*Params)
	}{
		{decaying, "steps", func(p *Params) { p.Steps = dtrain.StepsOwn }},
		{decaying, "schedule", func(p *Params) { p.Schedule = dtrain.ScheduleLinear }},
		{decaying, "warmup_steps", func(p *Params) { p.WarmupSteps = 4 }},
		{decaying, "decay_steps", func(p *Params) { p.DecaySteps = 10 }},
		{decaying, "decay", func(p *Params) { p.Decay = 0 }},
		{averaged, "mean_over", func(p *Params) { p.MeanOver = dtrain.MeanOverWorkers }},
		{begun, "memory", func(p *Params) { p.Memory = dtrain.MemoryCUDA }},
		{begun, "accumulator", func(p *Params) { p.Accumulator = 0 }},
		{part, "segment 0 accumulator", func(p *Params) {
			p.Segments = []dtrain.Segment{{Count: 2, Rule: dtrain.RuleFTRL}}
		}},
	} {
		made, err := dtrain.NewTable[float32](world, "numbers", c.params)
		check(t, err)
		check(t, made.Close())
		if world.Size() == 1 {
			continue
		}
		if world.Rank() == 0 {
			c.other(&c.params)
		}
		_, err = dtrain.NewTable[float32](world, "numbers", c.params)
		refused(t, err, dtrain.ErrMismatch)
		equal(t, strings.Contains(err.Error(), c.name), true)
	}
	for text, params := range map[string]Params{
		"steps is not valid":       {Length: 2, Rule: dtrain.RuleSGD, Steps: dtrain.StepsTable},
		"decay_steps is not valid": {Length: 2, Rule: dtrain.RuleSGD, Schedule: dtrain.ScheduleCosine},
		"mean_over is not valid":   {Length: 2, MeanOver: dtrain.MeanOverPushers},
		"accumulator is given":     {Length: 2, Rule: dtrain.RuleSGD, Given: dtrain.GivenAccumulator},
		"segment 0: accumulator": {Dim: 2, Segments: []dtrain.Segment{{Count: 2, Rule: dtrain.RuleSGD,
			Accumulator: 1}}},
	} {
		_, err := dtrain.NewTable[float32](world, "refused", params)
		refused(t, err, dtrain.ErrInvalid)
		equal(t, strings.Contains(err.Error(), text), true)
	}
}

func ExampleTable() {
	table, err := dtrain.NewTable[float32](world, "weights",
		dtrain.TableParams{Length: 10, Rule: dtrain.RuleSGD, LearningRate: 0.5, Consistency: dtrain.BSP,
			Aggregate: dtrain.Avg})
	if err != nil {
		log.Fatal(err)
	}
	defer table.Close()
	ctx, weights, gradient := context.Background(), make([]float32, 10), make([]float32, 10)
	gradient[0] = 1
	if _, err := table.Push(ctx, 0, gradient); err != nil {
		log.Fatal(err)
	}
	if err := table.Clock(ctx); err != nil { // all workers' pushes are applied
		log.Fatal(err)
	}
	if _, err := table.Pull(ctx, 0, weights); err != nil {
		log.Fatal(err)
	}
	fmt.Println(weights[0])
	// Output: -0.5
}
