#include "tests/support/simt.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/backend/cpu/kernels/half.h"
#include "tests/support/simt_place.h"
#include "tests/support/simt_run.h"

/// Of a function that other fibers run in the middle of: its callers may not know what it leaves untouched, registers and memory.
#ifdef __clang__
#define EFIMD_OPAQUE [[gnu::noinline]]
#else
#define EFIMD_OPAQUE [[gnu::noipa]]
#endif

namespace efimd::simt {

namespace {

/// No power of two, because the tops of stacks that are one apart then share few lines of a cache.
constexpr std::size_t kStackBytes = (std::size_t{64} << 10) + 832;

/// Words that a lane gives at once.
constexpr std::size_t kGivenMax = 12;

enum class State : std::uint8_t { kReady, kGives, kAtWarp, kAtBlock, kDone };

struct Copy {
  unsigned* to;
  const unsigned* from;
};

struct Fiber {
  std::unique_ptr<std::byte[]> stack = std::make_unique<std::byte[]>(kStackBytes);
  Place here = {};
  Dim thread;
  /// What was given last, and before that.
  std::array<std::array<std::uint32_t, kGivenMax>, 2> given = {};
  unsigned last_given = 0;
  std::size_t copies_awaited = 0;
  std::vector<Copy> copies;               ///< of the batch that is not closed
  std::deque<std::vector<Copy>> batches;  ///< closed
};

/// The threads of the block that runs, one block of a grid after another.
std::vector<std::unique_ptr<Fiber>> fibers;
std::vector<State>
    states;  ///< of the fibers; side by side, because those of a warp are looked through at each barrier
const Grid* now = nullptr;
std::size_t running = 0;
Place scheduler;
/// The warp that runs, whose lanes hand over to one another in this order.
std::size_t first_lane = 0;
Order lane_order = Order::kForward;

[[noreturn]] void broken(const char* what) {
  std::fprintf(stderr, "simt: %s\n", what);
  std::abort();
}

Fiber& fiber_at(std::size_t index) { return *fibers[index]; }
Fiber& current() { return fiber_at(running); }

/// The warp's next lane that is ready; none after its last.
Fiber* next_ready() {
  const std::size_t end = lane_order == Order::kForward ? first_lane + 31 : first_lane;
  while (running != end) {
    running = lane_order == Order::kForward ? running + 1 : running - 1;
    if (states[running] == State::kReady) return &current();
  }
  return nullptr;
}

/// Hands over to the next lane that is ready, or to the scheduler.
EFIMD_OPAQUE void wait(State state) {
  Fiber& fiber = current();
  states[running] = state;
  Fiber* const next = next_ready();
  if (next == nullptr) return jump(fiber.here, scheduler);
  thread_index = next->thread;
  jump(fiber.here, next->here);
}

/// A fiber runs a thread of one block, and is resumed for that of the next.
void enter() {
  for (;;) {
    now->kernel();
    wait(State::kDone);
  }
}

std::unique_ptr<Fiber> new_fiber() {
  auto fiber = std::make_unique<Fiber>();
  begin_at(fiber->here, enter, fiber->stack.get(), kStackBytes);
  return fiber;
}

/// Runs a lane, and the later ones to which it hands over.
EFIMD_OPAQUE void resume(std::size_t index) {
  running = index;
  thread_index = current().thread;
  jump(scheduler, current().here);
}

/// Lets the lanes of a warp go on that have all come to its barrier.
bool release_warp(std::size_t first) {
  const std::span<State> warp(states.data() + first, 32);
  const auto lanes = [&](State state) { return std::ranges::count(warp, state); };
  const auto giving = lanes(State::kGives), waiting = lanes(State::kAtWarp);
  if (giving + waiting == 0) return false;
  if (lanes(State::kDone) != 0) broken("a warp exchanges values after a lane has left");
  if (giving + waiting != 32 || (giving != 0 && waiting != 0))
    broken("lanes of a warp wait at different barriers");
  std::ranges::fill(warp, State::kReady);
  return true;
}

bool release_block(std::size_t threads) {
  const std::span<State> block(states.data(), threads);
  const auto waiting = std::ranges::count(block, State::kAtBlock);
  if (waiting == 0) return false;
  if (static_cast<std::size_t>(waiting) != threads)
    broken("a block waits for a thread that has left");
  std::ranges::fill(block, State::kReady);
  return true;
}

/// Until all lanes wait for the block or have left.
void run_warp(std::size_t first, Order order) {
  first_lane = first;
  lane_order = order;
  do {
    for (std::size_t i = 0; i < 32; ++i) {
      const std::size_t index = first + (order == Order::kForward ? i : 31 - i);
      if (states[index] == State::kReady) resume(index);
    }
  } while (release_warp(first));
}

/// A warp runs as far as it can before the next one does, which is as far apart as warps can come.
void run_block(std::size_t threads, Order order) {
  do {
    for (std::size_t first = 0; first < threads; first += 32)
      run_warp(order == Order::kForward ? first : threads - 32 - first, order);
  } while (release_block(threads));
}

/// A lane that gives again writes to memory that nobody reads any more. While a lane reads the last
/// values, others come as far as the next exchange, and no further.
void give(const std::uint32_t* words, std::size_t count) {
  Fiber& fiber = current();
  fiber.last_given ^= 1U;
  std::copy_n(words, count, fiber.given[fiber.last_given].begin());
  wait(State::kGives);
}
const std::uint32_t* given_by(unsigned lane) {
  return fiber_at(running / 32 * 32 + lane % 32).given[current().last_given].data();
}

std::size_t threads_of(const Grid& grid) { return std::size_t{grid.threads.x} * grid.threads.y; }

/// The fibers are the grid's threads from here on.
void make_ready(const Grid& grid) {
  const std::size_t count = threads_of(grid);
  if (count % 32 != 0) broken("a block is no whole number of warps");
  now = &grid;
  block_size = grid.threads;
  while (fibers.size() < count) fibers.push_back(new_fiber());
  states.resize(fibers.size());
  for (std::size_t i = 0; i < count; ++i) {
    const auto index = static_cast<unsigned>(i);
    fiber_at(i).thread = {index % grid.threads.x, index / grid.threads.x, 0};
  }
}

void begin_block(Dim index) {
  block_index = index;
  std::fill_n(states.begin(), threads_of(*now), State::kReady);
}

void end_block() {
  for (std::size_t i = 0; i < threads_of(*now); ++i)
    if (fiber_at(i).copies_awaited != 0) broken("a thread has left before its copies were there");
}

}  // namespace

Dim thread_index, block_index, block_size;

void wait_for_block() { wait(State::kAtBlock); }
void wait_for_warp() { wait(State::kAtWarp); }
unsigned lane() { return static_cast<unsigned>(running % 32); }

std::uint32_t exchange(std::uint32_t value, unsigned from) {
  give(&value, 1);
  return *given_by(from);
}

void start_copy(unsigned* to, const unsigned* from) {
  if ((reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from)) % 16 != 0)
    broken("a copy of 16 bytes is not aligned");
  if (now->order == Order::kBackward) {
    std::memcpy(to, from, 16);
    return;
  }
  current().copies.push_back({to, from});
  ++current().copies_awaited;
}
void close_batch() { current().batches.push_back(std::exchange(current().copies, {})); }
void wait_for_batches_but(std::size_t open) {
  Fiber& fiber = current();
  for (auto& batches = fiber.batches; batches.size() > open; batches.pop_front()) {
    for (const Copy& copy : batches.front()) std::memcpy(copy.to, copy.from, 16);
    fiber.copies_awaited -= batches.front().size();
  }
}

