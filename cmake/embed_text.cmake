# cmake -DOUTPUT=out.cpp -DROOT=folder "-DFILES=a.py;b.ts" -P embed_text.cmake
#
# Writes a source that defines efimd::service::sample_code(): the texts of the files, in order.
set(source "#include \"daemon/models/sample_code.h\"\n\n#include <array>\n\nnamespace efimd::service {\n\n")
string(APPEND source "std::span<const std::string_view> sample_code() {\n")
list(LENGTH FILES count)
string(APPEND source "  static constexpr std::array<std::string_view, ${count}> kTexts = {\n")
foreach(file IN LISTS FILES)
  file(READ ${ROOT}/${file} text)
  string(APPEND source "R\"efimd(${text})efimd\",\n")
endforeach()
string(APPEND source "  };\n  return kTexts;\n}\n\n}  // namespace efimd::service\n")
file(WRITE ${OUTPUT} "${source}")
