package dtrain_test

// SPDX-License-Identifier: Apache-2.0

import (
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"dtrain.org/dtrain"
)

func named[E dtrain.Named](t *testing.T, name string, want E) {
	t.Helper()
	got, err := dtrain.Parse[E](name)
	check(t, err)
	equal(t, got, want)
	_, err = dtrain.Parse[E]("no such")
	refused(t, err, dtrain.ErrInvalid)
	_, err = dtrain.Parse[E]("")
	refused(t, err, dtrain.ErrInvalid)
	// All values are converted to text and back.
	for i := E(1); i <= 1000; i++ {
		text := fmt.Sprint(i)
		if strings.Contains(text, "(") {
			equal(t, i > 2, true)
			break
		}
		got, err := dtrain.Parse[E](strings.ToUpper(text))
		check(t, err)
		equal(t, got, i)
	}
}

func TestNames(t *testing.T) {
	named(t, "sum", dtrain.Sum)
	named(t, "mean", dtrain.Avg)
	named(t, "adagrad", dtrain.RuleAdagrad)
	named(t, "adagrad_rows", dtrain.RuleAdagradRows)
	named(t, "bfloat16", dtrain.TypeBF16)
	named(t, "uint8", dtrain.TypeU8)
	named(t, "BSP", dtrain.BSP)
	named(t, "hash", dtrain.PlaceHash)
	named(t, "topk", dtrain.CompressTopK)
	named(t, "ring", dtrain.Ring)
	named(t, "Table", dtrain.StepsTable)
	named(t, "pushers", dtrain.MeanOverPushers)
	named(t, "CUDA", dtrain.MemoryCUDA)
	named(t, "inverse_sqrt", dtrain.ScheduleInverseSqrt)
	distribution, err := dtrain.Parse[dtrain.Distribution]("normal")
	check(t, err)
	equal(t, distribution, dtrain.Normal)
	_, err = dtrain.Parse[dtrain.Op]("summ")
	equal(t, strings.Contains(err.Error(), `no reduction "summ"; it is one of sum, avg, prod`), true)
	equal(t, fmt.Sprint(dtrain.Sum, dtrain.RuleRMSProp, dtrain.TypeBF16, dtrain.Op(77)), "sum rmsprop bf16 Op(77)")
}

func TestNamesInFilesAndFlags(t *testing.T) {
	var params dtrain.TableParams
	check(t, json.Unmarshal([]byte(`{"Length": 4, "Rule": "sgd", "Consistency": "bsp", "Aggregate": "avg",
		"Schedule": "cosine", "DecaySteps": 9}`), &params))
	equal(t, params.Schedule, dtrain.ScheduleCosine)
	equal(t, params.Rule, dtrain.RuleSGD)
	equal(t, params.Aggregate, dtrain.Avg)
	text, err := json.Marshal(struct {
		Rule dtrain.Rule
		Op   dtrain.Op
	}{dtrain.RuleSGD, 0})
	check(t, err)
	equal(t, string(text), `{"Rule":"sgd","Op":""}`)
	op := dtrain.Sum
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.TextVar(&op, "op", dtrain.Sum, "")
	check(t, flags.Parse([]string{"-op", "max"}))
	equal(t, op, dtrain.Max)
}

func TestDurationsOfOptions(t *testing.T) {
	for _, option := range []dtrain.Option{dtrain.WithOption("op.timeout", 30*time.Millisecond),
		dtrain.WithOption("op.timeout", "30ms")} {
		c, comm := alone(t, option)
		_, err := dtrain.Recv(background, comm, []byte{0}, 0, 0)
		refused(t, err, dtrain.ErrTimeout)
		check(t, c.Close())
	}
	_, err := dtrain.NewContext(dtrain.WithOption("op.timeout", -time.Second))
	refused(t, err, dtrain.ErrInvalid)
}

type (
	grad     float32
	tokenID  int64
	pixel    uint8
	gradient []grad
)

func TestTypesOfTheProgram(t *testing.T) {
	n := world.Size()
	reduceOnes(t, grad(1), grad(n))
	reduceOnes(t, tokenID(1), tokenID(n))
	reduceOnes(t, pixel(1), pixel(n))
	equal(t, dtrain.TypeOf[grad](), dtrain.TypeF32)
	equal(t, dtrain.TypeOf[pixel](), dtrain.TypeU8)
	x := gradient{1, 2}
	check(t, dtrain.AllReduce(background, world, x, dtrain.Avg))
	equal(t, x, gradient{1, 2})
	w := table[grad](t, dtrain.TableParams{Length: 2})
	check(t, second(w.Push(background, 0, x)))
	c, err := dtrain.NewCompressor(world, dtrain.CompressorParams{Kind: dtrain.CompressBF16, Count: 2})
	check(t, err)
	check(t, dtrain.CompressedAllReduce(background, c, x, x, dtrain.Avg))
	equal(t, x, gradient{1, 2})
	check(t, c.Close())
	check(t, dtrain.Barrier(background, world))
}
