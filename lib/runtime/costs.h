// A cost model: constants from which every call estimates its time on one thread, and so how many workers it wakes.
//
// Nanoseconds, unless a comment names another unit; where they come from: docs/history/runtime.md. They are rough, and
// need be no better. One that is off by a factor of two moves the size from which a second worker is woken by as much.
// At that size one worker and two take about the same time, and no bit depends on it. A kind of machine for which the
// constants are wrong by more gets a table of its own here.
#pragma once

namespace headlight::runtime::costs {

// What makes a worker worth waking; see workers_for().
inline constexpr double kPerWorker = 5000;
// A task of an operation on rows, at most: long against handing it out, short against the whole.
inline constexpr double kRowTask = 20000;

// Products: vectors multiplied and added in a nanosecond, in full tiles and beside a softmax.
inline constexpr double kVectorProducts = 8;
inline constexpr double kVectorProductsOfAttention = 6;
// A byte of B in gemm(), read once.
inline constexpr double kGemmReading = 0.05;
// A number of A that is rounded to a narrower type.
inline constexpr double kGemmRounding = 0.1;
// Multiply-adds of a task of gemm(): long against handing it out.
inline constexpr double kGemmTask = 2e5;

// A row of attention beside its products: softmax, copies, tiles that are not full. Keys and values: bytes read in a
// nanosecond, from a cache or from beyond.
inline constexpr double kAttentionRow = 40;
inline constexpr double kAttentionReadingNear = 60;
inline constexpr double kAttentionReadingFar = 30;
inline constexpr double kAttentionNearBytes = 1 << 20;
// More keys and values than that are in no cache by the time they are read again: half of a common third-level cache.
inline constexpr double kAttentionFarBytes = 16 << 20;
// Short sequences: a head; a key and dim; and a key and dim for each vector of rows.
inline constexpr double kShortHead = 40;
inline constexpr double kShortProduct = 0.28;
inline constexpr double kShortProductOfVector = 0.12;
// merge_attention(): a row, and an element of a part.
inline constexpr double kMergedRow = 20;
inline constexpr double kMergedElement = 0.05;
// Attention written out: multiply-adds in a nanosecond, and a score.
inline constexpr double kUnfusedProducts = 50;
inline constexpr double kUnfusedScore = 0.1;

// Operations on rows, for each element.
inline constexpr double kSoftmax = 0.15;
inline constexpr double kSoftmaxBackward = 0.1;
inline constexpr double kLayerNorm = 0.25;
inline constexpr double kLayerNormBackward = 0.25;  // five sweeps over rows in the first cache level
inline constexpr double kRmsNorm = 0.15;
inline constexpr double kActivation = 0.2;
inline constexpr double kActivationBackward = 0.3;
inline constexpr double kGate = 0.25;
inline constexpr double kGateBackward = 0.6;
inline constexpr double kHeadRows = 0.15;
// sin or cos in float64.
inline constexpr double kRotaryAngle = 5;
inline constexpr double kQuantizedNumber = 0.35;
inline constexpr double kCrossEntropy = 0.2;
inline constexpr double kMeanPool = 0.1;
inline constexpr double kMeanPoolBackward = 0.2;
// Ten rounds of two products for four words: the words take longer than the memory.
inline constexpr double kDropout = 0.4;
// Rows of a large table come from memory; what is added to them goes back, too.
inline constexpr double kEmbedding = 0.4;
inline constexpr double kEmbeddingBackward = 0.8;
inline constexpr double kSumRows = 0.1;
inline constexpr double kCopy = 0.1;
// Of gates most is the exponential, one an element or one a head.
inline constexpr double kWeighHeads = 0.05;
inline constexpr double kWeighHeadsBackward = 0.08;
inline constexpr double kGateElements = 0.15;
inline constexpr double kGateElementsBackward = 0.2;
inline constexpr double kOptimizer = 0.7;
inline constexpr double kSquares = 0.5;

}  // namespace headlight::runtime::costs
