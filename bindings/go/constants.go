package dtrain

// SPDX-License-Identifier: Apache-2.0

// #include <dtrain.h>
import "C"

// Op is the operation of a reduction.
type Op uint32

// Operations. Avg of integers is exact, rounded toward zero; the Bit operations are for integers;
// Adasum (all-reduce of floating types) averages gradients that agree and adds orthogonal ones.
const (
	Sum    Op = C.DTRAIN_SUM
	Avg    Op = C.DTRAIN_AVG
	Prod   Op = C.DTRAIN_PROD
	Min    Op = C.DTRAIN_MIN
	Max    Op = C.DTRAIN_MAX
	BitAnd Op = C.DTRAIN_BAND
	BitOr  Op = C.DTRAIN_BOR
	BitXor Op = C.DTRAIN_BXOR
	Adasum Op = C.DTRAIN_ADASUM
)

// AnyRank makes Recv accept a message from any rank.
const AnyRank = C.DTRAIN_ANY_RANK

// Newcomer as JoinParams.Size: this process waits until the workers of a running elastic job take it
// in.
const Newcomer = C.DTRAIN_NEWCOMER

// LogLevel is the level of a line of the log.
type LogLevel int32

// Levels of the log.
const (
	LogError LogLevel = C.DTRAIN_LOG_ERROR
	LogWarn  LogLevel = C.DTRAIN_LOG_WARN
	LogInfo  LogLevel = C.DTRAIN_LOG_INFO
	LogDebug LogLevel = C.DTRAIN_LOG_DEBUG
)

func (level LogLevel) String() string {
	switch level {
	case LogError:
		return "error"
	case LogWarn:
		return "warn"
	case LogInfo:
		return "info"
	default:
		return "debug"
	}
}

// Role is what the environment starts a process as.
type Role uint32

// Roles. An evaluator is no member of the job: it follows the job's checkpoints.
const (
	RoleWorker    Role = C.DTRAIN_ROLE_WORKER
	RoleServer    Role = C.DTRAIN_ROLE_SERVER
	RoleEvaluator Role = C.DTRAIN_ROLE_EVALUATOR
)
