// What vector-inl.h, which stands in the place of a SIMD library, leaves to pieces that others have, too.
#pragma once

#include "simd/isa/optional_operations-inl.h"
#include "simd/isa/partial_bytes-inl.h"
#include "simd/isa/partial_halves-inl.h"
#include "simd/isa/scalar/philox-inl.h"
#include "simd/isa/scalar/registers-inl.h"
#include "simd/isa/scalar/values.h"
#include "simd/isa/without_float16-inl.h"
#include "simd/isa/without_scalef-inl.h"
