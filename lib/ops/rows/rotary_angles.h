// rotary_angles() of rows of which a caller holds some alone: the lengths that angles depend on are then the caller's
// to know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "headlight/rotary.h"

namespace headlight::ops {

// Whether angles depend on how long a sequence is.
[[nodiscard]] bool angles_ask_for_lengths(const RotarySpec& spec) noexcept;

// How many sequences have rows. Others may be any number, and take no memory.
[[nodiscard]] std::size_t sequences_with_rows(std::span<const std::int64_t> offsets) noexcept;

// Of each sequence, its largest position and 1; 0 of one without rows.
void find_sequence_lengths(std::span<const std::int64_t> positions, std::span<const std::int64_t> offsets,
                           std::int64_t* lengths) noexcept;

// Of arguments that were checked: offsets [n + 1] of the rows that are here, and `lengths` [n] of the sequences, where
// they are asked for.
void fill_rotary_angles(Engine& engine, const RotarySpec& spec, std::int64_t head_dim,
                        std::span<const std::int64_t> positions, std::span<const std::int64_t> offsets,
                        const std::int64_t* lengths, View<float, 2> cosines_and_sines);

// What fill_rotary_angles() takes from the engine at most, for so many angles' numbers; and what rotary_angles() knows
// beside of so many sequences that have rows: where they begin, and their lengths.
[[nodiscard]] std::size_t frequencies_bytes(const Engine& engine, std::int64_t columns) noexcept;
[[nodiscard]] std::size_t lengths_bytes(const RotarySpec& spec, std::int64_t sequences) noexcept;

}  // namespace headlight::ops
