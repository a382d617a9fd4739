// SPDX-License-Identifier: Apache-2.0
// What tensor and pipeline parallel ranks on host devices cost: tokens a second of the same requests in each layout, with the
// same number of threads in all.
//
// usage: layout_benchmark MODEL [threads = 2] [requests = 16] [tokens in = 128] [tokens out = 128] [rounds = 3]
#include "core/model/held_weights.h"
#include "engine/engine.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>

using namespace headroom;
using namespace headroom::engine;

namespace {

struct Load {
  int threads = 2, requests = 16, input = 128, output = 128, rounds = 3;
};

Result<std::unique_ptr<Engine>> startEngine(const std::string& path, int tp, int pp, const Load& load) {
  auto opened = openModel(path);
  if (!opened) return tl::unexpected(opened.error());
  ModelSource model = heldByEngine(std::move(*opened));
  auto layout = makeHeadroomLayout(model, tp, pp, 1);
  if (!layout) return tl::unexpected(layout.error());
  EngineLimits limits;
  limits.computeDType = limits.kvDType = DType::BF16;
  limits.maxModelLen = load.input + load.output;
  limits.maxNumSeqs = load.requests;
  limits.maxNumBatchedTokens = 512;
  EngineSettings settings;
  settings.prefixCaching = false;
  settings.modelName = path;
  settings.ranks.threads = load.threads;
  settings.ranks.spin = tp * pp <= load.threads;
  return Engine::start(std::move(model), std::move(*layout), hostMachine({tp * pp, 2_GiB}), limits, 0.9, settings, [] {});
}

// Seconds that all requests together take.
double run(Engine& engine, const Load& load) {
  std::mt19937 random(3);
  std::mutex mutex;
  std::condition_variable changed;
  int open = load.requests;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < load.requests; ++i) {
    GenerationRequest request;
    for (int t = 0; t < load.input; ++t)
      request.prompt.push_back(static_cast<int32_t>(random() % static_cast<uint64_t>(engine.model().config.vocabSize)));
    request.sampling.temperature = 0;
    request.sampling.ignoreEos = true;
    request.sampling.maxTokens = load.output;
    engine.submit(std::move(request), [&](GenerationUpdate&& update) {
      if (!update.finish) return;
      std::lock_guard lock(mutex);
      if (--open == 0) changed.notify_all();
    });
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return open == 0; });
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: layout_benchmark MODEL [threads] [requests] [tokens in] [tokens out] [rounds]\n");
    return 2;
  }
  Load load;
  int* const numbers[] = {&load.threads, &load.requests, &load.input, &load.output, &load.rounds};
  for (int i = 2; i < argc && i < 7; ++i) *numbers[i - 2] = std::max(1, std::atoi(argv[i]));
  const std::pair<int, int> layouts[] = {{1, 1}, {2, 1}, {1, 2}};
  std::vector<double> best(std::size(layouts), 0.0);
  // The layouts take turns, so that a busy moment of the machine meets all of them.
  for (int round = 0; round < load.rounds; ++round) {
    for (size_t i = 0; i < std::size(layouts); ++i) {
      auto engine = startEngine(argv[1], layouts[i].first, layouts[i].second, load);
      if (!engine) {
        std::fprintf(stderr, "%s\n", engine.error().message().c_str());
        return 3;
      }
      while ((*engine)->state().phase == EnginePhase::Loading) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      run(**engine, load);  // pages and caches
      const double rate = load.requests * load.output / run(**engine, load);
      best[i] = std::max(best[i], rate);
    }
  }
  std::printf("%d requests of %d tokens in and %d out, %d threads, best of %d rounds\n", load.requests, load.input, load.output,
              load.threads, load.rounds);
  for (size_t i = 0; i < std::size(layouts); ++i)
    std::printf("TP%d PP%d  %8.1f tokens/s  %.2f of one rank\n", layouts[i].first, layouts[i].second, best[i], best[i] / best[0]);
}
