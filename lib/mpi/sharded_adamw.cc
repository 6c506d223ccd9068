#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string>

#include "headlight/gradient_tree.h"
#include "headlight/out_of_memory.h"
#include "headlight/system.h"
#include "layers/optimizer_runs.h"
#include "layers/shard_nodes.h"
#include "mpi/call.h"
#include "mpi/digest.h"
#include "mpi/group.h"
#include "mpi/messages.h"
#include "ops/check.h"
#include "runtime/parallel.h"
#include "simd/integers.h"

namespace headlight::mpi {
namespace {

constexpr std::string_view kName = "mpi::ShardedAdamW";
constexpr std::size_t kMoments = 2;
constexpr std::int64_t kMostShards = std::int64_t{1} << 20;

// Elements of one parameter that one rank updates: a run of the optimiser's.
struct Piece {
  std::size_t parameter;
  std::size_t begin;  // in the parameter
  std::size_t first;  // among the elements of all parameters
  std::size_t count;
};

// Elements or pieces `begin` … end − 1.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
  [[nodiscard]] std::size_t size() const noexcept { return end - begin; }
};

// A sum over shards first … first + count − 1 of a rank, of the elements that this one updates.
struct Node {
  std::int64_t first;
  std::int64_t count;
  int rank;
  float* sum;
};

mpi::Run shards_of(std::int64_t shards, int rank, int size) noexcept {
  const std::int64_t first = runtime::first_of_run(shards, size, rank);
  return {first, runtime::first_of_run(shards, size, rank + 1) - first};
}

std::string text_of(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.17g", number);
  return text.data();
}

std::string text_of(const std::vector<Parameter>& parameters) {
  Digest digest;
  for (const Parameter& parameter : parameters) {
    digest.add(std::as_bytes(std::span(parameter.name)));
    digest.add(std::as_bytes(std::span(parameter.shape)));
    digest.add(std::as_bytes(parameter.values));
  }
  return std::to_string(parameters.size()) + ", digest of names, shapes and values " + std::to_string(digest.sum());
}

Record record_of(std::string_view call) {
  return {{"headlight", system_info().version}, {"the call", std::string(kName) + "::" + std::string(call)}};
}

}  // namespace

struct ShardedAdamW::State {
  State(Transport& of, std::vector<Parameter> list, std::int64_t count)
      : transport(of), parameters(std::move(list)), shards(count) {}

  void cut();
  void lay_out_nodes();
  void make_optimizer(const AdamWOptions& options);

  // Of step(): the sum of all shards' gradients, of the own elements; sums of squares of all pieces; the others'
  // parameters.
  void add_up();
  void add_nodes();
  void exchange_sums(Engine& engine);
  void give_round();

  // Of collect_moments().
  void check_whole(std::span<const Parameter> whole) const;
  void bring_together(int root, std::span<const Parameter> own);
  void give_pieces(std::span<const Parameter> to) const;

  // Of a rank.
  [[nodiscard]] Range pieces_of(int rank) const noexcept {
    const auto r = static_cast<std::size_t>(rank);
    return {first_pieces[r], first_pieces[r + 1]};
  }
  [[nodiscard]] Range elements_of(int rank) const noexcept {
    const Range range = pieces_of(rank);
    const auto first = [&](std::size_t piece) { return piece < pieces.size() ? pieces[piece].first : elements; };
    return {first(range.begin), first(range.end)};
  }
  [[nodiscard]] Range own_pieces() const noexcept { return pieces_of(transport.rank()); }
  [[nodiscard]] Range own_elements() const noexcept { return elements_of(transport.rank()); }
  [[nodiscard]] std::span<float> values(const Piece& piece) const noexcept {
    return parameters[piece.parameter].values.subspan(piece.begin, piece.count);
  }
  [[nodiscard]] std::span<float> gradient(const Piece& piece) const noexcept {
    return parameters[piece.parameter].gradient.subspan(piece.begin, piece.count);
  }
  [[nodiscard]] Run own_shards() const noexcept { return shards_of(shards, transport.rank(), transport.size()); }
  [[nodiscard]] bool all_taken() const noexcept {
    const std::int64_t count = own_shards().count;
    if (count == 0) return true;
    return !tree->nodes().empty() &&
           tree->nodes().back().first + tree->nodes().back().count == own_shards().first + count;
  }

