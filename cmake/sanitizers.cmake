# Builds under sanitizers, and what makes them quick enough: nothing of this stands in the rooms' own files.
set(EFIMD_SANITIZE "" CACHE STRING "Sanitizers for every target, as in -fsanitize=...")
if(EFIMD_SANITIZE)
  add_compile_options(-fsanitize=${EFIMD_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${EFIMD_SANITIZE})
  # As options, which efimd_unwatched can take away; a folder's definitions stay.
  add_compile_options(-DEFIMD_SANITIZED)
  if(EFIMD_SANITIZE MATCHES "thread")
    add_compile_options(-DEFIMD_THREAD_SANITIZED)
  endif()
  # The asan build's 49 programs are linked in 10 s of a core instead of 35 (clang 14).
  if(EFIMD_LLD AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    add_link_options(-fuse-ld=lld)
  endif()
  # 19 s become 14 for HTTP's files (clang 14). By a path that is the same in all checkouts, which share what is compiled.
  # ThreadSanitizer gains nothing by it.
  if(EFIMD_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    file(RELATIVE_PATH ignored ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR}/cmake/not_ours.ignorelist)
    add_compile_options(-fsanitize-ignorelist=${ignored})
  endif()
  # g++ 12 warns of values that its own instrumentation reads.
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  # Files of a target are compiled as one, so that headers are read once: asan in 366 s of processor time instead of 575, eight
  # at a time.
  set(CMAKE_UNITY_BUILD ON)
endif()

# efimd_unwatched(TARGET OPTION ...): not instrumented, and with one command under all sanitizers. Then ccache has what asan's build
# compiled when tsan's wants it: the grammars' tables and Catch2, 18 s of a core (clang 14).
function(efimd_unwatched target)
  if(EFIMD_SANITIZE)
    set(options)
    if(EFIMD_CCACHE)
      set(options -fdebug-prefix-map=${CMAKE_BINARY_DIR}=.)
    endif()
    set_target_properties(${target} PROPERTIES COMPILE_OPTIONS "${options}")
  endif()
  target_compile_options(${target} PRIVATE ${ARGN})
endfunction()

# To be called once, after every target is there.
function(efimd_tune_sanitizers)
  if(NOT EFIMD_SANITIZE)
    return()
  endif()
  # What costs time is the code that is made, twice as much as headers. Rooms whose tests do not wait for it are not optimized:
  # HTTP's in 17 s instead of 40 (clang 14). What costs tests time is the engine. Parsers of what comes often stay quick to fuzz.
  set(rooms recall prompt completion models server client cli http get remote setup_text config files cache_store bench_parts bench_commands)
  # ThreadSanitizer's tests wait for none of these, and it fuzzes nothing: 14 s of a core instead of 23 (clang 14).
  if(EFIMD_SANITIZE MATCHES "thread")
    list(APPEND rooms lsp engine tokenizer model gguf syntax)
  endif()
  foreach(room ${rooms})
    if(TARGET efimd_${room})
      target_compile_options(efimd_${room} PRIVATE -O0)
    endif()
  endforeach()
  # libFuzzer is told which ways an input takes through the rooms that parse; elsewhere that would only cost time.
  if(EFIMD_FUZZ)
    foreach(room base lsp text syntax http gguf model tokenizer config remote setup_text files cache_store)
      if(TARGET efimd_${room})
        target_compile_options(efimd_${room} PRIVATE -fsanitize=fuzzer-no-link)
      endif()
    endforeach()
  endif()
  # With these clang 14 takes 22 s for emulated_amx.cpp, without them 9; kernels are like it. Loops that are not unrolled have
  # fewer places to watch: kernels take 51 s instead of 75, and their tests 1 s more.
  if(EFIMD_SANITIZE MATCHES "undefined" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(left_out -fno-sanitize=null,pointer-overflow,object-size,function -mllvm -unroll-count=1)
    foreach(isa avx2 avxvnni avx512 avx512bf16 amx)
      efimd_sources(efimd_backend source cpu/kernels/kernels_${isa}.cpp)
      set_property(SOURCE ${source} TARGET_DIRECTORY efimd_backend APPEND PROPERTY COMPILE_OPTIONS ${left_out})
    endforeach()
    if(TARGET backend_test)
      efimd_sources(backend_test source emulated_amx.cpp)
      set_property(SOURCE ${source} TARGET_DIRECTORY backend_test APPEND PROPERTY COMPILE_OPTIONS ${left_out})
    endif()
  endif()
  # Asio fences between its threads, which ThreadSanitizer cannot see and g++ says so; here its loop has one thread.
  if(EFIMD_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    efimd_sources(efimd_server sources connection.cpp daemon.cpp lifetime.cpp)
    set_source_files_properties(${sources} TARGET_DIRECTORY efimd_server
      PROPERTIES COMPILE_OPTIONS -Wno-tsan)
  endif()
endfunction()
