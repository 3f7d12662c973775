#include "net/get/asked.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "net/get/transport.h"

namespace efimd::get {

namespace {

constexpr std::size_t kWordMax = 96;
constexpr std::size_t kPathMax = 512;
constexpr std::size_t kAddressMax = 4096;
constexpr std::string_view kFormsHint =
    "give a name that `efimd model recommend` lists, ORGANISATION/REPOSITORY[:TYPE], or an https "
    "address";

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
}

bool is_word(std::string_view word) {
  return !word.empty() && word.size() <= kWordMax && std::ranges::all_of(word, is_plain) &&
         word != "." && word != ".." && word.front() != '-' &&
         word.find("..") == std::string_view::npos && word.find("--") == std::string_view::npos;
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::string unescaped(std::string_view text) {
  int size = 0;
  char* const plain =
      curl_easy_unescape(nullptr, text.data(), static_cast<int>(text.size()), &size);
  std::string result = plain == nullptr ? "" : std::string(plain, static_cast<std::size_t>(size));
  curl_free(plain);
  return result;
}

tl::unexpected<Error> refuse(std::string_view text, const std::string& what) {
  return fail(Fault::kBadInput, std::string(text) + ": " + what, std::string(kFormsHint));
}

/// "ORG/NAME[:WEIGHTS]".
Result<Asked> of_repository(std::string_view text) {
  Asked asked;
  const std::size_t colon = text.find(':');
  asked.repository = text.substr(0, colon);
  if (!is_repository(asked.repository)) return refuse(text, "is no repository's name");
  if (colon == std::string_view::npos) return asked;
  const std::string_view tag = text.substr(colon + 1);
  if (tag.ends_with(".gguf")) {
    if (!is_inner_path(tag)) return refuse(text, "names no file of a repository");
    asked.file = tag;
    return asked;
  }
  if (!is_word(tag)) return refuse(text, "has no type of weights behind the colon, as :Q4_K_M");
  asked.weights = tag;
  return asked;
}

/// ORG/NAME, or ORG/NAME/resolve/REVISION/FILE, as the hub's pages and downloads are addressed.
Result<Asked> of_hub_path(std::string_view path, std::string_view text) {
  path = path.substr(0, path.find_first_of("?#"));
  const std::size_t organisation = path.find('/');
  const std::size_t name_end =
      organisation == std::string_view::npos ? organisation : path.find('/', organisation + 1);
  Asked asked;
  asked.repository = path.substr(0, name_end);
  if (!is_repository(asked.repository)) return refuse(text, "is no address of a repository");
  if (name_end == std::string_view::npos || name_end + 1 == path.size()) return asked;
  std::string_view rest = path.substr(name_end + 1);
  const bool is_file = take_prefix(rest, "resolve/") || take_prefix(rest, "blob/");
  const bool is_tree = !is_file && take_prefix(rest, "tree/");
  if (!is_file && !is_tree) return refuse(text, "is no address of a file of the hub");
  const std::size_t revision_end = rest.find('/');
  asked.revision = unescaped(rest.substr(0, revision_end));
  if (!is_word(asked.revision)) return refuse(text, "names no revision");
  if (is_tree) return asked;
  asked.file =
      revision_end == std::string_view::npos ? "" : unescaped(rest.substr(revision_end + 1));
  if (!is_inner_path(asked.file) || !asked.file.ends_with(".gguf"))
    return refuse(text, "names no GGUF file");
  return asked;
}

Result<Asked> of_address(std::string_view text, const std::string& endpoint) {
  const std::string origin = origin_of(text);
  const std::size_t host = text.find("://") + 3;
  const std::size_t path = text.find('/', host);
  // libcurl takes the first word of the path for a host that is missing.
  if (origin.empty() || path == host || text.size() > kAddressMax)
    return refuse(text, "is no http or https address");
  for (const std::string& hub :
       {origin_of(endpoint), std::string("https://huggingface.co"), std::string("https://hf.co")})
    if (origin == hub && path != std::string_view::npos)
      return of_hub_path(text.substr(path + 1), text);
  Asked asked;
  asked.url = text;
  const std::string_view plain = text.substr(0, text.find_first_of("?#"));
  asked.file = unescaped(plain.substr(plain.rfind('/') + 1));
  if (!is_inner_path(asked.file) || asked.file.find('/') != std::string::npos ||
      !asked.file.ends_with(".gguf"))
    return refuse(text, "names no GGUF file");
  return asked;
}

}  // namespace

bool is_repository(std::string_view text) {
  const std::size_t slash = text.find('/');
  return slash != std::string_view::npos && is_word(text.substr(0, slash)) &&
         is_word(text.substr(slash + 1));
}

bool is_inner_path(std::string_view path) {
  if (path.empty() || path.size() > kPathMax || path.front() == '/' || path.back() == '/')
    return false;
  for (std::string_view rest = path; !rest.empty();) {
    const std::size_t end = rest.find('/');
    const std::string_view part = rest.substr(0, end);
    if (part.empty() || part == "." || part == "..") return false;
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
  }
  return std::ranges::none_of(
      path, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\'; });
}

Result<Asked> parse_asked(std::string_view text,
                          const std::vector<service::OfferedModel>& catalogue,
                          const std::string& endpoint) {
  if (const auto* const offered = service::find_offered(catalogue, text)) {
    Asked asked;
    asked.repository = offered->repository;
    asked.file = offered->file;
    asked.offered = *offered;
    return asked;
  }
  Result<Asked> asked = [&]() -> Result<Asked> {
    if (text.find("://") != std::string_view::npos) return of_address(text, endpoint);
    std::string_view name = text;
    if (take_prefix(name, "hf.co/") || take_prefix(name, "huggingface.co/"))
      return name.find(':') == std::string_view::npos ? of_hub_path(name, text)
                                                      : of_repository(name);
    if (name.find('/') != std::string_view::npos) return of_repository(name);
    std::string names;
    for (const auto& model : catalogue) names += (names.empty() ? "" : ", ") + model.name;
    return fail(Fault::kNotFound, fmt::format("{}: there is no model of that name", text),
                "the catalogue has " + names + "; or give ORGANISATION/REPOSITORY[:TYPE]");
  }();
  if (asked)
    for (const auto& model : catalogue)
      if (model.repository == asked->repository && model.file == asked->file)
        asked->offered = model;
  return asked;
}

}  // namespace efimd::get
