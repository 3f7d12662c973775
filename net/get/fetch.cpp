#include "net/get/fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "daemon/config/amounts.h"
#include "net/get/partial_file.h"
#include "net/get/server_wait.h"

namespace efimd::get {

namespace fs = std::filesystem;

namespace {

constexpr int kFirstPauseMs = 250;
constexpr int kPauseMaxMs = 8000;
constexpr int kLockPauseMs = 200;
constexpr std::uint64_t kFirstLookBytes = std::uint64_t{1} << 20;

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string header(const HttpHeaders& headers, std::string_view name) {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

/// Of "bytes 10-99/100": the first byte and, where it is said, the whole.
struct ContentRange {
  std::uint64_t begin = 0;
  std::optional<std::uint64_t> whole;
};
std::optional<ContentRange> content_range(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  if (!text.starts_with(kUnit)) return std::nullopt;
  text.remove_prefix(kUnit.size());
  const std::size_t dash = text.find('-');
  const std::size_t slash = text.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos) return std::nullopt;
  const auto begin = number(text.substr(0, dash));
  if (!begin) return std::nullopt;
  return ContentRange{*begin, number(text.substr(slash + 1))};
}

/// How a try ended that did not bring the whole file.
struct Setback {
  Error error;
  bool again = false;    ///< whether another try may help
  int wait_s = -1;       ///< that the server asks for
  bool spoiled = false;  ///< what came is wrong, or must make room
};

std::string continuing(std::uint64_t bytes) {
  return fmt::format("continuing after the {} that are here",
                     service::bytes_text(static_cast<double>(bytes)));
}

/// One file on its way.
class Download {
 public:
  Download(Transport& transport, const FetchWish& wish, const FetchWatch& watch, PartialFile file)
      : transport_(transport), wish_(wish), watch_(watch), file_(std::move(file)) {}
  Result<void> run();

 private:
  std::optional<Setback> attempt();
  Result<void> begin(const HttpAnswer& answer);
  Result<void> take(std::span<const char> piece);
  Setback refusal(const HttpAnswer& answer);
  Result<void> pause(const Setback& setback);
  Result<void> load();
  Result<void> check();
  fs::path tag_file() const { return file_.path().string() + ".etag"; }
  void keep_tag(const HttpHeaders& headers);
  std::string kept_tag() const;
  void drop();

