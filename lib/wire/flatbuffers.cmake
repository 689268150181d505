# Generates C++ from control.fbs at build time.
# SPDX-License-Identifier: Apache-2.0
find_program(DTRAIN_FLATC flatc)
if(NOT DTRAIN_FLATC)
    message(FATAL_ERROR "dtrain is built with flatc: apt-get install flatbuffers-compiler flatbuffers-compiler-dev")
endif()
set(generated ${PROJECT_BINARY_DIR}/generated/wire)
add_custom_command(OUTPUT ${generated}/control_generated.h
    COMMAND ${DTRAIN_FLATC} --cpp --scoped-enums -o ${generated} ${CMAKE_CURRENT_LIST_DIR}/control.fbs
    DEPENDS ${CMAKE_CURRENT_LIST_DIR}/control.fbs VERBATIM)
target_sources(dtrain_layer_wire PRIVATE ${generated}/control_generated.h)
# SYSTEM: suppresses its warnings. PRIVATE: only lib/wire sees it.
target_include_directories(dtrain_layer_wire SYSTEM PRIVATE ${PROJECT_BINARY_DIR}/generated)
