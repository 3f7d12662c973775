#include "net/get/offer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "daemon/config/amounts.h"
#include "daemon/models/recommend.h"

namespace efimd::get {

using Json = nlohmann::json;

namespace {

std::string amount(std::uint64_t bytes) { return service::bytes_text(static_cast<double>(bytes)); }

std::string license_text(const Offer& offer) {
  if (offer.license.empty()) return "not said: read the repository's page before you use it";
  if (offer.restricted.empty()) return offer.license;
  return offer.license + ": " + offer.restricted;
}

std::string size_text(const Offer& offer) {
  std::string text = offer.bytes > 0 ? amount(offer.bytes) : "not known before it is loaded";
  if (offer.files.size() > 1) text += fmt::format(" in {} files", offer.files.size());
  if (offer.bytes_here > 0) text += fmt::format(", {} of it are here", amount(offer.bytes_here));
  if (offer.bytes_free) text += fmt::format("; {} are free", amount(*offer.bytes_free));
  return text;
}

}  // namespace

service::TokenCost cost_of(const Asked& asked, const std::vector<HubFile>& files) {
  std::uint64_t bytes = 0;
  for (const HubFile& file : files) bytes += file.bytes;
  if (asked.offered) {
    service::OfferedModel model = *asked.offered;
    model.bytes = bytes > 0 ? bytes : model.bytes;
    return service::token_cost(model);
  }
  const std::string weights = files.empty() ? "" : service::weights_in_name(files.front().path);
  const double bits = service::bits_of_weights(weights);
  return {bytes, static_cast<std::uint64_t>(static_cast<double>(bytes) * 8 / (bits > 0 ? bits : 8)),
          weights};
}

std::string offer_text(const Offer& offer) {
  std::string text = fmt::format("model    {}\n", offer.name);
  for (const HubFile& file : offer.files) text += fmt::format("file     {}\n", file.path);
  text += fmt::format("size     {}\n", size_text(offer));
  text += fmt::format("licence  {}\n", license_text(offer));
  if (!offer.good_for.empty()) text += fmt::format("good for {}\n", offer.good_for);
  for (const service::GuessedSpeed& speed : offer.speeds)
    text += fmt::format(
        "speed    about {:.0f} tokens/s of prompt and {:.1f} generated, an answer in {:.0f} ms, on "
        "{} ({})\n",
        speed.prompt_tokens_per_s, speed.generation_tokens_per_s, speed.first_answer_ms,
        speed.device_kind, speed.device_name);
  return text + fmt::format("into     {}\n", offer.folder);
}

Json offer_json(const Offer& offer) {
  Json files = Json::array();
  for (const HubFile& file : offer.files)
    files.push_back({{"path", file.path}, {"bytes", file.bytes}, {"hash", file.hash}});
  Json speeds = Json::array();
  for (const service::GuessedSpeed& speed : offer.speeds)
    speeds.push_back({{"device", speed.device_kind},
                      {"name", speed.device_name},
                      {"promptTokensPerS", speed.prompt_tokens_per_s},
                      {"generationTokensPerS", speed.generation_tokens_per_s},
                      {"firstAnswerMs", speed.first_answer_ms}});
  return {{"event", "offer"},
          {"name", offer.name},
          {"commit", offer.commit},
          {"files", files},
          {"bytes", offer.bytes},
          {"bytesHere", offer.bytes_here},
          {"bytesFree", offer.bytes_free ? Json(*offer.bytes_free) : Json()},
          {"folder", offer.folder},
          {"license", offer.license},
          {"restricted", offer.restricted},
          {"gated", offer.gated},
          {"goodFor", offer.good_for},
          {"speeds", speeds}};
}

}  // namespace efimd::get
