# To be called once, after every target is there: what only a whole program can have. Its marks for control-flow enforcement;
# tests/rooms checks that each object in it was built with them.
function(efimd_harden_programs)
  foreach(program efimd efimd-get efimd-http efimd-bench)
    if(EFIMD_MARKED_START AND TARGET ${program})
      target_sources(${program} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/marked_start.c)
      target_link_options(${program} PRIVATE LINKER:-z,ibt LINKER:-z,shstk LINKER:-e,efimd_marked_start
                          LINKER:-init,efimd_marked_nothing LINKER:-fini,efimd_marked_nothing)
    endif()
  endforeach()
endfunction()

# Options that make a flaw harder to use. Sanitizers see more than these do, and some of these hide
# it from them.
if(EFIMD_SANITIZE)
  return()
endif()
include(CheckPIESupported)
include(CheckLinkerFlag)
check_pie_supported()
add_compile_options(-fstack-protector-strong -fstack-clash-protection)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_compile_options(-fcf-protection=full)
  set(CMAKE_REQUIRED_FLAGS -fcf-protection=full)
  check_linker_flag(C LINKER:-z,cet-report=error EFIMD_MARKED_BY_SYSTEM)
  unset(CMAKE_REQUIRED_FLAGS)
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND NOT EFIMD_MARKED_BY_SYSTEM)
    set(EFIMD_MARKED_START ON)
  endif()
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  add_compile_options(-mbranch-protection=standard)
endif()
# glibc's checks need an optimizing compiler, and say so in a warning without one.
add_compile_options($<$<CONFIG:Release,RelWithDebInfo>:-U_FORTIFY_SOURCE> $<$<CONFIG:Release,RelWithDebInfo>:-D_FORTIFY_SOURCE=2>)
add_link_options(LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack)
