// The page: one file that needs nothing else. Words enter as JSON, in which no markup can begin, and as escaped text.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tools/headlight/beams/beams.h"
#include "tools/headlight/beams/page_text.h"
#include "tools/headlight/pictures/palette.h"
#include "tools/headlight/support/display_text.h"
#include "tools/headlight/support/json.h"
#include "tools/headlight/support/number_text.h"

namespace headlight::program {
namespace {

constexpr std::size_t kTitleColumns = 160;

std::string base64(const std::vector<std::uint8_t>& bytes) {
  constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) group = group << 8 | (at + k < bytes.size() ? bytes[at + k] : 0u);
    for (std::size_t k = 0; k < 4; ++k) {
      text += at + k > bytes.size() ? '=' : kLetters[group >> (18 - 6 * k) & 63];
    }
  }
  return text;
}

void append_16(std::vector<std::uint8_t>& bytes, std::uint32_t value) {
  bytes.push_back(static_cast<std::uint8_t>(value));
  bytes.push_back(static_cast<std::uint8_t>(value >> 8));
}

// For each head and word: how many beams, then of each the word it reaches and its weight in 65535ths.
std::string packed_beams(const Beams& beams, std::int64_t layer, std::int64_t top) {
  BeamView view{.layer = layer, .top = top};
  for (std::int64_t head = 0; head < beams.heads; ++head) view.heads.push_back(head);
  std::vector<std::vector<Beam>> rows(static_cast<std::size_t>(beams.heads * beams.length()));
  for (const Beam& beam : beams_in_view(beams, view)) {
    rows[static_cast<std::size_t>(beam.head * beams.length() + beam.from)].push_back(beam);
  }
  std::vector<std::uint8_t> bytes;
  for (const std::vector<Beam>& row : rows) {
    append_16(bytes, static_cast<std::uint32_t>(row.size()));
    for (const Beam& beam : row) {
      append_16(bytes, static_cast<std::uint32_t>(beam.to));
      append_16(bytes, static_cast<std::uint32_t>(std::lround(65535.0f * std::min(beam.weight, 1.0f))));
    }
  }
  return base64(bytes);
}

std::string packed_parts(const Tensor<float, 2>& parts) {
  std::vector<std::uint8_t> bytes;
  for (const float part : parts) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &part, sizeof bits);
    append_16(bytes, bits & 0xFFFFu);
    append_16(bytes, bits >> 16);
  }
  return base64(bytes);
}

Json word_or_null(std::int64_t word) { return word == kAll ? Json(nullptr) : Json(word); }

Json document_of(const Beams& beams, const BeamView& view) {
  Json document;
  for (const Word& word : beams.words) {
    document["words"].push_back({{"text", label(word.text, kWordColumns)}, {"special", word.special}});
    if (const std::string language = language_of(word.text); !language.empty()) {
      document["words"].back()["lang"] = language;
    }
  }
  document["heads"] = beams.heads;
  for (std::size_t layer = 0; layer < beams.layers.size(); ++layer) {
    const Tensor<float, 2>& parts = beams.layers[layer].parts;
    document["layers"].push_back({{"beams", packed_beams(beams, static_cast<std::int64_t>(layer), view.top)},
                                  {"parts", parts.size() > 0 ? packed_parts(parts) : std::string()}});
  }
  for (std::int64_t head = 0; head < beams.heads; ++head) {
    document["colours"]["dark"].push_back(kOnDark[colour_of(head, beams.heads)]);
    document["colours"]["light"].push_back(kOnLight[colour_of(head, beams.heads)]);
    document["lines"].push_back(line_of(head));
  }
  document["view"] = {
      {"layer", view.layer}, {"heads", view.heads}, {"from", word_or_null(view.from)}, {"to", word_or_null(view.to)}};
  return document;
}

std::string subtitle(const Beams& beams, const BeamView& view) {
  std::string text = label(beams.source, 80) + ": " + counted(static_cast<std::int64_t>(beams.layers.size()), "layer") +
                     " of " + counted(beams.heads, "head") + ", " + counted(word_count(beams.words), "word");
  if (view.top < beams.length()) {
    const auto share = static_cast<int>(std::lround(100 * share_of_top(beams, view.layer, view.top)));
    text += ". The " + std::to_string(view.top) +
            " brightest beams of each word and head are here: " + std::to_string(share) + " % of layer " +
            std::to_string(view.layer) + "'s light";
  }
  return text;
}

constexpr std::string_view kHead = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
)";

constexpr std::string_view kControls = R"(<form aria-label="What is shown" onsubmit="return false">
<fieldset id="layers"><legend>Layer</legend></fieldset>
<fieldset id="heads"><legend>Heads</legend><button type="button" id="every-head">all</button></fieldset>
<fieldset id="options">
<label>beams from <input id="faintest" type="range" min="0" max="100" value="0" aria-label="The faintest beam shown"><output id="faintest-value"></output></label>
<label id="specials-choice"><input id="specials" type="checkbox" checked>[CLS] and [SEP]</label>
<label id="fold-choice"><input id="fold" type="checkbox">Fold away dark words</label>
</fieldset>
</form>
<main>
<div id="picture">
<div id="titles"><span>a word looks …</span><span id="dimmest"></span><span>… at words</span></div>
<div id="stage">
<ol id="from" aria-label="Words that look"></ol>
<div id="beams"><canvas id="all" role="img" aria-label="Beams from words to words, a colour for each head"></canvas><canvas id="lit" hidden aria-hidden="true"></canvas></div>
<ol id="to" aria-label="Words that are looked at"></ol>
</div>
<p id="folded" hidden></p>
</div>
<aside id="details" aria-live="polite" aria-label="In numbers"></aside>
</main>
<footer>
<p>Each word on the left sends its light through the prism, which parts it into heads. A beam's brightness and width are the weight with which the head looks at the word on the right; a head's beams of one word sum to 100 %. The point on the right grows with all the light that arrives there.<span class="parts-note"> The bar on the left is what comes back: how long each head's part of the word's new representation is, after W<sub>O</sub>.</span></p>
<p>Point at a word, tap it, or reach it with <kbd>Tab</kbd> and the arrow keys; <kbd>Enter</kbd> keeps it lit, <kbd>Esc</kbd> lets go. A click on a head shows it alone; with <kbd>Ctrl</kbd> it comes and goes.</p>
</footer>
<noscript><p>The beams are drawn by a script, which is switched off here. "headlight beams -o beams.svg" makes a still picture.</p></noscript>
)";

}  // namespace

std::string beams_page(const Beams& beams, const BeamView& view) {
  const std::string title = escaped(label(beams.title, kTitleColumns));
  const std::string language = language_of(beams.title);
  const std::string in_language = language.empty() ? "" : " lang=\"" + language + "\"";
  std::string page(kHead);
  page.append("<title>").append(title).append("</title>\n<style>\n").append(kBeamsStyle).append("</style>\n</head>\n");
  page.append("<body>\n<header>\n<h1").append(in_language).append("><bdi>").append(title).append("</bdi></h1>\n<p>");
  page.append(escaped(subtitle(beams, view))).append(".</p>\n");
  for (const std::string& note : beams.notes) page.append("<p class=\"note\">").append(escaped(note)).append(".</p>\n");
  page.append("</header>\n").append(kControls);
  page.append("<script type=\"application/json\" id=\"data\">").append(document_of(beams, view).dump_for_script());
  page.append("</script>\n<script>\n'use strict';\n").append(kBeamsScript).append("</script>\n</body>\n</html>\n");
  return page;
}

}  // namespace headlight::program
