// headlight-mpi study scale as text, as JSON and as a chart.
#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "tools/headlight/pictures/chart.h"
#include "tools/headlight/support/json.h"
#include "tools/headlight/support/number_text.h"
#include "tools/headlight/support/quantity_text.h"
#include "tools/headlight_mpi/scale.h"

namespace headlight::program::scale_study {
namespace {

constexpr std::size_t kName = 18, kColumn = 12, kWideColumn = 14;

std::string name_of(int ranks) { return counted(ranks, "rank"); }
std::string threads_of(const Study& study) { return counted(study.threads, "thread") + " a rank"; }

std::string line_name(const std::string& name) {
  return "  " + name + std::string(kName - std::min(kName, name.size() + 2), ' ');
}

std::string megabytes_text(double megabytes) { return std::isnan(megabytes) ? "-" : format("%.1f", megabytes); }

std::string row(const std::string& name, const Pass& pass, const std::optional<Pass>& one_process, bool communicates) {
  const auto transferred = [&](const std::string& text) { return communicates ? text : std::string("-"); };
  return line_name(name) + padded_left(seconds_text(pass.seconds), kColumn) +
         padded_left(one_process ? format("%.2f", one_process->seconds / pass.seconds) : "-", kColumn) +
         padded_left(megabytes_text(pass.memory), kColumn) +
         padded_left(transferred(format("%.1f", pass.megabytes)), kColumn) +
         padded_left(transferred(seconds_text(pass.transfers)), kWideColumn) +
         padded_left(transferred(seconds_text(pass.waiting)), kColumn) +
         padded_left(transferred(format("%.0f %%", 100 * pass.hidden())), kColumn) + "\n";
}

std::string table(const Study& study, const char* title, const std::optional<Pass>& one_process, Pass Point::*pass) {
  std::string text = std::string("\n") + title + "\n" + std::string(kName, ' ') + padded_left("seconds", kColumn) +
                     padded_left("x one", kColumn) + padded_left("memory MB", kColumn) +
                     padded_left("come MB", kColumn) + padded_left("transfers", kWideColumn) +
                     padded_left("waiting", kColumn) + padded_left("hidden", kColumn) + "\n";
  if (one_process) text += row("one process", *one_process, one_process, false);
  for (const Point& point : study.points) text += row(name_of(point.ranks), point.*pass, one_process, point.ranks > 1);
  return text;
}

std::string forecast_text(const Study& study) {
  std::string text = "\nForetold: forward, L = " + grouped(study.far.query_length) + ", causal, by the estimate of " +
                     "mpi::plan(), each rank as fast as here (" + format("%.0f", study.operations_per_second / 1e9) +
                     " GFLOP/s)\n" + std::string(kName, ' ');
  const auto is_shown = [](int ranks) { return std::lround(std::log2(ranks)) % 2 == 0; };
  for (const Forecast& forecast : study.networks.front().forecasts) {
    if (is_shown(forecast.ranks)) text += padded_left(name_of(forecast.ranks), kColumn);
  }
  text += "\n";
  for (const Network& network : study.networks) {
    text += line_name(format("%.0f Gbit/s", network.gigabits));
    for (const Forecast& forecast : network.forecasts) {
      if (is_shown(forecast.ranks)) text += padded_left(seconds_text(forecast.seconds), kColumn);
    }
    text += "\n";
  }
  for (const Network& network : study.networks) {
    const Forecast& last = network.last_worthwhile();
    const double times = network.forecasts.front().seconds / last.seconds;
    text += "  " + format("%.0f", network.gigabits) + " Gbit/s: " + name_of(last.ranks) + " take " +
            seconds_text(last.seconds) + ", " + format("%.3g", times) + " times as fast as one";
    text += last.ranks == network.forecasts.back().ranks
                ? "; as many as were looked at.\n"
                : "; twice as many would save less than a tenth, for transfers take as long.\n";
  }
  return text;
}

Json json_of(const Pass& pass) {
  Json json = {{"seconds", pass.seconds}};
  if (!std::isnan(pass.memory)) json["memory_megabytes"] = pass.memory;
  return json;
}

Json json_of_ranks(const Pass& pass) {
  Json json = json_of(pass);
  json["waiting_seconds"] = pass.waiting;
  json["transfer_seconds"] = pass.transfers;
  json["hidden"] = pass.hidden();
  json["megabytes_received"] = pass.megabytes;
  return json;
}

Json forecasts(const Study& study) {
  Json json = {{"length", study.far.query_length}, {"operations_per_second", study.operations_per_second}};
  for (const Network& network : study.networks) {
    Json entry = {{"gigabits_per_second", network.gigabits}, {"last_worthwhile", network.last_worthwhile().ranks}};
    for (const Forecast& forecast : network.forecasts) {
      entry["points"].push_back({{"ranks", forecast.ranks},
                                 {"seconds", forecast.seconds},
                                 {"product_seconds", forecast.products},
                                 {"transfer_seconds", forecast.transfers}});
    }
    json["networks"].push_back(std::move(entry));
  }
  return json;
}

ChartPanel measured_panel(const Study& study) {
  ChartPanel panel{.title = "measured, L = " + grouped(study.whole.query_length),
                   .x = {.label = "ranks", .lowest = 0},
                   .y = {.label = "times as fast as one process", .lowest = 0},
                   .guides = {{"as many times as ranks", 1, 1, 1}}};
  for (const auto& [name, pass, one] : {std::tuple{"forward", &Point::forward, study.one_process_forward},
                                        std::tuple{"backward", &Point::backward, study.one_process_backward}}) {
    ChartLine line{name};
    for (const Point& point : study.points) {
      line.points.push_back({static_cast<double>(point.ranks), one->seconds / (point.*pass).seconds});
    }
    panel.lines.push_back(std::move(line));
  }
  return panel;
}

ChartPanel foretold_panel(const Study& study) {
  ChartPanel panel{.title = "foretold, L = " + grouped(study.far.query_length) + ", forward",
                   .x = {.label = "ranks", .scale = ChartScale::binary},
                   .y = {.label = "times as fast as one rank", .scale = ChartScale::binary},
                   .guides = {{"as many times as ranks", 1, 1, 1}}};
  for (const Network& network : study.networks) {
    ChartLine line{format("%.0f Gbit/s", network.gigabits)};
    for (const Forecast& forecast : network.forecasts) {
      line.points.push_back(
          {static_cast<double>(forecast.ranks), network.forecasts.front().seconds / forecast.seconds});
    }
    panel.lines.push_back(std::move(line));
  }
  return panel;
}

}  // namespace

std::string as_text(const Study& study) {
  std::string text = "Scale: attention over ranks, L = " + grouped(study.whole.query_length) + ", causal, " +
                     counted(study.whole.query_heads, "head") + " of " + grouped(study.whole.head_dim) + ", " +
                     std::string(name(study.arguments.number_type())) + ", " + threads_of(study) + " (" + study.isa +
                     ")\nThe best of " + std::to_string(study.arguments.repeats) +
                     ", of the slowest rank. Memory: the most that was resident, tensors and all, beyond the program\n"
                     "itself. \"Hidden\": the part of what is received that is there by the time it is wanted.\n";
  text += table(study, "Forward", study.one_process_forward, &Point::forward);
  text += table(study, "Backward (scores are computed twice: 14 operations for 10)", study.one_process_backward,
                &Point::backward);
  text += forecast_text(study);
  const Point& last = study.points.back();
  text += "\nThe last: " + last.plan + "\n";
  if (std::isnan(last.resident)) return text;
  return text + "A rank of it had at most " + format("%.1f", last.resident) +
         " MB resident, with the program and MPI.\n";
}

std::string as_json(const Study& study) {
  Json document;
  document["study"] = "scale";
  document["quick"] = study.arguments.study.quick;
  document["length"] = study.whole.query_length;
  document["heads"] = study.whole.query_heads;
  document["head_dim"] = study.whole.head_dim;
  document["type"] = name(study.arguments.number_type());
  document["threads"] = study.threads;
  document["isa"] = study.isa;
  if (study.one_process_forward) {
    document["one_process"] = {{"forward", json_of(*study.one_process_forward)},
                               {"backward", json_of(*study.one_process_backward)}};
  }
  for (const Point& point : study.points) {
    Json entry = {{"ranks", point.ranks},
                  {"plan", point.plan},
                  {"forward", json_of_ranks(point.forward)},
                  {"backward", json_of_ranks(point.backward)}};
    if (!std::isnan(point.resident)) entry["resident_megabytes"] = point.resident;
    document["points"].push_back(std::move(entry));
  }
  document["foretold"] = forecasts(study);
  return document.dump(2) + "\n";
}

std::string as_svg(const Study& study) {
  Chart chart{.title = "Attention over ranks",
              .subtitle = "Causal, " + counted(study.whole.query_heads, "head") + " of " +
                          grouped(study.whole.head_dim) + "; the same bits at any number",
              .note = threads_of(study) + ", " + study.isa +
                      "; backward, scores are computed twice. Foretold by the estimate of mpi::plan()."};
  if (study.one_process_forward) chart.panels.push_back(measured_panel(study));
  chart.panels.push_back(foretold_panel(study));
  return chart_svg(chart);
}

}  // namespace headlight::program::scale_study
