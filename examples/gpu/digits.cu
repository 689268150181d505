// The network of examples/digits/mlp.h on a GPU: tanh, softmax and cross entropy.
// SPDX-License-Identifier: Apache-2.0
//
// Each thread computes numbers of its own, in an order that does not depend on the grid, so that
// every run has the same result. The parameters are one array: weights [pixels][hidden], biases
// [hidden], weights [hidden][classes], biases [classes].

enum { pixels = 64, classes = 10 };

#define FOR_EACH(i, count)                                                                         \
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < (count);                          \
         i += gridDim.x * blockDim.x)

// activation[sample][unit]; order: which images are the samples.
extern "C" __global__ void digits_hidden(const float *parameters, const float *images,
                                         const unsigned *order, float *activation, unsigned count,
                                         unsigned hidden) {
    FOR_EACH(i, count * hidden) {
        const unsigned sample = i / hidden, unit = i % hidden;
        const float *image = images + order[sample] * pixels;
        float sum = parameters[pixels * hidden + unit]; // the bias
        for (unsigned p = 0; p < pixels; p++) sum += image[p] * parameters[p * hidden + unit];
        activation[i] = tanhf(sum);
    }
}

// Of each sample: error[class] and delta[unit], the loss's derivatives by what goes into the two
// layers; score[0] is the loss, score[1] whether the answer is right.
extern "C" __global__ void digits_output(const float *parameters, const int *labels,
                                         const unsigned *order, const float *activation,
                                         float *error, float *delta, float *score, unsigned count,
                                         unsigned hidden) {
    const float *weights = parameters + (pixels + 1) * hidden, *bias = weights + hidden * classes;
    FOR_EACH(sample, count) {
        const int label = labels[order[sample]];
        const float *unit = activation + sample * hidden;
        float *output = error + sample * classes, sum = 0;
        int best = 0;
        for (int c = 0; c < classes; c++) {
            output[c] = bias[c];
            for (unsigned h = 0; h < hidden; h++) output[c] += unit[h] * weights[h * classes + c];
            if (output[c] > output[best]) best = c;
        }
        const float highest = output[best];
        for (int c = 0; c < classes; c++) sum += output[c] = expf(output[c] - highest);
        for (int c = 0; c < classes; c++) output[c] /= sum;
        score[2 * sample] = -logf(fmaxf(output[label], 1e-30f));
        score[2 * sample + 1] = best == label ? 1 : 0;
        output[label] -= 1;
        for (unsigned h = 0; h < hidden; h++) {
            float back = 0;
            for (int c = 0; c < classes; c++) back += weights[h * classes + c] * output[c];
            delta[sample * hidden + h] = back * (1 - unit[h] * unit[h]);
        }
    }
}

// The sum over the samples, for each parameter.
extern "C" __global__ void digits_gradient(const float *images, const unsigned *order,
                                           const float *activation, const float *error,
                                           const float *delta, float *gradient, unsigned count,
                                           unsigned hidden) {
    const unsigned bias1 = pixels * hidden, weights2 = bias1 + hidden,
                   bias2 = weights2 + hidden * classes;
    FOR_EACH(i, bias2 + classes) {
        float sum = 0;
        for (unsigned s = 0; s < count; s++)
            if (i < bias1)
                sum += images[order[s] * pixels + i / hidden] * delta[s * hidden + i % hidden];
            else if (i < weights2)
                sum += delta[s * hidden + i - bias1];
            else if (i < bias2)
                sum += activation[s * hidden + (i - weights2) / classes] *
                       error[s * classes + (i - weights2) % classes];
            else
                sum += error[s * classes + i - bias2];
        gradient[i] = sum;
    }
}

// Gradient descent with momentum. scale: 1 over the samples of all ranks.
extern "C" __global__ void digits_step(float *parameters, float *velocity, const float *gradient,
                                       float scale, float rate, float momentum, unsigned count) {
    FOR_EACH(i, count) {
        velocity[i] = momentum * velocity[i] + scale * gradient[i];
        parameters[i] -= rate * velocity[i];
    }
}
