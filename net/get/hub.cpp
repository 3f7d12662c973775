#include "net/get/hub.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "daemon/config/amounts.h"
#include "daemon/models/hub_folder.h"
#include "daemon/models/model_catalog.h"
#include "net/get/server_wait.h"

namespace efimd::get {

using Json = nlohmann::json;

namespace {

constexpr std::size_t kTokenMax = 4096;
constexpr int kAskTriesMax = 3;
constexpr std::size_t kListedMax = 20;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Whether an origin is this machine: a name such as 127.example.org is not.
bool is_loopback(std::string_view origin) {
  std::string_view host = origin.substr(std::string_view("http://").size());
  if (host == "[::1]" || host.starts_with("[::1]:")) return true;
  host = host.substr(0, host.find(':'));
  return host == "localhost" || (host.starts_with("127.") &&
                                 host.find_first_not_of("0123456789.") == std::string_view::npos);
}

/// Names like "a b.gguf", between the slashes that stay.
std::string escaped(std::string_view path) {
  std::string result;
  for (std::string_view rest = path;;) {
    const std::size_t end = rest.find('/');
    const std::string_view part = rest.substr(0, end);
    char* const text = curl_easy_escape(nullptr, part.data(), static_cast<int>(part.size()));
    if (text != nullptr) result += text;
    curl_free(text);
    if (end == std::string_view::npos) return result;
    result += '/';
    rest = rest.substr(end + 1);
  }
}

std::string text_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

std::uint64_t count_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

/// Of the card, or of the tag "license:apache-2.0". A card's `license_name` says what "other" is.
std::string license_of(const Json& json) {
  std::string license;
  if (const auto card = json.find("cardData"); card != json.end() && card->is_object()) {
    license = text_at(*card, "license");
    if (license.empty() || license == "other")
      if (const std::string name = text_at(*card, "license_name"); !name.empty()) license = name;
  }
  constexpr std::string_view kTag = "license:";
  if (const auto tags = json.find("tags");
      license.empty() && tags != json.end() && tags->is_array())
    for (const Json& tag : *tags)
      if (tag.is_string() && tag.get<std::string>().starts_with(kTag))
        license = tag.get<std::string>().substr(kTag.size());
  return license.substr(0, 100);
}

std::optional<HubFile> file_of(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  HubFile file;
  file.path = text_at(json, "rfilename");
  file.bytes = count_at(json, "size");
  file.hash = text_at(json, "blobId");
  if (const auto lfs = json.find("lfs"); lfs != json.end() && lfs->is_object()) {
    file.hash = text_at(*lfs, "sha256");
    if (const std::uint64_t bytes = count_at(*lfs, "size"); bytes > 0) file.bytes = bytes;
  }
  const bool is_named = is_hex(file.hash, 64) || is_hex(file.hash, 40);
  if (!is_inner_path(file.path) || !is_named || file.bytes == 0) return std::nullopt;
  return file;
}

/// What the hub means by an answer that is no good one.
Error refusal(const HttpAnswer& answer, const HubAccess& hub, const Asked& asked) {
  const auto found = answer.headers.find("x-error-code");
  const std::string code = found == answer.headers.end() ? "" : found->second;
  const std::string name = asked.repository;
  const std::string page = hub.endpoint + "/" + name;
  if (code == "GatedRepo") return gated_error(hub, name);
  const auto message = answer.headers.find("x-error-message");
  if (!hub.token.empty() && answer.status == 401 && message != answer.headers.end() &&
      message->second.starts_with("Invalid credentials"))
    return {
        Fault::kUnsupported, hub.endpoint + ": does not know your token",
        "renew it, or remove it (HF_TOKEN, or the token's file): models that are open to all need "
        "none"};
  if (code == "RevisionNotFound")
    return {Fault::kNotFound, fmt::format("{} has no revision {}", name, asked.revision),
            "see " + page};
  if (answer.status == 429)
    return {Fault::kIo, hub.endpoint + ": too many requests",
            "wait a few minutes; a token (HF_TOKEN) raises the limit"};
  const bool is_missing = answer.status == 401 || answer.status == 403 || answer.status == 404;
  if (is_missing && asked.offered)
    return {Fault::kNotFound, name + ": the hub has it no more, or not for you",
            "the catalogue is out of date there: look for the model at " + hub.endpoint +
                ", and give ORGANISATION/REPOSITORY"};
  if (answer.status == 401 || answer.status == 403)
    return hub.token.empty()
               ? Error{Fault::kNotFound, name + ": there is none, or it is private or gated",
                       "check the name, or set HF_TOKEN to a token that may read it"}
               : Error{Fault::kNotFound, name + ": there is none that your token may read",
                       "check the name and HF_TOKEN; terms are accepted at " + page};
  if (answer.status == 404)
    return {Fault::kNotFound, name + ": there is no such repository", "check the name"};
  return {Fault::kNotReady, fmt::format("{}: answers {}", hub.endpoint, answer.status),
          "run the command again later"};
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

bool is_of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Whether a file's name has the type as a word of its own: Q4_K is not in "x-Q4_K_M.gguf".
bool has_weights(std::string_view path, std::string_view weights) {
  const std::string name = lower_case(path);
  const std::string wanted = lower_case(weights);
  for (std::size_t at = name.find(wanted); at != std::string::npos;
       at = name.find(wanted, at + 1)) {
    const std::size_t end = at + wanted.size();
    if ((at == 0 || !is_of_word(name[at - 1])) && (end == name.size() || !is_of_word(name[end])))
      return true;
  }
  return false;
}

/// A file that is a model of its own: no projector, importance matrix or draft model.
bool is_model(std::string_view path) {
  const std::string name = lower_case(path.substr(path.rfind('/') + 1));
  if (!name.ends_with(".gguf")) return false;
  for (const char* other : {"mmproj", "imatrix", "mtp-", "eagle3-", "dflash-", "dspark-"})
    if (name.find(other) != std::string::npos) return false;
  const auto part = service::split_part(path);
  return !part || part->part == 1;
}

Result<std::vector<HubFile>> with_parts(const HubRepository& repository, const HubFile& file) {
  const auto split = service::split_part(file.path);
  if (!split) return std::vector{file};
  std::vector<HubFile> parts;
  for (const std::string& name : service::parts_of(*split)) {
    const auto found = std::ranges::find(repository.files, name, &HubFile::path);
    if (found == repository.files.end())
      return fail(Fault::kNotFound, repository.name + ": has no " + name + ", a part of the model",
                  "choose another file");
    parts.push_back(*found);
  }
  return parts;
}

}  // namespace

Result<HubAccess> hub_access(std::string& note) {
  HubAccess hub;
  hub.endpoint = variable("HF_ENDPOINT");
  if (hub.endpoint.empty()) hub.endpoint = variable("MODEL_ENDPOINT");
  if (hub.endpoint.empty()) hub.endpoint = "https://huggingface.co";
  while (hub.endpoint.ends_with('/')) hub.endpoint.pop_back();
  const std::string origin = origin_of(hub.endpoint);
  if (origin.empty())
    return fail(Fault::kBadInput, "HF_ENDPOINT: " + hub.endpoint + " is no http or https address",
                "correct it, or unset it");
  hub.token = trimmed(variable("HF_TOKEN"));
  const auto file = service::hub_token_file(service::absolute_variable);
  if (hub.token.empty() && file) {
    std::ifstream stream(*file, std::ios::binary);
    std::string text(kTokenMax + 1, '\0');
    stream.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(stream.gcount()));
    hub.token = trimmed(text);
  }
  // A token with a line end would be a header of its own.
  const bool plain = hub.token.size() <= kTokenMax && std::ranges::all_of(hub.token, [](char c) {
                       return std::isgraph(static_cast<unsigned char>(c)) != 0;
                     });
  if (!plain)
    return fail(Fault::kBadInput, "HF_TOKEN, or the token's file: is no token", "correct it");
  if (!hub.token.empty() && origin.starts_with("http:") && !is_loopback(origin)) {
    note = origin + " is not encrypted: your token is not sent there";
    hub.token.clear();
  }
  return hub;
}

Result<HubRepository> ask_hub(Transport& transport, const HubAccess& hub, const Asked& asked,
                              const std::function<void(const std::string& text)>& note) {
  HttpRequest request;
  request.url = fmt::format("{}/api/models/{}/revision/{}?blobs=true", hub.endpoint,
                            asked.repository, escaped(asked.revision));
  request.token = hub.token;
  for (int tries = 1;; ++tries) {
    const auto answer = transport.get(request);
    const bool last = tries >= kAskTriesMax;
    if (!answer) {
      Error error = answer.error().error;
      const bool is_connection = answer.error().kind == HttpFailure::Kind::kConnection;
      if (is_connection && !last && wait_ms(250 << tries)) continue;
      if (is_connection) error.fault = Fault::kNotReady;
      return tl::unexpected(error);
    }
    if (answer->status == 200) return parse_repository(answer->body, asked.repository);
    const int wait = asked_wait_s(answer->headers);
    const bool later = answer->status == 429 || answer->status >= 500;
    if (!later || last || wait > kServerWaitMaxS)
      return tl::unexpected(refusal(*answer, hub, asked));
    if (wait > 0)
      note(fmt::format("{}: asks to wait {}", hub.endpoint, service::duration_text(wait)));
    if (!wait_ms(wait >= 0 ? wait * 1000 : 500 << tries))
      return fail(Fault::kStopped, "interrupted", "");
  }
}

Error gated_error(const HubAccess& hub, const std::string& repository) {
  const std::string accept = "accept its terms at " + hub.endpoint + "/" + repository;
  if (hub.token.empty())
    return {Fault::kUnsupported, repository + ": its owner lets only known users load it",
            accept + ", and set HF_TOKEN to your token"};
  return {Fault::kUnsupported, repository + ": your token has no access to it", accept};
}

Result<HubRepository> parse_repository(std::string_view text, const std::string& name) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  HubRepository repository;
  repository.name = name;
  if (json.is_object()) repository.commit = text_at(json, "sha");
  if (!is_hex(repository.commit, 40))
    return fail(Fault::kBadInput, name + ": the server's answer is none of a model hub",
                "check HF_ENDPOINT");
  repository.license = license_of(json);
  const auto gated = json.find("gated");
  repository.gated = gated != json.end() && !(gated->is_boolean() && !gated->get<bool>());
  const auto files = json.find("siblings");
  if (files != json.end() && files->is_array())
    for (const Json& each : *files) {
      if (repository.files.size() >= kHubFilesMax) break;
      if (auto file = file_of(each)) repository.files.push_back(std::move(*file));
    }
  return repository;
}

