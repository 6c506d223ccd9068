// What the shared libraries show: everything else is hidden.
#pragma once

// Marks what a shared library shows.
#define HEADLIGHT_API __attribute__((visibility("default")))
