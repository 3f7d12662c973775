# cmake -P cuda_codes.cmake
#
# Fails if a card newer than one of the kernels' compute capabilities finds neither code nor PTX.
include(${CMAKE_CURRENT_LIST_DIR}/../../../kernels/codes.cmake)
function(expect wanted)
  efimd_cuda_codes(codes ${ARGN})
  list(FILTER codes EXCLUDE REGEX "^-gencode$")
  list(TRANSFORM codes REPLACE "arch=compute_[0-9]+,code=" "")
  if(NOT "${codes}" STREQUAL "${wanted}")
    message(FATAL_ERROR "${ARGN} became ${codes}, not ${wanted}")
  endif()
endfunction()
expect("sm_75;[sm_80,compute_80]" 75 80)
expect("[sm_89,compute_89]" 89)
# Capabilities 10.0 to 11.0 lie in the gap behind 9.0.
expect("sm_75;sm_80;sm_86;sm_89;[sm_90,compute_90];[sm_120,compute_120]" 75 80 86 89 90 120)
