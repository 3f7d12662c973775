# One dialect and one set of warnings for every room.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# -O3 without -march=native: one binary for every x86-64, kernels are chosen at run time.
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")

# Paths below the checkout count as relative ones, so that all checkouts of a machine share what is compiled.
find_program(EFIMD_CCACHE ccache)
if(EFIMD_CCACHE)
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} ${EFIMD_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  add_compile_options(-fdebug-prefix-map=${CMAKE_BINARY_DIR}=.)
endif()

include(CheckLinkerFlag)
check_linker_flag(CXX -fuse-ld=lld EFIMD_LLD)

include(cmake/unity.cmake)
include(cmake/sanitizers.cmake)
include(cmake/hardening.cmake)

add_library(efimd_options INTERFACE)
target_include_directories(efimd_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(efimd_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow)
# Errors are the warnings of the compilers that efimd is made with. A later one's stop no build: g++ 14's -O3 takes an empty json for
# an uninitialized one.
if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
   OR (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 15))
  target_compile_options(efimd_options INTERFACE -Werror)
endif()
# g++ 12 sees overlapping copies in std::string's own operator+ (GCC bug 105651).
target_compile_options(efimd_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)

# efimd_room(NAME SOURCES ... USES ...): the static library of one room.
function(efimd_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;USES" ${ARGN})
  add_library(efimd_${name} STATIC ${ROOM_SOURCES})
  target_link_libraries(efimd_${name} PUBLIC efimd_options ${ROOM_USES})
endfunction()

# What works for moments is compiled at -O1: 30 s of a core instead of 43 for the HTTP door's files (g++ 12), nearly all of it headers.
# g++ 12 warns there of values that it knows to be set at -O3.
set(efimd_quick $<$<CONFIG:Release>:-O1> $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)

# To be called once, after every target is there: rooms that work at a start, for a command, for a download. No keystroke comes by.
function(efimd_tune_release)
  foreach(room cli config get http_program models setup_text bench_parts bench_commands)
    if(TARGET efimd_${room})
      target_compile_options(efimd_${room} PRIVATE ${efimd_quick})
    endif()
  endforeach()
  foreach(program efimd efimd-get efimd-http)
    if(TARGET ${program})
      target_compile_options(${program} PRIVATE ${efimd_quick})
    endif()
  endforeach()
endfunction()

# The program efimd-NAME, which efimd looks for beside itself. efimd's manual page has its commands.
function(efimd_program_beside name)
  cmake_parse_arguments(PROGRAM "" "" "USES" ${ARGN})
  include(GNUInstallDirs)
  add_executable(efimd-${name} main.cpp)
  target_link_libraries(efimd-${name} PRIVATE ${PROGRAM_USES} CLI11::CLI11)
  set_target_properties(efimd-${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/daemon/cli)
  install(TARGETS efimd-${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  set(page ${CMAKE_CURRENT_BINARY_DIR}/efimd-${name}.1)
  file(WRITE ${page} ".so man1/efimd.1\n")
  execute_process(COMMAND ${EFIMD_GZIP} -9nfk ${page} COMMAND_ERROR_IS_FATAL ANY)
  install(FILES ${page}.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endfunction()