Result<std::vector<HubFile>> choose_files(const HubRepository& repository, const Asked& asked) {
  const auto take = [&](const auto& wanted) -> const HubFile* {
    const auto found = std::ranges::find_if(repository.files, wanted);
    return found == repository.files.end() ? nullptr : &*found;
  };
  const auto of_weights = [&](std::string_view weights) {
    return take([&](const HubFile& file) {
      return is_model(file.path) && has_weights(file.path, weights);
    });
  };
  const HubFile* file = nullptr;
  if (!asked.file.empty()) {
    file = take([&](const HubFile& each) { return each.path == asked.file; });
    // Its owner may have renamed what the catalogue names.
    if (file == nullptr && asked.offered) file = of_weights(asked.offered->weights);
  } else if (!asked.weights.empty()) {
    file = of_weights(asked.weights);
  } else {
    for (const char* usual : {"Q4_K_M", "Q8_0"})
      if (file == nullptr) file = of_weights(usual);
    if (file == nullptr) file = take([](const HubFile& each) { return is_model(each.path); });
  }
  if (file != nullptr) return with_parts(repository, *file);
  std::string there;
  std::size_t count = 0;
  for (const HubFile& each : repository.files)
    if (is_model(each.path) && ++count <= kListedMax)
      there += (there.empty() ? "" : ", ") + each.path;
  const std::string wanted = !asked.file.empty() ? asked.file : asked.weights;
  return fail(Fault::kNotFound,
              wanted.empty() ? repository.name + ": has no GGUF file"
                             : fmt::format("{}: has no {}", repository.name, wanted),
              there.empty() ? "choose a repository with GGUF files, often named ...-GGUF"
                            : "it has " + there);
}

std::string file_address(const HubAccess& hub, const HubRepository& repository,
                         const HubFile& file) {
  return fmt::format("{}/{}/resolve/{}/{}", hub.endpoint, repository.name, repository.commit,
                     escaped(file.path));
}

}  // namespace efimd::get
