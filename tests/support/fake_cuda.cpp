// A stand-in for NVIDIA's driver: the functions that engine/backend/cuda calls, over plain memory, and the kernels of
// kernels/ as C++. Memory is handed out full of NaN. Tests make single functions fail.
#include "tests/support/fake_cuda.h"

#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/entries.cuh"
#include "tests/support/simt_run.h"

namespace {

using efimd::simt::Order;

struct Fault {
  CUresult result = CUDA_SUCCESS;
  int calls_before = 0;
};

struct State {
  std::map<std::string, Fault> faults;
  CUresult sticky = CUDA_SUCCESS;
  int driver_version = CUDA_VERSION;
  std::size_t memory_bytes = std::size_t{1} << 30;
  std::vector<std::size_t> more_cards;  ///< their memory
  std::map<CUdevice, int> contexts_held;
  CUdevice current = 0;  ///< whose context is
  std::map<CUdeviceptr, std::size_t> blocks;
  std::size_t used = 0;
  Order order = Order::kForward;
  int graphs_made = 0;
  int capability = 80;
  int code_capability = 80;
};
State state;

using Threads = std::function<void()>;

/// A kernel whose arguments are copied when it is launched, as CUDA does.
template <class... Arguments>
std::function<Threads(void**)> launcher(void (*kernel)(Arguments...)) {
  return [kernel](void** given) -> Threads {
    return [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>)->Threads {
      return
          [kernel, values = std::tuple<Arguments...>(*static_cast<Arguments*>(given[kIndex])...)] {
            std::apply(kernel, values);
          };
    }
    (std::index_sequence_for<Arguments...>());
  };
}

using namespace efimd::kernels;
#define TYPED(number)                                       \
  {"embed_rows_" #number, launcher(embed_rows_##number)}, { \
    "matmul_" #number "_1", launcher(matmul_##number##_1)   \
  }
#define FEW(number) \
  { "matmul_" #number "_8", launcher(matmul_##number##_8) }
#define TILED(number) \
  FEW(number), { "matmul_" #number "_32", launcher(matmul_##number##_32) }
#define HALVES(number)                                                           \
  {"matmul_halves_" #number "_8", launcher(matmul_halves_##number##_8)},         \
      {"matmul_halves_" #number "_64", launcher(matmul_halves_##number##_64)}, { \
    "matmul_halves_" #number "_128", launcher(matmul_halves_##number##_128)      \
  }
#define ATTENTION(pieces)                                                           \
  {"attention_tiles_" #pieces, launcher(attention_tiles_##pieces)}, {               \
    "attention_tiles_" #pieces "_whole", launcher(attention_tiles_##pieces##_whole) \
  }
std::map<std::string, std::function<Threads(void**)>> kernels_by_name = {
    {"norm_rows_f32", launcher(norm_rows_f32)},
    {"store_rows_f16", launcher(store_rows_f16)},
    {"store_rows_q8", launcher(store_rows_q8)},
    {"attention_f16", launcher(attention_f16)},
    {"attention_q8", launcher(attention_q8)},
    ATTENTION(1),
    ATTENTION(2),
    ATTENTION(3),
    ATTENTION(4),
    ATTENTION(8),
    {"merge_f32", launcher(merge_f32)},
    {"activate_f32", launcher(activate_f32)},
    {"route_f32", launcher(route_f32)},
    {"combine_f32", launcher(combine_f32)},
    TYPED(0),
    TYPED(1),
    TYPED(2),
    TYPED(3),
    TYPED(4),
    TYPED(5),
    TYPED(6),
    TYPED(7),
    TYPED(8),
    TYPED(9),
    TYPED(10),
    FEW(0),
    FEW(1),
    FEW(2),
    TILED(3),
    TILED(4),
    TILED(5),
    TILED(6),
    TILED(7),
    TILED(8),
    TILED(9),
    TILED(10),
    HALVES(1),
    HALVES(2)};
#undef TYPED
#undef FEW
#undef TILED
#undef HALVES
#undef ATTENTION

/// A function's answer; an error other than short memory sticks.
CUresult answer(const char* function) {
  if (state.sticky != CUDA_SUCCESS) return state.sticky;
  const auto fault = state.faults.find(function);
  if (fault == state.faults.end() || fault->second.calls_before-- > 0) return CUDA_SUCCESS;
  fault->second.calls_before = 0;
  const CUresult result = fault->second.result;
  if (result != CUDA_ERROR_OUT_OF_MEMORY && result != CUDA_ERROR_NO_DEVICE) state.sticky = result;
  return result;
}

bool inside(CUdeviceptr address, std::size_t bytes) {
  auto block = state.blocks.upper_bound(address);
  if (block == state.blocks.begin()) return false;
  --block;
  return address + bytes <= block->first + block->second;
}

}  // namespace

using Work = std::function<void()>;

/// Work waits until somebody waits for it. Code that does not wait for its inputs works with old
/// bytes.
struct CUstream_st {
  std::vector<Work>* capture = nullptr;
  std::deque<Work> waiting;
  std::size_t added = 0;
  CUresult add(Work work) {
    if (capture != nullptr) {
      capture->push_back(std::move(work));
    } else {
      waiting.push_back(std::move(work));
      ++added;
    }
    return CUDA_SUCCESS;
  }
  void run_until(std::size_t count) {
    while (added - waiting.size() < count) {
      const Work work = std::move(waiting.front());
      waiting.pop_front();
      work();
    }
  }
};
struct CUevent_st {
  CUstream stream = nullptr;
  std::size_t count = 0;  ///< of the stream's work before it
};
struct CUgraph_st {
  std::vector<Work> work;
};
struct CUgraphExec_st {
  std::vector<Work> work;
};
struct CUfunc_st {
  std::function<Threads(void**)> launch;
};

extern "C" {

void fake_cuda_reset() {
  state.more_cards.clear(), state.contexts_held.clear(), state.current = 0;
  state.faults.clear(), state.sticky = CUDA_SUCCESS, state.driver_version = CUDA_VERSION,
                        state.memory_bytes = std::size_t{1} << 30, state.order = Order::kForward,
                        state.graphs_made = 0, state.capability = 80, state.code_capability = 80;
}
void fake_cuda_fail(const char* function, int result, int calls_before) {
  state.faults[function] = {static_cast<CUresult>(result), calls_before};
}
void fake_cuda_set_driver_version(int version) { state.driver_version = version; }
void fake_cuda_set_memory(std::size_t bytes) { state.memory_bytes = bytes; }
void fake_cuda_set_capability(int capability, int of_code) {
  state.capability = capability;
  state.code_capability = of_code;
}
void fake_cuda_add_card(std::size_t bytes) { state.more_cards.push_back(bytes); }
int fake_cuda_contexts_held(int card) { return state.contexts_held[card]; }
void fake_cuda_run_backward() { state.order = Order::kBackward; }
int fake_cuda_graphs_made() { return state.graphs_made; }

CUresult CUDAAPI cuInit(unsigned) { return answer("cuInit"); }
CUresult CUDAAPI cuDriverGetVersion(int* version) {
  *version = state.driver_version;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGetErrorName(CUresult error, const char** name) {
  *name = error == CUDA_ERROR_OUT_OF_MEMORY     ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == CUDA_ERROR_NO_DEVICE       ? "CUDA_ERROR_NO_DEVICE"
          : error == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                                : "CUDA_ERROR_UNKNOWN";
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetCount(int* count) {
  *count = 1 + static_cast<int>(state.more_cards.size());
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGet(CUdevice* device, int card) {
  *device = card;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetName(char* name, int length, CUdevice device) {
  std::snprintf(name, static_cast<std::size_t>(length), "no card %d", device);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? state.capability / 10
           : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? state.capability % 10
                                                                       : 0;
  return CUDA_SUCCESS;
}
// A card's context is its number, from 1 on.
CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  *context = reinterpret_cast<CUcontext>(static_cast<std::uintptr_t>(device + 1));
  const CUresult result = answer("cuDevicePrimaryCtxRetain");
  if (result == CUDA_SUCCESS) ++state.contexts_held[device];
  return result;
}
CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
  --state.contexts_held[device];
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) {
  if (context != nullptr)
    state.current = static_cast<CUdevice>(reinterpret_cast<std::uintptr_t>(context)) - 1;
  return answer("cuCtxSetCurrent");
}
CUresult CUDAAPI cuMemGetInfo(std::size_t* free, std::size_t* total) {
  const auto other = static_cast<std::size_t>(state.current) - 1;
  *total = state.current == 0 ? state.memory_bytes : state.more_cards[other];
  *free = *total - (state.current == 0 ? state.used : 0);
  return answer("cuMemGetInfo");
}
CUresult CUDAAPI cuMemAlloc(CUdeviceptr* address, std::size_t bytes) {
  if (const CUresult result = answer("cuMemAlloc"); result != CUDA_SUCCESS) return result;
  if (state.used + bytes > state.memory_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  void* memory = std::aligned_alloc(256, (bytes + 511) / 256 * 256);
  std::memset(memory, 0xFF, bytes);
  *address = reinterpret_cast<CUdeviceptr>(memory);
  state.blocks[*address] = bytes;
  state.used += bytes;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemFree(CUdeviceptr address) {
  state.used -= state.blocks[address];
  state.blocks.erase(address);
  std::free(reinterpret_cast<void*>(address));
  return answer("cuMemFree");
}
CUresult CUDAAPI cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  if (const CUresult result = answer("cuMemHostAlloc"); result != CUDA_SUCCESS) return result;
  *memory = std::aligned_alloc(256, (bytes + 511) / 256 * 256);
  state.blocks[reinterpret_cast<CUdeviceptr>(*memory)] = bytes;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemFreeHost(void* memory) {
  state.blocks.erase(reinterpret_cast<CUdeviceptr>(memory));
  std::free(memory);
  return answer("cuMemFreeHost");
}
CUresult CUDAAPI cuMemHostGetDevicePointer(CUdeviceptr* address, void* memory, unsigned) {
  *address = reinterpret_cast<CUdeviceptr>(memory);
  return answer("cuMemHostGetDevicePointer");
}
CUresult CUDAAPI cuModuleLoadData(CUmodule* module, const void* image) {
  // A fat binary begins with this number.
  std::uint32_t magic = 0;
  std::memcpy(&magic, image, sizeof magic);
  *module = nullptr;
  return magic == 0xBA55ED50U ? answer("cuModuleLoadData") : CUDA_ERROR_INVALID_IMAGE;
}
CUresult CUDAAPI cuModuleUnload(CUmodule) { return answer("cuModuleUnload"); }
CUresult CUDAAPI cuModuleGetFunction(CUfunction* function, CUmodule, const char* name) {
  const auto found = kernels_by_name.find(name);
  if (found == kernels_by_name.end()) return CUDA_ERROR_NOT_FOUND;
  static std::map<std::string, CUfunc_st> functions;
  *function = &(functions[name] = {found->second});
  return answer("cuModuleGetFunction");
}
CUresult CUDAAPI cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction) {
  *value = attribute == CU_FUNC_ATTRIBUTE_PTX_VERSION ? state.code_capability : 1;
  return answer("cuFuncGetAttribute");
}
CUresult CUDAAPI cuStreamCreate(CUstream* stream, unsigned) {
  *stream = new CUstream_st;
  return answer("cuStreamCreate");
}
CUresult CUDAAPI cuStreamDestroy(CUstream stream) {
  delete stream;
  return answer("cuStreamDestroy");
}
CUresult CUDAAPI cuStreamSynchronize(CUstream stream) {
  stream->run_until(stream->added);
  return answer("cuStreamSynchronize");
}
CUresult CUDAAPI cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  stream->add([awaited = *event] { awaited.stream->run_until(awaited.count); });
  return answer("cuStreamWaitEvent");
}
CUresult CUDAAPI cuEventCreate(CUevent* event, unsigned) {
  *event = new CUevent_st;
  return answer("cuEventCreate");
}
CUresult CUDAAPI cuEventDestroy(CUevent event) {
  delete event;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream) {
  *event = {stream, stream->added};
  return answer("cuEventRecord");
}
CUresult CUDAAPI cuEventSynchronize(CUevent event) {
  if (event->stream != nullptr) event->stream->run_until(event->count);
  return answer("cuEventSynchronize");
}
CUresult CUDAAPI cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode) {
  stream->capture = new std::vector<Work>;
  return answer("cuStreamBeginCapture");
}
CUresult CUDAAPI cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  *graph = new CUgraph_st{std::move(*stream->capture)};
  delete std::exchange(stream->capture, nullptr);
  return answer("cuStreamEndCapture");
}
CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                               CUstream stream) {
  if (const CUresult result = answer("cuMemcpyAsync"); result != CUDA_SUCCESS) return result;
  if (!inside(to, bytes) || !inside(from, bytes)) return state.sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
  return stream->add([=] {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  });
}
CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                unsigned grid_z, unsigned block_x, unsigned block_y,
                                unsigned block_z, unsigned, CUstream stream, void** parameters,
                                void**) {
  if (const CUresult result = answer("cuLaunchKernel"); result != CUDA_SUCCESS) return result;
  if (grid_y > 65535 || grid_z > 65535 || block_z != 1) return CUDA_ERROR_INVALID_VALUE;
  return stream->add(
      [grid = efimd::simt::Grid{{grid_x, grid_y, grid_z},
                                {block_x, block_y, 1},
                                state.order,
                                function->launch(parameters)}] { efimd::simt::run_grid(grid); });
}
CUresult CUDAAPI cuGraphInstantiate(CUgraphExec* executable, CUgraph graph, unsigned long long) {
  *executable = new CUgraphExec_st{graph->work};
  ++state.graphs_made;
  return answer("cuGraphInstantiate");
}
CUresult CUDAAPI cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  if (const CUresult result = answer("cuGraphLaunch"); result != CUDA_SUCCESS) return result;
  for (const Work& work : executable->work) stream->add(work);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGraphDestroy(CUgraph graph) {
  delete graph;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec executable) {
  delete executable;
  return answer("cuGraphExecDestroy");
}

}  // extern "C"
