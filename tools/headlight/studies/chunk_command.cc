// headlight study chunk: attention inside chunks of C, against full attention.
#include <algorithm>
#include <filesystem>
#include <memory>

#include "tools/headlight/pictures/chart.h"
#include "tools/headlight/studies/chunk.h"
#include "tools/headlight/studies/study.h"
#include "tools/headlight/support/display_text.h"
#include "tools/headlight/support/json.h"
#include "tools/headlight/support/number_text.h"
#include "tools/headlight/support/process.h"
#include "tools/headlight/support/repeated_times.h"
#include "tools/headlight/support/validators.h"

namespace headlight::program {
namespace chunk_study {
namespace {

constexpr const char* kPublished = "downloads/all-MiniLM-L6-v2";

struct Arguments {
  StudyArguments study;
  std::string model, input;
  std::int64_t length = 0, heads = 8, head_dim = 64;  // of seeded numbers
  std::uint64_t seed = 1;
};

std::string table_of(const ChunkSource& source, const std::vector<ChunkRow>& rows, bool quick) {
  const ChunkRow& full = rows.back();
  std::string text =
      "Attention inside chunks of C: a position sees the C of its own chunk, at a cost of L x C pairs\n" +
      source.words + (quick ? " (--quick)" : "") + "\n\n" +
      "       C   pairs    forward            backward           recomputing     unfused   lost mass   error\n";
  for (const ChunkRow& row : rows) {
    const auto faster = [](double before, double now) { return format("x %.1f", before / now); };
    const auto cell = [](const std::string& shown, std::size_t width) { return padded_left(shown, width); };
    text += cell(row.chunk == full.chunk ? "all" : grouped(row.chunk), 8) + cell(percent_text(row.pairs), 8) +
            cell(seconds_text(row.forward), 11) + cell(faster(full.forward, row.forward), 9) +
            cell(seconds_text(row.backward), 10) + cell(faster(full.backward, row.backward), 9) +
            cell(bytes_text(row.recomputing_bytes), 16) + cell(bytes_text(row.unfused_bytes), 12) +
            cell(percent_text(row.outside), 12) + cell(percent_text(row.error), 8) + "\n";
  }
  return text +
         "\nRecomputing, unfused: bytes that a layer's pass forward and backward holds, its tensors and the engine's "
         "memory, when\nweights are worked out again (as here: chunks save it time, not memory) and when they are "
         "written out, chunk by chunk.\nLost mass: the share of its attention that a row gives, in full attention, to "
         "keys outside its chunk. Error:\n|out - full| / |full| of a layer's heads. Means over layers, heads and rows; "
         "times are the best of some runs, all layers\ntogether. Who needs the rest of the mass at bounded memory "
         "streams the keys instead (AttentionStream): all L x L pairs,\nno more than a block of them held.\n" +
         note_of_busy(std::any_of(rows.begin(), rows.end(), [](const ChunkRow& row) { return row.busy; }));
}

std::string json_of(const ChunkSource& source, const std::vector<ChunkRow>& rows, bool quick) {
  Json document = {{"study", "chunk"}, {"quick", quick}, {"source", source.words}};
  for (const ChunkRow& row : rows) {
    document["chunks"].push_back({{"chunk", row.chunk},
                                  {"pairs", row.pairs},
                                  {"forward_seconds", row.forward},
                                  {"backward_seconds", row.backward},
                                  {"recomputing_bytes", row.recomputing_bytes},
                                  {"unfused_bytes", row.unfused_bytes},
                                  {"mass_outside", row.outside},
                                  {"error", row.error}});
  }
  return document.dump(2) + "\n";
}

std::string chart_of(const ChunkSource& source, const std::vector<ChunkRow>& rows) {
  const ChartAxis x = {.label = "chunk C", .scale = ChartScale::binary};
  ChartPanel lost{.title = "What is lost", .x = x, .y = {.label = "share", .text = &percent_text}};
  ChartPanel gained{.title = "What is gained",
                    .x = x,
                    .y = {.label = "seconds", .scale = ChartScale::logarithmic, .text = &seconds_text}};
  ChartPanel held{.title = "What a layer holds in training",
                  .x = x,
                  .y = {.label = "bytes", .scale = ChartScale::binary, .text = &bytes_text}};
  lost.lines = {{.label = "attention mass outside the chunk"}, {.label = "error of the output"}};
  gained.lines = {{.label = "forward"}, {.label = "backward"}};
  held.lines = {{.label = "weights written out"}, {.label = "weights worked out again"}};
  for (const ChunkRow& row : rows) {
    const auto chunk = static_cast<double>(row.chunk);
    lost.lines[0].points.push_back({chunk, row.outside});
    lost.lines[1].points.push_back({chunk, row.error});
    gained.lines[0].points.push_back({chunk, row.forward});
    gained.lines[1].points.push_back({chunk, row.backward});
    held.lines[0].points.push_back({chunk, row.unfused_bytes});
    held.lines[1].points.push_back({chunk, row.recomputing_bytes});
  }
  gained.guides = {
      {.label = "C", .power = 1, .x = gained.lines[1].points.back().x, .y = gained.lines[1].points.back().y}};
  held.guides = {{.label = "full attention", .power = 0, .y = rows.back().unfused_bytes}};
  return chart_svg({.title = "Attention inside chunks",
                    .subtitle = "The shorter the chunk, the less there is to compute and the more is not seen",
                    .panels = {lost, gained, held},
                    .columns = 3,
                    .note = source.words});
}

void study_chunk(const Arguments& arguments) {
  Engine engine(arguments.study.engine.options());
  const bool quick = arguments.study.quick;
  std::string model = arguments.model;
  if (!arguments.input.empty() && model.empty()) throw UsageError("--input needs --model");
  if (!model.empty() && arguments.length > 0) throw UsageError("--length goes with seeded numbers, not with --model");
  if (model.empty() && arguments.length == 0 && std::filesystem::exists(kPublished)) model = kPublished;
  const std::int64_t length = arguments.length > 0 ? arguments.length : quick ? 1024 : 8192;
  const ChunkSource source = model.empty() ? seeded_inputs(length, arguments.heads, arguments.head_dim, arguments.seed)
                                           : inputs_of_model(engine, model, arguments.input);
  const std::vector<ChunkRow> rows = measure_chunks(engine, source, quick ? 3 : 5);
  arguments.study.give(table_of(source, rows, quick), json_of(source, rows, quick),
                       [&] { return chart_of(source, rows); });
}

}  // namespace
}  // namespace chunk_study

void add_study_chunk(Command& study) {
  using namespace chunk_study;
  Command command = study.add_subcommand("chunk", "What attention inside chunks saves, and what it loses");
  const auto arguments = std::make_shared<Arguments>();
  command
      .add_option("--model", arguments->model,
                  "Folder or GGUF file of a model whose layers are BERT's, for its activations (default: " +
                      std::string(kPublished) + " where it is there, else seeded numbers)")
      .type_name("DIR")
      .check(file_name());
  command.add_option("--input", arguments->input, "A file whose text the model reads")
      .type_name("FILE")
      .check(file_name())
      .reads();
  const auto count = [&](const char* name, std::int64_t& value, const char* description, std::int64_t most) {
    command.add_option(name, value, description).type_name("N").check(between(1, most));
  };
  count("--length", arguments->length, "Positions of seeded numbers, 1 to 65536 (default: 8192, with --quick 1024)",
        65536);
  count("--heads", arguments->heads, "Heads of seeded numbers, 1 to 64 (default: 8)", 64);
  count("--head-dim", arguments->head_dim, "Their width, 1 to 256 (default: 64)", 256);
  command.add_option("--seed", arguments->seed, "Of seeded numbers (default: 1)").type_name("N");
  arguments->study.add_to(command);
  command.example("--quick --svg chunk.svg");
  command.callback([arguments] { study_chunk(*arguments); });
}

}  // namespace headlight::program
