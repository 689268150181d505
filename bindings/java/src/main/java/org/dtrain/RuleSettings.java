// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

/**
 * A rule of a table's values and its numbers, of which 0 is as usual.
 *
 * @param <S> what the settings are of
 */
public abstract class RuleSettings<S> {
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

    RuleSettings() {
    }

    abstract S self();

    Rule rule() {
        return rule;
    }

    /**
     * What a push does.
     *
     * @param value which
     * @return this
     */
    public S rule(Rule value) {
        rule = value;
        return self();
    }

    /**
     * Learning rate of optimizers.
     *
     * @param value 0: 0.01, ADADELTA 1; with segments a factor of theirs, 0: 1
     * @return this
     */
    public S learningRate(double value) {
        learningRate = value;
        return self();
    }

    /**
     * Of MOMENTUM, NESTEROV and LARS.
     *
     * @param value 0: 0.9
     * @return this
     */
    public S momentum(double value) {
        momentum = value;
        return self();
    }

    /**
     * Of ADAM and its kin, and LAMB.
     *
     * @param value 0: 0.9
     * @return this
     */
    public S beta1(double value) {
        beta1 = value;
        return self();
    }

    /**
     * Of ADAM and its kin, and LAMB.
     *
     * @param value 0: 0.999
     * @return this
     */
    public S beta2(double value) {
        beta2 = value;
        return self();
    }

    /**
     * Of optimizers.
     *
     * @param value 0: 1e-8, ADADELTA and LAMB 1e-6
     * @return this
     */
    public S epsilon(double value) {
        epsilon = value;
        return self();
    }

    /**
     * Decay of the mean square of RMSPROP and ADADELTA.
     *
     * @param value 0: 0.9
     * @return this
     */
    public S rho(double value) {
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
     * @param value 0: 0.001
     * @return this
     */
    public S trust(double value) {
        trust = value;
        return self();
    }

    /**
     * Of FTRL.
     *
     * @param value 0: 1
     * @return this
     */
    public S ftrlBeta(double value) {
        ftrlBeta = value;
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
    }
}
