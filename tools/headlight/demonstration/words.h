// The words of the demonstration language, by what they may do in a sentence.
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace headlight::demonstration {

// What somebody does to something: a scene. Agents, verbs and targets of one scene go together.
struct Scene {
  std::span<const std::string_view> verbs;       // "cross", behind didn't
  std::span<const std::string_view> past_verbs;  // "crossed"; empty where verbs have one form
  std::span<const std::string_view> targets;     // nouns
  std::span<const std::string_view> properties;  // adjectives that only a target has
};

struct Words {
  std::span<const std::string_view> agents;
  std::span<const std::string_view> states;  // adjectives that only an agent is: reasons that point to the subject
  std::array<Scene, 2> scenes;
  std::span<const std::string_view> colours;    // adjectives that say nothing about reasons
  std::span<const std::string_view> degrees;    // "too"
  std::span<const std::string_view> chasers;    // who chases and is chased
  std::span<const std::string_view> chases;     // "chased"
  std::span<const std::string_view> negations;  // "didn't"
  std::span<const std::string_view> functions;  // what is left: articles, pronouns, marks
};

[[nodiscard]] const Words& english_words() noexcept;
[[nodiscard]] const Words& chinese_words() noexcept;

}  // namespace headlight::demonstration
