// headlight speed: a first look at how fast this machine is, in seconds; bench/ measures in earnest.
#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "baseline/attention_unfused.h"
#include "headlight/attention.h"
#include "headlight/attention_backward.h"
#include "headlight/gemm.h"
#include "tools/headlight/commands/commands.h"
#include "tools/headlight/support/display_text.h"
#include "tools/headlight/support/engine_arguments.h"
#include "tools/headlight/support/json.h"
#include "tools/headlight/support/number_text.h"
#include "tools/headlight/support/process.h"
#include "tools/headlight/support/progress.h"
#include "tools/headlight/support/quantity_text.h"
#include "tools/headlight/support/repeated_times.h"

namespace headlight::program {
namespace speed_command {
namespace {

constexpr std::int64_t kHeads = 12, kHeadDim = 64;  // BERT-base
constexpr double kSeconds = 0.25;                   // for each row

struct Timing {
  double engine = 0, plain = 0;  // seconds, the middle of all runs; 0: not there
  bool busy = false;
};

struct Row {
  std::string name;
  double flops = 0, bytes = 0;  // bytes: where reading them is the limit
  Timing timing{};
};

// In turn, since a core's clock moves.
Timing time(const std::function<void()>& engine, const std::function<void()>& plain = {}) {
  engine();
  if (plain) plain();
  RepeatedTimes ours, theirs;
  for (double spent = 0; spent < kSeconds;) {
    spent += ours.run(engine);
    if (plain) spent += theirs.run(plain);
  }
  return {ours.middle(), theirs.middle(), ours.disagree() || theirs.disagree()};
}

template <int Rank>
Tensor<float, Rank> random_tensor(const std::array<std::int64_t, Rank>& shape) {
  Tensor<float, Rank> tensor(shape);
  std::minstd_rand random(1);
  for (float& value : tensor) value = static_cast<float>(random() % 4096) / 1024.0f - 2.0f;
  return tensor;
}

Row matrix_product(Engine& engine) {
  constexpr std::int64_t kSize = 512;
  const Tensor<float, 2> a = random_tensor<2>({kSize, kSize}), b = random_tensor<2>({kSize, kSize});
  Tensor<float, 2> c({kSize, kSize});
  const PackedMatrix packed(engine, b);
  Row row{"matrix product 512 × 512 × 512", 2.0 * kSize * kSize * kSize};
  row.timing = time([&] { gemm(engine, a, packed, c); });
  return row;
}

Row forward(Engine& engine, const std::string& name, std::int64_t queries, std::int64_t keys, Causal causal) {
  const Tensor<float, 4> query = random_tensor<4>({1, queries, kHeads, kHeadDim});
  const Tensor<float, 4> key = random_tensor<4>({1, keys, kHeads, kHeadDim});
  const Tensor<float, 4> value = random_tensor<4>({1, keys, kHeads, kHeadDim});
  Tensor<float, 4> out(query.shape());
  const AttentionOptions options = {.causal = causal};
  const double pairs =
      static_cast<double>(queries) * static_cast<double>(causal == Causal::none ? 2 * keys : keys + 1) / 2;
  Row row{name, 4.0 * pairs * kHeads * kHeadDim};
  if (queries == 1) row.bytes = 2.0 * 4 * static_cast<double>(keys) * kHeads * kHeadDim;
  row.timing = time([&] { attention(engine, query, key, value, out, options); },
                    [&] { baseline::attention_unfused(engine, query, key, value, out, options); });
  return row;
}

Row backward(Engine& engine, std::int64_t length) {
  const std::array<std::int64_t, 4> shape = {1, length, kHeads, kHeadDim};
  const Tensor<float, 4> query = random_tensor<4>(shape), key = random_tensor<4>(shape),
                         value = random_tensor<4>(shape), out_gradient = random_tensor<4>(shape);
  Tensor<float, 4> out(shape), query_gradient(shape), key_gradient(shape), value_gradient(shape);
  Tensor<float, 3> log_sum_exp({1, kHeads, length});
  attention(engine, query, key, value, out, {.log_sum_exp = log_sum_exp});
  const AttentionGradients gradients = {.query = query_gradient, .key = key_gradient, .value = value_gradient};
  const auto size = static_cast<double>(length);
  Row row{"attention's gradients, " + grouped(length) + " words", 10.0 * size * size * kHeads * kHeadDim};
  row.timing = time([&] { attention_backward(engine, query, key, value, out, log_sum_exp, out_gradient, gradients); },
                    [&] { baseline::attention_unfused_backward(engine, query, key, value, out_gradient, gradients); });
  return row;
}

std::vector<Row> measure(Engine& engine) {
  const std::vector<std::function<Row()>> parts{
      [&] { return matrix_product(engine); },
      [&] { return forward(engine, "attention, 128 words", 128, 128, Causal::none); },
      [&] { return forward(engine, "attention, 512 words", 512, 512, Causal::none); },
      [&] { return forward(engine, "attention, 1,024 words", 1024, 1024, Causal::none); },
      [&] { return forward(engine, "causal attention, 1,024 words", 1024, 1024, Causal::top_left); },
      [&] { return forward(engine, "one word looks at 8,192", 1, 8192, Causal::none); },
      [&] { return backward(engine, 1024); }};
  Progress progress(parts.size());
  std::vector<Row> rows;
  for (const std::function<Row()>& part : parts) {
    rows.push_back(part());
    progress.advance(1);
  }
  return rows;
}

constexpr std::size_t kNameColumns = 36;  // every name of measure() is shorter

std::string as_text(const Engine& engine, const std::vector<Row>& rows) {
  std::string text = "Speed of this machine: " + std::string(name(engine.isa())) + ", " +
                     std::to_string(engine.threads()) + (engine.threads() == 1 ? " thread" : " threads") +
                     ", float32; " + std::to_string(kHeads) + " heads of " + std::to_string(kHeadDim) + "\n\n  " +
                     std::string(kNameColumns, ' ') + at_right("time", 12) + at_right("rate", 16) +
                     at_right("the plain way", 16) + "\n";
  for (const Row& row : rows) {
    const double rate = (row.bytes > 0 ? row.bytes : row.flops) / row.timing.engine / 1e9;
    text += "  " + row.name + std::string(kNameColumns - columns_of(row.name), ' ') +
            at_right(seconds_text(row.timing.engine), 12) +
            at_right(format("%.0f", rate) + (row.bytes > 0 ? " GB/s   " : " GFLOP/s"), 16);
    if (row.timing.plain > 0)
      text += at_right(format("%.1f", row.timing.plain / row.timing.engine) + " × the time", 16);
    text += "\n";
  }
  return text +
         "\nThe plain way writes out all L × L weights, with the same matrix products. tools/bench measures more, "
         "longer, and beside others.\n" +
         note_of_busy(std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.timing.busy; }));
}

std::string as_json(const Engine& engine, const std::vector<Row>& rows) {
  Json document;
  document["isa"] = name(engine.isa());
  document["threads"] = engine.threads();
  for (const Row& row : rows) {
    Json entry = {{"name", row.name}, {"seconds", row.timing.engine}, {"flops", row.flops}};
    if (row.bytes > 0) entry["bytes"] = row.bytes;
    if (row.timing.plain > 0) entry["unfused_seconds"] = row.timing.plain;
    document["rows"].push_back(std::move(entry));
  }
  return document.dump(2) + "\n";
}

struct Arguments {
  EngineArguments engine;
  bool json = false;
};

}  // namespace
}  // namespace speed_command

void add_speed(Command& program) {
  using namespace speed_command;
  Command command = program.add_subcommand("speed", "A first look at how fast this machine is, in seconds");
  const auto arguments = std::make_shared<Arguments>();
  arguments->engine.add_to(command);
  command.add_flag("--json", arguments->json, "Print one JSON document");
  command.example("");
  command.callback([arguments] {
    Engine engine(arguments->engine.options());
    const std::vector<Row> rows = measure(engine);
    print(arguments->json ? as_json(engine, rows) : as_text(engine, rows));
  });
}

}  // namespace headlight::program
