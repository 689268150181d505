package dtrain_test

// SPDX-License-Identifier: Apache-2.0

import (
	"math"
	"strings"
	"testing"

	"dtrain.org/dtrain"
)

func TestClipByGlobalNorm(t *testing.T) {
	x, y := []grad{3, 0}, []grad{4}
	for _, c := range []struct {
		most, norm float64
		want       grad
	}{{5, 5, 3}, {2.5, 5, 1.5}, {2.5, 2.5, 1.5}} {
		norm, err := dtrain.ClipByGlobalNorm([][]grad{x, nil, y}, c.most)
		check(t, err)
		equal(t, norm, c.norm)
		equal(t, x, []grad{c.want, 0})
	}
	equal(t, y[0], grad(2))
	halves := full(4, dtrain.BF16(0x4000)) // 2
	norm, err := dtrain.ClipByGlobalNorm([][]dtrain.BF16{halves}, 2)
	check(t, err)
	equal(t, norm, 4.0)
	equal(t, halves, full(4, dtrain.BF16(0x3f80)))
	norm, err = dtrain.ClipByGlobalNorm([][]float64{}, 1)
	check(t, err)
	equal(t, norm, 0.0)
	z := []float64{1, math.NaN()}
	_, err = dtrain.ClipByGlobalNorm([][]float64{z[:1], z}, 0.5)
	refused(t, err, dtrain.ErrInvalid)
	equal(t, z[0], 1.0)
	_, err = dtrain.ClipByGlobalNorm([][]float64{z[:1]}, 0)
	refused(t, err, dtrain.ErrInvalid)
	equal(t, strings.Contains(err.Error(), "max_norm"), true)
}
