# The files that are compiled as one. Most of what a file costs to compile are its headers: eight
# tests as one take a third of the time. The product's files are compiled alone where somebody works
# on them, which shows that each can stand alone; as one from nothing, and under sanitizers.
option(EFIMD_UNITY "Compile eight files of a room as one: quicker from nothing, slower after a change" OFF)
if(EFIMD_UNITY)
  set(CMAKE_UNITY_BUILD ON)
  # g++ takes what a unity build includes for a header, whose unnamed namespaces it warns of.
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
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
  efimd_apart(efimd_lsp uri.cpp)
  efimd_apart(efimd_completion documents/suggestion.cpp fit/fit.cpp fit/repeats.cpp fit/stop_rules.cpp)
  efimd_apart(efimd_cli commands/complete.cpp commands/doctor.cpp commands/status_watch.cpp)
  efimd_apart(efimd_bench_parts completion/fill.cpp completion/places.cpp)
  efimd_apart(efimd_model_writer tensor_encoder.cpp)
  efimd_apart(cache_store_test damage_test.cpp limits_test.cpp store_service_test.cpp)
  efimd_apart(client_test bridge_test.cpp client_test.cpp)
  efimd_apart(completion_test fit_test.cpp golden_test.cpp recalled_test.cpp)
  efimd_apart(efimd_backend cpu/kernels/kernels_scalar.cpp)
  efimd_apart(backend_test kv8_test.cpp reference_forward.cpp)
  efimd_apart(efimd_gpu_checks gpu/kv8_operations.cpp)
  efimd_apart(engine_kv_test local_engine_test.cpp store_tier_test.cpp)
  efimd_apart(efimd_http answer.cpp documents.cpp fim_split.cpp guard.cpp model_pages.cpp request.cpp window.cpp)
  efimd_apart(http_test answer_test.cpp documents_test.cpp guard_test.cpp request_test.cpp)
  efimd_apart(lsp_test mutation_test.cpp)
  efimd_apart(daemon_test stalled_files_test.cpp)
  efimd_apart(vulkan_test gpu/vulkan_memory_test.cpp gpu/vulkan_subgroups_test.cpp)
  efimd_apart(tokenizer_test sentencepiece_test.cpp)
endfunction()
