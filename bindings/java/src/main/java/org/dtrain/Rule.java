// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.Map;

/**
 * Update rules: what a push of g does to a value. All but ADD, ASSIGN, MIN and MAX need a floating
 * type.
 */
public enum Rule {
    // from dtrain.h, by ./dev generate
    /** Adds g. */
    ADD(1),
    /** Replaces w by g. */
    ASSIGN(2),
    /** Gradient descent. */
    SGD(3),
    /** With momentum: Polyak 1964. */
    MOMENTUM(4),
    /** Adagrad: Duchi, Hazan and Singer 2011. */
    ADAGRAD(5),
    /** Adam: Kingma and Ba 2015. */
    ADAM(6),
    /** The mean of all pushes of the element so far. */
    MEAN(7),
    /** The least of the value and all pushes. */
    MIN(8),
    /** The greatest of the value and all pushes. */
    MAX(9),
    /** Nesterov's momentum: Sutskever et al. 2013. */
    NESTEROV(10),
    /** Adagrad with one sum per row: of the mean squares of its g. */
    ADAGRAD_ROWS(11),
    /** RMSProp: Tieleman and Hinton 2012. */
    RMSPROP(12),
    /** Adadelta: Zeiler 2012. */
    ADADELTA(13),
    /** Adam with decoupled weight decay: Loshchilov and Hutter 2019. */
    ADAMW(14),
    /** AMSGrad: Reddi, Kale and Kumar 2018. */
    AMSGRAD(15),
    /** FTRL-proximal: McMahan et al. 2013. */
    FTRL(16),
    /** LARS: You, Gitman and Ginsburg 2017. */
    LARS(17),
    /** LAMB: You et al. 2020. */
    LAMB(18),
    /** Delay-compensated SGD: Zheng et al. 2017; no BSP. */
    DC_SGD(19),
    /** A function of the servers, by name: dtrain_function.h. */
    FUNCTION(20),
    // the end of what is generated
    ;

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
