// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.Map;

/**
 * Update rules: what a push of g does to a value. All but ADD, ASSIGN, MIN and MAX need a floating
 * type.
 */
public enum Rule {
    /** Adds it. */
    ADD(1),
    /** Overwrites. */
    ASSIGN(2),
    /** Gradient descent. */
    SGD(3),
    /** With momentum. */
    MOMENTUM(4),
    /** Adagrad. */
    ADAGRAD(5),
    /** Adam. */
    ADAM(6),
    /** The mean of all pushes so far. */
    MEAN(7),
    /** The least of the value and all pushes. */
    MIN(8),
    /** The greatest of the value and all pushes. */
    MAX(9),
    /** With Nesterov's momentum. */
    NESTEROV(10),
    /** Adagrad with one sum for each row. */
    ADAGRAD_ROWS(11),
    /** RMSProp. */
    RMSPROP(12),
    /** Adadelta. */
    ADADELTA(13),
    /** Adam with decoupled weight decay. */
    ADAMW(14),
    /** AMSGrad. */
    AMSGRAD(15),
    /** FTRL-proximal. */
    FTRL(16),
    /** LARS. */
    LARS(17),
    /** LAMB. */
    LAMB(18),
    /** Delay-compensated gradient descent; not for BSP. */
    DC_SGD(19),
    /** A function of the servers, by its name. */
    FUNCTION(20);

    private static final Map<String, Rule> OTHERS = Map.of("adagradrowwise", ADAGRAD_ROWS);
    private final int number;

    Rule(int number) {
        this.number = number;
    }

    int number() {
        return number;
    }

    /**
     * Finds a value by its name; case, hyphens and underscores are ignored.
     *
     * @param name for example "adagrad"
     * @return the value
     * @throws IllegalArgumentException no value has this name; the text lists all names
     */
    public static Rule of(String name) {
        return Names.find(Rule.class, name, OTHERS);
    }
}
