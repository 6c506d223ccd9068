#include "report/markdown.h"

#include <algorithm>
#include <sstream>

#include "report/losses.h"
#include "report/text.h"

namespace headlight::bench::report {
namespace {

using Cells = std::vector<std::string>;

void write_line(std::ostream& page, const Cells& cells) {
  for (const std::string& cell : cells) page << "| " << cell << ' ';
  page << "|\n";
}

// Columns in which no row has anything are left out.
void write_table(std::ostream& page, const Cells& head, const std::vector<Cells>& rows) {
  std::vector<bool> used(head.size(), false);
  for (const Cells& row : rows) {
    for (std::size_t i = 0; i < head.size(); ++i) used[i] = used[i] || (!row[i].empty() && row[i] != "–");
  }
  const auto kept = [&](const Cells& cells) {
    Cells some;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (used[i]) some.push_back(cells[i]);
    }
    return some;
  };
  write_line(page, kept(head));
  write_line(page, kept(Cells(head.size(), "---")));
  for (const Cells& row : rows) write_line(page, kept(row));
  page << '\n';
}

std::string or_nothing(const char* pattern, double value) { return value == 0 ? "" : format(pattern, value); }

std::string peers_text(const Row& row) {
  std::string text;
  for (const PeerFigures& peer : row.peers) {
    if (peer.speed == 0) continue;
    if (!text.empty()) text += ", ";
    text += format("%.2f× ", peer.speed) + markdown_cell(peer.name);
  }
  return text;
}

Cells cells_of(const Row& row) {
  const auto time = [&](const char* key) { return row.figure(key) > 0 ? time_text(row.figure(key)) : std::string(); };
  if (!row.error.empty()) {
    Cells cells(13);
    cells[0] = markdown_cell(row.name);
    cells[1] = std::to_string(row.threads);
    cells[11] = "**" + markdown_cell(row.error) + "**";
    return cells;
  }
  std::string peak = percent_text(row.figure("peak_share"));
  if (row.figure("element_share") > 0) peak = percent_text(row.figure("element_share"));
  return {markdown_cell(row.name),
          std::to_string(row.threads),
          time("seconds_best"),
          time("seconds_median"),
          or_nothing("%.1f", row.figure("gflops_best")),
          peak,
          or_nothing("%.2f", row.figure("elements_per_ns")),
          or_nothing("%.3g", row.figure("gbps_best")),
          percent_text(row.figure("read_share")),
          row.figure("bytes") > 0 ? bytes_text(row.figure("bytes")) : "",
          row.figures.contains("busy_share") ? format("%.2f %%", 100 * row.figure("busy_share")) : "",
          peers_text(row),
          row.figures.contains("disturbed") ? format("%.0f %%", 100 * row.figure("disturbed")) : ""};
}

// A suite's rows of one instruction set.
void write_suite(std::ostream& page, const PageInput& input, const std::string& suite, const std::string& isa) {
  std::vector<Cells> rows;
  for (const Row& row : input.measured.rows) {
    if (row.suite == suite && row.isa == isa) rows.push_back(cells_of(row));
  }
  page << "## " << markdown_cell(suite) << (isa.empty() ? "" : ", " + markdown_cell(isa)) << "\n\n";
  write_table(page,
              {"case", "threads", "best", "median", "GFLOP/s", "of peak", "elements/ns", "GB/s", "of reading", "size",
               "processor time", "times as fast as", "disturbed"},
              rows);
}

void write_charts(std::ostream& page, const PageInput& input, const std::string& suite) {
  bool any = false;
  for (const auto& [title, path] : input.charts) {
    if (!title.starts_with(suite + ":")) continue;
    page << "![" << markdown_cell(title) << "](" << path << ")\n";
    any = true;
  }
  if (any) page << '\n';
}

void write_machine(std::ostream& page, const PageInput& input) {
  std::vector<Cells> rows;
  const auto add = [&](const char* label, const char* key, bool bytes = false) {
    const auto found = input.measured.context.find(key);
    if (found == input.measured.context.end()) return;
    rows.push_back({label, bytes ? bytes_text(std::stod(found->second)) : markdown_cell(found->second)});
  };
  add("date", "date");
  add("processor", "cpu_name");
  add("cores", "cores");
  add("level 1 data cache", "l1_data_bytes", true);
  add("level 2 cache", "l2_bytes", true);
  add("level 3 cache, shared", "l3_bytes", true);
  add("system", "system");
  add("headlight", "headlight_version");
  add("compiler", "headlight_compiler");
  add("SIMD library", "headlight_simd");
  add("build", "headlight_build");
  add("load average at the start", "load_average");
  if (!input.note.empty()) rows.push_back({"run", markdown_cell(input.note)});
  page << "## The machine\n\n";
  write_table(page, {"", "what"}, rows);
}

std::string reason_for(const PageInput& input, const Row& row) {
  std::string best;
  std::size_t length = 0;
  for (const auto& [beginning, reason] : input.reasons.items()) {
    if (!row.full_name().starts_with(beginning) || beginning.size() < length) continue;
    length = beginning.size();
    best = reason.get<std::string>();
  }
  return best.empty() ? "not known" : markdown_cell(best);
}

void write_losses(std::ostream& page, const PageInput& input) {
  page << "## Where headlight loses\n\n";
  const std::vector<Loss> losses = losses_of(input.measured);
  if (losses.empty()) {
    page << "Nowhere in this run.\n\n";
    return;
  }
  std::vector<Cells> rows;
  for (const Loss& loss : losses) {
    const Row& row = *loss.row;
    const double share = row.figure(row.limit());
    const std::string of = row.limit() == std::string_view("read_share") ? " of reading" : " of peak";
    rows.push_back({markdown_cell(row.full_name() + (row.isa.empty() ? "" : "/" + row.isa)),
                    std::to_string(row.threads), markdown_cell(loss.peer->name + " " + loss.peer->version),
                    format("%.2f×", 1 / loss.peer->speed), share > 0 ? percent_text(share) + of : "",
                    share > 0 ? percent_text(share / loss.peer->speed) + of : "", reason_for(input, row)});
  }
  page << "Rows in which somebody else is faster by more than 1 %.\n\n";
  write_table(page, {"case", "threads", "against", "headlight takes", "headlight", "the other", "why"}, rows);
}

void write_builds(std::ostream& page, const PageInput& input) {
  const std::vector<BuildComparison> builds = build_comparisons(input.measured);
  if (builds.empty()) return;
  page << "## Other builds of headlight\n\nEach suite ran in turn with this one, twice, and shares of the peak are "
          "compared "
          "where there are any.\nNamed are the rows that differ by more than 3 %.\n\n";
  for (const BuildComparison& build : builds) {
    page << markdown_cell(build.name) << format(": the median of %.0f rows", static_cast<double>(build.rows))
         << format(" takes %.3f× the time; ", build.median)
         << format("%.0f differ.\n\n", static_cast<double>(build.differing.size()));
    std::vector<Cells> rows;
    for (const Loss& one : build.differing) {
      rows.push_back({markdown_cell(one.row->full_name() + "/" + one.row->isa), std::to_string(one.row->threads),
                      format("%.2f×", one.peer->speed)});
    }
    if (!rows.empty()) write_table(page, {"case", "threads", "takes"}, rows);
  }
}

void write_goals(std::ostream& page, const PageInput& input) {
  const std::vector<GoalResult> results = goal_results(input.goals, input.measured);
  if (results.empty()) return;
  std::vector<Cells> rows;
  const auto met = std::count_if(results.begin(), results.end(), [](const GoalResult& one) { return one.met; });
  for (const GoalResult& result : results)
    rows.push_back({markdown_cell(result.row->full_name() + (result.row->isa.empty() ? "" : "/" + result.row->isa)),
                    std::to_string(result.row->threads), result.wanted, result.reached, result.met ? "yes" : "**no**"});
  page << "## Goals\n\n" << met << " of " << results.size() << " are reached.\n\n";
  write_table(page, {"case", "threads", "goal", "here", "reached"}, rows);
}

std::string calls_text(const LatencyRow& row) {
  return format("%.0f", row.calls) + (row.ended_after_seconds > 0 ? format(" (%g s)", row.ended_after_seconds) : "");
}

void write_latency(std::ostream& page, const PageInput& input) {
  if (input.measured.latency.empty()) return;
  // A quantile that fewer than ten calls lie beyond is one call's luck.
  const auto sure = [](double seconds, double calls, double beyond) {
    return calls * beyond >= 10 ? time_text(seconds) : std::string("–");
  };
  std::vector<Cells> rows;
  for (const LatencyRow& row : input.measured.latency)
    rows.push_back({markdown_cell(row.name), std::to_string(row.threads), markdown_cell(row.beside),
                    markdown_cell(row.caches), calls_text(row), time_text(row.p50), sure(row.p99, row.calls, 0.01),
                    sure(row.p999, row.calls, 0.001), time_text(row.max)});
  page << "## latency\n\n"
       << "Single calls. Cold: before each, the operands were thrown out of all caches, line by line. Swept: other "
          "memory, "
          "twice the last cache, took\ntheir place, since packed weights lie where only the layer knows; caches of "
          "other "
          "cores keep theirs. A row with a time in brackets\nended after so long: its calls take milliseconds, or the "
          "run "
          "was a quick one. A competing process has a busy thread for every core.\n\n";
  write_table(page, {"case", "threads", "beside", "caches", "calls", "p50", "p99", "p99.9", "longest"}, rows);
  write_charts(page, input, "latency");
}

}  // namespace

