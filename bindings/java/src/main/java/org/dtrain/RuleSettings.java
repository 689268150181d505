// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/**
 * A rule of a table's values and its numbers. What is said is taken as it is, also 0; what the rule
 * does not have is refused.
 *
 * @param <S> what the settings are of
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

    /** A number, of which 0 is not its default then. */
    void say(int number) {
        given |= number;
    }

    /**
     * What a push does.
     *
     * @param value which
     * @return this
     */
    public S rule(Rule value) {
        rule = Arguments.given(value, "rule");
        return self();
    }

    /**
     * Learning rate of optimizers.
     *
     * @param value 0.01, ADADELTA 1, if not said; with segments a factor of theirs, 1 if not said
     * @return this
     */
    public S learningRate(double value) {
        say(LEARNING_RATE);
        learningRate = value;
        return self();
    }

    /**
     * Of MOMENTUM, NESTEROV and LARS.
     *
     * @param value 0.9 if not said; 0 to less than 1
     * @return this
     */
    public S momentum(double value) {
        say(MOMENTUM);
        momentum = value;
        return self();
    }

    /**
     * Of ADAM and its kin, and LAMB.
     *
     * @param value 0.9 if not said; 0 to less than 1
     * @return this
     */
    public S beta1(double value) {
        say(BETA1);
        beta1 = value;
        return self();
    }

    /**
     * Of ADAM and its kin, and LAMB.
     *
     * @param value 0.999 if not said; 0 to less than 1
     * @return this
     */
    public S beta2(double value) {
        say(BETA2);
        beta2 = value;
        return self();
    }

    /**
     * Of optimizers.
     *
     * @param value 1e-8, ADADELTA and LAMB 1e-6, if not said
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
     * @param value 0.9 if not said; 0 to less than 1
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
     * Adds so much of the value to g (ADAMW, LARS, LAMB: as their papers).
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
     * @param value 0.001 if not said
     * @return this
     */
    public S trust(double value) {
        say(TRUST);
        trust = value;
        return self();
    }

    /**
     * Of FTRL.
     *
     * @param value 1 if not said
     * @return this
     */
    public S ftrlBeta(double value) {
        say(FTRL_BETA);
        ftrlBeta = value;
        return self();
    }

    /**
     * What the sums of squares of ADAGRAD, ADAGRAD_ROWS, FTRL, RMSPROP and ADADELTA begin with.
     *
     * @param value 0 if not said; 0 or more
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
