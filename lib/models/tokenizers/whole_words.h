// The longest words of a vocabulary, for texts that may have no spaces between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/trie.h"

namespace headlight::models {

// The longest words of a part of what lies between two spaces, until there are `most` ids; see text::WordSink and
// TokenizerOptions. Returns how much of it they are. `in_unknown`, false at first: whether the next part goes on with
// what no word begins.
std::size_t append_whole_words(const text::Trie& words, std::u32string_view chunk, bool ends, std::int64_t unknown,
                               std::size_t most, bool& in_unknown, std::vector<std::int64_t>& ids);

}  // namespace headlight::models
