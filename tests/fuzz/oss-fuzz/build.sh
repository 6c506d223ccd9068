#!/bin/bash -eu
# Builds the fuzzers as OSS-Fuzz and ClusterFuzzLite ask for them: with the compilers and flags of the environment, from $SRC/headlight into $OUT,
# each beside its seeds, its dictionary and libFuzzer's options.

# GCC's C++ library, linked in: clang's own has no from_chars of floats before version 20. libFuzzer brings what it needs itself.
export CXXFLAGS="${CXXFLAGS//-stdlib=libc++/}"
export LDFLAGS="${LDFLAGS:-} -static-libstdc++ -static-libgcc"

# Where lines are counted there is no sanitizer.
sanitize=
case ${SANITIZER:-address} in address | undefined) sanitize=${SANITIZER:-address} ;; esac

# Kernels of one set with vectors go the ways of all others.
isas=scalar
if [[ $(uname -m) == x86_64 ]]; then isas='scalar;avx2'; fi

source=$SRC/headlight
cmake -S "$source" -B "$WORK/headlight" -G Ninja -DCMAKE_BUILD_TYPE=Release -DHEADLIGHT_FUZZ=ON -DHEADLIGHT_FUZZING_ENGINE="$LIB_FUZZING_ENGINE" \
  -DHEADLIGHT_SANITIZE="$sanitize" -DHEADLIGHT_ISAS="$isas" -DHEADLIGHT_BENCH=OFF -DHEADLIGHT_INSTALL=OFF
cmake --build "$WORK/headlight" --parallel "$(nproc)" --target tests/fuzz/all

for file in "$source"/tests/fuzz/*_fuzz.cc; do
  name=$(basename "$file" _fuzz.cc)
  cp "$WORK/headlight/tests/fuzz/fuzz_$name" "$OUT"
  zip --quiet --junk-paths "$OUT/fuzz_${name}_seed_corpus.zip" "$source/tests/fuzz/corpus/$name"/*
  if [[ -f $source/tests/fuzz/dictionaries/$name.dict ]]; then cp "$source/tests/fuzz/dictionaries/$name.dict" "$OUT/fuzz_$name.dict"; fi
  longest=2048
  if [[ $name == gguf_model ]]; then longest=8192; fi # a whole model
  printf '[libfuzzer]\nmax_len = %d\ntimeout = 20\nrss_limit_mb = 2048\n\n[asan]\nallocator_may_return_null = 1\n' "$longest" >"$OUT/fuzz_$name.options"
done
