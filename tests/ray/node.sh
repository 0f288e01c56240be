#!/bin/sh
# One node of the cluster, in namespaces of its own: node.sh NAME ADDRESS PYTHON RAY-ARGUMENTS...
# Ray listens on every interface, and the only one here leads to the other nodes.
set -eu
name=$1 address=$2 python=$3
shift 3
echo "$name" >/proc/sys/kernel/hostname
mount -t tmpfs tmpfs /tmp
mkdir -p /tmp/home
ip link set lo up
tries=0
until ip link show eth0 >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ] || { echo "no interface came" >&2; exit 1; }
    sleep 0.1
done
ip address add "$address/24" dev eth0
ip link set eth0 up
exec "$python" -c 'from ray.scripts.scripts import main; main()' start --node-ip-address "$address" \
    --num-cpus 1 --object-store-memory 100000000 --disable-usage-stats --block "$@"