std::string markdown_page(const PageInput& input) {
  std::ostringstream page;
  page << "# headlight, measured\n\n"
       << "Every case was checked against the reference before it was timed. Work, peers and yardsticks ran in turn, "
          "round by round; shares and\nratios are medians over pairs from the same round. *Of peak*: of what the "
          "multiply-add units of as many threads reached around the\ncalls. *Of reading*: of what reading the same "
          "memory reached, around the calls where bytes are the limit and once ahead where arithmetic is.\nGB/s "
          "count what a call must read and write, GFLOP/s visible pairs only. *2.00× X*: headlight takes half the time "
          "of X.\n*Disturbed*: the share of the machine that other processes used meanwhile; such a row is worth "
          "little.\n\n";
  write_machine(page, input);
  write_losses(page, input);
  write_goals(page, input);
  write_builds(page, input);
  std::vector<std::pair<std::string, std::string>> done;
  std::vector<std::string> drawn;
  for (const Row& row : input.measured.rows) {
    if (std::find(done.begin(), done.end(), std::pair(row.suite, row.isa)) != done.end()) continue;
    done.emplace_back(row.suite, row.isa);
    write_suite(page, input, row.suite, row.isa);
    if (std::find(drawn.begin(), drawn.end(), row.suite) == drawn.end()) write_charts(page, input, row.suite);
    drawn.push_back(row.suite);
  }
  write_latency(page, input);
  return page.str();
}

}  // namespace headlight::bench::report
