#!/bin/sh
# Writes Python stubs of proto/ into examples/python/. Needs grpcio-tools; PYTHON names the interpreter.
set -eu
cd "$(dirname "$0")"
"${PYTHON:-python3}" -m grpc_tools.protoc -I ../../proto --python_out=. --grpc_python_out=. \
    exequatur/access/v1/access.proto exequatur/plan/v1/plan.proto
