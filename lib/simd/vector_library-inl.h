// The operations of one vector that a SIMD library has, and for plain C++ all of them. The build names the header:
// that of its SIMD library, or the one that an instruction set has in its place (isa.cmake).
#pragma once

#include HEADLIGHT_LIBRARY_HEADER
