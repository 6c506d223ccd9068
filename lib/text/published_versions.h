// Where the tables of the published tokenizer differ from those of Unicode 15.0 (utf8proc 2.8), beside
// published_categories.h: its regular expressions know later characters, its normalisation forms only earlier ones.
// Found by passing every code point through Hugging Face tokenizers 0.23.3 and comparing. Letters that gained a
// lower-case form later are left out, as there.
#pragma once

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>

#include "text/published_categories.h"

namespace headlight::text {

// Characters of Unicode 16.0, which the regular expressions know.
struct LaterCharacters {
  CodepointRange range;
  utf8proc_category_t category;
};
constexpr LaterCharacters kLaterCharacters[] = {
    {{0x0897, 0x0897}, UTF8PROC_CATEGORY_MN},   {{0x1B4E, 0x1B4F}, UTF8PROC_CATEGORY_PO},
    {{0x1B7F, 0x1B7F}, UTF8PROC_CATEGORY_PO},   {{0x1C89, 0x1C89}, UTF8PROC_CATEGORY_LU},
    {{0x1C8A, 0x1C8A}, UTF8PROC_CATEGORY_LL},   {{0x2427, 0x2429}, UTF8PROC_CATEGORY_SO},
    {{0x2FFC, 0x2FFF}, UTF8PROC_CATEGORY_SO},   {{0x31E4, 0x31E5}, UTF8PROC_CATEGORY_SO},
    {{0x31EF, 0x31EF}, UTF8PROC_CATEGORY_SO},   {{0xA7CB, 0xA7CC}, UTF8PROC_CATEGORY_LU},
    {{0xA7CD, 0xA7CD}, UTF8PROC_CATEGORY_LL},   {{0xA7DA, 0xA7DA}, UTF8PROC_CATEGORY_LU},
    {{0xA7DB, 0xA7DB}, UTF8PROC_CATEGORY_LL},   {{0xA7DC, 0xA7DC}, UTF8PROC_CATEGORY_LU},
    {{0x105C0, 0x105F3}, UTF8PROC_CATEGORY_LO}, {{0x10D40, 0x10D49}, UTF8PROC_CATEGORY_ND},
    {{0x10D4A, 0x10D4D}, UTF8PROC_CATEGORY_LO}, {{0x10D4E, 0x10D4E}, UTF8PROC_CATEGORY_LM},
    {{0x10D4F, 0x10D4F}, UTF8PROC_CATEGORY_LO}, {{0x10D50, 0x10D65}, UTF8PROC_CATEGORY_LU},
    {{0x10D69, 0x10D6D}, UTF8PROC_CATEGORY_MN}, {{0x10D6E, 0x10D6E}, UTF8PROC_CATEGORY_PD},
    {{0x10D6F, 0x10D6F}, UTF8PROC_CATEGORY_LM}, {{0x10D70, 0x10D85}, UTF8PROC_CATEGORY_LL},
    {{0x10D8E, 0x10D8F}, UTF8PROC_CATEGORY_SM}, {{0x10EC2, 0x10EC4}, UTF8PROC_CATEGORY_LO},
    {{0x10EFC, 0x10EFC}, UTF8PROC_CATEGORY_MN}, {{0x11380, 0x11389}, UTF8PROC_CATEGORY_LO},
    {{0x1138B, 0x1138B}, UTF8PROC_CATEGORY_LO}, {{0x1138E, 0x1138E}, UTF8PROC_CATEGORY_LO},
    {{0x11390, 0x113B5}, UTF8PROC_CATEGORY_LO}, {{0x113B7, 0x113B7}, UTF8PROC_CATEGORY_LO},
    {{0x113B8, 0x113BA}, UTF8PROC_CATEGORY_MC}, {{0x113BB, 0x113C0}, UTF8PROC_CATEGORY_MN},
    {{0x113C2, 0x113C2}, UTF8PROC_CATEGORY_MC}, {{0x113C5, 0x113C5}, UTF8PROC_CATEGORY_MC},
    {{0x113C7, 0x113CA}, UTF8PROC_CATEGORY_MC}, {{0x113CC, 0x113CD}, UTF8PROC_CATEGORY_MC},
    {{0x113CE, 0x113CE}, UTF8PROC_CATEGORY_MN}, {{0x113CF, 0x113CF}, UTF8PROC_CATEGORY_MC},
    {{0x113D0, 0x113D0}, UTF8PROC_CATEGORY_MN}, {{0x113D1, 0x113D1}, UTF8PROC_CATEGORY_LO},
    {{0x113D2, 0x113D2}, UTF8PROC_CATEGORY_MN}, {{0x113D3, 0x113D3}, UTF8PROC_CATEGORY_LO},
    {{0x113D4, 0x113D5}, UTF8PROC_CATEGORY_PO}, {{0x113D7, 0x113D8}, UTF8PROC_CATEGORY_PO},
    {{0x113E1, 0x113E2}, UTF8PROC_CATEGORY_MN}, {{0x116D0, 0x116E3}, UTF8PROC_CATEGORY_ND},
    {{0x11BC0, 0x11BE0}, UTF8PROC_CATEGORY_LO}, {{0x11BE1, 0x11BE1}, UTF8PROC_CATEGORY_PO},
    {{0x11BF0, 0x11BF9}, UTF8PROC_CATEGORY_ND}, {{0x11F5A, 0x11F5A}, UTF8PROC_CATEGORY_MN},
    {{0x13460, 0x143FA}, UTF8PROC_CATEGORY_LO}, {{0x16100, 0x1611D}, UTF8PROC_CATEGORY_LO},
    {{0x1611E, 0x16129}, UTF8PROC_CATEGORY_MN}, {{0x1612A, 0x1612C}, UTF8PROC_CATEGORY_MC},
    {{0x1612D, 0x1612F}, UTF8PROC_CATEGORY_MN}, {{0x16130, 0x16139}, UTF8PROC_CATEGORY_ND},
    {{0x16D40, 0x16D42}, UTF8PROC_CATEGORY_LM}, {{0x16D43, 0x16D6A}, UTF8PROC_CATEGORY_LO},
    {{0x16D6B, 0x16D6C}, UTF8PROC_CATEGORY_LM}, {{0x16D6D, 0x16D6F}, UTF8PROC_CATEGORY_PO},
    {{0x16D70, 0x16D79}, UTF8PROC_CATEGORY_ND}, {{0x18CFF, 0x18CFF}, UTF8PROC_CATEGORY_LO},
    {{0x1CC00, 0x1CCEF}, UTF8PROC_CATEGORY_SO}, {{0x1CCF0, 0x1CCF9}, UTF8PROC_CATEGORY_ND},
    {{0x1CD00, 0x1CEB3}, UTF8PROC_CATEGORY_SO}, {{0x1E5D0, 0x1E5ED}, UTF8PROC_CATEGORY_LO},
    {{0x1E5EE, 0x1E5EF}, UTF8PROC_CATEGORY_MN}, {{0x1E5F0, 0x1E5F0}, UTF8PROC_CATEGORY_LO},
    {{0x1E5F1, 0x1E5FA}, UTF8PROC_CATEGORY_ND}, {{0x1E5FF, 0x1E5FF}, UTF8PROC_CATEGORY_PO},
    {{0x1F8B2, 0x1F8BB}, UTF8PROC_CATEGORY_SO}, {{0x1F8C0, 0x1F8C1}, UTF8PROC_CATEGORY_SO},
    {{0x1FA89, 0x1FA89}, UTF8PROC_CATEGORY_SO}, {{0x1FA8F, 0x1FA8F}, UTF8PROC_CATEGORY_SO},
    {{0x1FABE, 0x1FABE}, UTF8PROC_CATEGORY_SO}, {{0x1FAC6, 0x1FAC6}, UTF8PROC_CATEGORY_SO},
    {{0x1FADC, 0x1FADC}, UTF8PROC_CATEGORY_SO}, {{0x1FADF, 0x1FADF}, UTF8PROC_CATEGORY_SO},
    {{0x1FAE9, 0x1FAE9}, UTF8PROC_CATEGORY_SO}, {{0x1FBCB, 0x1FBEF}, UTF8PROC_CATEGORY_SO},
    {{0x2EBF0, 0x2EE5D}, UTF8PROC_CATEGORY_LO}};
// A spacing mark (Mc) there, which was a nonspacing one.
constexpr std::int32_t kMovedMark = 0x1171E;

[[nodiscard]] constexpr utf8proc_category_t later_category(std::int32_t character) noexcept {
  const auto* const after =
      std::upper_bound(std::begin(kLaterCharacters), std::end(kLaterCharacters), character,
                       [](std::int32_t value, const LaterCharacters& later) { return value < later.range.first; });
  const bool is_later = after != std::begin(kLaterCharacters) && character <= (after - 1)->range.last;
  return is_later ? (after - 1)->category : UTF8PROC_CATEGORY_CN;
}

// Those that only Digits knows.
constexpr std::array<CodepointRange, 2> kLatestNumbers{{{0x11DE0, 0x11DE9}, {0x16FF4, 0x16FF6}}};

// Marks (M*) that its normalisation forms take for other characters.
constexpr std::array<CodepointRange, 76> kUnknownMarks{
    {{0x07FD, 0x07FD},   {0x0898, 0x089F},   {0x08CA, 0x08D3},   {0x09FE, 0x09FE},   {0x0AFA, 0x0AFF},
     {0x0B55, 0x0B55},   {0x0C04, 0x0C04},   {0x0C3C, 0x0C3C},   {0x0CF3, 0x0CF3},   {0x0D00, 0x0D00},
     {0x0D3B, 0x0D3C},   {0x0D81, 0x0D81},   {0x0EBA, 0x0EBA},   {0x0ECE, 0x0ECE},   {0x1715, 0x1715},
     {0x180F, 0x180F},   {0x1ABF, 0x1ACE},   {0x1CF7, 0x1CF7},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},
     {0xA8FF, 0xA8FF},   {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50},
     {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x11073, 0x11074}, {0x110C2, 0x110C2}, {0x11145, 0x11146},
     {0x111C9, 0x111C9}, {0x111CE, 0x111CF}, {0x11241, 0x11241}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E},
     {0x1182C, 0x1183A}, {0x11930, 0x11935}, {0x11937, 0x11938}, {0x1193B, 0x1193E}, {0x11940, 0x11940},
     {0x11942, 0x11943}, {0x119D1, 0x119D7}, {0x119DA, 0x119E0}, {0x119E4, 0x119E4}, {0x11A01, 0x11A0A},
     {0x11A33, 0x11A39}, {0x11A3B, 0x11A3E}, {0x11A47, 0x11A47}, {0x11A51, 0x11A5B}, {0x11A8A, 0x11A99},
     {0x11D31, 0x11D36}, {0x11D3A, 0x11D3A}, {0x11D3C, 0x11D3D}, {0x11D3F, 0x11D45}, {0x11D47, 0x11D47},
     {0x11D8A, 0x11D8E}, {0x11D90, 0x11D91}, {0x11D93, 0x11D97}, {0x11EF3, 0x11EF6}, {0x11F00, 0x11F01},
     {0x11F03, 0x11F03}, {0x11F34, 0x11F3A}, {0x11F3E, 0x11F42}, {0x13440, 0x13440}, {0x13447, 0x13455},
     {0x16F4F, 0x16F4F}, {0x16F7F, 0x16F87}, {0x16FE4, 0x16FE4}, {0x16FF0, 0x16FF1}, {0x1CF00, 0x1CF2D},
     {0x1CF30, 0x1CF46}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF},
     {0x1E4EC, 0x1E4EF}}};

// Characters that they leave as they are.
constexpr std::array<CodepointRange, 10> kUndecomposed{{{0x32FF, 0x32FF},
                                                        {0xA7F2, 0xA7F4},
                                                        {0xAB69, 0xAB69},
                                                        {0x10781, 0x10785},
                                                        {0x10787, 0x107B0},
                                                        {0x107B2, 0x107BA},
                                                        {0x11938, 0x11938},
                                                        {0x1E030, 0x1E06D},
                                                        {0x1F16C, 0x1F16C},
                                                        {0x1FBF0, 0x1FBF9}}};

}  // namespace headlight::text
