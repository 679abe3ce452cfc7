#!/bin/sh
# Fetches, where it can, the real programs that some tests talk to: Apache Kafka's jars with Maven,
# Debian's mosquitto and Chromium with apt. Never fails: a test without its program skips and says why.
set -u
cd "$(dirname "$0")/.."

say() { printf 'quadweir set-up: %s\n' "$*" >&2; }
as_root_with_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

if command -v mvn >/dev/null; then
    .venv/bin/python scripts/kafkabroker.py fetch </dev/null >&2 ||
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

if ! command -v chromium >/dev/null && ! command -v chromium-browser >/dev/null; then
    if as_root_with_apt; then
        say "installing Chromium for the tests that look at pages"
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
            chromium fonts-dejavu-core </dev/null >&2 ||
            say "apt-get could not install Chromium: the tests that look at pages will skip"
    else
        say "no Chromium: the tests that look at pages will skip (as root: apt-get install chromium)"
    fi
fi
exit 0
