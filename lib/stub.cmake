# The stub: a libdtrain.so.0 with every symbol of dtrain.map and nothing behind them, for linking
# programs where the library is not: cmake --build <folder> --target dtrain_stub.
# SPDX-License-Identifier: Apache-2.0
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS dtrain.map)
file(STRINGS dtrain.map symbols REGEX "^ +dtrain_[a-z0-9_]+;$")
set(functions)
foreach(symbol IN LISTS symbols)
    string(REGEX REPLACE "[ ;]" "" name "${symbol}")
    string(APPEND functions "STUB(${name})\n")
endforeach()
configure_file(stub.c.in stub.c @ONLY)

add_library(dtrain_stub SHARED ${CMAKE_CURRENT_BINARY_DIR}/stub.c)
set_target_properties(dtrain_stub PROPERTIES OUTPUT_NAME dtrain VERSION ${PROJECT_VERSION} SOVERSION 0
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/stub
    LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/dtrain.map)
if(NOT PROJECT_IS_TOP_LEVEL)
    set_target_properties(dtrain_stub PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
target_link_options(dtrain_stub PRIVATE -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/dtrain.map)
