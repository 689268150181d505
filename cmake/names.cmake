# dtrain_names.h: lists of constants of dtrain.h, from which tables of the library and loops of tests follow:
# DTRAIN_EACH_RULE(f) is f(ADD, add) f(ASSIGN, assign) and so on, for DTRAIN_RULE_ADD, DTRAIN_RULE_ASSIGN, ...
# As a script: cmake -DHEADER=<dtrain.h> -DNAMES=<what to write> -P names.cmake
# SPDX-License-Identifier: Apache-2.0
if(NOT CMAKE_SCRIPT_MODE_FILE)
    set(HEADER ${PROJECT_SOURCE_DIR}/include/dtrain.h) # basics.cmake has it configured again when it changes
    set(NAMES ${DTRAIN_BASICS}/dtrain_names.h)
endif()
file(READ ${HEADER} text)
set(lists "#pragma once\n")
foreach(kind RULE COMPRESS)
    string(REGEX MATCHALL "\n +DTRAIN_${kind}_[A-Z0-9_]+ = " constants "${text}")
    string(APPEND lists "#define DTRAIN_EACH_${kind}(f)")
    foreach(constant IN LISTS constants)
        string(REGEX REPLACE "\n +DTRAIN_${kind}_([A-Z0-9_]+) = " "\\1" name "${constant}")
        string(TOLOWER ${name} small)
        string(APPEND lists " \\\n    f(${name}, ${small})")
    endforeach()
    string(APPEND lists "\n")
endforeach()
set(before)
if(EXISTS ${NAMES})
    file(READ ${NAMES} before)
endif()
if(NOT lists STREQUAL before)
    file(WRITE ${NAMES} "${lists}")
endif()
