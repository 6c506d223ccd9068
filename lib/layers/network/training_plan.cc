#include "layers/network/training_plan.h"

#include <algorithm>
#include <span>

#include "simd/integers.h"

namespace headlight::layers {

// Room for gradients that is used again once one is done with.
class TrainingPlan::GradientSpace {
 public:
  struct Place {
    RowSpace space;
    bool is_free;
    bool is_throughout;  // whether a gradient is there while operations go through some rows at a time, or beyond a
                         // block
    int last_reader;     // of the one that is there
  };

  std::size_t take(const RowSpace& space, int reader) {
    for (std::size_t number = 0; number < places_.size(); ++number) {
      Place& place = places_[number];
      if (!place.is_free || place.space != space) continue;
      place.is_free = false;
      place.last_reader = reader;
      return number;
    }
    places_.push_back({space, false, false, reader});
    return places_.size() - 1;
  }
  void stay(std::size_t number) { places_[number].is_throughout = true; }
  // Behind the operation that makes its value.
  void give_back(std::size_t number, int maker, const OperationList& list) {
    Place& place = places_[number];
    place.is_free = true;
    for (int operation = maker; operation <= place.last_reader && !place.is_throughout; ++operation) {
      place.is_throughout = list.pieces_of(operation) != nullptr;
    }
  }
  [[nodiscard]] const std::vector<Place>& places() const noexcept { return places_; }

 private:
  std::vector<Place> places_;
};

// Where gradients of all rows lie, and of some rows, and which of those places each value took.
struct TrainingPlan::Spaces {
  [[nodiscard]] GradientSpace& of(const Value& value) noexcept { return value.has_local_gradient ? local : whole; }
  [[nodiscard]] std::size_t& of(const Slice& slice) noexcept { return taken[static_cast<std::size_t>(slice.value)]; }

  GradientSpace whole{};
  GradientSpace local{};
  std::vector<std::size_t> taken;
};

void TrainingPlan::make(OperationList& list, NumberType activations, NumberType gradients) {
  activations_ = activations;
  type_of_gradients_ = gradients;
  values_.resize(list.values().size());
  blocks_ = static_cast<std::int64_t>(list.blocks().size());
  keep_values(list);
  place_kept_values(list);
  find_ends_of_repeats(list);
  place_gradients(list);
  place_values_made_again(list);
}

void TrainingPlan::keep_values(const OperationList& list) {
  const auto keep = [&](const Slice& slice) {
    if (!slice) return;
    const Value& value = list.value(slice.value);
    if (value.is_given) return;
    at(slice).keeping = value.block < 0            ? Keeping::throughout
                        : value.is_output_of_block ? Keeping::output_of_block
                                                   : Keeping::of_block;
  };
  for (int number = 0; number < list.size(); ++number) {
    const Operation& operation = list[number];
    for (std::size_t i = 0; i < operation.inputs().size(); ++i) {
      if (operation.keeps_input(i)) keep(operation.inputs()[i]);
    }
    if (operation.keeps_output()) keep(operation.output());
  }
  for (int number = 0; number < list.size(); ++number) {
    Place& made = at(list[number].output());
    const bool is_kept = made.keeping != Keeping::none;
    if (is_kept && list[number].is_made_again() && list.made_by(number).has_local_gradient) {
      made.keeping = Keeping::again;
    }
  }
}

void TrainingPlan::place_kept_values(const OperationList& list) {
  before_block_.assign(list.blocks().size() + 1, {});
  std::vector<RowSpace> of_blocks(list.blocks().size());
  for (std::size_t number = 0; number < values_.size(); ++number) {
    const Value& value = list.values()[number];
    Place& place = values_[number];
    const RowSpace space(value.columns, type(value));
    if (place.keeping == Keeping::output_of_block) {
      output_ = space;  // blocks give what they take
      keeps_last_output_ = value.block + 1 == blocks_;
    }
    if (place.keeping != Keeping::throughout && place.keeping != Keeping::of_block) continue;
    RowSpace& before =
        place.keeping == Keeping::throughout ? throughout_ : of_blocks[static_cast<std::size_t>(value.block)];
    place.before = before;
    before += space;
  }
  for (std::size_t block = 0; block < of_blocks.size(); ++block) {
    before_block_[block + 1] = before_block_[block] + of_blocks[block];
  }
}

void TrainingPlan::find_ends_of_repeats(const OperationList& list) {
  for (int block = 0; block < static_cast<int>(list.blocks().size()); ++block) {
    const OperationRange& range = list.blocks()[static_cast<std::size_t>(block)];
    int end = range.first;
    for (int number = range.first; number < range.end; ++number) {
      if (at(list[number].output()).keeping == Keeping::of_block || list[number].keeps_output()) end = number + 1;
    }
    end_of_repeat_.push_back(end);
  }
}

std::int64_t TrainingPlan::kept_outputs(std::int64_t segment) const noexcept {
  if (blocks_ == 0) return 0;
  const std::int64_t every = std::max<std::int64_t>(segment, 1);
  return divide_up(blocks_, every) - 1 + (keeps_last_output_ ? 1 : 0);
}

std::int64_t TrainingPlan::kept_output(std::int64_t segment, int block) const noexcept {
  const std::int64_t every = std::max<std::int64_t>(segment, 1);
  const bool is_last = block + 1 == blocks_;
  return is_last || (block + 1) % every == 0 ? divide_up(std::int64_t{block} + 1, every) - 1 : -1;
}

void TrainingPlan::take(const Slice& slice, const Value& value, int reader, Spaces& spaces) {
  const RowSpace space(value.columns, value.handed_on.gradient ? type_of_gradients_ : NumberType::float32);
  Place& place = at(slice);
  place.has_gradient = true;
  place.staying = value.has_local_gradient ? Staying::local : Staying::throughout;
  spaces.taken[static_cast<std::size_t>(slice.value)] = spaces.of(value).take(space, reader);
}

// From the last operation to the first: the gradient of a value is there from its last reader on until the operation
// that makes it. One of the same width may then take its place at once: of both, operations on some rows touch those.
void TrainingPlan::place_gradients(OperationList& list) {
  Spaces spaces{.taken = std::vector<std::size_t>(values_.size())};
  std::vector<std::vector<std::int64_t>> begun(values_.size());  // which parts of each value
  const auto stay_beyond_block = [&](const Slice& slice) {
    const Value& value = list.value(slice.value);
    if (value.block < 0 || value.is_output_of_block) spaces.whole.stay(spaces.of(slice));
  };
  const Slice& last = list[list.size() - 1].output();
  take(last, list.value(last.value), list.size() - 1, spaces);
  stay_beyond_block(last);
  for (int number = list.size() - 1; number >= 0; --number) {
    Operation& operation = list[number];
    const Value& made = list.made_by(number);
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
      if (at(inputs[i]).has_gradient) continue;  // another part of the same value has begun
      if (static_cast<int>(i) == operation.overwritten() && inputs[i].columns == value.columns &&
          value.columns == made.columns && value.has_local_gradient == made.has_local_gradient &&
          value.handed_on.gradient == made.handed_on.gradient) {
        spaces.of(inputs[i]) = spaces.of(operation.output());
        at(inputs[i]).has_gradient = true;
        at(inputs[i]).staying = at(operation.output()).staying;
        is_handed_on = true;
      } else {
        take(inputs[i], value, number, spaces);
      }
      stay_beyond_block(inputs[i]);
    }
    if (at(operation.output()).has_gradient && !is_handed_on) {
      spaces.of(made).give_back(spaces.of(operation.output()), number, list);
    }
  }
  lay_out_gradients(spaces);
}

