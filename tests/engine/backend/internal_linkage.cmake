# cmake -DNM=nm -DOBJECTS="a.o;b.o" -P internal_linkage.cmake
#
# Fails if an object with kernels for newer processors defines a weak symbol. The linker may pick
# that copy of an inline function for the whole program, which then dies on older processors (see
# kernels.h).
set(seen 0)
foreach(object IN LISTS OBJECTS)
  if(NOT object MATCHES "kernels_(avx|amx)")
    continue()
  endif()
  execute_process(COMMAND ${NM} -C --defined-only ${object} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[0-9a-f]+ [VWuvw] [^\n]*" weak "${symbols}")
  list(FILTER weak EXCLUDE REGEX "__odr_asan|DW.ref|sanitizer")
  if(weak)
    message(FATAL_ERROR "${object} defines symbols that other files may be given: ${weak}")
  endif()
  math(EXPR seen "${seen} + 1")
endforeach()
if(NOT seen EQUAL 5)
  message(FATAL_ERROR "expected the objects of five kernel files, found ${seen}")
endif()
