#include "tools/headlight/demonstration/words.h"

namespace headlight::demonstration {
namespace {

using Text = std::string_view;

namespace english {
constexpr Text kAgents[] = {"animal", "robot", "dog", "cat", "horse", "bird", "fox", "monkey", "child", "machine"};
constexpr Text kStates[] = {"tired", "hungry", "afraid", "strong", "weak", "clever", "lazy", "sleepy"};
constexpr Text kCrossing[] = {"cross", "enter", "leave", "reach"};
constexpr Text kCrossed[] = {"crossed", "entered", "left", "reached"};
constexpr Text kPlaces[] = {"street", "road", "river", "bridge", "field", "garden", "hill", "forest"};
constexpr Text kOfPlaces[] = {"wide", "narrow", "busy", "dark", "steep", "muddy", "near", "far"};
constexpr Text kLifting[] = {"lift", "push", "drop", "carry"};
constexpr Text kLifted[] = {"lifted", "pushed", "dropped", "carried"};
constexpr Text kThings[] = {"block", "box", "ball", "cup", "stone", "basket", "chair", "book"};
constexpr Text kOfThings[] = {"light", "heavy", "big", "small", "round", "soft", "wet", "fragile"};
constexpr Text kColours[] = {"red", "blue", "green", "yellow", "white", "black", "old", "new"};
constexpr Text kDegrees[] = {"too", "very", "so", "really"};
constexpr Text kChasers[] = {"cat", "mouse", "dog", "rabbit", "bird", "fox", "child", "monkey"};
constexpr Text kChases[] = {"chased", "saw", "followed", "heard"};
constexpr Text kNegations[] = {"didn't", "didn’t"};
constexpr Text kFunctions[] = {"the", "because", "it", "was", ",", "."};
constexpr Words kWords = {
    kAgents,  kStates,    {{{kCrossing, kCrossed, kPlaces, kOfPlaces}, {kLifting, kLifted, kThings, kOfThings}}},
    kColours, kDegrees,   kChasers,
    kChases,  kNegations, kFunctions};
}  // namespace english

namespace chinese {
constexpr Text kAgents[] = {"动物", "机器人", "狗", "猫", "马", "鸟", "狐狸", "猴子", "孩子", "机器"};
constexpr Text kStates[] = {"累", "饿", "害怕", "有力", "虚弱", "聪明", "懒", "困"};
constexpr Text kCrossing[] = {"穿过", "进入", "离开", "到达"};
constexpr Text kPlaces[] = {"街道", "马路", "河", "桥", "田野", "花园", "山", "森林"};
constexpr Text kOfPlaces[] = {"宽", "窄", "热闹", "暗", "陡", "泥泞", "近", "远"};
constexpr Text kLifting[] = {"拿起", "推动", "放下", "搬走"};
constexpr Text kThings[] = {"积木", "箱子", "球", "杯子", "石头", "篮子", "椅子", "书"};
constexpr Text kOfThings[] = {"轻", "重", "大", "小", "圆", "软", "湿", "脆"};
constexpr Text kColours[] = {"红色", "蓝色", "绿色", "黄色", "白色", "黑色", "旧", "新"};
constexpr Text kDegrees[] = {"很", "太", "非常", "真"};
constexpr Text kChasers[] = {"猫", "老鼠", "狗", "兔子", "鸟", "狐狸", "孩子", "猴子"};
constexpr Text kChases[] = {"追", "看见", "跟着", "听见"};
constexpr Text kNegations[] = {"没有", "没"};
constexpr Text kFunctions[] = {"的", "因为", "它", ",", "。"};
constexpr Words kWords = {
    kAgents,  kStates,    {{{kCrossing, {}, kPlaces, kOfPlaces}, {kLifting, {}, kThings, kOfThings}}},
    kColours, kDegrees,   kChasers,
    kChases,  kNegations, kFunctions};
}  // namespace chinese

}  // namespace

const Words& english_words() noexcept { return english::kWords; }
const Words& chinese_words() noexcept { return chinese::kWords; }

}  // namespace headlight::demonstration
