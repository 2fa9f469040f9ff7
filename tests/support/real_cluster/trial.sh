#!/bin/bash
# What a node's programs do first, done once: a container, a bridge, rules. Ends at what the machine does not permit.
# trial.sh STATE; started by preflight.py in namespaces of a cluster, with a cgroup and a program `pause` of that name.
set -euo pipefail
state=$1

# As containerd does.
mkdir -p "$state"/trial/{lower,upper,work,rootfs}
mount -t overlay overlay -o "lowerdir=$state/trial/lower,upperdir=$state/trial/upper,workdir=$state/trial/work" "$state/trial/rootfs"
cp "$state/pause" "$state/trial/rootfs/pause"
runc spec --bundle "$state/trial"
sed -i -e 's|"terminal": true|"terminal": false|' -e 's|"sh"|"/pause"|' \
  -e "s|\"linux\": {|\"linux\": {\"cgroupsPath\": \"/${state##*/}/trial\",|" "$state/trial/config.json"
runc --root "$state/runc" run --detach --bundle "$state/trial" trial
runc --root "$state/runc" delete --force trial

# As the network of pods and kube-proxy do.
ip link add cni0 type bridge
ip link add pod0 type veth peer name pod1
ip link set pod1 master cni0
iptables -w -t nat -A PREROUTING -m comment --comment trial -p tcp -m statistic --mode random --probability 0.5 \
  -j DNAT --to-destination 127.0.0.1:1
iptables -w -t nat -A POSTROUTING -m mark --mark 0x4000/0x4000 -j MASQUERADE --random-fully
iptables -w -A FORWARD -m conntrack --ctstate INVALID -j DROP
conntrack --stats >/dev/null
