// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/**
 * The update rule of a table or segment, with its numbers. Numbers that are set are taken as they are, also
 * 0; numbers that the rule does not use are refused.
 *
 * @param <S> the class of the settings
 */
public abstract class RuleSettings<S> {
    static final int LEARNING_RATE = 0x1; // DTRAIN_GIVEN_*
    static final int MOMENTUM = 0x2;
    static final int BETA1 = 0x4;
    static final int BETA2 = 0x8;
    static final int EPSILON = 0x10;
    static final int RHO = 0x20;
    static final int TRUST = 0x40;
    static final int FTRL_BETA = 0x80;
    static final int COMPENSATION = 0x100;
    static final int ACCUMULATOR = 0x200;
    private Rule rule;
    private double learningRate;
    private double momentum;
    private double beta1;
    private double beta2;
    private double epsilon;
    private double rho;
    private double clipValue;
    private double clipNorm;
    private double weightDecay;
    private double l1;
    private double l2;
    private double trust;
    private double ftrlBeta;
    private double accumulator;
    private int given;

    RuleSettings() {
    }

    abstract S self();

    Rule rule() {
        return rule;
    }

    /** Marks a number as set, so that 0 does not mean its default. */
    void say(int number) {
        given |= number;
    }

    /**
     * The update rule.
     *
     * @param value what a push does
     * @return this
     */
    public S rule(Rule value) {
        rule = Arguments.given(value, "rule");
        return self();
    }

    /**
     * Learning rate of optimizers.
     *
     * @param value 0.01, ADADELTA 1, by default; with segments a factor for their rates, 1 by default
     * @return this
     */
    public S learningRate(double value) {
        say(LEARNING_RATE);
        learningRate = value;
        return self();
    }

    /**
     * Momentum of MOMENTUM, NESTEROV and LARS.
     *
     * @param value 0.9 by default; 0 to less than 1
     * @return this
     */
    public S momentum(double value) {
        say(MOMENTUM);
        momentum = value;
        return self();
    }

    /**
     * Decay of the first moment, for ADAM, its variants and LAMB.
     *
     * @param value 0.9 by default; 0 to less than 1
     * @return this
     */
    public S beta1(double value) {
        say(BETA1);
        beta1 = value;
        return self();
    }

    /**
     * Decay of the second moment, for ADAM, its variants and LAMB.
     *
     * @param value 0.999 by default; 0 to less than 1
     * @return this
     */
    public S beta2(double value) {
        say(BETA2);
        beta2 = value;
        return self();
    }

    /**
     * Epsilon of optimizers.
     *
     * @param value 1e-8, ADADELTA and LAMB 1e-6, by default
     * @return this
     */
    public S epsilon(double value) {
        say(EPSILON);
        epsilon = value;
        return self();
    }

    /**
     * Decay of the mean square of RMSPROP and ADADELTA.
     *
     * @param value 0.9 by default; 0 to less than 1
     * @return this
     */
    public S rho(double value) {
        say(RHO);
        rho = value;
        return self();
    }

    /**
     * Limits each g to this magnitude.
     *
     * @param value 0: no limit
     * @return this
     */
    public S clipValue(double value) {
        clipValue = value;
        return self();
    }

    /**
     * Scales each row of g down to this L2 norm.
     *
     * @param value 0: no limit
     * @return this
     */
    public S clipNorm(double value) {
        clipNorm = value;
        return self();
    }

    /**
     * Adds this multiple of the value to g (ADAMW, LARS, LAMB: as in their papers).
     *
     * @param value 0: none
     * @return this
     */
    public S weightDecay(double value) {
        weightDecay = value;
        return self();
    }

    /**
     * Shrinks values by L1.
     *
     * @param value 0: none
     * @return this
     */
    public S l1(double value) {
        l1 = value;
        return self();
    }

    /**
     * Shrinks values by L2.
     *
     * @param value 0: none
     * @return this
     */
    public S l2(double value) {
        l2 = value;
        return self();
    }

    /**
     * Trust coefficient of LARS.
     *
     * @param value 0.001 by default
     * @return this
     */
    public S trust(double value) {
        say(TRUST);
        trust = value;
        return self();
    }

    /**
     * Beta of FTRL.
     *
     * @param value 1 by default
     * @return this
     */
    public S ftrlBeta(double value) {
        say(FTRL_BETA);
        ftrlBeta = value;
        return self();
    }

    /**
     * Initial value of the sums of squares of ADAGRAD, ADAGRAD_ROWS, FTRL, RMSPROP and ADADELTA.
     *
     * @param value 0 by default; 0 or more
     * @return this
     */
    public S accumulator(double value) {
        say(ACCUMULATOR);
        accumulator = value;
        return self();
    }

    void write(TableParams params) {
        params.setRule(rule == null ? 0 : rule.number());
        params.setLearning_rate(learningRate);
        params.setMomentum(momentum);
        params.setBeta1(beta1);
        params.setBeta2(beta2);
        params.setEpsilon(epsilon);
        params.setRho(rho);
        params.setClip_value(clipValue);
        params.setClip_norm(clipNorm);
        params.setWeight_decay(weightDecay);
        params.setL1(l1);
        params.setL2(l2);
        params.setTrust(trust);
        params.setFtrl_beta(ftrlBeta);
        params.setAccumulator(accumulator);
        params.setGiven(given);
    }

    void write(SegmentParams params) {
        params.setRule(rule == null ? 0 : rule.number());
        params.setLearning_rate(learningRate);
        params.setMomentum(momentum);
        params.setBeta1(beta1);
        params.setBeta2(beta2);
        params.setEpsilon(epsilon);
        params.setRho(rho);
        params.setClip_value(clipValue);
        params.setClip_norm(clipNorm);
        params.setWeight_decay(weightDecay);
        params.setL1(l1);
        params.setL2(l2);
        params.setTrust(trust);
        params.setFtrl_beta(ftrlBeta);
        params.setAccumulator(accumulator);
        params.setGiven(given);
    }
}
