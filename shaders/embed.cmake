# Writes OUT, a C++ file with the words of every file of BINARIES (NAME.LEVEL.spv), and shaders::spirv() over them.
set(arrays "")
set(entries "")
foreach(binary ${BINARIES})
  get_filename_component(file ${binary} NAME)
  string(REGEX MATCH "^([a-z_]+)\\.([0-9])\\.spv$" _ ${file})
  set(name ${CMAKE_MATCH_1})
  set(level ${CMAKE_MATCH_2})
  file(READ ${binary} bytes HEX)
  # SPIR-V is little-endian words.
  string(REGEX REPLACE "(..)(..)(..)(..)" "0x\\4\\3\\2\\1," words "${bytes}")
  string(APPEND arrays "constexpr std::uint32_t ${name}_${level}[] = {${words}};\n")
  string(APPEND entries "  if (level == static_cast<Level>(${level}) && std::strcmp(name, \"${name}\") == 0) return ${name}_${level};\n")
endforeach()
file(WRITE ${OUT}.new "#include \"shaders/spirv.h\"\n\n#include <cstring>\n\nnamespace efimd::shaders {\nnamespace {\n${arrays}}  // namespace\n
std::span<const std::uint32_t> spirv(const char* name, Level level) {\n${entries}  return {};\n}\n\n}  // namespace efimd::shaders\n")
file(RENAME ${OUT}.new ${OUT})
