#include "models/families/family_weights.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "headlight/models/errors.h"
#include "headlight/storage_format.h"
#include "models/describe.h"
#include "models/tensor_files/stored_weight.h"

namespace headlight::models {
namespace {

using Shape = std::vector<std::int64_t>;

constexpr std::string_view kWeight = ".weight", kBias = ".bias";

// "blocks.12.attention.query" in parts: "blocks.N.attention.query" and "12".
std::pair<std::string, std::string> without_number(const std::string& name) {
  constexpr std::string_view kBlocks = "blocks.";
  if (!name.starts_with(kBlocks)) return {name, ""};
  const std::size_t end = name.find('.', kBlocks.size());
  return {std::string(kBlocks) + "N" + name.substr(end), name.substr(kBlocks.size(), end - kBlocks.size())};
}

std::string with_number(std::string_view name, const std::string& number) {
  const std::size_t at = name.find(".N.");
  if (at == std::string_view::npos) return std::string(name);
  return std::string(name.substr(0, at + 1)) + number + std::string(name.substr(at + 2));
}

// As older files call the weight and bias of a layer normalisation.
std::string older_name(const std::string& name) {
  if (name.find("LayerNorm") == std::string::npos) return "";
  if (name.ends_with(kWeight)) return name.substr(0, name.size() - kWeight.size()) + ".gamma";
  return name.ends_with(kBias) ? name.substr(0, name.size() - kBias.size()) + ".beta" : "";
}

// Equal shares of the rows of a tensor.
WeightView share(WeightView whole, const TensorName& line) {
  if (line.parts == 1) return whole;
  const auto count = static_cast<std::int64_t>(line.parts);
  whole.shape[0] /= count;
  if (whole.stored) {
    const std::int64_t rows = whole.shape[0], columns = whole.stored.count / std::max<std::int64_t>(rows * count, 1);
    whole.stored = some_rows(whole.stored, columns, rows * line.part, rows);
    return whole;
  }
  const std::size_t numbers = whole.values.size() / static_cast<std::size_t>(count);
  whole.values = whole.values.subspan(numbers * static_cast<std::size_t>(line.part), numbers);
  return whole;
}

// "blocks.12.attention.query.weight" in parts: what lines of the table name, the block and the end.
struct ParameterName {
  std::string base, number;
  std::string_view suffix;
};
ParameterName parts_of(const std::string& parameter) {
  const std::string_view suffix = parameter.ends_with(kBias)     ? kBias
                                  : parameter.ends_with(kWeight) ? kWeight
                                                                 : std::string_view();
  auto [base, number] = without_number(parameter.substr(0, parameter.size() - suffix.size()));
  return {std::move(base), std::move(number), suffix};
}

void add_share(TensorShares& tensors, const std::string& tensor, const TensorName& line, const std::string& parameter) {
  std::vector<std::string>& shares = tensors[tensor];
  shares.resize(static_cast<std::size_t>(line.parts));
  shares[static_cast<std::size_t>(line.part)] = parameter;
}

// What tells the two kinds of files apart: which of their files says what there must be, and tensors beside tensors.
constexpr const char* says(const SafetensorsFile&) { return "config.json"; }
constexpr const char* says(const GgufFile&) { return "its metadata"; }
Shape shape_in(const GgufFile&, const GgufTensor& tensor) { return {tensor.shape().begin(), tensor.shape().end()}; }
bool belongs_to_another(const GgufFile&, const GgufTensor&) { return false; }

template <class File>
class FamilyFinder {
 public:
  FamilyFinder(File& file, const Family& family) : file_(file), family_(family), prefix_(prefix_of()) {}

  void find(const std::string& parameter, const Shape& shape) {
    const auto [base, number, suffix] = parts_of(parameter);
    std::string first;
    for (const TensorName& line : family_.names) {
      if (line.parameter != base) continue;
      const std::string of_today = prefix_ + with_number(line.file, number) + std::string(suffix);
      if (first.empty()) first = of_today;
      const std::string name = file_.find(of_today) != nullptr ? of_today : older_name(of_today);
      if (name.empty() || file_.find(name) == nullptr) continue;
      add_share(found_.tensors, of_today, line, parameter);
      return take(parameter, shape, line, name);
    }
    throw FileError(file_.path(), "lacks the tensor " + in_quotes(first) + ", which " + says(file_) + " asks for");
  }

