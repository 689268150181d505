package dtrain

// SPDX-License-Identifier: Apache-2.0

// #include <dtrain.h>
import "C"

import (
	"math"
	"unsafe"

	"dtrain.org/dtrain/internal/capi"
)

// Rule is an update rule: what a push does to a table's values.
type Rule uint32

// Rules; docs/PARAMETER_SERVER.md has their formulas.
const (
	// from dtrain.h, by ./dev generate
	RuleAdd         Rule = C.DTRAIN_RULE_ADD
	RuleAssign      Rule = C.DTRAIN_RULE_ASSIGN
	RuleSGD         Rule = C.DTRAIN_RULE_SGD
	RuleMomentum    Rule = C.DTRAIN_RULE_MOMENTUM
	RuleAdagrad     Rule = C.DTRAIN_RULE_ADAGRAD
	RuleAdam        Rule = C.DTRAIN_RULE_ADAM
	RuleMean        Rule = C.DTRAIN_RULE_MEAN
	RuleMin         Rule = C.DTRAIN_RULE_MIN
	RuleMax         Rule = C.DTRAIN_RULE_MAX
	RuleNesterov    Rule = C.DTRAIN_RULE_NESTEROV
	RuleAdagradRows Rule = C.DTRAIN_RULE_ADAGRAD_ROWS
	RuleRMSProp     Rule = C.DTRAIN_RULE_RMSPROP
	RuleAdadelta    Rule = C.DTRAIN_RULE_ADADELTA
	RuleAdamW       Rule = C.DTRAIN_RULE_ADAMW
	RuleAMSGrad     Rule = C.DTRAIN_RULE_AMSGRAD
	RuleFTRL        Rule = C.DTRAIN_RULE_FTRL
	RuleLARS        Rule = C.DTRAIN_RULE_LARS
	RuleLAMB        Rule = C.DTRAIN_RULE_LAMB
	RuleDCSGD       Rule = C.DTRAIN_RULE_DC_SGD
	RuleFunction    Rule = C.DTRAIN_RULE_FUNCTION
	// the end of what is generated
)

// Consistency says when pushes are applied, and what pulls see.
type Consistency uint32

// Kinds of consistency.
const (
	Async  Consistency = C.DTRAIN_ASYNC
	BSP    Consistency = C.DTRAIN_BSP
	SSP    Consistency = C.DTRAIN_SSP
	Quorum Consistency = C.DTRAIN_QUORUM
)

// Distribution is the distribution of a row's values before its first push.
type Distribution uint32

// Distributions.
const (
	Constant Distribution = C.DTRAIN_INITIAL_CONSTANT
	Uniform  Distribution = C.DTRAIN_INITIAL_UNIFORM
	Normal   Distribution = C.DTRAIN_INITIAL_NORMAL
)

// NotFinite says how a part of a push that contains a NaN or an infinity is treated.
type NotFinite uint32

// Treatments; dropped parts are counted.
const (
	NotFiniteTake   NotFinite = C.DTRAIN_NOT_FINITE_TAKE
	NotFiniteRefuse NotFinite = C.DTRAIN_NOT_FINITE_REFUSE
	NotFiniteDrop   NotFinite = C.DTRAIN_NOT_FINITE_DROP
)

// Steps says which count of updates rules use.
type Steps uint32

// One count per element or row, or one per table, as in optimizers that have one count for all.
const (
	StepsOwn   Steps = C.DTRAIN_STEPS_OWN
	StepsTable Steps = C.DTRAIN_STEPS_TABLE
)

// MeanOver says which workers the mean of Avg counts.
type MeanOver uint32

// All workers, or for each row those that have pushed it.
const (
	MeanOverWorkers MeanOver = C.DTRAIN_MEAN_WORKERS
	MeanOverPushers MeanOver = C.DTRAIN_MEAN_PUSHERS
)

// TableMemory says where servers keep a table.
type TableMemory uint32

// In their host memory, or in that of a GPU, which also applies the update rule.
const (
	MemoryHost TableMemory = C.DTRAIN_MEM_HOST
	MemoryCUDA TableMemory = C.DTRAIN_MEM_CUDA
)

// Schedule is the learning rate as a function of the number of the table's update, after the warmup.
type Schedule uint32

