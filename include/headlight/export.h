// What the shared libraries show: everything else is hidden.
#pragma once

#define HEADLIGHT_API __attribute__((visibility("default")))