  FamilyWeights finish() {
    for (const auto& entry : file_.tensors()) check_used(entry);
    return std::move(found_);
  }

 private:
  // That of the table of words.
  [[nodiscard]] std::string prefix_of() const {
    for (const std::string_view prefix : family_.prefixes) {
      for (const TensorName& line : family_.names) {
        if (line.parameter != "embeddings.word") continue;
        if (file_.find(std::string(prefix) + std::string(line.file) + ".weight") != nullptr) return std::string(prefix);
      }
    }
    return "";
  }

  void take(const std::string& parameter, const Shape& shape, const TensorName& line, const std::string& name) {
    const Shape there = shape_in(file_, *file_.find(name));
    Shape wanted = shape;
    wanted[0] *= line.parts;
    if (there != wanted) {
      throw FileError(file_.path(), "tensor " + in_quotes(name) + " has shape " + describe(there) + ", but " +
                                        says(file_) + " says " + describe(wanted));
    }
    used_.insert(name);
    found_.weights.emplace(parameter, share(shape.size() > 1 ? file_.stored(name) : file_.float32(name), line));
  }

  // What belongs to the network but to none of its tensors is a sign that configuration and weights are of two models.
  template <class Entry>
  void check_used(const Entry& entry) const {
    for (const std::string_view prefix : family_.prefixes) {
      if (!entry.name.starts_with(prefix)) continue;
      const std::string rest(std::string_view(entry.name).substr(prefix.size()));
      for (const std::string& twin : {rest, prefix_ + rest}) {
        if (twin != entry.name && used_.contains(twin)) refuse_twin(file_.path(), std::string(entry.name), twin);
      }
    }
    if (!entry.name.starts_with(prefix_) || used_.contains(entry.name) || belongs_to_another(file_, entry)) return;
    const std::string_view name = std::string_view(entry.name).substr(prefix_.size());
    const auto begins = [&](std::string_view own) { return name.starts_with(own); };
    const auto ends = [&](std::string_view own) { return name.ends_with(own); };
    if (std::none_of(family_.own.begin(), family_.own.end(), begins)) return;
    if (std::any_of(family_.computed.begin(), family_.computed.end(), ends)) return;
    throw FileError(file_.path(),
                    "holds the tensor " + in_quotes(entry.name) + ", which " + says(file_) + " does not ask for");
  }

  File& file_;
  const Family& family_;
  std::string prefix_;
  std::set<std::string, std::less<>> used_;
  FamilyWeights found_;
};

}  // namespace

namespace {

template <class File>
FamilyWeights find_all(File& file, const Family& family, std::span<const ParameterShape> parameters) {
  FamilyFinder finder(file, family);
  for (const auto& [name, shape] : parameters) finder.find(name, shape);
  return finder.finish();
}

}  // namespace

FamilyWeights find_family_weights(SafetensorsFile& file, const Family& family,
                                  std::span<const ParameterShape> parameters) {
  return find_all(file, family, parameters);
}

FamilyWeights find_family_weights(GgufFile& file, const Family& family, std::span<const ParameterShape> parameters) {
  return find_all(file, family, parameters);
}

TensorShares tensors_of(const Family& family, std::span<const ParameterShape> parameters) {
  TensorShares tensors;
  for (const auto& [parameter, shape] : parameters) {
    const auto [base, number, suffix] = parts_of(parameter);
    const auto line = std::find_if(family.names.rbegin(), family.names.rend(),
                                   [&base = base](const TensorName& one) { return one.parameter == base; });
    if (line == family.names.rend()) continue;
    add_share(tensors, with_number(line->file, number) + std::string(suffix), *line, parameter);
  }
  return tensors;
}

}  // namespace headlight::models
