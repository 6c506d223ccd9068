# Shared by tools/run, tools/test and .ci/run: sourced, never run. Installs what is missing from Debian and builds a preset.

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
  local preset=$1 targets
  read -ra targets <<<"$2"
  shift 2
  say "Building ${targets[*]} of the preset '$preset' in build/$preset"
  local output
  output=$(cmake --preset "$preset" "$@" 2>&1) || { printf '%s\n' "$output" >&2; exit 1; }
  cmake --build "build/$preset" --parallel "$(nproc)" --target "${targets[@]}"
}
