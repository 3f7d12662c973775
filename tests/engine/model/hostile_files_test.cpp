// Mutated model files, read as the daemon reads them: the file, the shape, the tokenizer, the
// weights. Whatever the bytes, the answer comes soon, takes no more memory than the file is worth,
// and a refusal names what it is about.
#include <time.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "engine/model/model.h"
#include "tests/engine/model/gguf_fields.h"
#include "tests/support/heap_count.h"
#include "tests/support/model_writer.h"

namespace efimd::test {
namespace {

#ifdef EFIMD_SANITIZED
constexpr int kMutants = 4000;
constexpr double kSecondsMax = 10;  // of processor time, for one file
#else
constexpr int kMutants = 100000;
constexpr double kSecondsMax = 1;
#endif
/// What reading may take from the heap beside the file's own size.
constexpr std::size_t kHeapSlackBytes = std::size_t{1} << 20;

/// A sound file, and where its numbers stand.
struct Sound {
  std::string bytes;
  std::vector<GgufField> fields;
  std::size_t data_start = 0;
};

Sound sound(const TinyModel& model) {
  Sound made;
  made.bytes = tiny_model(model).bytes();
  made.fields = gguf_fields(made.bytes);
  made.data_start = made.fields.back().at + made.fields.back().size;
  return made;
}

std::vector<Sound> sound_files() {
  using engine::TensorType;
  std::vector<Sound> files;
  for (const char* const architecture :
       {"llama", "qwen2", "qwen3", "qwen3moe", "starcoder2", "gemma", "granite"})
    for (const auto vocab : {TinyModel::Vocab::kSentencepiece, TinyModel::Vocab::kByteBpe}) {
      constexpr std::array kTypes = {TensorType::kF16, TensorType::kQ4_0, TensorType::kQ8_0,
                                     TensorType::kBF16, TensorType::kF32};
      TinyModel model;
      model.architecture = architecture;
      model.layers = 1;
      model.width = model.head_width = model.feed_forward = 32;
      model.heads = model.kv_heads = 1;
      model.experts = 2;
      model.experts_used = 1;
      model.window = 64;
      model.type = kTypes[files.size() % kTypes.size()];
      model.tied = true;
      model.vocab = vocab;
      files.push_back(sound(model));
    }
  return files;
}

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t bound) { return random() % bound; }

/// Numbers at the borders of types and of the file, and near the one that stands there.
std::uint64_t hostile_number(Random& random, std::uint64_t good, std::size_t file_bytes) {
  const std::uint64_t choices[] = {0,
                                   1,
                                   good + 1,
                                   good - 1,
                                   good * 2,
                                   file_bytes,
                                   file_bytes - 1,
                                   file_bytes / 8,
                                   1U << 16,
                                   1U << 24,
                                   0x7FFFFFFF,
                                   0x80000000,
                                   0xFFFFFFFF,
                                   std::uint64_t{1} << 48,
                                   0x7FFFFFFFFFFFFFFF,
                                   std::uint64_t{1} << 63,
                                   std::numeric_limits<std::uint64_t>::max(),
                                   random()};
  return choices[below(random, std::size(choices))];
}

void lie(std::string& bytes, const Sound& file, Random& random) {
  const GgufField& field = file.fields[below(random, file.fields.size())];
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data() + field.at, field.size);
  number = hostile_number(random, number, bytes.size());
  std::memcpy(bytes.data() + field.at, &number, field.size);
}

void flip(std::string& bytes, const Sound& file, Random& random) {
  const std::size_t end = random() % 16 == 0 ? bytes.size() : file.data_start;
  char& byte = bytes[below(random, end)];
  byte = static_cast<char>(byte ^ (1 << below(random, 8)));
}

void cut(std::string& bytes, const Sound& file, Random& random) {
  bytes.resize(below(random, random() % 4 == 0 ? bytes.size() : file.data_start));
}

/// A part of the file a second time, or missing.
void splice(std::string& bytes, const Sound& file, Random& random) {
  const std::size_t from = below(random, file.data_start);
  const std::size_t size = 1 + below(random, 256);
  if (random() % 2 == 0) {
    bytes.erase(from, size);
  } else {
    const std::string part = bytes.substr(from, size);
    bytes.insert(below(random, file.data_start), part);
  }
}

std::string mutant(const Sound& file, Random& random) {
  std::string bytes = file.bytes;
  const std::size_t kind = below(random, 20);
  if (kind == 0) {
    cut(bytes, file, random);
  } else if (kind == 1) {
    splice(bytes, file, random);
  } else if (kind < 12) {
    for (std::size_t count = 1 + below(random, 3); count > 0; --count) lie(bytes, file, random);
  } else {
    for (std::size_t count = 1 + below(random, 8); count > 0; --count) flip(bytes, file, random);
  }
  return bytes;
}

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Whether a message says which key, tensor or part of the header it is about. An architecture is
/// named by its value, and keys by what follows theirs.
bool names_field(const std::string& message, const Sound& file) {
  constexpr const char* kOthers[] = {
      "key ",           "tensor ",    "of the tensor directory", "GGUF",     " tensors",
      " metadata entr", "the header", "model; this build runs",  "is empty", "has no weights"};
  const auto has = [&](std::string_view name) { return message.find(name) != std::string::npos; };
  return std::ranges::any_of(kOthers, has) ||
         std::ranges::any_of(file.fields, [&](const GgufField& field) {
           const std::size_t dot = field.name.find('.');
           return dot != std::string::npos && has(std::string_view(field.name).substr(dot));
         });
}

