# The headers of C++'s library that most sources use, compiled once for all targets that are compiled alike
# (docs/TESTING.md, "How long it takes"). Builds without it compile only files that include enough.
# SPDX-License-Identifier: Apache-2.0
set(DTRAIN_PRECOMPILED_HEADERS algorithm array atomic chrono cmath condition_variable cstdint cstdio cstring deque
    functional map memory mutex optional random set span string string_view thread vector)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang") # so that ccache takes two that are alike for the same
    set(precompiled_options -Xclang -fno-pch-timestamp)
else()
    # gcc forgets which headers are the system's, and gcc 12 has false warnings about those. A type of an unnamed namespace
    # in a source file is nobody else's, though another file includes it here.
    set(precompiled_options -fpch-preprocess -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-subobject-linkage)
endif()

# Targets whose options are the same share one.
function(dtrain_precompile target)
    get_target_property(type ${target} TYPE)
    get_target_property(sources ${target} SOURCES)
    if(NOT type MATCHES "EXECUTABLE|LIBRARY" OR NOT "${sources}" MATCHES "[.]cpp(;|$)" OR "${sources}" MATCHES "[.]c(;|$)")
        return()
    endif()
    set_target_properties(${target} PROPERTIES PCH_WARN_INVALID OFF) # a source with options of its own does without
    get_target_property(options ${target} COMPILE_OPTIONS)
    string(REGEX REPLACE ".*_" "" type ${type}) # code of executables is another's than that of libraries
    string(MD5 kind "${type} ${options}")
    get_property(first GLOBAL PROPERTY DTRAIN_PRECOMPILED_${kind})
    if(first)
        target_precompile_headers(${target} REUSE_FROM ${first})
    else()
        set(headers ${DTRAIN_PRECOMPILED_HEADERS})
        list(TRANSFORM headers REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:<\\1$<ANGLE-R>>")
        target_precompile_headers(${target} PRIVATE ${headers})
        set_property(GLOBAL PROPERTY DTRAIN_PRECOMPILED_${kind} ${target})
    endif()
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:SHELL:${precompiled_options}>")
endfunction()

# All targets of a folder and of those below it.
function(dtrain_precompile_folder folder)
    get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
    foreach(target IN LISTS targets)
        dtrain_precompile(${target})
    endforeach()
    get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
    foreach(below IN LISTS folders)
        dtrain_precompile_folder(${below})
    endforeach()
endfunction()
list(JOIN precompiled_options " " precompiled_options)
dtrain_precompile_folder(${PROJECT_SOURCE_DIR})
