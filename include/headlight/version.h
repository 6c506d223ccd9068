// The version of the library; CMake and the command line read it from here.
#pragma once

// MAJOR.MINOR.PATCH, as in semantic versioning.
#define HEADLIGHT_VERSION_MAJOR 0
#define HEADLIGHT_VERSION_MINOR 1
#define HEADLIGHT_VERSION_PATCH 0
