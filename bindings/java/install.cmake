# Installs the module: the jar among Java's jars, the bridge where Debian's Java looks for native libraries. Java
# finds the bridge there if the prefix is /usr; elsewhere the jar contains the libraries.
# SPDX-License-Identifier: Apache-2.0
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    set(name dtrain-${PROJECT_VERSION}.jar) # with a version, as Debian's policy for Java demands
    set(installed ${CMAKE_CURRENT_BINARY_DIR}/${name})
    add_custom_command(OUTPUT ${installed}
        COMMAND ${Java_JAR_EXECUTABLE} --create --file ${installed} --manifest ${CMAKE_CURRENT_SOURCE_DIR}/manifest.txt
            -C ${classes} .
        DEPENDS ${classes}/module-info.class ${CMAKE_CURRENT_SOURCE_DIR}/manifest.txt VERBATIM)
    add_custom_target(java_installed_jar ALL DEPENDS ${installed})
    set_target_properties(java_extension PROPERTIES INSTALL_RPATH "$ORIGIN/..")
    file(CREATE_LINK ${name} ${CMAKE_CURRENT_BINARY_DIR}/dtrain.jar SYMBOLIC)
    install(FILES ${CMAKE_CURRENT_BINARY_DIR}/dtrain.jar DESTINATION share/java COMPONENT java)
    install(TARGETS java_extension LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/jni COMPONENT java)
    set(for_readers share/doc/libdtrain-java) # Debian's policy for Java allows only programs in share/java
else()
    set(installed ${java}/dtrain.jar)
    set(for_readers share/java)
endif()
install(FILES ${installed} DESTINATION share/java COMPONENT java)
install(FILES ${java}/dtrain-sources.jar ${java}/dtrain-javadoc.jar DESTINATION ${for_readers} COMPONENT java)
