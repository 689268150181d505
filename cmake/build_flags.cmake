# Compiler settings for everything in the tree, and for nothing around it: variables and options of this folder.
# SPDX-License-Identifier: Apache-2.0
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS ON) # POSIX functions
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
if(PROJECT_IS_TOP_LEVEL)
    set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
endif()

if(DTRAIN_WARNINGS)
    add_compile_options(-Wall -Wextra -Werror -Wshadow)
else()
    add_compile_options(-w) # those of a project around this one, too
endif()
# Nobody reads errno after sqrt(): without it gcc vectorises the optimizers' loops.
add_compile_options(-fstack-protector-strong -fno-math-errno)
# Who names no type of build gets no slow library by that. A release has -O2, too, a fifth smaller than -O3: loops
# that -O3 is faster for ask for it themselves (ps/rules/kernel_loop.h), or are vectorised by hand (device/simd).
add_compile_options($<$<OR:$<CONFIG:>,$<CONFIG:Release>>:-O2>)
add_compile_definitions(_GNU_SOURCE $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-gnu-unique>)
    # gcc 12 at -O3 takes `"text" + string` for overlapping memory (its bug 105651), and a vector's
    # insert() for one beyond its end.
    add_compile_options($<$<CONFIG:Release>:-Wno-restrict>
        $<$<CONFIG:Release>:-Wno-stringop-overflow>)
    # By itself it clears and copies a hundred bytes with string instructions, which are slow to
    # start, several times in a small call. Longer ones are the library's.
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
        set(by_moves unrolled_loop:256:noalign,libcall:-1:noalign)
        add_compile_options($<$<NOT:$<CONFIG:Debug>>:-mmemset-strategy=${by_moves}>
            $<$<NOT:$<CONFIG:Debug>>:-mmemcpy-strategy=${by_moves}>)
    endif()
endif()
add_link_options(-Wl,-z,relro,-z,now)
if(DTRAIN_LTO AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Fat: the static library is for all linkers.
    add_compile_options(-flto=auto -ffat-lto-objects -ffunction-sections -fdata-sections)
    # gcc 12 does not see that an operation on the stack is never deleted (engine/operation.cpp).
    add_link_options(-flto=auto -Wl,--gc-sections -Wno-free-nonheap-object)
endif()

if(DTRAIN_SANITIZE)
    add_compile_options(-fsanitize=${DTRAIN_SANITIZE} -fno-omit-frame-pointer)
    if(DTRAIN_SANITIZE MATCHES "undefined")
        add_compile_options(-fno-sanitize-recover=undefined)
    endif()
    add_link_options(-fsanitize=${DTRAIN_SANITIZE})
endif()

find_program(DTRAIN_CCACHE ccache)
if(DTRAIN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_C_COMPILER_LAUNCHER ${DTRAIN_CCACHE})
    set(CMAKE_CXX_COMPILER_LAUNCHER ${DTRAIN_CCACHE})
endif()
find_package(Threads REQUIRED)
