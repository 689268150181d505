# The layering as include paths: a layer sees include/ and the layers below it, nothing else, so an
# include that points upwards does not compile. A layer of several parts is a stack of its own: each part
# sees those that are named before it.
# SPDX-License-Identifier: Apache-2.0

# dtrain_layer(<name> [PARTS <part> ...] [BELOW <layer> ...]): lib/<name>/*.cpp, or lib/<name>/<part>/*.cpp of each part,
# as object libraries: dtrain_layer_<name>, or dtrain_layer_<name>_<part>. Files include each other as "<layer>/<file>.h",
# or "<layer>/<part>/<file>.h". BELOW names the layers it may use (with theirs).
#
# Global properties: DTRAIN_LAYERS, all of these targets, bottom first; DTRAIN_NAMES, the layers; DTRAIN_PARTS_<name>, the
# targets of a layer; DTRAIN_BELOW_<name>, the targets below it; DTRAIN_SEES_<target> and DTRAIN_FOLDER_<target>.
function(dtrain_layer name)
    cmake_parse_arguments(ARG "" "" "PARTS;BELOW" ${ARGN})
    set(below)
    foreach(lower IN LISTS ARG_BELOW)
        get_property(parts GLOBAL PROPERTY DTRAIN_PARTS_${lower})
        list(APPEND below ${parts})
    endforeach()
    set_property(GLOBAL APPEND PROPERTY DTRAIN_NAMES ${name})
    set_property(GLOBAL PROPERTY DTRAIN_BELOW_${name} ${below})
    set(parts)
    foreach(part IN LISTS ARG_PARTS)
        dtrain_objects(dtrain_layer_${name}_${part} ${name}/${part} ${below} ${parts})
        list(APPEND parts dtrain_layer_${name}_${part})
    endforeach()
    if(NOT parts)
        set(parts dtrain_layer_${name})
        dtrain_objects(${parts} ${name} ${below})
    endif()
    set_property(GLOBAL PROPERTY DTRAIN_PARTS_${name} ${parts})
endfunction()

# The object library of a folder of lib, which sees the targets that follow.
function(dtrain_objects target folder)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp)
    # A folder that holds nothing but a link to this one is what others put on their include path.
    set(root ${PROJECT_BINARY_DIR}/layers/${target})
    get_filename_component(parent ${root}/${folder} DIRECTORY)
    file(MAKE_DIRECTORY ${parent})
    file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR}/${folder} ${root}/${folder} SYMBOLIC)
    add_library(${target} OBJECT ${sources})
    target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/include ${root})
    target_link_libraries(${target} PUBLIC ${ARGN})
    set_property(GLOBAL APPEND PROPERTY DTRAIN_LAYERS ${target})
    set_property(GLOBAL PROPERTY DTRAIN_SEES_${target} ${ARGN})
    set_property(GLOBAL PROPERTY DTRAIN_FOLDER_${target} ${folder})
endfunction()
