# tree-sitter, and its grammars as a library. EFIMD_GRAMMARS is OFF where one of them is missing: then efimd works, but sees no
# other files' declarations.
#
# The grammars are no part of this tree: scripts/grammars fetches pinned packages once, for all build folders.
set(EFIMD_GRAMMAR_FOLDER ${CMAKE_SOURCE_DIR}/build/grammars CACHE PATH "Where scripts/grammars puts the grammars")
set(EFIMD_GRAMMARS OFF)
# Debian's file says another version than the package has; daemon/syntax/tree.h checks what it can read.
pkg_check_modules(TREE_SITTER IMPORTED_TARGET tree-sitter)
if(NOT TREE_SITTER_FOUND)
  message(STATUS "No tree-sitter: a build without grammars")
  return()
endif()
execute_process(COMMAND ${CMAKE_SOURCE_DIR}/scripts/grammars ${EFIMD_GRAMMAR_FOLDER}
                RESULT_VARIABLE failed ERROR_VARIABLE why ERROR_STRIP_TRAILING_WHITESPACE)
if(failed)
  message(WARNING "${why}\nThis is a build without grammars: efimd shows the model no other files.")
  return()
endif()
set(EFIMD_GRAMMARS ON)
set(sources)
foreach(source c/src cpp/src python/src go/src rust/src java/src typescript/typescript/src typescript/tsx/src)
  file(GLOB found ${EFIMD_GRAMMAR_FOLDER}/${source}/*.c)
  list(APPEND sources ${found})
endforeach()
add_library(efimd_grammars STATIC ${sources})
# Each file includes its own package's tree_sitter/parser.h. Tables, mostly: optimizing them further gains nothing, and takes a minute.
target_compile_options(efimd_grammars PRIVATE -w -O1)
set_target_properties(efimd_grammars PROPERTIES UNITY_BUILD OFF)
if(EFIMD_SANITIZE)
  set(tables ${sources})
  list(FILTER tables INCLUDE REGEX "parser\\.c$")
  list(REMOVE_ITEM sources ${tables})
  set_property(TARGET efimd_grammars PROPERTY SOURCES ${sources})
  add_library(efimd_grammar_tables STATIC ${tables})
  efimd_unwatched(efimd_grammar_tables -w -O1)
  set_target_properties(efimd_grammar_tables PROPERTIES UNITY_BUILD OFF)
  target_link_libraries(efimd_grammars PUBLIC efimd_grammar_tables)
endif()
foreach(grammar c cpp python go rust java typescript)
  install(FILES ${EFIMD_GRAMMAR_FOLDER}/${grammar}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/efimd
          RENAME copyright.tree-sitter-${grammar})
endforeach()