// Those that are there throughout, and behind each other those that are not.
void TrainingPlan::lay_out_gradients(const Spaces& spaces) {
  for (std::size_t number = 0; number < values_.size(); ++number) {
    Place& place = values_[number];
    if (!place.has_gradient) continue;
    const bool is_local = place.staying == Staying::local;
    const std::vector<GradientSpace::Place>& places = (is_local ? spaces.local : spaces.whole).places();
    const GradientSpace::Place& own = places[spaces.taken[number]];
    if (!is_local && !own.is_throughout) place.staying = Staying::apart;
    for (std::size_t before = 0; before < spaces.taken[number]; ++before) {
      if (is_local || places[before].is_throughout == own.is_throughout) place.before_gradient += places[before].space;
    }
  }
  const auto add = [&](Staying staying, const RowSpace& space) {
    gradients_[static_cast<std::size_t>(staying)] += space;
  };
  for (const GradientSpace::Place& place : spaces.whole.places()) {
    add(place.is_throughout ? Staying::throughout : Staying::apart, place.space);
  }
  for (const GradientSpace::Place& place : spaces.local.places()) add(Staying::local, place.space);
}

// Behind the local gradients: each is read by the next operations alone.
void TrainingPlan::place_values_made_again(const OperationList& list) {
  RowSpace& local = gradients_[static_cast<std::size_t>(Staying::local)];
  const RowSpace first = local;
  const OperationRange* pieces = nullptr;
  RowSpace end = first;
  for (int number = 0; number < list.size(); ++number) {
    Place& place = at(list[number].output());
    if (place.keeping != Keeping::again) continue;
    if (list.pieces_of(number) != pieces) end = first;
    pieces = list.pieces_of(number);
    const Value& value = list.made_by(number);
    place.before = end;
    end += RowSpace(value.columns, type(value));
    if (end.floats() > local.floats()) local = end;
  }
}

// FNV-1a, of where each value lies and how long its rows are.
std::int64_t TrainingPlan::layout() const noexcept {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&hash](std::int64_t number) {
    hash = (hash ^ static_cast<std::uint64_t>(number)) * 0x100000001b3u;
  };
  for (const Place& place : values_) {
    add(static_cast<std::int64_t>(place.keeping));
    add(place.before.floats());
    add(place.before_gradient.floats());
  }
  for (const RowSpace& before : before_block_) add(before.floats());
  add(output_.floats());
  for (const RowSpace& gradients : gradients_) add(gradients.floats());
  return static_cast<std::int64_t>(hash);
}

}  // namespace headlight::layers