  Transport& transport;
  std::vector<Parameter> parameters;
  std::int64_t shards;
  std::size_t elements = 0;
  std::vector<Piece> pieces;
  std::vector<std::size_t> first_pieces;  // of each rank, and the end
  std::optional<GradientTree> tree;       // where the rank has shards
  std::optional<AdamW> adamw;             // of the own pieces, each a parameter
  std::vector<Node> nodes;                // of all ranks, ascending
  std::vector<Node> joined;               // room for as many
  std::vector<float> travelling;          // nodes' sums as they come, or parameters as they go and come
  std::vector<double> sums;               // of squares, of each piece
};

// Ranks' parts are as large as whole pieces allow.
void ShardedAdamW::State::cut() {
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const std::size_t count = parameters[p].values.size();
    for (std::size_t at = 0; at < count; at += layers::kOptimizerRun) {
      pieces.push_back({p, at, elements + at, std::min(layers::kOptimizerRun, count - at)});
    }
    elements += count;
  }
  const auto ranks = static_cast<std::size_t>(transport.size());
  for (std::size_t rank = 0, piece = 0; rank <= ranks; ++rank) {
    while (piece < pieces.size() && (rank == ranks || pieces[piece].first < elements / ranks * rank)) ++piece;
    first_pieces.push_back(piece);
  }
  sums.resize(pieces.size());
}

void ShardedAdamW::State::lay_out_nodes() {
  for (int rank = 0; rank < transport.size(); ++rank) {
    const Run run = shards_of(shards, rank, transport.size());
    std::vector<Node> of_rank;
    for (std::int64_t shard = run.first; shard < run.first + run.count; ++shard) {
      const std::size_t place = of_rank.size() - layers::joined_by(of_rank, 1);
      const std::int64_t first = place == of_rank.size() ? shard : of_rank[place].first;
      of_rank.resize(place);
      of_rank.push_back({first, shard + 1 - first, rank, nullptr});
    }
    nodes.insert(nodes.end(), of_rank.begin(), of_rank.end());
  }
  joined.reserve(nodes.size());
  const std::size_t own = own_elements().size();
  travelling.resize(std::max(nodes.size() * own, elements));
  for (std::size_t n = 0; n < nodes.size(); ++n) nodes[n].sum = travelling.data() + n * own;
}

void ShardedAdamW::State::make_optimizer(const AdamWOptions& options) {
  if (own_shards().count > 0) tree.emplace(parameters, own_shards().first, own_shards().count);
  std::vector<Parameter> own;
  for (std::size_t n = own_pieces().begin; n < own_pieces().end; ++n) {
    own.push_back({parameters[pieces[n].parameter].name,
                   {static_cast<std::int64_t>(pieces[n].count)},
                   values(pieces[n]),
                   gradient(pieces[n])});
  }
  adamw.emplace(std::move(own), options);
}

// Each rank gets, of every node, the elements that it updates.
void ShardedAdamW::State::add_up() {
  Requests requests;
  const std::size_t own_bytes = own_elements().size() * sizeof(float);
  for (const Node& node : nodes) {
    if (node.rank != transport.rank()) transport.receive(node.rank, node.sum, own_bytes, requests);
  }
  const std::span<const GradientTree::Node> own = tree ? tree->nodes() : std::span<const GradientTree::Node>();
  for (int rank = 0; rank < transport.size(); ++rank) {
    if (rank == transport.rank()) continue;
    const Range range = elements_of(rank);
    for (const GradientTree::Node& node : own) {
      transport.send(rank, node.sum.data() + range.begin, range.size() * sizeof(float), requests);
    }
  }
  std::size_t at = 0;
  for (const Node& node : nodes) {
    if (node.rank != transport.rank()) continue;
    std::copy_n(own[at++].sum.data() + own_elements().begin, own_elements().size(), node.sum);
  }
  transport.wait(requests);
  if (tree) tree->clear();
  add_nodes();
}

// As GradientTree adds them.
void ShardedAdamW::State::add_nodes() {
  const std::size_t own = own_elements().size();
  const auto add_last_two = [&] {
    const Node right = joined.back();
    joined.pop_back();
    float* const left = joined.back().sum;
    for (std::size_t e = 0; e < own; ++e) left[e] = left[e] + right.sum[e];
    joined.back().count += right.count;
    transport.poll();
  };
  joined.clear();
  for (const Node& node : nodes) {
    const std::size_t joins = layers::joined_by(joined, node.count);
    joined.push_back(node);
    for (std::size_t n = 0; n < joins; ++n) add_last_two();
  }
  while (joined.size() > 1) add_last_two();
  const float* from = joined.front().sum;
  for (std::size_t n = own_pieces().begin; n < own_pieces().end; ++n) {
    std::copy_n(from, pieces[n].count, gradient(pieces[n]).data());
    from += pieces[n].count;
  }
}