  Transport& transport_;
  const FetchWish& wish_;
  const FetchWatch& watch_;
  PartialFile file_;
  int tries_ = 0, tries_in_all_ = 0;
  std::uint64_t next_look_ = kFirstLookBytes;
  bool resumed_ = false;
  bool is_other_ = false;  ///< what the server sends is not the file
};

Result<void> Download::run() {
  resumed_ = file_.size() > 0;
  if (auto room = check_room(wish_.file.parent_path(),
                             file_.expected() - std::min(file_.size(), file_.expected()));
      !room) {
    if (file_.size() == 0) drop();
    return room;
  }
  if (resumed_ && wish_.hash.empty() && !kept_tag().empty()) watch_.note(continuing(file_.size()));
  if (auto loaded = load(); !loaded) return loaded;
  if (!file_.content_is_right()) {
    if (!std::exchange(resumed_, false)) {
      drop();
      return fail(Fault::kBadInput,
                  wish_.file.filename().string() +
                      ": what was loaded is not what the hub describes (wrong checksum)",
                  "nothing of it is kept; try again, or another network or mirror");
    }
    watch_.note("what an earlier try left does not fit; loading all of it again");
    if (auto done = file_.restart(); !done) return done;
    if (auto loaded = load(); !loaded) return loaded;
    if (!file_.content_is_right()) {
      drop();
      return fail(Fault::kBadInput, wish_.file.filename().string() + ": wrong checksum",
                  "nothing of it is kept; try another network or mirror");
    }
  }
  return check();
}

Result<void> Download::check() {
  Result<void> done = wish_.check ? wish_.check(file_.path()) : Result<void>();
  if (done) done = file_.finish();
  if (!done) {
    drop();
  } else {
    std::error_code error;
    fs::remove(tag_file(), error);
  }
  return done;
}

void Download::drop() {
  file_.remove();
  std::error_code error;
  fs::remove(tag_file(), error);
}

/// Until all bytes are here.
Result<void> Download::load() {
  while (file_.expected() == 0 || file_.size() < file_.expected()) {
    const std::uint64_t before = file_.size();
    const auto setback = attempt();
    if (!setback) return {};
    if (file_.size() > before) tries_ = 0;
    ++tries_;
    ++tries_in_all_;
    if (!setback->again) {
      if (setback->spoiled || file_.size() == 0) drop();
      return tl::unexpected(setback->error);
    }
    if (tries_ >= kTriesMax || tries_in_all_ >= kTriesInAllMax) {
      if (file_.size() == 0) drop();
      Error error = setback->error;
      if (file_.size() > 0)
        error.what += fmt::format(" ({} of {} are kept; the next try continues after them)",
                                  service::bytes_text(static_cast<double>(file_.size())),
                                  service::bytes_text(static_cast<double>(file_.expected())));
      return tl::unexpected(error);
    }
    if (auto paused = pause(*setback); !paused) return paused;
  }
  return {};
}

Result<void> Download::pause(const Setback& setback) {
  const int ms = setback.wait_s >= 0
                     ? setback.wait_s * 1000
                     : std::min(kFirstPauseMs << std::min(tries_ - 1, 10), kPauseMaxMs);
  watch_.note(fmt::format("{}; trying again in {:.1f} s", setback.error.what, ms / 1000.0));
  if (wait_ms(ms)) return {};
  return fail(Fault::kStopped, "interrupted", "");
}

std::optional<Setback> Download::attempt() {
  HttpRequest request;
  request.url = wish_.url;
  request.token = wish_.token;
  if (wish_.hash.empty() && file_.size() > 0) {
    request.if_range = kept_tag();
    if (request.if_range.empty())
      if (auto done = file_.restart(); !done) return Setback{done.error()};
  }
  request.from_byte = file_.size();
  const BodyTaker taker{[this](const HttpAnswer& answer) { return begin(answer); },
                        [this](std::span<const char> piece) { return take(piece); }};
  const auto answer = transport_.get(request, &taker);
  if (!answer) {
    using Kind = HttpFailure::Kind;
    const Kind kind = answer.error().kind;
    return Setback{answer.error().error, kind == Kind::kConnection && !interrupted, -1,
                   kind == Kind::kTaker && !is_other_};
  }
  if (answer->status != 200 && answer->status != 206) return refusal(*answer);
  if (file_.expected() > 0 && file_.size() < file_.expected())
    return Setback{{Fault::kIo, "the connection broke off", "run the command again"}, true};
  return std::nullopt;
}

Result<void> Download::begin(const HttpAnswer& answer) {
  const auto refuse = [](const std::string& what) {
    return fail(Fault::kBadInput, "the server " + what, "try again, or another mirror");
  };
  std::optional<std::uint64_t> whole = number(header(answer.headers, "content-length"));
  if (answer.status == 206) {
    const auto range = content_range(header(answer.headers, "content-range"));
    if (!range || range->begin != file_.size()) return refuse("sends another part than asked for");
    whole = range->whole;
  } else if (file_.size() > 0) {
    // A network that wants a login answers so, too: what came before must outlast it.
    const bool is_page = header(answer.headers, "content-type").starts_with("text/html");
    if (!wish_.hash.empty() && (whole ? *whole != file_.expected() : is_page)) {
      is_other_ = true;
      return fail(Fault::kIo,
                  origin_of(answer.url) + ": sends something else than the file; what came is kept",
                  "see whether the network wants a login, then run the command again");
    }
    if (auto done = file_.restart(); !done) return done;
  }
  if (whole && file_.expected() == 0) {
    file_.expect(*whole);
    if (auto room = check_room(wish_.file.parent_path(), *whole - std::min(*whole, file_.size()));
        !room)
      return room;
  }
  if (whole && *whole != file_.expected())
    return refuse(fmt::format("has a file of {} bytes, not of {}", *whole, file_.expected()));
  if (wish_.hash.empty()) keep_tag(answer.headers);
  return {};
}

Result<void> Download::take(std::span<const char> piece) {
  if (file_.expected() > 0 && file_.size() + piece.size() > file_.expected())
    return fail(Fault::kBadInput, "the server sends more than it said",
                "try again, or another mirror");
  auto done = file_.append(piece);
  if (done) watch_.progress(file_.size(), file_.expected());
  if (!done || !wish_.look || file_.size() < next_look_) return done;
  next_look_ = 2 * file_.size();
  return wish_.look(file_.path(), file_.size(), file_.expected());
}

Setback Download::refusal(const HttpAnswer& answer) {
  const std::string where = origin_of(answer.url);
  const long status = answer.status;
  if (status == 416 && file_.size() > 0) {
    if (auto done = file_.restart(); !done) return {done.error()};
    return {{Fault::kIo, where + ": refuses the rest of the file", ""}, true, 0};
  }
  if (status == 429 || status == 408 || status >= 500) {
    const int wait = asked_wait_s(answer.headers);
    const std::string what =
        status == 429 ? ": too many requests" : fmt::format(": answers {}", status);
    if (wait > kServerWaitMaxS)
      return {{Fault::kIo,
               fmt::format("{}{}, and asks to wait {}", where, what, service::duration_text(wait)),
               "run the command again then; a token (HF_TOKEN) may raise the limit"}};
    return {{Fault::kIo, where + what, "run the command again later"}, true, wait};
  }
  if (wish_.gated && header(answer.headers, "x-error-code") == "GatedRepo") return {*wish_.gated};
  // Addresses to which the hub leads are good for a while only.
  const bool is_elsewhere = where != origin_of(wish_.url);
  if (status == 401 || status == 403)
    return {{Fault::kIo, fmt::format("{}: refuses the file ({})", where, status),
             "set HF_TOKEN to a token that may read it"},
            is_elsewhere};
  return {{status == 404 ? Fault::kNotFound : Fault::kIo,
           fmt::format("{}: answers {} for {}", where, status, wish_.file.filename().string()),
           "check the name"}};
}

void Download::keep_tag(const HttpHeaders& headers) {
  std::string tag = header(headers, "etag");
  if (tag.starts_with("W/")) tag.clear();  // says nothing of bytes
  std::ofstream(tag_file(), std::ios::trunc) << tag;
}

std::string Download::kept_tag() const {
  std::ifstream stream(tag_file());
  std::string tag(std::istreambuf_iterator<char>(stream), {});
  const bool plain =
      tag.size() < 200 && std::ranges::none_of(tag, [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e;
      });
  return plain ? tag : "";
}

}  // namespace

Result<Fetched> fetch(Transport& transport, const FetchWish& wish, const FetchWatch& watch) {
  std::error_code error;
  std::optional<BlobLock> lock;
  for (bool told = false;;) {
    auto taken = BlobLock::try_take(wish.lock);
    if (!taken) return tl::unexpected(taken.error());
    if (*taken) {
      lock.emplace(std::move(**taken));
      break;
    }
    if (!std::exchange(told, true)) watch.note("another program loads this file; waiting for it");
    if (!wait_ms(kLockPauseMs)) return fail(Fault::kStopped, "interrupted", "");
  }
  const auto size = fs::file_size(wish.file, error);
  if (!error && (wish.bytes == 0 || size == wish.bytes)) return Fetched::kWasHere;
  const auto left = fs::file_size(PartialFile::path_of(wish.file), error);
  // To be hashed it is read again, which takes its time.
  if (!error && left > 0 && !wish.hash.empty()) watch.note(continuing(left));
  auto file = PartialFile::open({wish.file, wish.bytes, wish.hash});
  if (!file) return tl::unexpected(file.error());
  Download download(transport, wish, watch, std::move(*file));
  if (auto done = download.run(); !done) return tl::unexpected(done.error());
  return Fetched::kNow;
}

}  // namespace efimd::get
