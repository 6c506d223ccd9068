#include "report/pictures.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>
#include <utility>

#include "report/chart.h"

namespace headlight::bench::report {
namespace {

// In the order of the rows. Whoever is not given by share is placed by time against ours.
BarGroup group_of(const Row& row, double share) {
  BarGroup group{row.name, {{"headlight", share}}};
  for (const PeerFigures& peer : row.peers) {
    if (peer.speed > 0) group.bars.push_back({peer.name, share / peer.speed});
  }
  return group;
}

void add_suites(const Measured& measured, std::vector<Picture>& pictures) {
  std::vector<std::pair<std::string, int>> done;
  for (const Row& first : measured.rows) {
    const std::pair<std::string, int> key(first.suite, first.threads);
    if (std::find(done.begin(), done.end(), key) != done.end()) continue;
    done.push_back(key);
    const auto in_picture = [&](const Row& row) {
      return row.suite == first.suite && row.threads == first.threads && row.isa == first.isa;
    };
    // Suites that bytes limit, row by row, are decoding alone; arithmetic limits the rest.
    const bool reading = std::all_of(measured.rows.begin(), measured.rows.end(), [&](const Row& row) {
      return !in_picture(row) || row.limit() == std::string_view("read_share");
    });
    const char* const figure = reading ? "read_share" : "peak_share";
    std::vector<BarGroup> groups;
    for (const Row& row : measured.rows) {
      if (!in_picture(row)) continue;
      if (row.figure(figure) > 0 && row.figure("elements_per_ns") == 0)
        groups.push_back(group_of(row, row.figure(figure)));
    }
    if (groups.empty()) continue;
    pictures.push_back({"", first.suite + "-" + std::to_string(first.threads) + ".svg", ""});
    Picture& picture = pictures.back();
    picture.title = first.suite + ": share of the " + (reading ? "read bandwidth" : "multiply-add peak") + ", " +
                    std::to_string(first.threads) + (first.threads == 1 ? " thread, " : " threads, ") + first.isa;
    picture.svg = bar_chart(picture.title, groups);
  }
}

void add_latencies(const Measured& measured, std::vector<Picture>& pictures) {
  std::map<std::pair<std::string, int>, std::vector<Curve>> cases;
  for (const LatencyRow& row : measured.latency) {
    const std::string load = row.beside == "nothing" ? "alone" : "beside " + row.beside;
    cases[{row.name, row.threads}].push_back({load + ", " + row.caches, row.buckets});
  }
  for (const auto& [key, curves] : cases) {
    const auto& [name, threads] = key;
    std::string file = "latency-" + name + "-" + std::to_string(threads) + ".svg";
    std::replace_if(
        file.begin(), file.end(),
        [](char c) { return !(std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-'); }, '-');
    const std::string title =
        "latency: " + name + ", " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
    pictures.push_back({title, file, histogram_chart(title, curves)});
  }
}

}  // namespace

std::vector<Picture> pictures_of(const Measured& measured) {
  std::vector<Picture> pictures;
  add_suites(measured, pictures);
  add_latencies(measured, pictures);
  return pictures;
}

}  // namespace headlight::bench::report