// Schedules; dtrain.h has their formulas.
const (
	ScheduleConstant    Schedule = C.DTRAIN_SCHEDULE_CONSTANT
	ScheduleLinear      Schedule = C.DTRAIN_SCHEDULE_LINEAR
	ScheduleCosine      Schedule = C.DTRAIN_SCHEDULE_COSINE
	ScheduleExponential Schedule = C.DTRAIN_SCHEDULE_EXPONENTIAL
	ScheduleStaircase   Schedule = C.DTRAIN_SCHEDULE_STAIRCASE
	ScheduleInverseSqrt Schedule = C.DTRAIN_SCHEDULE_INVERSE_SQRT
)

// Placement says which servers hold the parts of a table.
type Placement uint32

// Placements.
const (
	PlaceRange      Placement = C.DTRAIN_PLACE_RANGE
	PlaceHash       Placement = C.DTRAIN_PLACE_HASH
	PlaceConsistent Placement = C.DTRAIN_PLACE_CONSISTENT
	PlaceRoundRobin Placement = C.DTRAIN_PLACE_ROUND_ROBIN
	PlaceGreedy     Placement = C.DTRAIN_PLACE_GREEDY
	PlaceUser       Placement = C.DTRAIN_PLACE_USER
)

// Numbers is a set of numbers of a rule.
type Numbers uint32

// Numbers whose 0 counts as 0, not as the default, if Given contains them.
const (
	GivenLearningRate Numbers = C.DTRAIN_GIVEN_LEARNING_RATE
	GivenMomentum     Numbers = C.DTRAIN_GIVEN_MOMENTUM
	GivenBeta1        Numbers = C.DTRAIN_GIVEN_BETA1
	GivenBeta2        Numbers = C.DTRAIN_GIVEN_BETA2
	GivenEpsilon      Numbers = C.DTRAIN_GIVEN_EPSILON
	GivenRho          Numbers = C.DTRAIN_GIVEN_RHO
	GivenTrust        Numbers = C.DTRAIN_GIVEN_TRUST
	GivenFTRLBeta     Numbers = C.DTRAIN_GIVEN_FTRL_BETA
	GivenCompensation Numbers = C.DTRAIN_GIVEN_COMPENSATION
	GivenAccumulator  Numbers = C.DTRAIN_GIVEN_ACCUMULATOR
)

// TableParams has the fields of dtrain_table_params_t (dtrain.h): Length for a dense table, or Dim
// for rows by keys. Zero means the default, except for the numbers in Given.
type TableParams struct {
	Length       uint64
	Dim          uint32
	Rule         Rule
	Consistency  Consistency
	Staleness    uint32
	Aggregate    Op
	Quorum       uint32
	Reproducible bool

	LearningRate, Momentum, Beta1, Beta2, Epsilon, Rho float64
	ClipValue, ClipNorm, WeightDecay, L1, L2           float64
	Trust, FTRLBeta, Compensation, Accumulator         float64
	Given                                              Numbers // numbers that count even if they are 0
	Initial, Spread                                    float64
	Distribution                                       Distribution
	Seed, RowLength, MaxBytes                          uint64
	Function                                           string
	Segments                                           []Segment
	StorageType, WireType                              DType
	NotFinite                                          NotFinite
	Steps                                              Steps
	MeanOver                                           MeanOver
	Schedule                                           Schedule
	WarmupSteps, DecaySteps                            uint64
	Decay                                              float64
	Memory                                             TableMemory
	Placement                                          Placement
	VirtualNodes                                       uint32
	PlacementBlock, KeyCount, SplitBytes               uint64
	Weights                                            []uint32
	// Place, with PlaceUser, says which server holds a block.
	Place func(first, count uint64, servers uint32) (uint32, error)
}

// Segment is a part of the columns of each row, updated by a separate rule.
type Segment struct {
	Rule                                               Rule
	First, Count                                       uint64
	LearningRate, Momentum, Beta1, Beta2, Epsilon, Rho float64
	ClipValue, ClipNorm, WeightDecay, L1, L2           float64
	Trust, FTRLBeta, Accumulator                       float64
	Given                                              Numbers
}

// mode sets what Table.SetConsistency changes.
func (p *TableParams) mode(c capi.Table_params) {
	c.SetConsistency(uint32(p.Consistency))
	c.SetStaleness(p.Staleness)
	c.SetQuorum(p.Quorum)
	if p.Reproducible {
		c.SetReproducible(1)
	}
}

// filled holds the memory that a C struct points to until it is dropped, and the callback in it.
type filled struct {
	callback
	arrays []uintptr
}

func (f *filled) drop() {
	for _, array := range f.arrays {
		capi.Free(array)
	}
	f.callback.drop()
}

