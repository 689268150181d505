# Installs the package among Python's packages, and the library among the libraries; or, in a wheel
# (pyproject.toml), the package with the library and the programs inside.
# SPDX-License-Identifier: Apache-2.0
if(SKBUILD)
    set(library_path "$ORIGIN")
    install(TARGETS python_extension LIBRARY DESTINATION dtrain COMPONENT wheel)
    install(FILES $<TARGET_FILE:dtrain> DESTINATION dtrain RENAME $<TARGET_SONAME_FILE_NAME:dtrain> COMPONENT wheel)
    foreach(program dtrain-run dtrain-server dtrain-info dtrain-bench dtrain-trace)
        set_target_properties(${program} PROPERTIES INSTALL_RPATH
            "$ORIGIN/../lib/python${Python_VERSION_MAJOR}.${Python_VERSION_MINOR}/site-packages/dtrain")
        install(TARGETS ${program} RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT wheel)
    endforeach()
else()
    set(versioned python${Python_VERSION_MAJOR}.${Python_VERSION_MINOR})
    set(modules lib/${versioned}/site-packages)
    if(EXISTS /etc/debian_version) # Debian's Python searches another folder
        set(modules lib/${versioned}/dist-packages)
        if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
            set(modules lib/python3/dist-packages)
        endif()
    endif()
    set(DTRAIN_PYTHON_DIR ${modules} CACHE STRING "Where the Python package is installed, from the prefix")
    cmake_path(ABSOLUTE_PATH DTRAIN_PYTHON_DIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE whole)
    file(RELATIVE_PATH libraries ${whole}/dtrain ${CMAKE_INSTALL_FULL_LIBDIR})
    set(library_path "$ORIGIN/${libraries}")
    install(TARGETS python_extension LIBRARY DESTINATION ${DTRAIN_PYTHON_DIR}/dtrain COMPONENT python)
    install(FILES ${sources} DESTINATION ${DTRAIN_PYTHON_DIR}/dtrain COMPONENT python)
endif()
set_target_properties(python_extension PROPERTIES INSTALL_RPATH ${library_path})
