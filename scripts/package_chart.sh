#!/usr/bin/env bash
# Packages the chart together with that of node feature discovery, which the values `nfd.enabled` switches on and off:
#     NFD_REPOSITORY=ADDRESS scripts/package_chart.sh [FOLDER]
# The chart as it lies here has no dependency, so that it lints, renders and installs without a network.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-$root/dist}
version=${NFD_VERSION:-0.19.x}

if [ -z "${NFD_REPOSITORY:-}" ]; then
  echo "name the chart repository of node feature discovery: NFD_REPOSITORY=https://... (or oci://..., file:///...)" >&2
  exit 2
fi
helm=$("$root/scripts/fetch_helm.sh")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -R "$root/charts/gpu-sharing-operator" "$work/chart"
cat >>"$work/chart/Chart.yaml" <<END
dependencies:
- name: node-feature-discovery
  version: "$version"
  repository: "$NFD_REPOSITORY"
  condition: nfd.enabled
END
"$helm" dependency update "$work/chart"
"$helm" package "$work/chart" --destination "$folder"
