#include "tools/headlight/command.h"

#include <CLI/CLI.hpp>
#include <optional>
#include <utility>

namespace headlight::program {
namespace {

// Descriptions of validators would repeat in the help what the text of the option says.
Validator quietly(CLI::Validator validator) {
  return [validator = std::move(validator.description(""))](CLI::Option& option) { option.check(validator); };
}

}  // namespace

Validator between(std::int64_t least, std::int64_t most) { return quietly(CLI::Range(least, most)); }
Validator between_real(double least, double most) { return quietly(CLI::Range(least, most)); }
Validator one_of(const std::vector<std::string>& names) { return quietly(CLI::IsMember(names)); }
Validator one_of_numbers(const std::vector<std::int64_t>& numbers) { return quietly(CLI::IsMember(numbers)); }
Validator checked_by(std::function<std::string(const std::string&)> complaint) {
  return quietly(CLI::Validator([complaint = std::move(complaint)](std::string& text) { return complaint(text); }, ""));
}

Option& Option::required(bool value) {
  option_->required(value);
  return *this;
}

Option& Option::type_name(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Option& Option::check(const Validator& validator) {
  validator(*option_);
  return *this;
}

Option& Option::one_at_a_time() {
  option_->allow_extra_args(false);
  return *this;
}

Option& Option::delimiter(char between) {
  option_->delimiter(between);
  return *this;
}

Option& Option::hidden() {
  option_->group("");
  return *this;
}

bool Option::given() const { return option_->count() > 0; }

Command Command::add_subcommand(const std::string& name, const std::string& description) {
  return Command(*app_->add_subcommand(name, description));
}

template <class T>
Option Command::add_option(const std::string& names, T& value, const std::string& description) {
  return Option(app_->add_option(names, value, description));
}

template Option Command::add_option(const std::string&, std::string&, const std::string&);
template Option Command::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template Option Command::add_option(const std::string&, std::int32_t&, const std::string&);
template Option Command::add_option(const std::string&, std::int64_t&, const std::string&);
template Option Command::add_option(const std::string&, std::uint64_t&, const std::string&);
template Option Command::add_option(const std::string&, float&, const std::string&);
template Option Command::add_option(const std::string&, double&, const std::string&);
template Option Command::add_option(const std::string&, std::optional<float>&, const std::string&);

Option Command::add_flag(const std::string& name, bool& value, const std::string& description) {
  return Option(app_->add_flag(name, value, description));
}

void Command::require_subcommand() { app_->require_subcommand(1); }
void Command::footer(const std::string& text) { app_->footer(text); }
void Command::callback(std::function<void()> run) { app_->callback(std::move(run)); }
bool Command::given(const std::string& option) const { return app_->count(option) > 0; }

}  // namespace headlight::program
