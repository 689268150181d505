# Removes what `cmake --install <build>` has written last, and folders of dtrain's own that are empty then:
# cmake --build <build> --target uninstall.
# SPDX-License-Identifier: Apache-2.0
set(manifest ${BUILD}/install_manifest.txt)
if(NOT EXISTS ${manifest})
    message(FATAL_ERROR "nothing was installed from ${BUILD}: there is no ${manifest}")
endif()
file(STRINGS ${manifest} files)
foreach(file IN LISTS files)
    set(path $ENV{DESTDIR}${file})
    if(EXISTS ${path} OR IS_SYMLINK ${path})
        file(REMOVE ${path})
        message(STATUS "removed: ${path}")
    endif()
    cmake_path(GET path PARENT_PATH folder)
    while(folder MATCHES "/[^/]*dtrain[^/]*(/|$)" AND IS_DIRECTORY ${folder})
        execute_process(COMMAND rmdir ${folder} RESULT_VARIABLE kept ERROR_QUIET) # it removes empty ones only
        if(kept)
            break()
        endif()
        cmake_path(GET folder PARENT_PATH folder)
    endwhile()
endforeach()
file(REMOVE ${manifest})
