#include "tools/headlight/demonstration/grammar.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>
#include <utility>

#include "tools/headlight/demonstration/words.h"

namespace headlight::demonstration {
namespace {

using Choices = std::span<const std::string_view>;

constexpr std::uint64_t kHeldOut = 8;  // one combination in so many

// SplitMix64 (Steele, Lea & Flood 2014): also the hash of a combination.
constexpr std::uint64_t mix(std::uint64_t value) noexcept {
  value += 0x9E3779B97F4A7C15u;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

class Draw {
 public:
  explicit Draw(std::uint64_t seed) noexcept : state_(seed) {}

  // In [0, count), by the high word of a product: no division, no bias worth the name.
  std::uint64_t below(std::uint64_t count) noexcept {
    state_ = mix(state_);
    return ((state_ >> 32) * count) >> 32;
  }
  bool one_in(std::uint64_t count) noexcept { return below(count) == 0; }
  std::string_view from(Choices choices) noexcept { return choices[below(choices.size())]; }

 private:
  std::uint64_t state_;
};

const Words& words_of(Language language) noexcept {
  return language == Language::english ? english_words() : chinese_words();
}

// What decides whether a sentence is held out. `verb` is its place in the scene, so that its two forms are one.
struct Combination {
  std::size_t scene = 0;  // of Words::scenes; 2: a chase, which has no reason
  std::size_t verb = 0;
  std::string_view agent, target, reason;
};

constexpr std::size_t kChase = 2;

bool is_founding(const Combination& combination) noexcept {
  const auto is = [&](std::string_view agent, std::string_view target, std::string_view own, std::string_view other) {
    return combination.verb == 0 && combination.agent == agent && combination.target == target &&
           (combination.reason == own || combination.reason == other);
  };
  return is("animal", "street", "tired", "wide") || is("动物", "街道", "累", "宽") ||
         is("机器人", "积木", "轻", "有力") || is("robot", "block", "light", "strong") || is("猫", "老鼠", "", "") ||
         is("cat", "mouse", "", "");
}

Part part_of(const Combination& combination) noexcept {
  std::uint64_t hash = mix(combination.scene * 16 + combination.verb);
  for (const std::string_view word : {combination.agent, combination.target, combination.reason}) {
    for (const char letter : word) hash = mix(hash ^ static_cast<unsigned char>(letter));
    hash = mix(hash);
  }
  return hash % kHeldOut == 0 || is_founding(combination) ? Part::held_out : Part::training;
}

Combination draw_combination(const Words& words, Draw& draw) {
  Combination combination;
  if (draw.one_in(4)) {
    combination.scene = kChase;
    combination.verb = draw.below(words.chases.size());
    combination.agent = draw.from(words.chasers);
    do combination.target = draw.from(words.chasers);
    while (combination.target == combination.agent);
    return combination;
  }
  combination.scene = draw.below(words.scenes.size());
  const Scene& scene = words.scenes[combination.scene];
  combination.verb = draw.below(scene.verbs.size());
  combination.agent = draw.from(words.agents);
  combination.target = draw.from(scene.targets);
  combination.reason = draw.from(draw.one_in(2) ? words.states : scene.properties);
  return combination;
}

bool contains(Choices choices, std::string_view word) noexcept {
  return std::find(choices.begin(), choices.end(), word) != choices.end();
}

// Puts a sentence together word by word, and notes who belongs to whom.
class Builder {
 public:
  Builder(Language language, Draw& draw) : words_(words_of(language)), draw_(draw) { sentence_.language = language; }

  Sentence build(const Combination& combination) {
    const bool chase = combination.scene == kChase;
    const std::size_t agent = add_noun(combination.agent, words_.states, combination.reason);
    if (!chase && draw_.one_in(2)) {
      add(draw_.from(words_.negations));
      negated_ = true;
    }
    const std::size_t verb = add(verb_of(combination));
    const Choices properties = chase ? Choices() : words_.scenes[combination.scene].properties;
    const std::size_t target = add_noun(combination.target, properties, combination.reason);
    link(Relation::subject, verb, agent);
    link(Relation::object, verb, target);
    if (!chase) {
      const std::size_t reason = add_reason(combination, verb);
      link(Relation::coreference, reason, contains(words_.states, combination.reason) ? agent : target);
    }
    if (draw_.one_in(2)) add(is_english() ? "." : "。");
    for (std::size_t at = 1; at < sentence_.words.size(); ++at) link(Relation::neighbour, at, at - 1);
    return std::move(sentence_);
  }

 private:
  [[nodiscard]] bool is_english() const noexcept { return sentence_.language == Language::english; }

  std::size_t add(std::string_view word) {
    sentence_.words.push_back(word);
    return sentence_.words.size() - 1;
  }
  void link(Relation relation, std::size_t from, std::size_t to) { sentence_.links.push_back({relation, from, to}); }

  [[nodiscard]] std::string_view verb_of(const Combination& combination) const {
    if (combination.scene == kChase) return words_.chases[combination.verb];
    const Scene& scene = words_.scenes[combination.scene];
    return negated_ || scene.past_verbs.empty() ? scene.verbs[combination.verb] : scene.past_verbs[combination.verb];
  }

  // "the red block", 红色 的 积木. Now and then the adjective could be a reason as well, but is not this sentence's.
  std::size_t add_noun(std::string_view noun, Choices qualities, std::string_view reason) {
    if (is_english()) add("the");
    if (!draw_.one_in(3)) return add(noun);
    std::string_view adjective = draw_.from(words_.colours);
    if (!qualities.empty() && draw_.one_in(3)) {
      const std::string_view quality = draw_.from(qualities);
      if (quality != reason) adjective = quality;
    }
    const std::size_t at = add(adjective);
    if (!is_english()) add("的");
    link(Relation::modified, at, at + (is_english() ? 1 : 2));
    return add(noun);
  }

  // "because it was too tired"; returns where `it` stands.
  std::size_t add_reason(const Combination& combination, std::size_t verb) {
    if (draw_.one_in(is_english() ? 4 : 2)) add(is_english() || draw_.one_in(2) ? "," : ",");
    const std::size_t because = add(is_english() ? "because" : "因为");
    const std::size_t it = add(is_english() ? "it" : "它");
    if (is_english()) add("was");
    if (!draw_.one_in(4)) add(draw_.from(words_.degrees));
    const std::size_t adjective = add(combination.reason);
    link(Relation::effect, because, verb);
    link(Relation::cause, because, adjective);
    return it;
  }

  const Words& words_;
  Draw& draw_;
  Sentence sentence_;
  bool negated_ = false;
};

std::vector<std::string> all_words() {
  std::vector<std::string> all = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  const auto append = [&](Choices choices) {
    for (const std::string_view word : choices) {
      if (std::find(all.begin(), all.end(), word) == all.end()) all.emplace_back(word);
    }
  };
  for (const Words* words : {&english_words(), &chinese_words()}) {
    for (const Choices choices : {words->functions, words->agents, words->states}) append(choices);
    for (const Scene& scene : words->scenes) {
      for (const Choices choices : {scene.verbs, scene.past_verbs, scene.targets, scene.properties}) append(choices);
    }
    for (const Choices choices : {words->colours, words->degrees, words->chasers, words->chases, words->negations}) {
      append(choices);
    }
  }
  return all;
}

}  // namespace

namespace {

bool is_verb(const Words& words, std::string_view word) noexcept {
  bool found = contains(words.chases, word);
  for (const Scene& scene : words.scenes)
    found = found || contains(scene.verbs, word) || contains(scene.past_verbs, word);
  return found;
}

bool is_adjective(const Words& words, std::string_view word) noexcept {
  bool found = contains(words.colours, word) || contains(words.states, word);
  for (const Scene& scene : words.scenes) found = found || contains(scene.properties, word);
  return found;
}

bool is_noun(const Words& words, std::string_view word) noexcept {
  bool found = contains(words.agents, word) || contains(words.chasers, word);
  for (const Scene& scene : words.scenes) found = found || contains(scene.targets, word);
  return found;
}

}  // namespace

std::vector<Question> Grammar::questions(std::span<const std::string_view> words) {
  std::vector<Question> all;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string_view word = words[at];
    if (word == "it" || word == "它") all.push_back({Relation::coreference, at});
    if (word == "because" || word == "因为") {
      all.push_back({Relation::effect, at});
      all.push_back({Relation::cause, at});
    }
    for (const Words* language : {&english_words(), &chinese_words()}) {
      if (is_verb(*language, word)) {
        all.push_back({Relation::subject, at});
        all.push_back({Relation::object, at});
      }
      const std::size_t noun = at + 1 < words.size() && words[at + 1] == "的" ? at + 2 : at + 1;
      const bool before = noun < words.size() && is_noun(*language, words[noun]);
      if (before && is_adjective(*language, word)) all.push_back({Relation::modified, at});
    }
  }
  return all;
}

std::string_view name(Relation relation) noexcept {
  constexpr std::array<std::string_view, kRelations> kNames = {"coreference", "subject", "object",   "modified",
                                                               "effect",      "cause",   "neighbour"};
  return kNames[static_cast<std::size_t>(relation)];
}

std::string_view meaning(Relation relation) noexcept {
  constexpr std::array<std::string_view, kRelations> kMeanings = {
      "it: what it stands for",    "a verb: who does it", "a verb: what it is done to", "an adjective: its noun",
      "because: what comes of it", "because: the reason", "a word: the one before"};
  return kMeanings[static_cast<std::size_t>(relation)];
}

std::string text_of(const Sentence& sentence) {
  std::string text;
  for (const std::string_view word : sentence.words) {
    const bool english = sentence.language == Language::english;
    if (english && !text.empty() && word != "," && word != ".") text += ' ';
    text += word;
    if (english && text.size() == word.size()) text[0] = static_cast<char>(text[0] - 'a' + 'A');
  }
  return text;
}

const std::vector<std::string>& Grammar::vocabulary() {
  static const std::vector<std::string> words = all_words();
  return words;
}

std::int64_t Grammar::id(std::string_view word) {
  static const std::unordered_map<std::string_view, std::int64_t> ids = [] {
    std::unordered_map<std::string_view, std::int64_t> table;
    for (const std::string& each : vocabulary()) table.emplace(each, static_cast<std::int64_t>(table.size()));
    return table;
  }();
  const auto found = ids.find(word);
  return found == ids.end() ? ids.at("[UNK]") : found->second;
}

Sentence Grammar::sentence(std::uint64_t seed, std::uint64_t number, Part part) {
  Draw draw(mix(mix(seed) ^ number));
  const Language language = draw.one_in(2) ? Language::english : Language::chinese;
  Combination combination = draw_combination(words_of(language), draw);
  while (part_of(combination) != part) combination = draw_combination(words_of(language), draw);
  return Builder(language, draw).build(combination);
}

Sentence Grammar::shuffled(std::uint64_t seed, std::uint64_t number) {
  Sentence sentence = Grammar::sentence(seed, number, Part::training);
  std::erase_if(sentence.links, [](const Link& link) { return link.relation != Relation::neighbour; });
  Draw draw(mix(mix(mix(seed)) ^ number));
  for (std::size_t left = sentence.words.size(); left > 1; --left) {
    std::swap(sentence.words[left - 1], sentence.words[draw.below(left)]);
  }
  return sentence;
}

}  // namespace headlight::demonstration
