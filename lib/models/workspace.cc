#include "models/workspace.h"

#include <algorithm>
#include <new>

#include "headlight/out_of_memory.h"
#include "text/bert_words.h"
#include "text/parts.h"

namespace headlight::models {
namespace {

// Bytes that remain, whatever was reserved.
constexpr std::size_t kKeptOfJoined = std::size_t{1} << 16;

}  // namespace

void Workspace::reserve(const TextNetwork& network, std::int64_t tokens, std::int64_t longest) {
  // The sequence that ends a batch is in it already when it is found to be too much, and a text's last word may have
  // pieces beyond the end.
  const std::int64_t most = std::min(tokens, kTokensAtATime + longest) + static_cast<std::int64_t>(text::kLongestWord);
  const std::int64_t sequences = sequences_at_a_time(tokens);
  try {
    batch_.reserve(static_cast<std::size_t>(most), static_cast<std::size_t>(sequences));
    const auto of_text = static_cast<std::size_t>(std::min(tokens, longest));
    text_.reserve(of_text);
    ids_.reserve(of_text + text::kLongestWord);
    joined_.reserve(text::first_bytes(of_text, 0));
    reserved_joined_ = std::max(reserved_joined_, joined_.capacity());
  } catch (const std::bad_alloc&) {
    throw OutOfMemory("models::TextEncoder", static_cast<std::size_t>(4 * most + sequences) * sizeof(std::int64_t));
  }
  static_cast<void>(rows(std::min(tokens, std::max(kTokensAtATime, longest)), network.width()));
}

void Workspace::forget_long_texts() noexcept {
  text_.forget_long_texts();
  if (joined_.capacity() <= std::max(reserved_joined_, kKeptOfJoined)) return;
  std::string().swap(joined_);
  try {
    joined_.reserve(reserved_joined_);
  } catch (const std::bad_alloc&) {  // then the next call takes what it needs
  }
}

View<float, 2> Workspace::rows(std::int64_t tokens, std::int64_t width) {
  if (tokens * width > hidden_.size()) {
    hidden_ = {};
    hidden_ = Tensor<float, 1>({tokens * width});
  }
  return {hidden_.data(), {tokens, width}};
}

text::IdlePool<Workspace>::Taken WorkspacePool::take() {
  try {
    return idle_.take();
  } catch (const std::bad_alloc&) {
    throw OutOfMemory("models::TextEncoder", sizeof(Workspace));
  }
}

}  // namespace headlight::models
