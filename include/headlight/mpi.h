// Attention over a sequence that is spread over the ranks of an MPI communicator, and training over shards of a batch
// that are, with the bits of one process. The library headlight_mpi, built with -DHEADLIGHT_MPI=ON;
// docs/many-machines.md tells how it works.
#pragma once

#include <mpi.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "headlight/attention.h"
#include "headlight/attention_backward.h"
#include "headlight/layers/training_attention.h"
#include "headlight/optimizer.h"
#include "headlight/parameters.h"
#include "headlight/row_shards.h"

namespace headlight::mpi {

// What a call ends with on every rank, when one of them could not go on: it was given a wrong argument or another one
// than the rest, has no memory, or gave no sign of life for as long as the group's timeout. After the last, or where
// MPI itself has lost a rank, the group can do nothing more, and all of its calls throw the same again.
class HEADLIGHT_API Error : public std::runtime_error {
 public:
  // "rank 2: …"
  Error(int rank, const std::string& reason);
  ~Error() override;
  // Whose fault it was.
  [[nodiscard]] int rank() const noexcept { return rank_; }

 private:
  int rank_;
};

// What a group is made with.
struct GroupOptions {
  // For how long a rank that others wait for may give no sign of life. It gives one whenever it is asked within a call,
  // between pieces of work of at most a tenth of a second, or of 64 rows of all heads where those take longer. A rank
  // that comes to a call so much later than another has given none either. More than 0.
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
};

// The ranks that compute together. MPI stays the caller's: it is initialised, for one thread at least
// (MPI_THREAD_FUNNELED), before a group is made, and finalised after all groups are gone; a group makes two
// communicators of its own from the one given. One call at a time, by the thread that called MPI_Init_thread().
class HEADLIGHT_API Group {
 public:
  // Every rank of the communicator makes one, with the same options. Throws std::invalid_argument, and Error where a
  // rank did not come in time.
  explicit Group(MPI_Comm communicator, const GroupOptions& options = {});
  // After an Error, what ranks that no longer answer might still write to is not given back.
  ~Group();
  Group(Group&& other) noexcept;
  Group& operator=(Group&& other) noexcept;

  // Those of the communicator.
  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int size() const noexcept;

