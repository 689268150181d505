package dtrain_test

// SPDX-License-Identifier: Apache-2.0

import (
	"io"
	"path/filepath"
	"testing"

	"dtrain.org/dtrain"
)

func TestGradients(t *testing.T) {
	queue, err := dtrain.NewGradients(world, dtrain.GradientsParams{})
	check(t, err)
	defer func() { check(t, queue.Close()) }()
	x := mine(world.Rank(), 10)
	check(t, dtrain.Submit(background, queue, "one", x, x, dtrain.Sum))
	equal(t, x, total(10))
	data := alloc[float32](t, 20).Data
	names := []string{"a", "b"}
	if world.Rank() == 0 {
		names[0], names[1] = names[1], names[0]
	}
	var requests []*dtrain.Request
	for i, name := range names {
		part := data[10*i : 10*i+10]
		copy(part, mine(world.Rank(), 10))
		r, err := dtrain.StartSubmit(queue.With(dtrain.Params{Priority: 1}), name, part, part, dtrain.Sum)
		check(t, err)
		requests = append(requests, r)
	}
	for i, r := range requests {
		check(t, wait(r))
		equal(t, data[10*i:10*i+10], total(10))
	}
	refused(t, dtrain.Submit(background, queue, "x", x, x[1:], dtrain.Sum), dtrain.ErrInvalid)
	joined, err := dtrain.StartJoinGradients(queue)
	check(t, err)
	check(t, wait(joined))
	last, err := dtrain.JoinGradients(background, queue)
	check(t, err)
	equal(t, last >= 0 && last < world.Size(), true)
	stats, err := queue.Stats()
	check(t, err)
	equal(t, stats.Tensors, uint64(3))
}

func TestCompressor(t *testing.T) {
	c, err := dtrain.NewCompressor(world, dtrain.CompressorParams{Kind: dtrain.CompressBF16, Count: 4})
	check(t, err)
	defer func() { check(t, c.Close()) }()
	x := []float32{1, 2, 3, 4}
	check(t, dtrain.CompressedAllReduce(background, c, x, x, dtrain.Avg))
	equal(t, x, []float32{1, 2, 3, 4})
	data := alloc[float32](t, 4).Data
	r, err := dtrain.StartCompressedAllReduce(c, data, data, dtrain.Sum)
	check(t, err)
	check(t, wait(r))
	refused(t, dtrain.CompressedAllReduce(background, c, x, x[:3], dtrain.Sum), dtrain.ErrInvalid)
	check(t, c.Reset())
	stats, err := c.Stats()
	check(t, err)
	equal(t, stats.Operations, uint64(2))
	_, err = dtrain.NewCompressor(world, dtrain.CompressorParams{Kind: dtrain.CompressTopK, Count: -1})
	refused(t, err, dtrain.ErrInvalid)
	shapes := []dtrain.Matrix{{Rows: 10, Columns: 10}, {Rows: 1, Columns: 4}}
	low, err := dtrain.NewCompressor(world, dtrain.CompressorParams{
		Kind: dtrain.CompressPowerSGD, Count: 104, Matrices: shapes})
	check(t, err)
	defer func() { check(t, low.Close()) }()
	y := make([]float32, 104)
	copy(y[100:], x)
	check(t, dtrain.CompressedAllReduce(background, low, y, y, dtrain.Avg))
	equal(t, y[100:], x)
	_, err = dtrain.NewCompressor(world, dtrain.CompressorParams{
		Kind: dtrain.CompressPowerSGD, Count: 103, Matrices: shapes})
	refused(t, err, dtrain.ErrInvalid)
}

func TestGraphs(t *testing.T) {
	g, err := dtrain.NewGraph(world, dtrain.GraphParams{Kind: dtrain.Full})
	check(t, err)
	defer func() { check(t, g.Close()) }()
	x, size := []float64{float64(world.Rank())}, world.Size()
	check(t, dtrain.NeighborAverage(background, g, x, x))
	equal(t, x[0] > float64(size-1)/2-1e-9 && x[0] < float64(size-1)/2+1e-9, true)
	in, weights, err := g.In()
	check(t, err)
	equal(t, []int{len(in), len(weights)}, []int{size - 1, size - 1})
	x[0] = float64(world.Rank())
	all := make([]float64, size-1)
	check(t, dtrain.NeighborAllGather(background, g, x, all))
	for i, rank := range in {
		equal(t, all[i], float64(rank))
	}
	check(t, dtrain.NeighborAllToAll(background, g, full(size-1, x[0]), all))
	for i, rank := range in {
		equal(t, all[i], float64(rank))
	}
	data := alloc[float32](t, 1).Data
	r, err := dtrain.StartNeighborAverage(g, data, data)
	check(t, err)
	check(t, wait(r))
	refused(t, dtrain.NeighborAllGather(background, g, x, make([]float64, size)), dtrain.ErrInvalid)
	gap, err := g.SpectralGap()
	check(t, err)
	equal(t, gap > 0.99, true)
	self, err := g.SelfWeight()
	check(t, err)
	equal(t, self > 0, true)
	edges := []int32{}
	for rank := 0; rank < size; rank++ {
		if rank != world.Rank() {
			edges = append(edges, int32(rank))
		}
	}
	own, err := dtrain.NewGraph(world, dtrain.GraphParams{Kind: dtrain.Custom, In: edges, Out: edges,
		InWeights: full(size-1, 1/float64(size)), SelfWeight: 1 / float64(size)})
	check(t, err)
	check(t, own.Close())
	_, err = dtrain.NewGraph(world, dtrain.GraphParams{Kind: dtrain.Custom, In: edges,
		InWeights: full(size, 1.0)})
	refused(t, err, dtrain.ErrInvalid)
}

func TestRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "records")
	writer, err := dtrain.OpenWriter(path)
	check(t, err)
	for _, text := range []string{"first", "", "third"} {
		check(t, writer.Append([]byte(text)))
	}
	check(t, writer.Close())
	check(t, writer.Close())
	refused(t, writer.Append(nil), dtrain.ErrState)
	reader, err := dtrain.OpenReader([]string{path, path}, dtrain.ReaderParams{Shard: 1, Shards: 2})
	check(t, err)
	for turn := 0; turn < 2; turn++ {
		for _, text := range []string{"first", "", "third"} {
			record, err := reader.Next()
			check(t, err)
			equal(t, string(record), text)
		}
		_, err = reader.Next()
		equal(t, err, io.EOF)
		check(t, reader.Rewind())
	}
	check(t, reader.Close())
	_, err = reader.Next()
	refused(t, err, dtrain.ErrState)
	_, err = dtrain.OpenReader([]string{"/no/such/file"}, dtrain.ReaderParams{})
	refused(t, err, dtrain.ErrNotFound)
	_, err = dtrain.OpenWriter("/no/such/folder/file")
	refused(t, err, dtrain.ErrNotFound)
}

func TestJoiningIsDescribed(t *testing.T) {
	role, err := dtrain.JoinRole()
	check(t, err)
	equal(t, role, dtrain.RoleWorker)
	said, err := dtrain.DescribeJoin(dtrain.JoinParams{Rendezvous: "tcp://h:7", Size: 3, Rank: 1})
	check(t, err)
	if said["joins"] != true || said["index"] != 1.0 || said["workers"] != 3.0 || said["rendezvous"] != "tcp://h:7" {
		t.Error(said)
	}
}
