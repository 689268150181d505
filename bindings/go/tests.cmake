# Tests of the Go package: one program, alone and as a job of several ranks.
# SPDX-License-Identifier: Apache-2.0
function(go_test name)
    add_test(NAME go.${name} COMMAND ${ARGN} WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    set_tests_properties(go.${name} PROPERTIES TIMEOUT 900 LABELS unsanitized SKIP_RETURN_CODE 77
        ENVIRONMENT "${go_environment};DTRAIN_OP_TIMEOUT=20s")
endfunction()

go_test(generated ${CMAKE_CURRENT_SOURCE_DIR}/generate --check ${CMAKE_CURRENT_BINARY_DIR}/generated)
go_test(planted_break ${CMAKE_CURRENT_SOURCE_DIR}/try_break ${CMAKE_CURRENT_BINARY_DIR}/break)
go_test(formatted sh -c "test -z \"$(gofmt -l . ${CMAKE_SOURCE_DIR}/examples ${CMAKE_SOURCE_DIR}/tests/languages | tee /dev/stderr)\"")
# SWIG's code converts numbers to pointers for C strings.
go_test(vetted sh -c "'${GO}' vet . && '${GO}' vet -unsafeptr=false ./internal/capi")
set(program ${CMAKE_BINARY_DIR}/bin/go/tests)
go_test(alone ${program})
foreach(ranks 2 3)
    go_test(ranks_${ranks} ${CMAKE_BINARY_DIR}/bin/dtrain-run --timeout 100 -n ${ranks} -- ${program})
endforeach()
# Go checks every Go pointer that C keeps.
go_test(pointers ${CMAKE_BINARY_DIR}/bin/dtrain-run --timeout 100 -n 2 -- ${program})
set_property(TEST go.pointers APPEND PROPERTY ENVIRONMENT GODEBUG=cgocheck=2)

if(TARGET dtrain_device_cuda) # memory of GPUs, by the driver for tests
    go_test(devices ${CMAKE_BINARY_DIR}/bin/dtrain-run --timeout 100 -n 2 -- ${program} -test.run GPU|Streams)
    set_property(TEST go.devices APPEND PROPERTY ENVIRONMENT DTRAIN_TEST_GPU=1 GODEBUG=cgocheck=2
        LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/fakecuda DTRAIN_PLUGIN_PATH=${CMAKE_BINARY_DIR}/plugins)
endif()

set(digits ${CMAKE_BINARY_DIR}/bin/go/digits ${CMAKE_SOURCE_DIR}/examples/digits/data)
go_test(digits_allreduce ${CMAKE_BINARY_DIR}/bin/dtrain-run --timeout 100 -n 2 -- ${digits})
go_test(digits_table ${CMAKE_BINARY_DIR}/bin/dtrain-run --timeout 100 -n 2 -s 1 -- ${digits} table)
go_test(member ${CMAKE_BINARY_DIR}/bin/dtrain-run --timeout 100 -n 2 -- ${CMAKE_BINARY_DIR}/bin/go/member)
go_test(first_page /usr/bin/python3 ${CMAKE_SOURCE_DIR}/tests/languages/test_first_pages.py go ${CMAKE_BINARY_DIR}/bin/dtrain-run
    ${GO} build -o program program.go)
go_test(static ${CMAKE_CURRENT_SOURCE_DIR}/try_static ${CMAKE_BINARY_DIR} ${CMAKE_CURRENT_BINARY_DIR}/static)
go_test(installed ${CMAKE_CURRENT_SOURCE_DIR}/try_installed ${CMAKE_BINARY_DIR} ${CMAKE_CURRENT_BINARY_DIR}/installed)