/// How far a file came.
enum Reach { kNothing, kFile, kModel };

struct Tally {
  std::array<int, 3> reached = {};
  std::vector<std::string> wrong;  ///< what no mutant may do
};

Result<void> read_as_daemon(std::span<const std::byte> bytes, Reach& reach) {
  Result<engine::GgufFile> file = engine::GgufFile::parse(bytes, "m");
  if (!file) return tl::unexpected(std::move(file).error());
  reach = kFile;
  const auto model = engine::Model::from(std::move(*file), "m.gguf");
  if (!model) return tl::unexpected(model.error());
  reach = kModel;
  const engine::Tokenizer& tokenizer = (*model)->tokenizer();
  const auto tokens = tokenizer.encode("for (int i = 0;) {\n  f(\"\xC3\xA9\");\n}", {});
  const bool inside = std::ranges::all_of(
      tokens, [&](engine::TokenId token) { return token >= 0 && token < tokenizer.size(); });
  if (!inside) return fail(Fault::kBadInput, "a token outside the vocabulary");
  return {};
}

void judge(std::string_view mutant, const Sound& file, int number, Tally& tally) {
  // Unaligned and of the exact size, so that sanitizers see every byte read past the end.
  const std::unique_ptr<char[]> copy(new char[mutant.size() + 1]);
  std::copy(mutant.begin(), mutant.end(), copy.get() + 1);
  const auto bytes = std::as_bytes(std::span(copy.get() + 1, mutant.size()));
  Reach reach = kNothing;
  const double begin = thread_seconds();
  begin_heap_count();
  const Result<void> read = read_as_daemon(bytes, reach);
  const HeapCount heap = heap_count();
  const double seconds = thread_seconds() - begin;

  const auto wrong = [&](const std::string& what) {
    tally.wrong.push_back("mutant " + std::to_string(number) + ": " + what);
  };
  const std::size_t heap_max = mutant.size() + kHeapSlackBytes;
  ++tally.reached[reach];
  if (seconds > kSecondsMax) wrong("took " + std::to_string(seconds) + " s");
  if (heap.peak_bytes > static_cast<std::ptrdiff_t>(heap_max))
    wrong("took " + std::to_string(heap.peak_bytes) + " bytes of memory");
  if (heap.largest_bytes > heap_max)
    wrong("asked for " + std::to_string(heap.largest_bytes) + " bytes at once");
  if (!read && !names_field(read.error().what, file))
    wrong("is refused without a name: " + read.error().what);
}

}  // namespace

TEST_CASE("mutated files are read or refused by name, soon and within their size") {
  const std::vector<Sound> files = sound_files();
  Reach reach = kNothing;
  for (const Sound& file : files)
    REQUIRE(read_as_daemon(std::as_bytes(std::span(file.bytes)), reach));
  std::vector<Tally> tallies(std::max(1U, std::thread::hardware_concurrency()));
  std::vector<std::jthread> threads;
  for (std::size_t index = 0; index < tallies.size(); ++index)
    threads.emplace_back([&, index] {
      Tally mine;
      for (int number = static_cast<int>(index); number < kMutants;
           number += static_cast<int>(tallies.size())) {
        Random random(static_cast<std::uint64_t>(number));
        const Sound& file = files[static_cast<std::size_t>(number) % files.size()];
        judge(mutant(file, random), file, number, mine);
      }
      tallies[index] = std::move(mine);
    });
  threads.clear();

  std::array<int, 3> reached = {};
  for (const Tally& tally : tallies) {
    for (std::size_t i = 0; i < reached.size(); ++i) reached[i] += tally.reached[i];
    for (const std::string& what : tally.wrong) FAIL_CHECK(what);
  }
  // Else the mutations would test the first check only, or nothing.
  CHECK(reached[kFile] > kMutants / 20);
  CHECK(reached[kModel] > kMutants / 40);
}

TEST_CASE("an array that would grow beyond the file's worth in memory is refused") {
  // A bool takes one byte in the file and eight in memory.
  constexpr std::uint32_t kBool = 7, kArray = 9;
  constexpr std::uint64_t kCount = 5'000'000;
  std::string value(12 + kCount, '\0');
  std::memcpy(value.data(), &kBool, sizeof kBool);
  std::memcpy(value.data() + 4, &kCount, sizeof kCount);
  const std::string bytes = GgufWriter().raw("flags", kArray, value).bytes();
  begin_heap_count();
  const auto file = engine::GgufFile::parse(std::as_bytes(std::span(bytes)), "m");
  CHECK(heap_count().largest_bytes < kHeapSlackBytes);
  REQUIRE_FALSE(file);
  CHECK_THAT(file.error().what, Catch::Contains("key flags claims 5000000 elements"));
}

}  // namespace efimd::test