void ShardedAdamW::State::exchange_sums(Engine& engine) {
  const std::span<const double> own = adamw->sums_of_squares(engine);
  std::copy(own.begin(), own.end(), sums.begin() + static_cast<std::ptrdiff_t>(own_pieces().begin));
  Requests requests;
  for (int rank = 0; rank < transport.size(); ++rank) {
    if (rank == transport.rank()) continue;
    const Range theirs = pieces_of(rank);
    transport.receive(rank, sums.data() + theirs.begin, theirs.size() * sizeof(double), requests);
    transport.send(rank, sums.data() + own_pieces().begin, own_pieces().size() * sizeof(double), requests);
  }
  transport.wait(requests);
}

void ShardedAdamW::State::give_round() {
  for (std::size_t n = own_pieces().begin; n < own_pieces().end; ++n) {
    const std::span<const float> from = values(pieces[n]);
    std::copy(from.begin(), from.end(), travelling.begin() + static_cast<std::ptrdiff_t>(pieces[n].first));
  }
  Requests requests;
  for (int rank = 0; rank < transport.size(); ++rank) {
    if (rank == transport.rank()) continue;
    const Range theirs = elements_of(rank), own = own_elements();
    transport.receive(rank, travelling.data() + theirs.begin, theirs.size() * sizeof(float), requests);
    transport.send(rank, travelling.data() + own.begin, own.size() * sizeof(float), requests);
  }
  transport.wait(requests);
  give_pieces(parameters);
}

void ShardedAdamW::State::check_whole(std::span<const Parameter> whole) const {
  if (whole.size() != kMoments * parameters.size()) {
    ops::fail(kName, "whole has " + std::to_string(whole.size()) + " tensors, expected the " +
                         std::to_string(kMoments * parameters.size()) + " moments of all parameters");
  }
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const Parameter& like = parameters[n % parameters.size()];
    if (whole[n].values.size() == like.values.size()) continue;
    ops::fail(kName, "whole has " + std::to_string(whole[n].values.size()) + " numbers for a moment of " + like.name +
                         ", expected " + std::to_string(like.values.size()));
  }
}

// A moment of the pieces of each rank, in `travelling` on the root.
void ShardedAdamW::State::bring_together(int root, std::span<const Parameter> own) {
  std::size_t at = own_elements().begin;
  for (const Parameter& piece : own) {
    std::copy(piece.values.begin(), piece.values.end(), travelling.begin() + static_cast<std::ptrdiff_t>(at));
    at += piece.values.size();
  }
  Requests requests;
  if (transport.rank() != root) {
    transport.send(root, travelling.data() + own_elements().begin, own_elements().size() * sizeof(float), requests);
  } else {
    for (int rank = 0; rank < transport.size(); ++rank) {
      const Range theirs = elements_of(rank);
      if (rank != root) {
        transport.receive(rank, travelling.data() + theirs.begin, theirs.size() * sizeof(float), requests);
      }
    }
  }
  transport.wait(requests);
}

// From `travelling` to tensors like the parameters.
void ShardedAdamW::State::give_pieces(std::span<const Parameter> to) const {
  for (const Piece& piece : pieces) {
    std::copy_n(travelling.begin() + static_cast<std::ptrdiff_t>(piece.first), piece.count,
                to[piece.parameter].values.begin() + static_cast<std::ptrdiff_t>(piece.begin));
  }
}

ShardedAdamW::ShardedAdamW(Group& group, std::vector<Parameter> parameters, std::int64_t shards,
                           const AdamWOptions& options) {
  Transport& transport = group.state().transport;
  double seconds = 0;
  Record record = record_of("ShardedAdamW");
  record.insert(record.end(), {{"shards", std::to_string(shards)},
                               {"options.beta1", text_of(options.beta1)},
                               {"options.beta2", text_of(options.beta2)},
                               {"options.epsilon", text_of(options.epsilon)},
                               {"options.weight_decay", text_of(options.weight_decay)},
                               {"parameters", text_of(parameters)}});
  together(
      transport, record, seconds,
      [&] {
        if (shards < 1 || shards > kMostShards) {
          ops::fail(kName, "shards is " + std::to_string(shards) + ", expected 1 to " + std::to_string(kMostShards));
        }
        state_ = std::make_unique<State>(transport, std::move(parameters), shards);
        for (const Parameter& parameter : state_->parameters) {
          if (parameter.gradient.size() == parameter.values.size()) continue;
          ops::fail(kName, "parameter " + parameter.name + " has no gradient, expected those of a layer in training");
        }
        try {
          state_->cut();
          state_->lay_out_nodes();
          state_->make_optimizer(options);
        } catch (const OutOfMemory&) {
          throw;
        } catch (const std::bad_alloc&) {
          throw OutOfMemory(kName, state_->elements * sizeof(float));
        }
      },
      [] {});
}

