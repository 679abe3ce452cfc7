#!/bin/sh
# Fetches, where it can, the real brokers that some tests talk to: Apache Kafka's jars with Maven and
# Debian's mosquitto with apt. Never fails: a test without its broker skips and says why.
set -u
cd "$(dirname "$0")/.."

say() { printf 'quadweir set-up: %s\n' "$*" >&2; }
as_root_with_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

if command -v mvn >/dev/null; then
    .venv/bin/python scripts/kafka.py fetch </dev/null >&2 ||
        say "Maven could not fetch Kafka's jars: the Kafka tests will skip"
else
    say "no Maven: the Kafka tests will skip (apt-get install maven)"
fi

if ! PATH="$PATH:/usr/sbin:/usr/local/sbin" command -v mosquitto >/dev/null; then
    if as_root_with_apt; then
        say "installing mosquitto for the MQTT tests"
        # No service must start with the package: the tests start a broker of their own.
        DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends \
            mosquitto </dev/null >&2 ||
            say "apt-get could not install mosquitto: the MQTT tests will skip"
    else
        say "no mosquitto: the MQTT tests will skip (as root: apt-get install mosquitto)"
    fi
fi
exit 0
