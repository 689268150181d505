package main

// SPDX-License-Identifier: Apache-2.0

import (
	"math"
	"math/rand"
)

// model has one hidden layer, tanh and softmax; all parameters are in one vector.
type model struct {
	vector, gradient []float32
}

// weights are the parts of a vector.
type weights struct{ w1, b1, w2, b2 []float32 }

func split(vector []float32) (w weights) {
	take := func(count int) []float32 {
		part := vector[:count]
		vector = vector[count:]
		return part
	}
	return weights{take(pixels * hidden), take(hidden), take(hidden * classes), take(classes)}
}

func newModel() *model {
	random := rand.New(rand.NewSource(1)) // the same on every worker
	size := pixels*hidden + hidden + hidden*classes + classes
	m := &model{make([]float32, size), make([]float32, size)}
	for i := range m.vector {
		m.vector[i] = float32(random.NormFloat64() * 0.1)
	}
	return m
}

func (m *model) predict(image *[pixels]float32, h *[hidden]float32, p *[classes]float32) {
	w := split(m.vector)
	copy(h[:], w.b1)
	for i, x := range image {
		if x != 0 {
			for j, weight := range w.w1[i*hidden : (i+1)*hidden] {
				h[j] += x * weight
			}
		}
	}
	copy(p[:], w.b2)
	for j := range h {
		h[j] = float32(math.Tanh(float64(h[j])))
		for k, weight := range w.w2[j*classes : (j+1)*classes] {
			p[k] += h[j] * weight
		}
	}
	sum := float32(0)
	for k := range p {
		p[k] = float32(math.Exp(float64(p[k])))
		sum += p[k]
	}
	for k := range p {
		p[k] /= sum
	}
}

// computeGradient leaves the mean over the samples in m.gradient.
func (m *model) computeGradient(samples []sample) {
	w, g := split(m.vector), split(m.gradient)
	for i := range m.gradient {
		m.gradient[i] = 0
	}
	var h [hidden]float32
	var e [classes]float32
	for s := range samples {
		m.predict(&samples[s].image, &h, &e)
		e[samples[s].label]--
		for k := range e {
			e[k] /= float32(len(samples))
			g.b2[k] += e[k]
		}
		for j := range h {
			back := float32(0)
			for k, x := range e {
				back += x * w.w2[j*classes+k]
				g.w2[j*classes+k] += x * h[j]
			}
			h[j] = back * (1 - h[j]*h[j])
			g.b1[j] += h[j]
		}
		for i, x := range samples[s].image {
			if x != 0 {
				for j := range h {
					g.w1[i*hidden+j] += x * h[j]
				}
			}
		}
	}
}

func (m *model) accuracy(samples []sample) float64 {
	var h [hidden]float32
	var p [classes]float32
	right := 0
	for s := range samples {
		m.predict(&samples[s].image, &h, &p)
		best := 0
		for k := range p {
			if p[k] > p[best] {
				best = k
			}
		}
		if best == samples[s].label {
			right++
		}
	}
	return float64(right) / float64(len(samples))
}
