#!/bin/bash
# The container image: everything in one, then a container for each service, with mounted settings.
set -euo pipefail
work=$(mktemp -d)
names=()
run() {
    local name=$1
    shift
    names+=("$name")
    "$ENGINE" run --detach --name "$name" --volume "$work/slipway.toml:/etc/slipway/slipway.toml:ro" \
        --volume "$PWD/tests/packages:/tests:ro" "$@" > /dev/null
}
clean() {
    "$ENGINE" rm --force "${names[@]}" > /dev/null 2>&1 || true
    "$ENGINE" volume rm --force slipway-test-state slipway-test-run > /dev/null 2>&1 || true
    rm -rf "$work"
}
answers() {
    "$ENGINE" exec "$1" /usr/lib/slipway/venv/bin/python /tests/answers.py http://localhost:8080 || { "$ENGINE" logs --tail 20 "$1"; exit 1; }
}
trap clean EXIT
printf '[web]\npublic_url = "http://localhost:8080"\n' > "$work/slipway.toml"
chmod 755 "$work"
"$ENGINE" run --rm "$IMAGE" --version
run slipway-test-all "$IMAGE"
answers slipway-test-all
shared=(--volume slipway-test-state:/var/lib/slipway --volume slipway-test-run:/run/slipway)
run slipway-test-web "${shared[@]}" "$IMAGE" web
run slipway-test-worker "${shared[@]}" "$IMAGE" worker
run slipway-test-proxy "${shared[@]}" "$IMAGE" proxy
answers slipway-test-proxy
sleep 2
[ "$("$ENGINE" inspect --format '{{.State.Running}}' slipway-test-worker)" = true ]
