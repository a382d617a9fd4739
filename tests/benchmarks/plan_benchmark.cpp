// SPDX-License-Identifier: Apache-2.0
// Time of whole grids: 128 GPUs under a 90-layer expert model, and six under a dense one. Prints the processor time of
// the best of several rounds, so that other programs do not count: of a model's first plan, of a further one with what the first
// has prepared, as when an option is dragged, and of reading whatever is made only when it is read, of every layout.
// usage: plan_benchmark [ENGINE]
#include "core/launch/prepared_model.h"
#include "tests/core/sample_model.h"

#include <cstdio>
#include <cstring>
#include <ctime>

namespace {

// Every list of every layout; what there is of them.
size_t readAll(const headroom::PlanReport& report) {
  size_t entries = 0;
  for (const headroom::LayoutPlan& plan : report.layouts)
    entries += plan.reasons.size() + plan.warnings.size() + plan.ranks.size() + plan.answers.size() + plan.contextSeries.size() +
               plan.partition.size() + plan.waste.size();
  return entries;
}

double processorMs() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace headroom;
  using namespace headroom::test;
  ModelShape experts{90, 5120, 96, 8, 128, 12288, 151552};
  experts.tied = false;
  experts.experts = 160;
  experts.expertWidth = 1536;
  experts.sharedWidth = 1536;
  experts.maxPositions = 32768;
  const struct {
    const char* name;
    ModelSource model;
    const char* gpus;
  } cases[] = {{"90-layer experts, 128 GPUs", makeModel(experts), "16n8xH100-80GB"},
               {"72B dense, 6 GPUs", makeModel(qwen72Shape()), "6xA800-80GB"}};
  for (const auto& test : cases) {
    for (const char* engine : {"headroom", "vllm", "sglang", "tensorrt-llm", "llama.cpp"}) {
      if (argc > 1 && std::strcmp(argv[1], engine) != 0) continue;
      PlanOptions options;
      options.engine = *parseEngine(engine);
      const Machine machine = *parseMachine(test.gpus);
      double first = 1e9, further = 1e9, details = 1e9;
      size_t layouts = 0, entries = 0;
      for (int round = 0; round < 9; ++round) {
        const PreparedModel model = PreparedModel::borrowed(test.model);
        for (double* best : {&first, &further}) {
          const double begin = processorMs();
          const auto report = planModel(model, machine, options);
          if (!report) return std::fprintf(stderr, "%s\n", report.error().message().c_str()), 1;
          layouts = report->layouts.size();
          const double planned = processorMs();
          *best = std::min(*best, planned - begin);
          entries = readAll(*report);
          details = std::min(details, processorMs() - planned);
        }
      }
      std::printf("%-28s %-12s %5zu layouts   first %6.2f ms   again %6.2f ms   details %8.2f ms (%zu)\n", test.name, engine,
                  layouts, first, further, details, entries);
    }
  }
}
