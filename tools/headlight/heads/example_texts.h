// What heads are looked at over where nobody gives texts: plain English sentences, of our own, for any published model.
// They ask for what heads are known to do: what a pronoun stands for, who does what to whom, what an adjective or a
// preposition belongs to, where a question or a quotation ends. Few, so that a model of BERT's size takes seconds.
#pragma once

namespace headlight::program {

inline constexpr const char* kExampleTexts[] = {
    "The animal didn't cross the street because it was too tired.",
    "The animal didn't cross the street because it was too wide.",
    "My sister gave her old bicycle to the boy who lives next door.",
    "After the rain had stopped, the children ran back into the garden.",
    "Nobody in the village knew where the two travellers had come from.",
    "The bridge that the engineers built last year is already being repaired.",
    "When the doctor called, she told him that the results were good.",
    "Three small boats and one large ship lay in the quiet harbour.",
    "He opened the letter, read it twice, and put it into his pocket.",
    "Would you rather walk home now or wait for the last train?",
    "The committee has not decided whether it will accept the new plan.",
    "Fresh bread smells best in the morning, before the shop is full.",
    "The teacher who praised the students was later praised by their parents.",
    "If the wind turns, the fire could reach the forest within an hour.",
    "\"I have never seen so many stars,\" said the girl to her father.",
    "The cat chased the mouse under the table, but it got away.",
    "Prices rose by two percent in March and fell again in April.",
    "Because the road was closed, the driver had to take a longer way.",
    "The red box on the shelf is heavier than the blue one below it.",
    "Her brother plays the piano; she herself prefers the violin.",
    "It took the farmers four days to bring in the whole harvest.",
    "The old man, whose eyes were weak, asked the waiter to read him the menu.",
    "Both rivers begin in the mountains, yet they flow into different seas.",
    "As soon as the music began, everyone in the hall stopped talking.",
};

}  // namespace headlight::program