void run_grid(const Grid& grid) {
  make_ready(grid);
  for (unsigned z = 0; z < grid.blocks.z; ++z)
    for (unsigned y = 0; y < grid.blocks.y; ++y)
      for (unsigned x = 0; x < grid.blocks.x; ++x) {
        begin_block({x, y, z});
        run_block(threads_of(grid), grid.order);
        end_block();
      }
}

}  // namespace efimd::simt

namespace efimd::kernels {
float half_to_float(unsigned bits) {
  return engine::cpu::half_to_float(static_cast<std::uint16_t>(bits));
}
unsigned float_to_half(float value) { return engine::cpu::float_to_half(value); }

namespace {

/// Adds, for the first `pieces` of K = 16, lane 4g + c's part of them: words 2 piece and 2 piece +
/// 1 of `a` for rows g and g + 8, word 4 + piece of b for column g.
void add_pieces(std::uint32_t pieces, const std::array<std::uint32_t, 6>& words, int (&sums)[4]) {
  simt::give(words.data(), words.size());
  const unsigned g = simt::lane() / 4, c = simt::lane() % 4;
  for (unsigned i = 0; i < 4; ++i)
    for (unsigned piece = 0; piece < pieces; ++piece)
      for (unsigned k = 0; k < 4; ++k) {
        const std::uint32_t of_row = simt::given_by(4 * g + k)[2 * piece + i / 2];
        const std::uint32_t of_column = simt::given_by(4 * (2 * c + i % 2) + k)[4 + piece];
        sums[i] = __dp4a(static_cast<int>(of_row), static_cast<int>(of_column), sums[i]);
      }
}

}  // namespace

namespace {

/// Adds lane 4g + c's part of K = 16: words 0 and 2 of `a` for row g, 1 and 3 for row g + 8, words
/// 4 and 5 of b for column g. Rounded once, which no card may do: tests allow for it. Lanes give
/// floats: so a half is converted once, and not by every lane that reads it.
template <class ToFloat>
void add_halves(const unsigned (&a)[4], const unsigned (&b)[2], float (&sums)[4],
                const ToFloat& to_float) {
  std::array<std::uint32_t, simt::kGivenMax> given;
  const std::array<std::uint32_t, 6> words = {a[0], a[1], a[2], a[3], b[0], b[1]};
  for (unsigned i = 0; i < words.size(); ++i) {
    given[2 * i] = std::bit_cast<std::uint32_t>(to_float(words[i] & 0xFFFFU));
    given[2 * i + 1] = std::bit_cast<std::uint32_t>(to_float(words[i] >> 16U));
  }
  simt::give(given.data(), given.size());
  const unsigned g = simt::lane() / 4, c = simt::lane() % 4;
  for (unsigned i = 0; i < 4; ++i) {
    double sum = static_cast<double>(sums[i]);
    for (unsigned half = 0; half < 2; ++half)
      for (unsigned k = 0; k < 4; ++k) {
        const std::uint32_t* const of_row = simt::given_by(4 * g + k) + 2 * (2 * half + i / 2);
        const std::uint32_t* const of_column =
            simt::given_by(4 * (2 * c + i % 2) + k) + 2 * (4 + half);
        for (unsigned each = 0; each < 2; ++each)
          sum += static_cast<double>(std::bit_cast<float>(of_row[each])) *
                 static_cast<double>(std::bit_cast<float>(of_column[each]));
      }
    sums[i] = static_cast<float>(sum);
  }
}

}  // namespace

void mma_f16(const unsigned (&a)[4], const unsigned (&b)[2], float (&sums)[4]) {
  add_halves(a, b, sums, half_to_float);
}
void mma_bf16(const unsigned (&a)[4], const unsigned (&b)[2], float (&sums)[4]) {
  add_halves(a, b, sums, [](unsigned bits) { return std::bit_cast<float>(bits << 16U); });
}
void mma_16x8x16(unsigned a_upper, unsigned a_lower, unsigned b, int (&sums)[4]) {
  add_pieces(1, {a_upper, a_lower, 0, 0, b, 0}, sums);
}
void mma_16x8x32(const unsigned (&a)[4], const unsigned (&b)[2], int (&sums)[4]) {
  add_pieces(2, {a[0], a[1], a[2], a[3], b[0], b[1]}, sums);
}
}  // namespace efimd::kernels
