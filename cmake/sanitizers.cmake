# Builds under sanitizers, and what makes them quick enough: nothing of this stands in the rooms' own files.
set(EFIMD_SANITIZE "" CACHE STRING "Sanitizers for every target, as in -fsanitize=...")
if(EFIMD_SANITIZE)
  add_compile_options(-fsanitize=${EFIMD_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${EFIMD_SANITIZE})
  add_compile_definitions(EFIMD_SANITIZED)
  # g++ 12 warns of values that its own instrumentation reads.
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  # Most of what a file costs to compile are its headers. Eight files of a target are compiled as one: asan in 366 s of
  # processor time instead of 575. The release build compiles each alone, which shows that it can stand alone.
  set(CMAKE_UNITY_BUILD ON)
endif()

# To be called once, after every target is there.
function(efimd_tune_sanitizers)
  if(NOT EFIMD_SANITIZE)
    return()
  endif()
  # The daemon's rooms are built in two thirds of the time if nothing is optimized, and what costs their tests time is
  # the engine. Fuzzing wants speed.
  if(EFIMD_SANITIZE MATCHES "address")
    foreach(room recall prompt completion models server client cli)
      if(TARGET efimd_${room})
        target_compile_options(efimd_${room} PRIVATE -O0)
      endif()
    endforeach()
  endif()
  # libFuzzer is told which ways an input takes through the rooms that parse; elsewhere that would only cost time.
  if(EFIMD_FUZZ)
    foreach(room base lsp text syntax http gguf model tokenizer config remote setup_text files cache_store)
      if(TARGET efimd_${room})
        target_compile_options(efimd_${room} PRIVATE -fsanitize=fuzzer-no-link)
      endif()
    endforeach()
  endif()
  # With these clang 14 takes 50 s for one of the files, without them 10.
  if(EFIMD_SANITIZE MATCHES "undefined" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    foreach(isa avx2 avxvnni avx512 avx512bf16 amx)
      efimd_sources(efimd_backend source cpu/kernels/kernels_${isa}.cpp)
      set_property(SOURCE ${source} TARGET_DIRECTORY efimd_backend
        APPEND PROPERTY COMPILE_OPTIONS "-fno-sanitize=null,pointer-overflow,object-size,function")
    endforeach()
  endif()
  # Asio fences between its threads, which ThreadSanitizer cannot see and g++ says so; here its loop has one thread.
  if(EFIMD_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    efimd_sources(efimd_server sources connection.cpp daemon.cpp lifetime.cpp)
    set_source_files_properties(${sources} TARGET_DIRECTORY efimd_server
      PROPERTIES COMPILE_OPTIONS -Wno-tsan)
  endif()
endfunction()
