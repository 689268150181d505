# The libraries that programs link.
# SPDX-License-Identifier: Apache-2.0
get_property(layers GLOBAL PROPERTY DTRAIN_LAYERS)
set(objects)
foreach(layer IN LISTS layers)
    list(APPEND objects $<TARGET_OBJECTS:${layer}>)
endforeach()
# tcp and shm are built in; the same sources also make plugins of their own (transports/).
list(APPEND objects $<TARGET_OBJECTS:dtrain_transport_tcp_objects> $<TARGET_OBJECTS:dtrain_transport_shm_objects>)

add_library(dtrain SHARED ${objects})
set_target_properties(dtrain PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0
    LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/dtrain.map)
# The C++ runtime is linked in and hidden, so that two copies of anything in one process never meet.
# Of libgcc, which unwinds stacks, there must be one in the process: what a callback throws, and the end
# of a thread, pass through our frames.
set(private_runtime -static-libstdc++ -shared-libgcc -Wl,-z,defs)
if(DTRAIN_SANITIZE) # its runtime is the program's
    set(private_runtime)
endif()
target_link_options(dtrain PRIVATE ${private_runtime}
    -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/dtrain.map -Wl,--exclude-libs,ALL
    -Wl,-z,nodelete)
target_include_directories(dtrain INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(dtrain PRIVATE Threads::Threads ${CMAKE_DL_LIBS} -l:libsodium.a)
add_library(dtrain::dtrain ALIAS dtrain)

add_library(dtrain_static STATIC ${objects})
set_target_properties(dtrain_static PROPERTIES OUTPUT_NAME dtrain)
if(DTRAIN_LTO) # without what only gcc, and of this version, could read
    add_custom_command(TARGET dtrain_static POST_BUILD COMMAND ${CMAKE_OBJCOPY} --wildcard --enable-deterministic-archives
        --remove-section=.gnu.lto_* --remove-section=.gnu.debuglto_* --strip-symbol=__gnu_lto_slim --strip-symbol=__gnu_lto_v1
        $<TARGET_FILE:dtrain_static> VERBATIM)
endif()
target_include_directories(dtrain_static INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
# A program in C does not bring the C++ runtime itself.
target_link_libraries(dtrain_static PUBLIC Threads::Threads ${CMAKE_DL_LIBS} -l:libsodium.a stdc++ m)
add_library(dtrain::dtrain_static ALIAS dtrain_static)
