// SPDX-License-Identifier: Apache-2.0
package org.dtrain;

import java.util.Locale;
import java.util.Map;
import java.util.StringJoiner;

/**
 * Finds enum values by the names that people write, in files and on command lines: Op.of("sum").
 */
final class Names {
    private Names() {
    }

    /** others: further names, in the form of plain(). */
    static <E extends Enum<E>> E find(Class<E> kind, String name, Map<String, E> others) {
        String wanted = plain(Arguments.given(name, "name"));
        StringJoiner all = new StringJoiner(", ");
        for (E value : kind.getEnumConstants()) {
            if (plain(value.name()).equals(wanted)) {
                return value;
            }
            all.add(value.name().toLowerCase(Locale.ROOT));
        }
        if (others.containsKey(wanted)) {
            return others.get(wanted);
        }
        String title = kind.isMemberClass() ? kind.getDeclaringClass().getSimpleName() + "." : "";
        throw new IllegalArgumentException(title + kind.getSimpleName() + " has no \"" + name
                + "\"; it is one of " + all);
    }

    /** The name without case, spaces, hyphens and underscores, in which spellings differ. */
    private static String plain(String name) {
        return name.strip().toLowerCase(Locale.ROOT).replaceAll("[_ -]", "");
    }
}
