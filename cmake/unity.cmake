# The files that are compiled as one. Most of what a file costs to compile are its headers: eight
# tests as one take a third of the time. The product's files are compiled alone where somebody works
# on them, which shows that each can stand alone; as one from nothing, and under sanitizers.
option(EFIMD_UNITY "Compile the files of a room as one: quicker from nothing, slower after a change" OFF)
if(EFIMD_UNITY OR EFIMD_SANITIZE)
  # With few cores nothing is gained by several such files of a room: asan takes 505 s of a core instead of 536 (clang 14). One
  # takes 1.2 GB at most (g++ 12).
  cmake_host_system_information(RESULT cores QUERY NUMBER_OF_LOGICAL_CORES)
  if(cores LESS_EQUAL 4)
    set(CMAKE_UNITY_BUILD_BATCH_SIZE 32)
  endif()
endif()
if(EFIMD_UNITY)
  set(CMAKE_UNITY_BUILD ON)
  # g++ takes what a unity build includes for a header, whose unnamed namespaces it warns of.
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  # g++ looks for memory to use again from 128 MB on, again and again, which takes up to a fifth of its time. From 1 GB on it
  # takes 1.6 GB at most instead of 1.2, so only where there is memory enough for as many as are compiled at once.
  cmake_host_system_information(RESULT memory_mib QUERY TOTAL_PHYSICAL_MEMORY)
  math(EXPR needed_mib "2048 * (${cores} + 2)")
  if(memory_mib GREATER_EQUAL needed_mib)
    add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:SHELL:--param ggc-min-heapsize=1000000>")
  endif()
endif()

# efimd_sources(TARGET OUT FILE ...): OUT becomes the files' full paths.
function(efimd_sources target out)
  get_target_property(folder ${target} SOURCE_DIR)
  list(TRANSFORM ARGN PREPEND ${folder}/)
  set(${out} ${ARGN} PARENT_SCOPE)
endfunction()

# efimd_apart(TARGET FILE ...): sources with names in unnamed namespaces that others of their target have too are
# compiled alone.
function(efimd_apart target)
  if(TARGET ${target})
    efimd_sources(${target} sources ${ARGN})
    set_source_files_properties(${sources} TARGET_DIRECTORY ${target} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

# To be called once, after every target is there.
function(efimd_keep_apart)
  efimd_apart(efimd_backend cpu/kernels/kernels_scalar.cpp)
  efimd_apart(efimd_gpu_checks gpu/kv8_operations.cpp)
  efimd_apart(engine_kv_test local_engine_test.cpp store_tier_test.cpp)
  efimd_apart(vulkan_test gpu/vulkan_memory_test.cpp gpu/vulkan_subgroups_test.cpp)
endfunction()
