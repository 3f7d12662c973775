// Writes the generated parts of docs/ again; the target renew_docs runs it.
//   renew_docs DOCS
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/rooms/generated_docs.h"

namespace {

/// Whether the page is as the program says it now.
bool renew(const std::filesystem::path& page, const efimd::docs::GeneratedPart& part) {
  std::ifstream in(page);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  const auto renewed = efimd::docs::renewed(text, part);
  if (!renewed) std::fprintf(stderr, "renew_docs: %s\n", renewed.error().message().c_str());
  if (!renewed || *renewed == text) return renewed.has_value();
  std::ofstream out(page);
  out << *renewed;
  out.close();
  std::printf("renewed %s\n", page.c_str());
  return out.good();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: renew_docs DOCS\n", stderr), 2;
  bool good = true;
  for (const efimd::docs::GeneratedPart& part : efimd::docs::generated_parts())
    good = renew(std::filesystem::path(argv[1]) / part.file, part) && good;
  return good ? 0 : 1;
}
