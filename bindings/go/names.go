package dtrain

// SPDX-License-Identifier: Apache-2.0

import (
	"encoding"
	"fmt"
	"strings"
)

// Named lists the types whose values have names, for command lines and files; flag.TextVar and
// encoding/json use the names, too.
type Named interface {
	Op | DType | Rule | Consistency | Distribution | Placement | NotFinite | Steps | MeanOver | Schedule |
		TableMemory | Compression | GraphKind
}

// Parse returns the value of a name: Parse[Op]("sum"), Parse[Rule]("adagrad"),
// Parse[DType]("bfloat16"). Case, hyphens and underscores are ignored.
func Parse[E Named](name string) (value E, err error) {
	if name == "" {
		name = " " // a name that no value has
	}
	err = any(&value).(encoding.TextUnmarshaler).UnmarshalText([]byte(name))
	return value, err
}

// names of values; values are printed by their first name.
type names[E ~uint32] []struct {
	name  string
	value E
}

func plain(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
}

func (all names[E]) find(kind, name string, value *E) error {
	if name == "" {
		*value = 0 // not set
		return nil
	}
	var known []string
	said := map[E]bool{}
	for _, one := range all {
		if plain(one.name) == plain(name) {
			*value = one.value
			return nil
		}
		if !said[one.value] {
			said[one.value] = true
			known = append(known, one.name)
		}
	}
	return errorf(ErrInvalid, "there is no %s %q; it is one of %s", kind, name, strings.Join(known, ", "))
}

func (all names[E]) of(kind string, value E) string {
	for _, one := range all {
		if one.value == value {
			return one.name
		}
	}
	return fmt.Sprintf("%s(%d)", kind, uint32(value))
}

func (all names[E]) text(kind string, value E) ([]byte, error) {
	if value == 0 {
		return nil, nil
	}
	for _, one := range all {
		if one.value == value {
			return []byte(one.name), nil
		}
	}
	return nil, errorf(ErrInvalid, "there is no %s %d", kind, uint32(value))
}

var (
	opNames = names[Op]{
		{"sum", Sum}, {"avg", Avg}, {"prod", Prod}, {"min", Min}, {"max", Max}, {"band", BitAnd},
		{"bor", BitOr}, {"bxor", BitXor}, {"adasum", Adasum}, {"add", Sum}, {"mean", Avg}, {"average", Avg},
		{"product", Prod},
	}
	typeNames = names[DType]{
		{"f32", TypeF32}, {"f64", TypeF64}, {"f16", TypeF16}, {"bf16", TypeBF16}, {"i8", TypeI8},
		{"u8", TypeU8}, {"i16", TypeI16}, {"u16", TypeU16}, {"i32", TypeI32}, {"u32", TypeU32},
		{"i64", TypeI64}, {"u64", TypeU64}, {"float", TypeF32}, {"float32", TypeF32}, {"double", TypeF64},
		{"float64", TypeF64}, {"half", TypeF16}, {"float16", TypeF16}, {"bfloat16", TypeBF16},
		{"int8", TypeI8}, {"uint8", TypeU8}, {"int16", TypeI16}, {"uint16", TypeU16}, {"int32", TypeI32},
		{"uint32", TypeU32}, {"int64", TypeI64}, {"uint64", TypeU64},
	}
	ruleNames = names[Rule]{
		// from dtrain.h, by ./dev generate
		{"add", RuleAdd},
		{"assign", RuleAssign},
		{"sgd", RuleSGD},
		{"momentum", RuleMomentum},
		{"adagrad", RuleAdagrad},
		{"adam", RuleAdam},
		{"mean", RuleMean},
		{"min", RuleMin},
		{"max", RuleMax},
		{"nesterov", RuleNesterov},
		{"adagrad-rows", RuleAdagradRows},
		{"rmsprop", RuleRMSProp},
		{"adadelta", RuleAdadelta},
		{"adamw", RuleAdamW},
		{"amsgrad", RuleAMSGrad},
		{"ftrl", RuleFTRL},
		{"lars", RuleLARS},
		{"lamb", RuleLAMB},
		{"dc-sgd", RuleDCSGD},
		{"function", RuleFunction},
		// the end of what is generated
		{"adagrad-rowwise", RuleAdagradRows},
	}
	consistencyNames = names[Consistency]{
		{"async", Async}, {"bsp", BSP}, {"ssp", SSP}, {"quorum", Quorum},
	}
	distributionNames = names[Distribution]{
		{"constant", Constant}, {"uniform", Uniform}, {"normal", Normal},
	}
	placementNames = names[Placement]{
		{"range", PlaceRange}, {"hash", PlaceHash}, {"consistent", PlaceConsistent},
		{"round-robin", PlaceRoundRobin}, {"greedy", PlaceGreedy}, {"user", PlaceUser},
	}
	notFiniteNames = names[NotFinite]{
		{"take", NotFiniteTake}, {"refuse", NotFiniteRefuse}, {"drop", NotFiniteDrop},
	}
	stepsNames = names[Steps]{
		{"own", StepsOwn}, {"table", StepsTable},
	}
	meanNames = names[MeanOver]{
		{"workers", MeanOverWorkers}, {"pushers", MeanOverPushers},
	}
	memoryNames = names[TableMemory]{
		{"host", MemoryHost}, {"cuda", MemoryCUDA},
	}
	scheduleNames = names[Schedule]{
		{"constant", ScheduleConstant}, {"linear", ScheduleLinear}, {"cosine", ScheduleCosine},
		{"exponential", ScheduleExponential}, {"staircase", ScheduleStaircase},
		{"inverse-sqrt", ScheduleInverseSqrt},
	}
	compressionNames = names[Compression]{
		// from dtrain.h, by ./dev generate
		{"f16", CompressF16},
		{"bf16", CompressBF16},
		{"int8", CompressInt8},
		{"topk", CompressTopK},
		{"onebit", CompressOneBit},
		{"powersgd", CompressPowerSGD},
		// the end of what is generated
		{"float16", CompressF16}, {"bfloat16", CompressBF16}, {"1bit", CompressOneBit},
	}
	graphNames = names[GraphKind]{
		{"ring", Ring}, {"grid", Grid}, {"exponential", Exponential}, {"full", Full}, {"custom", Custom},
	}
)

