# control.fbs as C++, made at build time.
# SPDX-License-Identifier: Apache-2.0
find_program(FLATC flatc REQUIRED)
set(generated ${CMAKE_BINARY_DIR}/generated/wire)
add_custom_command(OUTPUT ${generated}/control_generated.h
    COMMAND ${FLATC} --cpp --scoped-enums -o ${generated} ${CMAKE_CURRENT_LIST_DIR}/control.fbs
    DEPENDS ${CMAKE_CURRENT_LIST_DIR}/control.fbs VERBATIM)
target_sources(layer_wire PRIVATE ${generated}/control_generated.h)
# SYSTEM: its warnings are not ours. PRIVATE: only lib/wire sees it.
target_include_directories(layer_wire SYSTEM PRIVATE ${CMAKE_BINARY_DIR}/generated)
