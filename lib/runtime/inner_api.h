// What headlight_analysis calls of the engine's inside. The shared engine shows it for a library of its own version,
// with which it is built and installed; it is no interface for anybody else, and rules.hidden_by_default holds it to
// what is needed.
#pragma once

#include "headlight/export.h"

#define HEADLIGHT_INNER_API HEADLIGHT_API