func (o Op) String() string { return opNames.of("Op", o) }

// MarshalText returns the name.
func (o Op) MarshalText() ([]byte, error) { return opNames.text("reduction", o) }

// UnmarshalText sets the value of this name.
func (o *Op) UnmarshalText(text []byte) error {
	return opNames.find("reduction", string(text), o)
}

func (d DType) String() string { return typeNames.of("DType", d) }

// MarshalText returns the name.
func (d DType) MarshalText() ([]byte, error) { return typeNames.text("type of elements", d) }

// UnmarshalText sets the value of this name.
func (d *DType) UnmarshalText(text []byte) error {
	return typeNames.find("type of elements", string(text), d)
}

func (r Rule) String() string { return ruleNames.of("Rule", r) }

// MarshalText returns the name.
func (r Rule) MarshalText() ([]byte, error) { return ruleNames.text("rule", r) }

// UnmarshalText sets the value of this name.
func (r *Rule) UnmarshalText(text []byte) error {
	return ruleNames.find("rule", string(text), r)
}

func (c Consistency) String() string { return consistencyNames.of("Consistency", c) }

// MarshalText returns the name.
func (c Consistency) MarshalText() ([]byte, error) { return consistencyNames.text("consistency", c) }

// UnmarshalText sets the value of this name.
func (c *Consistency) UnmarshalText(text []byte) error {
	return consistencyNames.find("consistency", string(text), c)
}

func (d Distribution) String() string { return distributionNames.of("Distribution", d) }

// MarshalText returns the name.
func (d Distribution) MarshalText() ([]byte, error) { return distributionNames.text("distribution", d) }

// UnmarshalText sets the value of this name.
func (d *Distribution) UnmarshalText(text []byte) error {
	return distributionNames.find("distribution", string(text), d)
}

func (p Placement) String() string { return placementNames.of("Placement", p) }

// MarshalText returns the name.
func (p Placement) MarshalText() ([]byte, error) { return placementNames.text("placement", p) }

// UnmarshalText sets the value of this name.
func (p *Placement) UnmarshalText(text []byte) error {
	return placementNames.find("placement", string(text), p)
}

func (n NotFinite) String() string { return notFiniteNames.of("NotFinite", n) }

// MarshalText returns the name.
func (n NotFinite) MarshalText() ([]byte, error) { return notFiniteNames.text("not-finite", n) }

// UnmarshalText sets the value of this name.
func (n *NotFinite) UnmarshalText(text []byte) error {
	return notFiniteNames.find("not-finite", string(text), n)
}

func (s Steps) String() string { return stepsNames.of("Steps", s) }

// MarshalText returns the name.
func (s Steps) MarshalText() ([]byte, error) { return stepsNames.text("steps", s) }

// UnmarshalText sets the value of this name.
func (s *Steps) UnmarshalText(text []byte) error {
	return stepsNames.find("steps", string(text), s)
}

func (m MeanOver) String() string { return meanNames.of("MeanOver", m) }

// MarshalText returns the name.
func (m MeanOver) MarshalText() ([]byte, error) { return meanNames.text("mean-over", m) }

// UnmarshalText sets the value of this name.
func (m *MeanOver) UnmarshalText(text []byte) error {
	return meanNames.find("mean-over", string(text), m)
}

func (m TableMemory) String() string { return memoryNames.of("TableMemory", m) }

// MarshalText returns the name.
func (m TableMemory) MarshalText() ([]byte, error) { return memoryNames.text("memory", m) }

// UnmarshalText sets the value of this name.
func (m *TableMemory) UnmarshalText(text []byte) error {
	return memoryNames.find("memory", string(text), m)
}

func (s Schedule) String() string { return scheduleNames.of("Schedule", s) }

// MarshalText returns the name.
func (s Schedule) MarshalText() ([]byte, error) { return scheduleNames.text("schedule", s) }

// UnmarshalText sets the value of this name.
func (s *Schedule) UnmarshalText(text []byte) error {
	return scheduleNames.find("schedule", string(text), s)
}

func (c Compression) String() string { return compressionNames.of("Compression", c) }

// MarshalText returns the name.
func (c Compression) MarshalText() ([]byte, error) { return compressionNames.text("compression", c) }

// UnmarshalText sets the value of this name.
func (c *Compression) UnmarshalText(text []byte) error {
	return compressionNames.find("compression", string(text), c)
}

func (g GraphKind) String() string { return graphNames.of("GraphKind", g) }

// MarshalText returns the name.
func (g GraphKind) MarshalText() ([]byte, error) { return graphNames.text("kind of graph", g) }

// UnmarshalText sets the value of this name.
func (g *GraphKind) UnmarshalText(text []byte) error {
	return graphNames.find("kind of graph", string(text), g)
}
