#!/usr/bin/env bash
# Builds what a real cluster is made of, from Go modules, and prints the folders that hold the programs, one a line.
# Cached by version; what is there is not built again. KUBERNETES_VERSION=1.36.3 names another Kubernetes.
# KUBEBUILDER_ASSETS=/folder of programs, as controller tests have it, comes first; only what it lacks is built.
set -euo pipefail
kubernetes=${KUBERNETES_VERSION:-1.37.2}
etcd=3.6.16
containerd=2.2.9
declare -A programs=(
  [kubernetes]="kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy"
  [etcd]="etcd"
  [containerd]="containerd containerd-shim-runc-v2 ctr"
)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/gpu-sharing-operator
PATH=$PATH:${GOROOT:-/usr/local/go}/bin # where Go's own archive goes, whoever's PATH knows of it

is_given() { # TOOL
  local program
  for program in ${programs[$1]}; do
    [ -x "${KUBEBUILDER_ASSETS:-}/$program" ] || return 1
  done
}

say() { echo "$*" >&2; }

# Renamed into place when all of it is built: what a build that was broken off leaves behind never counts.
build() { # TOOL VERSION
  local tool=$1 version=$2 folder=$cache/$1-$2 begin=$SECONDS
  [ -d "$folder" ] && return 0
  if ! command -v go >/dev/null; then
    say "$tool $version has to be built, and there is no Go: install Go 1.26 or later, or name a folder of programs with KUBEBUILDER_ASSETS"
    exit 1
  fi
  say "building $tool $version (once a machine; all of it takes about a quarter of an hour on two cores)"
  work=$(mktemp -d "$cache/building.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  (cd "$work" && mkdir out && "build_$tool" "$version") >&2
  mv "$work/out" "$folder"
  rm -rf "$work"
  say "$tool $version: $((SECONDS - begin)) s"
}

build_kubernetes() { # VERSION
  local version=$1 minor=${1#1.} name=k8s.io/component-base/version module
  minor=${minor%%.*}
  GOFLAGS='' go mod download "k8s.io/kubernetes@v$version" # with -json it would not say why it cannot
  module=$(GOFLAGS='' go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/^\t"GoMod": "\(.*\)",\?$/\1/p')
  {
    printf 'module programs\n\n'
    grep '^go ' "$module"
    printf '\nrequire k8s.io/kubernetes v%s\n\nreplace (\n' "$version"
    # Kubernetes replaces its parts by folders of its repository; each of them is published as a module, too.
    sed -n "s|^[[:space:]]*\(k8s\.io/[^ ]*\) => \./staging/.*|\t\1 => \1 v0.${version#1.}|p" "$module"
    printf ')\n'
  } >go.mod
  go build -o out/ -ldflags "-s -w -X $name.gitVersion=v$version -X $name.gitMajor=1 -X $name.gitMinor=$minor" \
    k8s.io/kubernetes/cmd/{kube-apiserver,kube-controller-manager,kube-scheduler,kubelet,kube-proxy}
}

build_etcd() { # VERSION
  require "go.etcd.io/etcd/server/v3" "$1" go.etcd.io/etcd/server/v3
  go build -ldflags "-s -w" -o out/etcd go.etcd.io/etcd/server/v3
}

build_containerd() { # VERSION
  local module=github.com/containerd/containerd/v2
  local programs=("$module"/cmd/{containerd,containerd-shim-runc-v2,ctr})
  require "$module" "$1" "${programs[@]}"
  go build -ldflags "-s -w" -o out/ "${programs[@]}"
}

require() { # MODULE VERSION PACKAGE...: a module of ours that needs these packages
  local module=$1 version=$2
  shift 2
  printf 'module programs\n' >go.mod
  {
    printf '//go:build programs\n\npackage programs\n\nimport (\n'
    printf '\t_ "%s"\n' "$@"
    printf ')\n'
  } >programs.go
  go get "$module@v$version"
}

export GOFLAGS="-mod=mod -buildvcs=false" CGO_ENABLED=0
mkdir -p "$cache"
exec 9>"$cache/building.lock"
flock 9 # test runs side by side wait for one build
[ -z "${KUBEBUILDER_ASSETS:-}" ] || echo "$KUBEBUILDER_ASSETS"
for tool in kubernetes etcd containerd; do
  ! is_given "$tool" || continue
  build "$tool" "${!tool}"
  echo "$cache/$tool-${!tool}"
done
