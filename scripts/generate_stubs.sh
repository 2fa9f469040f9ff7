#!/bin/sh
# Writes the protobuf and gRPC stubs of gpushare.kubelet anew from its .proto files; `make generate` runs it.
# The generator's version decides which grpcio and protobuf the stubs demand at run time: see pyproject.toml.
set -eu
cd "$(dirname "$0")/.."
# -I operator, or the stubs would import each other under a name that does not exist once installed.
PATH="$PWD/.venv/bin:$PATH" "${PYTHON:-.venv/bin/python}" -m grpc_tools.protoc -I operator \
  --python_out=operator --grpc_python_out=operator --mypy_out=operator --mypy_grpc_out=operator \
  operator/gpushare/kubelet/deviceplugin.proto operator/gpushare/kubelet/podresources.proto
