# The layering as include paths: a layer sees include/ and the layers below it, nothing else, so an
# include that points upwards does not compile.
# SPDX-License-Identifier: Apache-2.0

# dtrain_layer(<name> [BELOW <layer> ...]): lib/<name>/*.cpp as the object library dtrain_layer_<name>.
# Files include each other as "<layer>/<file>.h". BELOW names the layers it may use (with theirs).
function(dtrain_layer name)
    cmake_parse_arguments(ARG "" "" "BELOW" ${ARGN})
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
    # A folder that holds nothing but a link to this layer is what others put on their include path.
    set(root ${PROJECT_BINARY_DIR}/layers/${name})
    file(MAKE_DIRECTORY ${root})
    file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR}/${name} ${root}/${name} SYMBOLIC)
    add_library(dtrain_layer_${name} OBJECT ${sources})
    target_include_directories(dtrain_layer_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${root})
    foreach(lower IN LISTS ARG_BELOW)
        target_link_libraries(dtrain_layer_${name} PUBLIC dtrain_layer_${lower})
    endforeach()
    set_property(GLOBAL APPEND PROPERTY DTRAIN_LAYERS dtrain_layer_${name})
    list(TRANSFORM ARG_BELOW PREPEND dtrain_layer_)
    set_property(GLOBAL PROPERTY DTRAIN_BELOW_${name} ${ARG_BELOW})
endfunction()
