#!/bin/sh
# Makes `providers-ca.pem`, an authority for tests alone, and `providers.pem` with `providers.key`, by which a test stands in for
# the providers of models at their own addresses. The authority's key is thrown away.
set -eu
cd "$(dirname "$0")"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
names="DNS:api.openai.com,DNS:api.anthropic.com,DNS:generativelanguage.googleapis.com,DNS:api.deepseek.com,DNS:api.x.ai"
names="$names,DNS:api.groq.com,DNS:openrouter.ai,DNS:api.mistral.ai,DNS:nietz-test.openai.azure.com"
names="$names,DNS:bedrock-runtime.us-east-1.amazonaws.com"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 36500 -keyout "$folder/ca.key" \
  -out providers-ca.pem -subj "/CN=An authority of nietz's tests" -addext "keyUsage=critical,keyCertSign"
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout providers.key -out "$folder/leaf.csr" \
  -subj "/CN=A provider of models in nietz's tests"
printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth\nbasicConstraints=critical,CA:FALSE\n' "$names" >"$folder/leaf.ext"
openssl x509 -req -in "$folder/leaf.csr" -CA providers-ca.pem -CAkey "$folder/ca.key" -CAcreateserial -days 36000 \
  -CAserial "$folder/ca.srl" -extfile "$folder/leaf.ext" -out providers.pem