// What MPI may still read or write stays; see Transport.
ShardedAdamW::~ShardedAdamW() {
  if (state_ != nullptr && state_->transport.has_failed()) static_cast<void>(state_.release());
}

ShardedAdamW::ShardedAdamW(ShardedAdamW&& other) noexcept = default;
ShardedAdamW& ShardedAdamW::operator=(ShardedAdamW&& other) noexcept {
  ShardedAdamW old(std::move(*this));
  state_ = std::move(other.state_);
  return *this;
}

Run ShardedAdamW::shards() const noexcept { return state_->own_shards(); }

void ShardedAdamW::zero_gradients() noexcept {
  headlight::zero_gradients(state_->parameters);
  if (state_->tree) state_->tree->clear();
}

void ShardedAdamW::take(Engine& engine) {
  if (!state_->tree) ops::fail(kName, "a shard is taken on a rank that has none");
  state_->tree->take(engine);
}

StepReport ShardedAdamW::step(Engine& engine, const StepOptions& options) {
  State& state = *state_;
  StepReport report;
  double seconds = 0;
  Record record = record_of("step");
  record.insert(record.end(), {{"the instruction set", std::string(name(engine.isa()))},
                               {"steps", std::to_string(steps())},
                               {"options.learning_rate", text_of(options.learning_rate)},
                               {"options.max_norm", text_of(options.max_norm)}});
  together(
      state.transport, record, seconds,
      [&] {
        layers::check_step(kName, options);
        if (!state.all_taken()) {
          ops::fail(kName, "step() comes before all " + std::to_string(state.own_shards().count) +
                               " shards of the rank are taken");
        }
      },
      [&] {
        state.add_up();
        state.exchange_sums(engine);
        report = layers::report_of(state.sums, [&](std::size_t piece) -> std::string_view {
          return state.parameters[state.pieces[piece].parameter].name;
        });
        if (!report.taken()) return;
        state.adamw->update_for_norm(engine, options, report.gradient_norm);
        state.give_round();
      });
  return report;
}

std::int64_t ShardedAdamW::steps() const noexcept { return state_->adamw->steps(); }
void ShardedAdamW::set_steps(std::int64_t steps) { state_->adamw->set_steps(steps); }

std::vector<ShardedAdamW::Moment> ShardedAdamW::moments() {
  std::vector<Moment> list;
  const Range own = state_->own_pieces();
  const std::vector<Parameter> state = state_->adamw->state();
  for (std::size_t n = 0; n < state.size(); ++n) {
    list.push_back(
        {state[n].name, static_cast<std::int64_t>(state_->pieces[own.begin + n % own.size()].begin), state[n].values});
  }
  return list;
}

void ShardedAdamW::collect_moments(int root, std::span<const Parameter> whole) {
  State& state = *state_;
  Transport& transport = state.transport;
  double seconds = 0;
  Record record = record_of("collect_moments");
  record.insert(record.end(), {{"root", std::to_string(root)}, {"steps", std::to_string(steps())}});
  std::vector<Parameter> own;
  together(
      transport, record, seconds,
      [&] {
        if (root < 0 || root >= transport.size()) {
          ops::fail(kName, "root is " + std::to_string(root) + ", expected a rank of the group");
        }
        if (transport.rank() == root) state.check_whole(whole);
        own = state.adamw->state();
      },
      [&] {
        const std::size_t count = state.parameters.size();
        for (std::size_t moment = 0; moment < kMoments; ++moment) {
          state.bring_together(root, std::span<const Parameter>(own).subspan(moment * state.own_pieces().size(),
                                                                             state.own_pieces().size()));
          if (transport.rank() == root) state.give_pieces(whole.subspan(moment * count, count));
        }
      });
}

}  // namespace headlight::mpi