  // What the library itself works with.
  struct State;
  [[nodiscard]] State& state() const noexcept { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// How a call is spread; all ranks give the same.
struct Spread {
  // Ranks are a grid of size / head_ranks by head_ranks: those of a row share out the heads among themselves, which
  // takes two exchanges of all with all; between the rows, keys are sent while the last ones are used. 1: ranks share
  // the sequence alone (the ring). The size: heads alone. A divisor of the size and of Hkv. 0: what plan() thinks
  // fastest.
  int head_ranks = 0;
  // Rows and keys that lie together on a rank, a multiple of 64. 0: chosen from the lengths, 1024 at most.
  std::int64_t block = 0;
  // Blocks are distributed to so many shards, of which each rank holds neighbours, as ShardedAdamW::shards() says: what
  // a shard holds does not depend on how many ranks there are (RowShards). 0: as many as ranks.
  std::int64_t shards = 0;
  // What plan() chooses by: operations that a rank does in a second, and bytes that leave it, or come, in one.
  double flops_per_second = 1e11;
  double bytes_per_second = 1e9;
  // Of a number that is sent: 2 where keys and values are of 16 bits.
  double bytes_per_number = 4;
};

// Rows (or keys, or shards) first … first + count − 1 of the whole.
using Run = RowRun;

// What a rank holds of a call, and what the call costs it.
struct HEADLIGHT_API Plan {
  // The grid: ring · head_ranks = size.
  int ring = 1;
  int head_ranks = 1;
  std::int64_t block = 0;
  // The rank's rows of queries, and its keys, in ascending order. A share [B, n, H, D] holds them one after another.
  std::vector<Run> queries{};
  std::vector<Run> keys{};
  // n of both: the sums of the counts.
  std::int64_t query_rows = 0;
  std::int64_t key_rows = 0;
  double hidden_bytes = 0;              // that the rank receives in attention() while it computes
  double exchanged_bytes = 0;           // that it receives there and waits for
  double backward_hidden_bytes = 0;     // the same of attention_backward(), in one pass
  double backward_exchanged_bytes = 0;  // likewise
  // How long parts of attention() might take by the figures of Spread.
  double product_seconds = 0;  // the products
  double hidden_seconds = 0;  // transfers meanwhile: each block is sent on ⌈log₂ ring⌉ times, one behind the other
  double exchanged_seconds = 0;  // what is waited for

  // "ring of 4: blocks of 512, …", a line for people.
  [[nodiscard]] std::string text() const;
};

// What `rank` of `size` ranks holds of a call of that shape with those options: a function of its arguments alone, the
// same on every machine. Sequences are cut into blocks, which are distributed in a zigzag (0 1 2 2 1 0 0 1 …), so that
// causal work is even; of packed sequences, short ones share a block. Throws std::invalid_argument.
[[nodiscard]] HEADLIGHT_API Plan plan(const AttentionShape& whole, const AttentionOptions& options, int rank, int size,
                                      const Spread& spread = {});

// Copies a rank's rows out of a whole tensor [B, L, H, D], and back into one of the same type: for whoever has it in
// one place.
HEADLIGHT_API void take_share(std::span<const Run> runs, const TypedView<4>& whole, const MutableTypedView<4>& share);
HEADLIGHT_API void give_share(std::span<const Run> runs, const TypedView<4>& share, const MutableTypedView<4>& whole);

// What all ranks must say alike, as names and values.
using Record = std::vector<std::pair<std::string, std::string>>;

// Lets all ranks know whether each of them can go on, as before a call whose inputs each has read for itself: where one
// has a problem, which is not empty then, or another record than rank 0, all throw Error with its rank and its words,
// and the group can be used as before. Whatever call of the group the others are in: they hear of a problem there.
HEADLIGHT_API void agree(Group& group, const std::string& problem = {}, const Record& record = {});

// Whether any rank says so, told to all of them: that one was asked to stop, say. Throws Error, on all ranks.
[[nodiscard]] HEADLIGHT_API bool any(Group& group, bool here);

// Brings the shares of all ranks together on one of them: `runs` and `share` [B, n, H, D] are each rank's own, `whole`
// [B, L, H, D] is written on `root`, and need not be given elsewhere; both are of one type. Throws Error, on all ranks.
HEADLIGHT_API void collect(Group& group, int root, std::span<const Run> runs, const TypedView<4>& share,
                           const MutableTypedView<4>& whole);

// What a call has done on this rank.
struct Statistics {
  double seconds = 0;           // in all
  double waiting_seconds = 0;   // of them, for keys (or rows) to come
  double exchange_seconds = 0;  // of them, for the ranks to agree and for exchanges of heads
  double bytes_received = 0;    // of keys, or rows
  double bytes_late = 0;        // of them, what was not there yet when it was wanted
};

// attention() of the whole: each rank gives its shares, query [B, n, Hq, Dqk], key [B, m, Hkv, Dqk], value [B, m, Hkv,
// Dv] and out [B, n, Hq, Dv], n and m as plan() says, of any types that attention() takes, the same on all ranks: keys
// and values are sent as they are, those of 16 or 8 bits in half or a quarter of the bytes. `whole` and `options` speak
// of the whole call; of the options, log_sum_exp [B, Hq, n], key_scales and value_scales [B, m, Hkv] alone are shares.
// Every option that makes an interval of keys for each row, scale, softcap, alibi, sinks, dropout, and a relative
// position bias: bias(0, h, i, j) = f(h, j − i), a view [1, Hq, Lq, Lk] of the whole with strides −1 and 1,
// over the same numbers on all ranks. Refused are mask, other biases, probabilities and scores. The bits are those of
// attention() in one process with the same instruction set, whatever the number of ranks and of threads.
//
// Memory beyond the shares: 17 floats or so for each row and head, and Dv more where out is of 16 bits, two or three
// segments of at most 1024 keys and values, and the engine's scratch memory; where heads are exchanged, a copy
// of the shares. Throws Error, on all ranks.
HEADLIGHT_API Statistics attention(Group& group, Engine& engine, const AttentionShape& whole, const TypedView<4>& query,
                                   const TypedView<4>& key, const TypedView<4>& value, const MutableTypedView<4>& out,
                                   const AttentionOptions& options = {}, const Spread& spread = {});

// Shares of the gradients, but for that of the sinks; those left out, by all ranks alike, are not computed. They are
// overwritten. Of any types that attention_backward() gives, the same on all ranks.
struct Gradients {
  MutableTypedView<4> query{};  // [B, n, Hq, Dqk]
  MutableTypedView<4> key{};    // [B, m, Hkv, Dqk]
  MutableTypedView<4> value{};  // [B, m, Hkv, Dv]
  View<float, 1> sinks{};       // [Hq] of the whole, on every rank
};

// attention_backward() of the whole, likewise: out and log_sum_exp are the shares that attention() gave, out_gradient
// [B, n, Hq, Dv], options.log_sum_exp_gradient [B, Hq, n] a share, too. gradients.query may be `out`, which is then
// lost. First keys are sent, and each rank works out the query gradients of its rows; then rows do, and it works out
// the gradients of its keys: scores are computed twice, 14 operations instead of 10 for each visible pair and element,
// so that every sum runs in the order of one process. Refused is also a row whose |log_sum_exp| is 2²⁴ · log 2 or more.
//
// Gradients of 16 bits are rounded once, as in one process. Their sums are of floats and lie apart, as do those of key
// and value gradients whose rows are no whole vectors. So they are added up in passes, each for some of a rank's rows
// or keys, about an eighth where it has 65,536 or more: the others are sent once for each pass, which Plan does not
// count.
HEADLIGHT_API Statistics attention_backward(Group& group, Engine& engine, const AttentionShape& whole,
                                            const TypedView<4>& query, const TypedView<4>& key,
                                            const TypedView<4>& value, const TypedView<4>& out,
                                            View<const float, 3> log_sum_exp, const TypedView<4>& out_gradient,
                                            const Gradients& gradients, const AttentionOptions& options = {},
                                            const Spread& spread = {});

// The attention of layers that train on a sequence whose rows are spread over the ranks as RowShards distributes them:
// all else that a layer does is local to its rows, and gradients of parameters are summed by shards. Activations,
// gradients and parameters have the bits of one process that holds all shards, whatever the number of ranks and of
// threads.
//
//   mpi::ShardedAdamW optimizer(group, layer.parameters(), shards);
//   RowShards rows(layer.parameters(), {.length = L, .shards = shards}, optimizer.shards());
//   mpi::SequenceAttention attention(group, rows);
//   SavedState saved(Checkpoint::keep_linear, 0, attention);
//   layer.forward(engine, x, y, saved, step, options); layer.backward(…);  // x: the rows that rows.rows() says
//   for (shard = 0; shard < rows.count(); ++shard) {
//     rows.give(engine, shard);
//     optimizer.take(engine);
//   }
//   optimizer.step(engine, {.learning_rate = 1e-3});
//
// Options of the layers' calls are those of the whole, the same on all ranks, and so are the calls and their order.
// Masks are refused, and so are biases other than relative position biases. A rank that cannot go on in between
// says so by agree(group, problem).
class HEADLIGHT_API SequenceAttention final : public TrainingAttention {
 public:
  // Both stay where they are while this lives. Of `spread`, block and shards are those of the rows.
  SequenceAttention(Group& group, RowShards& rows, const Spread& spread = {});
  ~SequenceAttention();
  SequenceAttention(SequenceAttention&& other) noexcept;
  SequenceAttention& operator=(SequenceAttention&& other) noexcept;

  // What all calls so far have done on this rank, added up.
  [[nodiscard]] Statistics statistics() const noexcept;

  [[nodiscard]] RowShards* shards() const noexcept override;
  // For layers. All throw Error.
  [[nodiscard]] std::int64_t kept_columns(std::int64_t key_length,
                                          const AttentionOptions& options) const noexcept override;
  void forward(Engine& engine, View<const float, 4> query, View<const float, 4> key, View<const float, 4> value,
               View<float, 4> out, View<float, 4> kept, const AttentionOptions& options) const override;
  void backward(Engine& engine, View<const float, 4> query, View<const float, 4> key, View<const float, 4> value,
                View<const float, 4> out, View<const float, 3> log_sum_exp, View<float, 4> kept,
                View<const float, 4> out_gradient, const AttentionGradients& gradients,
                const AttentionOptions& options) const override;
  void differentiate_distances(Engine& engine, View<const float, 4> query, View<const float, 4> key,
                               View<const float, 4> value, View<const float, 4> out, View<const float, 3> log_sum_exp,
                               View<const float, 4> out_gradient, View<float, 3> distances,
                               const AttentionOptions& options) const override;
  void find_largest(std::span<std::int64_t> numbers) const override;
  // Over the rows of a memory, as RowShards distributes them.
  [[nodiscard]] const TrainingAttention& of_memory() const noexcept override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Training on a batch whose shards are spread over the ranks: each computes the gradients of some shards with the whole
// model, they are added as GradientTree adds them, each rank updates a part of the parameters, of which it alone keeps
// the moments, and gives it to the others. Parameters and moments have the bits of a GradientTree and an AdamW in one
// process, whatever the number of ranks and of threads.
//
//   mpi::ShardedAdamW optimizer(group, layer.parameters(), shards);
//   optimizer.zero_gradients();  // before every batch: step() leaves sums behind
//   for (shard = optimizer.shards().first; …) {  // each of this rank's
//     layer.forward(…); layer.backward(…);
//     optimizer.take(engine);
//   }
//   optimizer.step(engine, {.learning_rate = 1e-3});
//
// A rank that cannot compute a shard says so by agree(group, problem), and all throw.
//
// Memory beside parameters and gradients, P numbers each: 2 P / ranks for the moments, ⌊log₂(shards + 1)⌋ P or less for
// the tree, and P to 2 P for messages.
class HEADLIGHT_API ShardedAdamW {
 public:
  // All ranks alike make one, of parameters with the same names, shapes and values. They come from layer.parameters()
  // after set_training(true), and they, and the group, stay where they are while this lives. Throws Error, on all
  // ranks.
  ShardedAdamW(Group& group, std::vector<Parameter> parameters, std::int64_t shards, const AdamWOptions& options = {});
  ~ShardedAdamW();
  ShardedAdamW(ShardedAdamW&& other) noexcept;
  ShardedAdamW& operator=(ShardedAdamW&& other) noexcept;

  // Those of every batch that this rank computes: neighbours, as many as others do or one fewer, and none where there
  // are more ranks than shards.
  [[nodiscard]] Run shards() const noexcept;
  // Forgets shards taken so far, and sets gradients to 0.
  void zero_gradients() noexcept;
  // As GradientTree::take(), for the next of shards(); this rank alone.
  void take(Engine& engine);
  // All ranks together, each with all of its shards taken: AdamW::step() for the sum of all shards' gradients. Every
  // rank has the same report and parameters. Throws Error.
  StepReport step(Engine& engine, const StepOptions& options);

  // How many there were; and so many from now on, as after loading a checkpoint.
  [[nodiscard]] std::int64_t steps() const noexcept;
  // Throws std::invalid_argument for less than 0 and more than 2⁶².
  void set_steps(std::int64_t steps);

  // Elements first … of the moment of that name ("first_moment.NAME", as Optimizer::state() says).
  struct Moment {
    std::string name;         // "first_moment.NAME"
    std::int64_t first;       // of the tensor's elements, in C order
    std::span<float> values;  // as many of them as this rank keeps
  };
  // What this rank keeps, to read and to write: any number of ranks resumes from the whole of it.
  [[nodiscard]] std::vector<Moment> moments();
  // Brings the moments of all ranks together on one of them: `whole` is written there, a tensor for each of those that
  // Optimizer::state() would list, in its order, and need not be given elsewhere. Throws Error, on all ranks.
  void collect_moments(int root, std::span<const Parameter> whole);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headlight::mpi