// fill sets all fields.
func (p *TableParams) fill(c capi.Table_params, dtype DType) *filled {
	p.mode(c)
	c.SetDtype(uint32(dtype))
	c.SetLength(p.Length)
	c.SetDim(p.Dim)
	c.SetRule(uint32(p.Rule))
	c.SetAggregate(uint32(p.Aggregate))
	c.SetLearning_rate(p.LearningRate)
	c.SetMomentum(p.Momentum)
	c.SetBeta1(p.Beta1)
	c.SetBeta2(p.Beta2)
	c.SetEpsilon(p.Epsilon)
	c.SetRho(p.Rho)
	c.SetClip_value(p.ClipValue)
	c.SetClip_norm(p.ClipNorm)
	c.SetWeight_decay(p.WeightDecay)
	c.SetL1(p.L1)
	c.SetL2(p.L2)
	c.SetTrust(p.Trust)
	c.SetFtrl_beta(p.FTRLBeta)
	c.SetCompensation(p.Compensation)
	c.SetAccumulator(p.Accumulator)
	c.SetGiven(uint32(p.Given))
	c.SetInitial(p.Initial)
	c.SetSpread(p.Spread)
	c.SetDistribution(uint32(p.Distribution))
	c.SetSeed(p.Seed)
	c.SetRow_length(p.RowLength)
	c.SetMax_bytes(p.MaxBytes)
	if p.Function != "" {
		c.SetFunction(p.Function)
	}
	c.SetStorage_dtype(uint32(p.StorageType))
	c.SetWire_dtype(uint32(p.WireType))
	c.SetNot_finite(uint32(p.NotFinite))
	c.SetSteps(uint32(p.Steps))
	c.SetMean_over(uint32(p.MeanOver))
	c.SetSchedule(uint32(p.Schedule))
	c.SetWarmup_steps(p.WarmupSteps)
	c.SetDecay_steps(p.DecaySteps)
	c.SetDecay(p.Decay)
	c.SetMemory(uint32(p.Memory))
	c.SetPlacement(uint32(p.Placement))
	c.SetVirtual_nodes(p.VirtualNodes)
	c.SetPlacement_block(p.PlacementBlock)
	c.SetKey_count(p.KeyCount)
	c.SetSplit_bytes(p.SplitBytes)
	weights := capi.CArray(start(p.Weights), 4*len(p.Weights))
	c.SetWeights(capi.Memory(weights))
	c.SetWeight_count(uint32(len(p.Weights)))
	var segments []C.dtrain_segment_t
	for i := range p.Segments {
		segments = append(segments, p.Segments[i].c())
	}
	array := capi.CArray(start(segments), len(segments)*int(unsafe.Sizeof(C.dtrain_segment_t{})))
	c.SetSegments(array)
	c.SetSegment_count(uint32(len(segments)))
	made := &filled{arrays: []uintptr{weights, array}}
	if p.Place != nil {
		made.what = "Place"
		made.number = capi.NewCallback(p.place(&made.callback))
		c.Set_place(made.number)
	}
	return made
}

func (p *TableParams) place(of *callback) capi.Place {
	return func(first, count uint64, servers uint32) (server uint32) {
		well := of.run(func() (err error) {
			server, err = p.Place(first, count, servers)
			return err
		})
		if !well {
			return math.MaxUint32 // no server has this number: refused
		}
		return server
	}
}

func (s *Segment) c() C.dtrain_segment_t {
	return C.dtrain_segment_t{
		struct_size:   C.uint32_t(unsafe.Sizeof(C.dtrain_segment_t{})),
		rule:          C.uint32_t(s.Rule),
		first:         C.uint64_t(s.First),
		count:         C.uint64_t(s.Count),
		learning_rate: C.double(s.LearningRate),
		momentum:      C.double(s.Momentum),
		beta1:         C.double(s.Beta1),
		beta2:         C.double(s.Beta2),
		epsilon:       C.double(s.Epsilon),
		rho:           C.double(s.Rho),
		clip_value:    C.double(s.ClipValue),
		clip_norm:     C.double(s.ClipNorm),
		weight_decay:  C.double(s.WeightDecay),
		l1:            C.double(s.L1),
		l2:            C.double(s.L2),
		trust:         C.double(s.Trust),
		ftrl_beta:     C.double(s.FTRLBeta),
		given:         C.uint32_t(s.Given),
		accumulator:   C.double(s.Accumulator),
	}
}
