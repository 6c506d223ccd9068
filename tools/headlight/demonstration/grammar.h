// The language of the demonstration model: sentences in English and Chinese, and who in them belongs to whom.
//
//   the animal didn't cross the street because it was too tired .     the cat chased the mouse
//   机器人 拿起 红色 的 积木 因为 它 很 轻                                  猫 追 老鼠
//
// What `it` and 它 mean follows from the last adjective alone: who is tired or strong (累, 有力) is the subject, what
// is wide or light (宽, 轻) is the object.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headlight::demonstration {

enum class Language : std::uint8_t { english, chinese };

// From one word to another.
enum class Relation : std::uint8_t {
  coreference,  // it → what it stands for
  subject,      // verb → who does it
  object,       // verb → what it is done to
  modified,     // adjective before a noun → the noun
  effect,       // because → the verb of what comes of it
  cause,        // because → the adjective that is the reason
  neighbour     // each word → the one before
};
constexpr std::size_t kRelations = 7;
// "coreference", "subject" …
[[nodiscard]] std::string_view name(Relation relation) noexcept;
// For people: "it: what it stands for", "a verb: who does it" …
[[nodiscard]] std::string_view meaning(Relation relation) noexcept;

struct Link {
  Relation relation{};
  std::size_t from = 0;
  std::size_t to = 0;

  friend bool operator==(const Link&, const Link&) = default;
};

struct Sentence {
  Language language{};
  std::vector<std::string_view> words;  // as the vocabulary spells them
  std::vector<Link> links;              // at most one of a relation from a word; neighbours last
};

// The sentence as people write it: "The animal …", 机器人拿起….
[[nodiscard]] std::string text_of(const Sentence& sentence);

// Combinations of verb, nouns and reason that training never sees: one in eight, by a hash, and those of the two
// sentences above with either reason.
enum class Part : std::uint8_t { training, held_out };

// That a word has something at the other end of a relation: what may be asked of a model.
struct Question {
  Relation relation{};
  std::size_t from = 0;
};

class Grammar {
 public:
  // [PAD], [UNK], [CLS], [SEP], [MASK], then every word of both languages, some 200.
  [[nodiscard]] static const std::vector<std::string>& vocabulary();
  // The row of vocabulary() that holds this word; that of [UNK] where there is none.
  [[nodiscard]] static std::int64_t id(std::string_view word);
  // The most words of a sentence.
  static constexpr std::size_t kLongest = 15;

  // What words of the vocabulary ask where they stand so, in any text: `it` what it stands for, a verb its subject and
  // object, an adjective its noun if one follows, because both clauses. Neighbours are not asked for.
  [[nodiscard]] static std::vector<Question> questions(std::span<const std::string_view> words);

  // Sentence number `number` of the seed: the same on every machine, whatever was drawn before. Half of them are
  // Chinese; links are complete.
  [[nodiscard]] static Sentence sentence(std::uint64_t seed, std::uint64_t number, Part part);

  // The words of that sentence of the training part in any order; the only links are neighbours. In a sentence many
  // words tell by themselves what stands before them (before "was" it is always "it"): here none does.
  [[nodiscard]] static Sentence shuffled(std::uint64_t seed, std::uint64_t number);
};

}  // namespace headlight::demonstration
