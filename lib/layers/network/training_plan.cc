#include "layers/network/training_plan.h"

#include <algorithm>
#include <span>

#include "layers/rows.h"
#include "runtime/parallel.h"

namespace headlight::layers {

namespace {

// Room for gradients, counted in floats a token, that is used again once one is done with.
class GradientSpace {
 public:
  std::int64_t take(std::int64_t columns) {
    for (Place& place : places_) {
      if (place.is_free && place.columns == columns) return place.is_free = false, place.first;
    }
    places_.push_back({size_, columns, false});
    size_ += row_distance(columns);
    return places_.back().first;
  }
  void give_back(std::int64_t first) {
    for (Place& place : places_) {
      if (place.first == first) place.is_free = true;
    }
  }
  [[nodiscard]] std::int64_t size() const noexcept { return size_; }

 private:
  struct Place {
    std::int64_t first;
    std::int64_t columns;
    bool is_free;
  };
  std::vector<Place> places_;
  std::int64_t size_ = 0;
};

std::size_t bytes_of(std::int64_t floats, std::int64_t tokens) noexcept {
  runtime::ScratchLayout layout;
  layout.add<float>(floats, tokens);
  return layout.bytes();
}

}  // namespace

void TrainingPlan::make(OperationList& list) {
  values_.resize(list.values().size());
  keep_values(list);
  place_kept_values(list);
  find_ends_of_repeats(list);
  place_gradients(list);
  find_layout();
}

void TrainingPlan::keep_values(const OperationList& list) {
  const auto keep = [&](const Slice& slice) {
    if (slice) of(slice).kept = 0;
  };
  for (int number = 0; number < list.size(); ++number) {
    const Operation& operation = list[number];
    for (std::size_t i = 0; i < operation.inputs().size(); ++i) {
      if (operation.keeps_input(i)) keep(operation.inputs()[i]);
    }
    if (operation.keeps_output()) keep(operation.output());
    keep(operation.training_value());
  }
}

void TrainingPlan::place_kept_values(const OperationList& list) {
  std::vector<std::int64_t> of_blocks(list.blocks().size(), 0);
  for (std::size_t number = 0; number < values_.size(); ++number) {
    const Value& value = list.values()[number];
    if (values_[number].kept < 0) continue;
    std::int64_t& floats = value.block < 0 ? kept_floats_ : of_blocks[static_cast<std::size_t>(value.block)];
    values_[number].kept = floats;
    floats += row_distance(value.columns);
  }
  std::int64_t first = kept_floats_;
  for (const std::int64_t floats : of_blocks) {
    first_of_block_.push_back(first);
    first += floats;
    largest_block_ = std::max(largest_block_, floats);
  }
  first_of_block_.push_back(first);
}

void TrainingPlan::find_ends_of_repeats(const OperationList& list) {
  for (int block = 0; block < static_cast<int>(list.blocks().size()); ++block) {
    const OperationRange& range = list.blocks()[static_cast<std::size_t>(block)];
    int end = range.first;
    for (int number = range.first; number < range.end; ++number) {
      for (const Slice& made : {list[number].output(), list[number].training_value()}) {
        if (made && of(made).kept >= 0 && list.value(made.value).block == block) end = number + 1;
      }
    }
    end_of_repeat_.push_back(end);
  }
}

// FNV-1a, of where each value lies and how long its rows are.
void TrainingPlan::find_layout() noexcept {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&hash](std::int64_t number) {
    hash = (hash ^ static_cast<std::uint64_t>(number)) * 0x100000001b3u;
  };
  for (const Place& place : values_) {
    add(place.kept);
    add(place.gradient);
  }
  for (const std::int64_t first : first_of_block_) add(first);
  add(largest_block_);
  add(gradient_floats_);
  add(local_gradient_floats_);
  layout_ = static_cast<std::int64_t>(hash);
}

// From the last operation to the first: the gradient of a value is there from its last reader on until the operation
// that makes it; one of whole length, within a run, until its end, for other rows of it are still to come.
void TrainingPlan::place_gradients(OperationList& list) {
  GradientSpace whole, local;
  std::vector<std::vector<std::int64_t>> begun(values_.size());  // which parts of each value
  std::vector<std::int64_t> done_with;
  of(list[list.size() - 1].output()).gradient = whole.take(list.made_by(list.size() - 1).columns);
  for (int number = list.size() - 1; number >= 0; --number) {
    Operation& operation = list[number];
    const Value& made = list.made_by(number);
    const std::int64_t of_made = of(operation.output()).gradient;
    bool is_handed_on = false;
    const std::span<const Slice> inputs = operation.inputs();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i] || !operation.has_gradient(i)) continue;
      const Value& value = list.value(inputs[i].value);
      std::vector<std::int64_t>& parts = begun[static_cast<std::size_t>(inputs[i].value)];
      if (std::find(parts.begin(), parts.end(), inputs[i].first) != parts.end()) {
        operation.set_adds(i);
        continue;
      }
      parts.push_back(inputs[i].first);
      if (of(inputs[i]).gradient >= 0) continue;  // another part of the same value has begun
      const bool takes = static_cast<int>(i) == operation.overwritten() && inputs[i].columns == value.columns &&
                         value.columns == made.columns && value.is_local == made.is_local;
      of(inputs[i]).gradient = takes ? of_made : (value.is_local ? local : whole).take(value.columns);
      is_handed_on = is_handed_on || takes;
    }
    if (made.is_local && !is_handed_on) local.give_back(of_made);
    if (!made.is_local && !is_handed_on) done_with.push_back(of_made);
    const OperationRange* const run = list.run_of(number);
    if (run != nullptr && run->first != number) continue;
    for (const std::int64_t gradient : done_with) whole.give_back(gradient);
    done_with.clear();
  }
  gradient_floats_ = whole.size();
  local_gradient_floats_ = local.size();
}

std::size_t TrainingPlan::kept_bytes(bool keeps_blocks, std::int64_t tokens) const noexcept {
  return bytes_of(keeps_blocks ? first_of_block_.back() : kept_floats_, tokens);
}

std::size_t TrainingPlan::block_bytes(std::int64_t tokens) const noexcept { return bytes_of(largest_block_, tokens); }

std::size_t TrainingPlan::gradient_bytes(std::int64_t tokens, std::int64_t rows_at_once) const noexcept {
  runtime::ScratchLayout layout;
  layout.add<float>(gradient_floats_, tokens);
  layout.add<float>(local_gradient_floats_, rows_at_once);
  return layout.bytes();
}

}  // namespace headlight::layers
